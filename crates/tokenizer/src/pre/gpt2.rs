//! The GPT-2 pattern: `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`.

use super::{Emit, cut};
use crate::unicode::{Class, Reader};

const NOT_SYMBOL: Class = Class::SPACE.or(Class::LETTER).or(Class::NUMBER);

/// Words with the space before them, numbers likewise, runs of other characters, spaces.
pub(super) fn words(text: &str, emit: Emit<'_>) {
    cut(text, emit, end_of_word);
}

#[inline]
fn end_of_word(reader: Reader<'_>, pos: usize) -> usize {
    let first = reader.byte(pos);
    if first == b'\'' {
        let end = contraction(reader, pos);
        if end > pos {
            return end;
        }
    }
    let start = if first == b' ' { pos + 1 } else { pos };
    let Some((class, next)) = reader.class(start) else {
        return start; // one space at the end of the text
    };
    if class.is(Class::LETTER) {
        reader.run(next, Class::LETTER)
    } else if class.is(Class::NUMBER) {
        reader.run(next, Class::NUMBER)
    } else if !class.is(Class::SPACE) {
        reader.run_not(next, NOT_SYMBOL)
    } else {
        spaces(reader, pos)
    }
}

/// The end of `'s|'t|'re|'ve|'m|'ll|'d` at an apostrophe, or `pos`.
fn contraction(reader: Reader<'_>, pos: usize) -> usize {
    match (reader.byte(pos + 1), reader.byte(pos + 2)) {
        (b's' | b't' | b'm' | b'd', _) => pos + 2,
        (b'r' | b'v', b'e') | (b'l', b'l') => pos + 3,
        _ => pos,
    }
}

/// `\s+(?!\S)|\s+` at a space: the run, without its last character when more text follows and the run is longer than one.
pub(super) fn spaces(reader: Reader<'_>, pos: usize) -> usize {
    let mut last = pos;
    let mut end = pos;
    while let Some((class, next)) = reader.class(end) {
        if !class.is(Class::SPACE) {
            return if last > pos { last } else { end };
        }
        last = end;
        end = next;
    }
    end
}
