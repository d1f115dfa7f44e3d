//! Chameleon: sentinel and image tokens spelled in text, blanks, digits and punctuation are cut out before GPT-2's words.

use super::{Emit, cut};
use crate::unicode::{Class, Reader};

/// `<sentinel:[0-9]+>`
pub(super) fn sentinels(text: &str, emit: Emit<'_>) {
    cut(text, emit, |r, pos| {
        let Some(digits) = literal(r, pos, b"<sentinel:") else {
            return pos;
        };
        let end = r.run_while(digits, |c| c.is_ascii_digit());
        if end > digits && r.byte(end) == b'>' {
            end + 1
        } else {
            pos
        }
    });
}

/// `(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z`
pub(super) fn images(text: &str, emit: Emit<'_>) {
    cut(text, emit, |r, pos| {
        let Some(code) = literal(r, pos, b"IMGIMG") else {
            return pos;
        };
        let mut end = code;
        while end < code + 4 && matches!(r.byte(end), b'A'..=b'I') {
            end += 1;
        }
        if end > code && r.byte(end) == b'Z' {
            end + 1
        } else {
            pos
        }
    });
}

/// `[\t\n]|    |  `
pub(super) fn blanks(text: &str, emit: Emit<'_>) {
    cut(text, emit, |r, pos| match r.byte(pos) {
        b'\t' | b'\n' => pos + 1,
        _ => literal(r, pos, b"    ")
            .or_else(|| literal(r, pos, b"  "))
            .unwrap_or(pos),
    });
}

/// ``[\p{P}!-/:-@\[-`{-~]``
pub(super) fn single_punctuation(text: &str, emit: Emit<'_>) {
    cut(text, emit, |r, pos| match r.char(pos) {
        Some((c, next)) if c.is_ascii_punctuation() || Class::of(c).is(Class::PUNCTUATION) => next,
        _ => pos,
    });
}

/// The end of a literal at a position.
fn literal(reader: Reader<'_>, pos: usize, bytes: &[u8]) -> Option<usize> {
    let found = bytes.iter().zip(pos..).all(|(&b, p)| reader.byte(p) == b);
    found.then_some(pos + bytes.len())
}
