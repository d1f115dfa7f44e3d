//! EXAONE-MoE, whose words may run over single spaces:
//!
//! ```text
//! (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}
//! | ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+
//! ```

use super::llama3::{contraction, end_of_spaces};
use super::{Emit, cut};
use crate::unicode::{Class, Reader};

const NOT_SYMBOL: Class = Class::SPACE.or(Class::LETTER).or(Class::NUMBER);

/// Phrases, single digits, symbols, spaces.
pub(super) fn phrases(text: &str, emit: Emit<'_>) {
    cut(text, emit, end_of_phrase);
}

fn end_of_phrase(reader: Reader<'_>, pos: usize) -> usize {
    let Some((class, next)) = reader.class(pos) else {
        return pos;
    };
    if class.is(Class::LETTER) {
        return letters(reader, pos);
    }
    if class.is(Class::NUMBER) {
        return next;
    }
    if reader.byte(pos) == b'\'' {
        let end = contraction(reader, pos);
        if end > pos {
            return end;
        }
    }
    let following = reader.class(next).map(|(class, _)| class);
    if !class.is(Class::NEWLINE) && following.is_some_and(|c| c.is(Class::LETTER)) {
        return letters(reader, next);
    }
    let is_symbol = !class.is(Class::SPACE)
        || (reader.byte(pos) == b' ' && following.is_some_and(|c| !c.is(NOT_SYMBOL)));
    if is_symbol {
        let end = reader.run_not(next, NOT_SYMBOL);
        return match reader.byte(end) {
            b'\r' | b'\n' | b'/' => end + 1,
            _ => end,
        };
    }
    end_of_spaces(reader, pos)
}

/// `(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+` at a letter.
fn letters(reader: Reader<'_>, mut pos: usize) -> usize {
    loop {
        let start = if reader.byte(pos) == b' ' {
            pos + 1
        } else {
            pos
        };
        match reader.class(start) {
            Some((class, next)) if class.is(Class::LETTER) => pos = reader.run(next, Class::MARK),
            _ => return pos,
        }
    }
}
