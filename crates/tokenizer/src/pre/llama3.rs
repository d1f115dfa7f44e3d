//! The Llama 3 family, with Qwen 2 and its many relatives:
//!
//! ```text
//! (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
//! ```
//!
//! The members differ in how many digits stay together, whether marks count as letters, whether contractions are cut, and in
//! their handling of spaces. (`\s*[\r\n]`, as in Ling's pattern, matches the same as `\s*[\r\n]+`.)

use super::{Emit, cut};
use crate::unicode::{Class, Reader};

/// What distinguishes one member of the family.
#[derive(Clone, Copy)]
struct Style {
    /// Characters of words.
    letters: Class,
    /// Longest run of digits.
    digits: usize,
    contractions: bool,
    /// Whether newlines directly after a run of symbols belong to it.
    newlines_after_symbols: bool,
}

const QWEN2: Style = Style {
    letters: Class::LETTER,
    digits: 1,
    contractions: true,
    newlines_after_symbols: true,
};

/// Llama 3: digits in threes.
pub(super) fn three_digits(text: &str, emit: Emit<'_>) {
    const STYLE: Style = Style { digits: 3, ..QWEN2 };
    cut(text, emit, |r, p| end_of_word(r, p, STYLE));
}

/// Runs of digits stay whole (an earlier pass has cut them).
pub(super) fn any_digits(text: &str, emit: Emit<'_>) {
    const STYLE: Style = Style {
        digits: usize::MAX,
        ..QWEN2
    };
    cut(text, emit, |r, p| end_of_word(r, p, STYLE));
}

/// Qwen 2: every digit alone.
pub(super) fn one_digit(text: &str, emit: Emit<'_>) {
    cut(text, emit, |r, p| end_of_word(r, p, QWEN2));
}

/// Qwen 3.5: `[\p{L}\p{M}]+` as words.
pub(super) fn one_digit_with_marks(text: &str, emit: Emit<'_>) {
    const STYLE: Style = Style {
        letters: Class::LETTER.or(Class::MARK),
        ..QWEN2
    };
    cut(text, emit, |r, p| end_of_word(r, p, STYLE));
}

/// No contractions, so that apostrophe suffixes stay whole.
pub(super) fn one_digit_without_contractions(text: &str, emit: Emit<'_>) {
    const STYLE: Style = Style {
        contractions: false,
        ..QWEN2
    };
    cut(text, emit, |r, p| end_of_word(r, p, STYLE));
}

/// Newlines never join the symbols before them.
pub(super) fn one_digit_newlines_apart(text: &str, emit: Emit<'_>) {
    const STYLE: Style = Style {
        newlines_after_symbols: false,
        ..QWEN2
    };
    cut(text, emit, |r, p| end_of_word(r, p, STYLE));
}

/// Jais 2, after [`three_digits`]: spaces are cut into powers of two,
/// `\s{512}(?!\S)|\s{256}(?!\S)|...|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}`.
pub(super) fn powers_of_two_spaces(text: &str, emit: Emit<'_>) {
    let reader = Reader::new(text);
    if text.ends_with(['\r', '\n']) || reader.run(0, Class::SPACE) < text.len() {
        return emit(text);
    }
    let mut left = text.chars().count();
    let mut pos = 0;
    while left > 0 {
        let size = if left >= 512 { 512 } else { 1 << left.ilog2() };
        let end = reader.run_up_to(pos, Class::SPACE, size);
        emit(text.get(pos..end).unwrap_or_default());
        pos = end;
        left -= size;
    }
}

#[inline]
fn end_of_word(reader: Reader<'_>, pos: usize, style: Style) -> usize {
    let Some((class, next)) = reader.class(pos) else {
        return pos;
    };
    if class.is(style.letters) {
        return reader.run(next, style.letters);
    }
    if class.is(Class::NUMBER) {
        return reader.run_up_to(pos, Class::NUMBER, style.digits);
    }
    if style.contractions && reader.byte(pos) == b'\'' {
        let end = contraction(reader, pos);
        if end > pos {
            return end;
        }
    }
    let not_symbol = Class::SPACE.or(style.letters).or(Class::NUMBER);
    let following = reader.class(next);
    if !class.is(Class::NEWLINE)
        && let Some((_, end)) = following.filter(|(class, _)| class.is(style.letters))
    {
        return reader.run(end, style.letters);
    }
    let is_symbol = !class.is(Class::SPACE)
        || (reader.byte(pos) == b' ' && following.is_some_and(|(class, _)| !class.is(not_symbol)));
    if is_symbol {
        let end = reader.run_not(next, not_symbol);
        return if style.newlines_after_symbols {
            reader.run(end, Class::NEWLINE)
        } else {
            end
        };
    }
    end_of_spaces(reader, pos)
}

/// The end of `(?i:'s|'t|'re|'ve|'m|'ll|'d)` at an apostrophe, or `pos`.
pub(super) fn contraction(reader: Reader<'_>, pos: usize) -> usize {
    let pair = (
        reader.byte(pos + 1).to_ascii_lowercase(),
        reader.byte(pos + 2).to_ascii_lowercase(),
    );
    match pair {
        (b's' | b't' | b'm' | b'd', _) => pos + 2,
        (b'r' | b'v', b'e') | (b'l', b'l') => pos + 3,
        _ => pos,
    }
}

/// `\s*[\r\n]+|\s+(?!\S)|\s+` at a space: up to the last newline of the run, else the run without its last character when more
/// text follows.
pub(super) fn end_of_spaces(reader: Reader<'_>, pos: usize) -> usize {
    let mut after_newline = pos;
    let mut last = pos;
    let mut end = pos;
    while let Some((class, next)) = reader.class(end) {
        if !class.is(Class::SPACE) {
            break;
        }
        if class.is(Class::NEWLINE) {
            after_newline = next;
        }
        last = end;
        end = next;
    }
    if after_newline > pos {
        after_newline
    } else if end < reader.len() && last > pos {
        last
    } else {
        end
    }
}
