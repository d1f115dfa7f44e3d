//! The o200k pattern of GPT-4o, Llama 4 and `MiniMax`, and Mistral's Tekken, which differ in digits and contractions:
//!
//! ```text
//! [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//! |[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//! |\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
//! ```

use super::llama3::{contraction, end_of_spaces};
use super::{Emit, cut};
use crate::unicode::{Class, Reader};

const NEUTRAL: Class = Class::MODIFIER.or(Class::OTHER_LETTER).or(Class::MARK);
const HEAD: Class = Class::UPPER.or(Class::TITLE).or(NEUTRAL);
const TAIL: Class = Class::LOWER.or(NEUTRAL);
const NOT_SYMBOL: Class = Class::SPACE.or(Class::LETTER).or(Class::NUMBER);

/// What distinguishes one member of the family.
#[derive(Clone, Copy)]
pub(super) struct Style {
    /// Longest run of digits.
    pub(super) digits: usize,
    /// Whether contractions belong to their word; otherwise they are nothing special.
    pub(super) contractions: bool,
    /// Whether slashes directly after a run of symbols belong to it, as newlines do.
    pub(super) slash_after_symbols: bool,
}

const GPT4O: Style = Style {
    digits: 3,
    contractions: true,
    slash_after_symbols: true,
};

/// GPT-4o: contractions belong to their word, digits in threes.
pub(super) fn words(text: &str, emit: Emit<'_>) {
    cut(text, emit, |r, pos| end_of_piece(r, pos, GPT4O, Class::of));
}

/// Youtu: every digit alone.
pub(super) fn words_one_digit(text: &str, emit: Emit<'_>) {
    const STYLE: Style = Style { digits: 1, ..GPT4O };
    cut(text, emit, |r, pos| end_of_piece(r, pos, STYLE, Class::of));
}

/// Tekken: no contractions, every digit alone.
pub(super) fn words_one_digit_without_contractions(text: &str, emit: Emit<'_>) {
    const STYLE: Style = Style {
        digits: 1,
        contractions: false,
        ..GPT4O
    };
    cut(text, emit, |r, pos| end_of_piece(r, pos, STYLE, Class::of));
}

/// The end of the match at a position. `letters` gives the class of a character inside of words.
#[inline]
pub(super) fn end_of_piece(
    reader: Reader<'_>,
    pos: usize,
    style: Style,
    letters: impl Fn(char) -> Class + Copy,
) -> usize {
    let Some((class, next)) = reader.class(pos) else {
        return pos;
    };
    if class.is(Class::NUMBER) {
        return reader.run_up_to(pos, Class::NUMBER, style.digits);
    }
    // A mark can be the optional first character as well as part of the word.
    let prefix = (!class.is(Class::LETTER) && !class.is(Class::NEWLINE)).then_some(next);
    let starts = [prefix, class.is(HEAD.or(TAIL)).then_some(pos)];
    let starts = || starts.into_iter().flatten();
    let word = starts()
        .find_map(|start| lower_word(reader, start, letters))
        .or_else(|| starts().find_map(|start| upper_word(reader, start, letters)));
    if let Some(end) = word {
        return if style.contractions && reader.byte(end) == b'\'' {
            contraction(reader, end)
        } else {
            end
        };
    }
    let following = reader.class(next);
    let is_symbol = !class.is(Class::SPACE)
        || (reader.byte(pos) == b' ' && following.is_some_and(|(class, _)| !class.is(NOT_SYMBOL)));
    if is_symbol {
        let end = reader.run_not(next, NOT_SYMBOL);
        return reader.run_while(end, |c| {
            matches!(c, '\r' | '\n') || (c == '/' && style.slash_after_symbols)
        });
    }
    end_of_spaces(reader, pos)
}

/// `HEAD*TAIL+`: when nothing of the tail follows the head, the match ends behind the last character of the head that can be
/// tail.
fn lower_word(reader: Reader<'_>, start: usize, letters: impl Fn(char) -> Class) -> Option<usize> {
    let mut pos = start;
    let mut after_neutral = None;
    while let Some((c, next)) = reader.char(pos) {
        let class = letters(c);
        if !class.is(HEAD) {
            break;
        }
        if class.is(NEUTRAL) {
            after_neutral = Some(next);
        }
        pos = next;
    }
    let end = reader.run_while(pos, |c| letters(c).is(TAIL));
    if end > pos { Some(end) } else { after_neutral }
}

/// `HEAD+TAIL*`, asked only where `lower_word` has found nothing: no tail can follow the head.
fn upper_word(reader: Reader<'_>, start: usize, letters: impl Fn(char) -> Class) -> Option<usize> {
    let end = reader.run_while(start, |c| letters(c).is(HEAD));
    (end > start).then_some(end)
}
