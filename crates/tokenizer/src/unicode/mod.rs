//! Character classes, as the patterns of pre-tokenizers know them, and a cursor over text by class.

mod tables;

use tables::{BLOCK, BLOCKS, INDEX};

/// The class of one character: exactly one of the bits below (newlines have two).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Class(u16);

impl Class {
    /// `\s`: `White_Space`, newlines included.
    pub(crate) const SPACE: Class = Class(1);
    /// Carriage return and line feed.
    pub(crate) const NEWLINE: Class = Class(1 << 1);
    /// `\p{Lu}`.
    pub(crate) const UPPER: Class = Class(1 << 2);
    /// `\p{Ll}`.
    pub(crate) const LOWER: Class = Class(1 << 3);
    /// `\p{Lt}`.
    pub(crate) const TITLE: Class = Class(1 << 4);
    /// `\p{Lm}`.
    pub(crate) const MODIFIER: Class = Class(1 << 5);
    /// `\p{Lo}`.
    pub(crate) const OTHER_LETTER: Class = Class(1 << 6);
    /// `\p{M}`.
    pub(crate) const MARK: Class = Class(1 << 7);
    /// `\p{Nd}`.
    pub(crate) const DIGIT: Class = Class(1 << 8);
    /// `\p{Nl}` and `\p{No}`.
    pub(crate) const OTHER_NUMBER: Class = Class(1 << 9);
    /// `\p{P}`.
    pub(crate) const PUNCTUATION: Class = Class(1 << 10);
    /// `\p{S}`.
    pub(crate) const SYMBOL: Class = Class(1 << 11);
    /// Everything else: control, format, unassigned.
    pub(crate) const OTHER: Class = Class(1 << 12);

    /// `\p{L}`.
    pub(crate) const LETTER: Class = Self::UPPER
        .or(Self::LOWER)
        .or(Self::TITLE)
        .or(Self::MODIFIER)
        .or(Self::OTHER_LETTER);
    /// `\p{N}`.
    pub(crate) const NUMBER: Class = Self::DIGIT.or(Self::OTHER_NUMBER);

    /// The union of two sets of classes.
    pub(crate) const fn or(self, other: Class) -> Class {
        Class(self.0 | other.0)
    }

    /// Whether this class is one of `set`.
    #[inline]
    pub(crate) const fn is(self, set: Class) -> bool {
        self.0 & set.0 != 0
    }

    const fn from_letter(letter: u8) -> Class {
        match letter {
            b'r' => Self::SPACE.or(Self::NEWLINE),
            b's' => Self::SPACE,
            b'U' => Self::UPPER,
            b'l' => Self::LOWER,
            b'T' => Self::TITLE,
            b'm' => Self::MODIFIER,
            b'o' => Self::OTHER_LETTER,
            b'M' => Self::MARK,
            b'd' => Self::DIGIT,
            b'n' => Self::OTHER_NUMBER,
            b'P' => Self::PUNCTUATION,
            b'S' => Self::SYMBOL,
            _ => Self::OTHER,
        }
    }

    /// The class of a character.
    #[inline]
    pub(crate) fn of(c: char) -> Class {
        let code = c as usize;
        match INDEX.get(code / BLOCK) {
            Some(&block) => CLASSES[usize::from(block)][code % BLOCK],
            None => Self::OTHER,
        }
    }
}

static CLASSES: [[Class; BLOCK]; BLOCKS.len()] = {
    let mut classes = [[Class::OTHER; BLOCK]; BLOCKS.len()];
    let mut block = 0;
    while block < BLOCKS.len() {
        let mut i = 0;
        while i < BLOCK {
            classes[block][i] = Class::from_letter(BLOCKS[block][i]);
            i += 1;
        }
        block += 1;
    }
    classes
};

/// Reads a piece of text by character and class. Positions are byte offsets at character borders.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'t> {
    text: &'t str,
}

impl<'t> Reader<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Reader { text }
    }

    pub(crate) fn len(self) -> usize {
        self.text.len()
    }

    /// The byte at a position; 0 past the end. Only ASCII bytes say something about the character there.
    #[inline]
    pub(crate) fn byte(self, pos: usize) -> u8 {
        self.text.as_bytes().get(pos).copied().unwrap_or(0)
    }

    /// The character at a position and the position after it.
    #[inline]
    pub(crate) fn char(self, pos: usize) -> Option<(char, usize)> {
        let first = *self.text.as_bytes().get(pos)?;
        if first < 0x80 {
            return Some((char::from(first), pos + 1));
        }
        let c = self.text.get(pos..)?.chars().next()?;
        Some((c, pos + c.len_utf8()))
    }

    /// The class of the character at a position and the position after it.
    #[inline]
    pub(crate) fn class(self, pos: usize) -> Option<(Class, usize)> {
        let (c, next) = self.char(pos)?;
        Some((Class::of(c), next))
    }

    /// The end of the run of characters of `set` that starts at `pos` (`pos` itself when there is none).
    #[inline]
    pub(crate) fn run(self, mut pos: usize, set: Class) -> usize {
        while let Some((class, next)) = self.class(pos) {
            if !class.is(set) {
                break;
            }
            pos = next;
        }
        pos
    }

    /// The end of the run of characters that are not of `set`.
    #[inline]
    pub(crate) fn run_not(self, mut pos: usize, set: Class) -> usize {
        while let Some((class, next)) = self.class(pos) {
            if class.is(set) {
                break;
            }
            pos = next;
        }
        pos
    }

    /// The end of a run of at most `limit` characters of `set`.
    #[inline]
    pub(crate) fn run_up_to(self, mut pos: usize, set: Class, limit: usize) -> usize {
        for _ in 0..limit {
            match self.class(pos) {
                Some((class, next)) if class.is(set) => pos = next,
                _ => break,
            }
        }
        pos
    }

    /// The end of the run of characters for which `wanted` holds.
    #[inline]
    pub(crate) fn run_while(self, mut pos: usize, wanted: impl Fn(char) -> bool) -> usize {
        while let Some((c, next)) = self.char(pos) {
            if !wanted(c) {
                break;
            }
            pos = next;
        }
        pos
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_have_the_classes_that_unicode_gives_them() {
        let cases = [
            ('a', Class::LOWER),
            ('Z', Class::UPPER),
            ('ǅ', Class::TITLE),
            ('ʰ', Class::MODIFIER),
            ('中', Class::OTHER_LETTER),
            ('\u{0301}', Class::MARK),
            ('\u{E0100}', Class::MARK),
            ('7', Class::DIGIT),
            ('٣', Class::DIGIT),
            ('½', Class::OTHER_NUMBER),
            ('。', Class::PUNCTUATION),
            ('$', Class::SYMBOL),
            ('😀', Class::SYMBOL),
            ('\u{85}', Class::SPACE),
            ('\u{3000}', Class::SPACE),
            ('\u{200B}', Class::OTHER),
            ('\u{0}', Class::OTHER),
            ('\u{10FFFF}', Class::OTHER),
        ];
        for (c, class) in cases {
            assert_eq!(Class::of(c), class, "{c:?}");
        }
        assert!(Class::of('\n').is(Class::NEWLINE) && Class::of('\n').is(Class::SPACE));
    }
}
