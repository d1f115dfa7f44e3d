//! Small passes that many pre-tokenizers share: runs of punctuation (Falcon and the default), digits, newlines.

use super::{Emit, cut};
use crate::unicode::{Class, Reader};

/// `[\p{P}\$\+<=>\^~\|]+`, of the default.
pub(super) fn without_backtick(text: &str, emit: Emit<'_>) {
    cut(text, emit, |r, pos| r.run_while(pos, is_punctuation));
}

/// ``[\p{P}\$\+<=>\^~\|`]+``, of Falcon.
pub(super) fn with_backtick(text: &str, emit: Emit<'_>) {
    cut(text, emit, |r, pos| {
        r.run_while(pos, |c| c == '`' || is_punctuation(c))
    });
}

fn is_punctuation(c: char) -> bool {
    matches!(c, '$' | '+' | '<' | '=' | '>' | '^' | '~' | '|')
        || Class::of(c).is(Class::PUNCTUATION)
}

/// `\p{N}`
pub(super) fn single_numbers(text: &str, emit: Emit<'_>) {
    cut(text, emit, |r, pos| r.run_up_to(pos, Class::NUMBER, 1));
}

/// `\p{N}{1,3}`
pub(super) fn number_triples(text: &str, emit: Emit<'_>) {
    cut(text, emit, |r, pos| r.run_up_to(pos, Class::NUMBER, 3));
}

/// `\p{N}+`
pub(super) fn number_runs(text: &str, emit: Emit<'_>) {
    cut(text, emit, |r, pos| r.run(pos, Class::NUMBER));
}

/// `[0-9][0-9][0-9]`
pub(super) fn digit_triples(text: &str, emit: Emit<'_>) {
    cut(text, emit, |r: Reader<'_>, pos| {
        let all = (pos..pos + 3).all(|p| r.byte(p).is_ascii_digit());
        if all { pos + 3 } else { pos }
    });
}

/// `[^\n]+|[\n]+`
pub(super) fn newline_runs(text: &str, emit: Emit<'_>) {
    cut(text, emit, |r, pos| r.run_while(pos, |c| c == '\n'));
}
