//! `DeepSeek` V3 and the models of its pattern. After digits and CJK are cut out, words are
//!
//! ```text
//! [!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*
//! |\s*[\r\n]+|\s+(?!\S)|\s+
//! ```

use super::gpt2::spaces;
use super::llama3::end_of_spaces;
use super::{Emit, cut};
use crate::unicode::{Class, Reader};

const LETTERS: Class = Class::LETTER.or(Class::MARK);
const SYMBOLS: Class = Class::PUNCTUATION.or(Class::SYMBOL);

/// `[一-龥぀-ゟ゠-ヿ]+`
pub(super) fn cjk_and_kana(text: &str, emit: Emit<'_>) {
    cut(text, emit, |r, pos| {
        r.run_while(pos, |c| matches!(c, '一'..='龥' | '\u{3040}'..='\u{30FF}'))
    });
}

/// The pattern above.
pub(super) fn words(text: &str, emit: Emit<'_>) {
    cut(text, emit, |r, pos| {
        end_of_word(r, pos).unwrap_or_else(|| match symbols(r, pos) {
            end if end > pos => r.run(end, Class::NEWLINE),
            _ if r.class(pos).is_some_and(|(c, _)| c.is(Class::SPACE)) => end_of_spaces(r, pos),
            _ => pos,
        })
    });
}

/// Spark's variant: `| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+`.
pub(super) fn words_newlines_apart(text: &str, emit: Emit<'_>) {
    cut(text, emit, |r, pos| {
        end_of_word(r, pos).unwrap_or_else(|| match r.class(pos) {
            Some((class, next)) if class.is(Class::NEWLINE) => next,
            Some((class, _)) => match symbols(r, pos) {
                end if end > pos => end,
                _ if class.is(Class::SPACE) => spaces(r, pos),
                _ => pos,
            },
            None => pos,
        })
    });
}

/// The first two alternatives.
#[inline]
fn end_of_word(reader: Reader<'_>, pos: usize) -> Option<usize> {
    let (class, next) = reader.class(pos)?;
    if class.is(LETTERS) {
        return Some(reader.run(next, LETTERS));
    }
    if reader.byte(pos).is_ascii_punctuation() {
        return reader
            .byte(next)
            .is_ascii_alphabetic()
            .then(|| reader.run_while(next, |c| c.is_ascii_alphabetic()));
    }
    if class.is(Class::NEWLINE.or(SYMBOLS)) {
        return None;
    }
    let (following, end) = reader.class(next)?;
    following.is(LETTERS).then(|| reader.run(end, LETTERS))
}

/// ` ?[\p{P}\p{S}]+`, or `pos`.
#[inline]
fn symbols(reader: Reader<'_>, pos: usize) -> usize {
    let start = if reader.byte(pos) == b' ' {
        pos + 1
    } else {
        pos
    };
    let end = reader.run(start, SYMBOLS);
    if end > start { end } else { pos }
}
