//! `SentencePiece` BPE (`tokenizer.ggml.model` = `llama`): neighbours merge when together they are a token, the token of highest score
//! first; what is left without a token is spelled in byte tokens.

use rustc_hash::FxHashSet;

use crate::TokenId;
use crate::bpe::Scratch;
use crate::error::TokenizerError;
use crate::merge::{Candidate, Rules, Symbol};
use crate::spaces::{SPACE, WordCuts, mark_spaces};
use crate::texts::TextIndex;
use crate::vocabulary::{TokenKind, Vocabulary, byte_tokens};
use crate::word_cache::WordCache;

/// Id of a symbol whose token has not been looked up.
const UNKNOWN: u32 = u32::MAX;

/// The encoder.
pub(crate) struct SentencePiece {
    /// Token of each byte.
    bytes: Vec<Option<u32>>,
    unk: Option<TokenId>,
    /// Longest text of a token.
    longest: usize,
    /// Merge order of each token, smaller first; `u32::MAX` for tokens that text never becomes.
    order: Vec<u32>,
    cuts: WordCuts,
}

struct ByText<'a> {
    model: &'a SentencePiece,
    vocabulary: &'a Vocabulary,
    index: &'a TextIndex,
    word: &'a [u8],
}

impl Rules for ByText<'_> {
    #[inline]
    fn candidate(&self, left: Symbol, right: Symbol) -> Candidate {
        let (start, end) = (left.start as usize, right.end as usize);
        if end - start > self.model.longest {
            return Candidate::NONE;
        }
        let id = self
            .word
            .get(start..end)
            .and_then(|text| self.index.get(&self.vocabulary.tokens, text));
        match id {
            Some(id) => Candidate {
                order: self.model.order_of(id),
                id,
            },
            None => Candidate::NONE,
        }
    }
}

impl SentencePiece {
    pub(crate) fn new(vocabulary: &Vocabulary, index: &TextIndex) -> Self {
        let order: Vec<u32> = vocabulary
            .kinds
            .iter()
            .zip(&vocabulary.scores)
            .map(|(kind, &score)| match kind {
                TokenKind::Control | TokenKind::Unknown | TokenKind::Byte => u32::MAX,
                _ => descending(score),
            })
            .collect();
        let mut longest = 0;
        let mut before_space = FxHashSet::default();
        for (text, _) in vocabulary
            .tokens
            .iter()
            .zip(&order)
            .filter(|&(_, &order)| order != u32::MAX)
        {
            longest = longest.max(text.len());
            WordCuts::collect(text, &mut before_space);
        }
        Self {
            bytes: byte_tokens(vocabulary, index),
            unk: vocabulary.special.unk,
            longest,
            order,
            cuts: WordCuts::new(before_space),
        }
    }

    fn order_of(&self, id: u32) -> u32 {
        self.order.get(id as usize).copied().unwrap_or(u32::MAX)
    }

    /// Appends the tokens of a text without special tokens. `prefix`: a space is put before it.
    pub(crate) fn encode(
        &self,
        text: &str,
        prefix: bool,
        vocabulary: &Vocabulary,
        index: &TextIndex,
        scratch: &mut Scratch,
        out: &mut Vec<TokenId>,
    ) -> Result<(), TokenizerError> {
        let mut escaped = String::with_capacity(text.len() + text.len() / 2 + SPACE.len_utf8());
        if prefix {
            escaped.push(SPACE);
        }
        mark_spaces(text, &mut escaped);
        let mut result = Ok(());
        self.cuts.cut(&escaped, |word| {
            if result.is_ok() {
                result = self.encode_word(word, vocabulary, index, scratch, out);
            }
        });
        result
    }

    fn encode_word(
        &self,
        word: &str,
        vocabulary: &Vocabulary,
        index: &TextIndex,
        scratch: &mut Scratch,
        out: &mut Vec<TokenId>,
    ) -> Result<(), TokenizerError> {
        let key = WordCache::key(word.as_bytes());
        if let Some(ids) = key.and_then(|key| scratch.cache.get(key)) {
            out.extend(ids.iter().map(|&id| TokenId(id)));
            return Ok(());
        }
        let Scratch {
            merger,
            symbols,
            ids,
            cache,
        } = scratch;
        symbols.clear();
        symbols.extend(word.char_indices().map(|(at, c)| Symbol {
            id: UNKNOWN,
            start: at as u32,
            end: (at + c.len_utf8()) as u32,
        }));
        let rules = ByText {
            model: self,
            vocabulary,
            index,
            word: word.as_bytes(),
        };
        merger.merge(&rules, symbols);
        ids.clear();
        for symbol in symbols.iter() {
            if symbol.id != UNKNOWN {
                ids.push(symbol.id);
                continue;
            }
            let text = word
                .get(symbol.start as usize..symbol.end as usize)
                .unwrap_or_default();
            match index.get(&vocabulary.tokens, text.as_bytes()) {
                Some(id) if self.order_of(id) != u32::MAX => ids.push(id),
                _ => self.spell(text, ids)?,
            }
        }
        if let Some(key) = key {
            cache.put(key, ids);
        }
        out.extend(ids.iter().map(|&id| TokenId(id)));
        Ok(())
    }

    /// Appends a character as byte tokens, or as one unknown token where the vocabulary lacks one of them.
    fn spell(&self, character: &str, ids: &mut Vec<u32>) -> Result<(), TokenizerError> {
        let kept = ids.len();
        for byte in character.bytes() {
            if let Some(id) = self.bytes.get(usize::from(byte)).copied().flatten() {
                ids.push(id);
                continue;
            }
            ids.truncate(kept);
            let unk = self.unk.ok_or(TokenizerError::NoToken { byte })?;
            ids.push(unk.0);
            break;
        }
        Ok(())
    }
}

/// Scores as integers of the opposite order, never `u32::MAX`.
fn descending(score: f32) -> u32 {
    let bits = (score + 0.0).to_bits(); // -0.0 becomes 0.0
    let ascending = if bits >> 31 == 0 {
        bits | 1 << 31
    } else {
        !bits
    };
    (!ascending).min(u32::MAX - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn higher_scores_come_first() {
        let scores = [
            f32::INFINITY,
            2.0,
            0.5,
            0.0,
            -0.5,
            -31999.0,
            f32::NEG_INFINITY,
        ];
        for pair in scores.windows(2) {
            assert!(descending(pair[0]) < descending(pair[1]), "{pair:?}");
        }
        assert_eq!(descending(-0.0), descending(0.0));
    }
}
