//! `WordPiece` (`tokenizer.ggml.model` = `bert`): text is cleaned, cut into words at spaces, punctuation and ideographs, and each word
//! into the longest pieces from the left. A word with a part that is no piece is unknown as a whole (Devlin et al. 2018, "BERT").
//!
//! Characters are classed by the tables with which models were trained (`tools/generate_bert_tables.py`), not by newer Unicode.

#[rustfmt::skip]
mod tables;

use crate::TokenId;
use crate::bpe::Scratch;
use crate::error::TokenizerError;
use crate::spaces::SPACE;
use crate::trie::Trie;
use crate::vocabulary::{TokenKind, Vocabulary};
use crate::word_cache::WordCache;

/// Longer words are unknown, as in BERT; the file format has no key for it.
const LONGEST_WORD: usize = 100;

/// The encoder.
pub(crate) struct WordPiece {
    /// Pieces that begin a word.
    first: Trie,
    /// Pieces inside of words.
    inside: Trie,
    unk: Option<TokenId>,
    lowercase: bool,
    strip_accents: bool,
}

impl WordPiece {
    pub(crate) fn new(vocabulary: &Vocabulary) -> Result<Self, TokenizerError> {
        let (mut first, mut inside) = (Vec::new(), Vec::new());
        for ((text, id), kind) in vocabulary.tokens.iter().zip(0..).zip(&vocabulary.kinds) {
            if matches!(kind, TokenKind::Control | TokenKind::Unknown) {
                continue;
            }
            match without_mark(text) {
                Some(bare) => first.push((bare, id)),
                None => inside.push((text, id)),
            }
        }
        let lowercase = vocabulary.lowercase.unwrap_or(true);
        Ok(Self {
            first: Trie::new(first)?,
            inside: Trie::new(inside)?,
            unk: vocabulary.special.unk,
            lowercase,
            strip_accents: vocabulary.strip_accents.unwrap_or(lowercase),
        })
    }

    /// Appends the tokens of a text without special tokens.
    pub(crate) fn encode(
        &self,
        text: &str,
        scratch: &mut Scratch,
        out: &mut Vec<TokenId>,
    ) -> Result<(), TokenizerError> {
        let mut word = String::new();
        for c in text.chars() {
            if c.is_ascii_alphanumeric() {
                word.push(if self.lowercase {
                    c.to_ascii_lowercase()
                } else {
                    c
                });
                continue;
            }
            if is_in(c, tables::REMOVED) {
                continue;
            }
            if is_in(c, tables::SPACES) {
                self.end_word(&mut word, scratch, out)?;
                continue;
            }
            let alone = is_in(c, tables::IDEOGRAPHS);
            if alone {
                self.end_word(&mut word, scratch, out)?;
            }
            let mut result = Ok(());
            self.normalize(c, &mut |c| {
                if result.is_ok() {
                    result = self.push(c, &mut word, scratch, out);
                }
            });
            result?;
            if alone {
                self.end_word(&mut word, scratch, out)?;
            }
        }
        self.end_word(&mut word, scratch, out)
    }

    /// A character without accents and in small letters, where the model wants it so.
    fn normalize(&self, c: char, emit: &mut dyn FnMut(char)) {
        let mut small = |c: char| {
            if self.lowercase {
                c.to_lowercase().for_each(&mut *emit);
            } else {
                emit(c);
            }
        };
        if !self.strip_accents || c.is_ascii() {
            small(c);
        } else if let Some(parts) = hangul_parts(c) {
            parts.into_iter().flatten().for_each(small);
        } else if let Ok(at) = tables::WITHOUT_ACCENTS.binary_search_by_key(&c, |row| row.0) {
            let bare = tables::WITHOUT_ACCENTS.get(at).map_or("", |row| row.1);
            bare.chars().for_each(small);
        } else if !is_in(c, tables::MARKS) {
            small(c);
        }
    }

    /// Adds a character to the word; punctuation is a word of its own.
    fn push(
        &self,
        c: char,
        word: &mut String,
        scratch: &mut Scratch,
        out: &mut Vec<TokenId>,
    ) -> Result<(), TokenizerError> {
        let alone = if c.is_ascii() {
            c.is_ascii_punctuation()
        } else {
            is_in(c, tables::PUNCTUATION)
        };
        if alone {
            self.end_word(word, scratch, out)?;
        }
        word.push(c);
        if alone {
            self.end_word(word, scratch, out)?;
        }
        Ok(())
    }

    fn end_word(
        &self,
        word: &mut String,
        scratch: &mut Scratch,
        out: &mut Vec<TokenId>,
    ) -> Result<(), TokenizerError> {
        let Some(&byte) = word.as_bytes().first() else {
            return Ok(());
        };
        let Scratch { ids, cache, .. } = scratch;
        let key = WordCache::key(word.as_bytes());
        let ids = if let Some(known) = key.and_then(|key| cache.get(key)) {
            known
        } else {
            ids.clear();
            if self.find_pieces(word, ids).is_none() {
                ids.clear();
                ids.push(self.unk.ok_or(TokenizerError::NoToken { byte })?.0);
            }
            if let Some(key) = key {
                cache.put(key, ids);
            }
            ids
        };
        out.extend(ids.iter().map(|&id| TokenId(id)));
        word.clear();
        Ok(())
    }

    /// Appends the pieces of a word; `None` when a part of it is no piece.
    fn find_pieces(&self, word: &str, ids: &mut Vec<u32>) -> Option<()> {
        if word.chars().nth(LONGEST_WORD).is_some() {
            return None;
        }
        let mut pieces = &self.first;
        let mut rest = word.as_bytes();
        while !rest.is_empty() {
            let (length, id) = pieces.longest(rest)?;
            ids.push(id);
            rest = rest.get(length..)?;
            pieces = &self.inside;
        }
        Some(())
    }
}

/// The text of a piece that begins a word: it has U+2581 before it. The mark alone is a piece inside of words.
fn without_mark(text: &[u8]) -> Option<&[u8]> {
    let bare = text.strip_prefix(SPACE.encode_utf8(&mut [0; 4]).as_bytes());
    bare.filter(|bare| !bare.is_empty())
}

fn is_in(c: char, ranges: &[(char, char)]) -> bool {
    let at = ranges.partition_point(|&(_, last)| last < c);
    ranges.get(at).is_some_and(|&(first, _)| first <= c)
}

/// The letters that a Hangul syllable is composed of (Unicode, section 3.12).
fn hangul_parts(c: char) -> Option<[Option<char>; 3]> {
    let index = u32::from(c).checked_sub(0xAC00).filter(|&i| i < 11172)?;
    let (leading, vowel, trailing) = (index / 588, index % 588 / 28, index % 28);
    let trailing = (trailing > 0).then_some(0x11A7 + trailing);
    Some([
        char::from_u32(0x1100 + leading),
        char::from_u32(0x1161 + vowel),
        trailing.and_then(char::from_u32),
    ])
}
