//! Unigram (`tokenizer.ggml.model` = `t5`): text is rewritten by the rules of `SentencePiece`, and of all ways to cut it into tokens
//! the most probable is taken (Kudo 2018, "Subword Regularization").

use rustc_hash::FxHashSet;

use crate::TokenId;
use crate::bpe::Scratch;
use crate::charsmap::Charsmap;
use crate::error::TokenizerError;
use crate::spaces::{SPACE, WordCuts};
use crate::texts::TextIndex;
use crate::trie::Trie;
use crate::vocabulary::{TokenKind, Vocabulary, byte_tokens};
use crate::word_cache::WordCache;

/// How much less likely an unknown character is than the least likely token, as a logarithm.
const UNKNOWN_PENALTY: f64 = 10.0;
/// In place of a token that is not known.
const UNKNOWN: u32 = u32::MAX;

/// The encoder.
pub(crate) struct Unigram {
    tokens: Trie,
    /// Logarithm of the probability, by token.
    scores: Vec<f64>,
    unknown_score: f64,
    unk: Option<TokenId>,
    /// Token of each byte, where the vocabulary has all of them: unknown characters are spelled.
    bytes: Option<Vec<u32>>,
    cuts: WordCuts,
    charsmap: Charsmap,
    space_prefix: bool,
    merge_spaces: bool,
}

/// The best way from the beginning of the word to a place.
#[derive(Clone, Copy)]
struct Step {
    score: f64,
    start: u32,
    token: u32,
}

impl Unigram {
    pub(crate) fn new(vocabulary: &Vocabulary, index: &TextIndex) -> Result<Self, TokenizerError> {
        let usable = || {
            let tokens = vocabulary.tokens.iter().zip(0..).zip(&vocabulary.kinds);
            tokens.filter_map(|(token, kind)| {
                matches!(kind, TokenKind::Normal | TokenKind::UserDefined).then_some(token)
            })
        };
        let mut before_space = FxHashSet::default();
        for (text, _) in usable() {
            WordCuts::collect(text, &mut before_space);
        }
        let lowest = vocabulary
            .scores
            .iter()
            .zip(&vocabulary.kinds)
            .filter(|(_, kind)| **kind == TokenKind::Normal)
            .map(|(&score, _)| f64::from(score))
            .fold(f64::INFINITY, f64::min);
        let scores = vocabulary.scores.iter().zip(&vocabulary.kinds);
        Ok(Self {
            tokens: Trie::new(usable())?,
            scores: scores
                .map(|(&score, kind)| match kind {
                    TokenKind::UserDefined => 0.0, // better than any probability
                    _ => f64::from(score),
                })
                .collect(),
            unknown_score: if lowest.is_finite() { lowest } else { 0.0 } - UNKNOWN_PENALTY,
            unk: vocabulary.special.unk,
            bytes: byte_tokens(vocabulary, index).into_iter().collect(),
            cuts: WordCuts::new(before_space),
            charsmap: Charsmap::new(&vocabulary.precompiled_charsmap)?,
            space_prefix: vocabulary.add_space_prefix.unwrap_or(false),
            merge_spaces: vocabulary.remove_extra_whitespaces.unwrap_or(false),
        })
    }

    /// Appends the tokens of a text without special tokens.
    pub(crate) fn encode(
        &self,
        text: &str,
        scratch: &mut Scratch,
        out: &mut Vec<TokenId>,
    ) -> Result<(), TokenizerError> {
        let normalized = self.normalize(text)?;
        let first = out.len();
        let mut result = Ok(());
        self.cuts.cut(&normalized, |word| {
            if result.is_ok() {
                result = self.encode_word(word, first, scratch, out);
            }
        });
        result
    }

    /// The text by the rules, with marked spaces.
    fn normalize(&self, text: &str) -> Result<String, TokenizerError> {
        let mut normalized = String::with_capacity(text.len() + text.len() / 2 + 3);
        let mut after_space = self.merge_spaces;
        let mut prefix = self.space_prefix;
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let mut buffer = [0; 4];
            let (length, mut replacement) = match self.charsmap.longest(rest)? {
                Some(rule) => rule,
                None => (c.len_utf8(), &*c.encode_utf8(&mut buffer)),
            };
            if after_space {
                replacement = replacement.trim_start_matches(' ');
            }
            // With merged spaces nothing comes before the first character that stays.
            if prefix && !(self.merge_spaces && replacement.is_empty()) {
                normalized.push(SPACE);
                prefix = false;
            }
            for c in replacement.chars() {
                normalized.push(if c == ' ' { SPACE } else { c });
            }
            if !replacement.is_empty() {
                after_space = self.merge_spaces && replacement.ends_with(' ');
            }
            rest = rest.get(length..).unwrap_or_default();
        }
        if self.merge_spaces {
            normalized.truncate(normalized.trim_end_matches(SPACE).len());
        }
        Ok(normalized)
    }

    /// Appends the tokens of a word; those of the same text begin at `first`.
    fn encode_word(
        &self,
        word: &str,
        first: usize,
        scratch: &mut Scratch,
        out: &mut Vec<TokenId>,
    ) -> Result<(), TokenizerError> {
        let key = WordCache::key(word.as_bytes());
        let Scratch { ids, cache, .. } = scratch;
        let ids = if let Some(known) = key.and_then(|key| cache.get(key)) {
            known
        } else {
            ids.clear();
            self.find_best(word, ids)?;
            if let Some(key) = key {
                cache.put(key, ids);
            }
            ids
        };
        for id in ids.iter().map(|&id| TokenId(id)) {
            // Unknown characters that follow each other are one unknown token.
            let repeated = Some(id) == self.unk && out.len() > first && out.last() == Some(&id);
            if !repeated {
                out.push(id);
            }
        }
        Ok(())
    }

    fn find_best(&self, word: &str, ids: &mut Vec<u32>) -> Result<(), TokenizerError> {
        let mut steps = vec![
            Step {
                score: f64::NEG_INFINITY,
                start: 0,
                token: UNKNOWN,
            };
            word.len() + 1
        ];
        if let Some(step) = steps.first_mut() {
            step.score = 0.0;
        }
        for (at, c) in word.char_indices() {
            let before = steps.get(at).map_or(f64::NEG_INFINITY, |step| step.score);
            let mut reach = |length: usize, score: f64, token: u32| {
                if let Some(step) = steps.get_mut(at + length)
                    && before + score > step.score
                {
                    *step = Step {
                        score: before + score,
                        start: at as u32,
                        token,
                    };
                }
            };
            let mut is_known = false;
            let rest = word.as_bytes().get(at..).unwrap_or_default();
            self.tokens.prefixes(rest, |length, token| {
                is_known |= length == c.len_utf8();
                let score = self.scores.get(token as usize).copied();
                reach(length, score.unwrap_or(self.unknown_score), token);
            });
            if !is_known {
                reach(c.len_utf8(), self.unknown_score, UNKNOWN);
            }
        }
        let from = ids.len();
        let mut end = word.len();
        while end > 0 {
            let step = steps.get(end).copied().filter(|s| (s.start as usize) < end);
            let Some(step) = step else { break };
            let start = step.start as usize;
            if step.token == UNKNOWN {
                self.spell_reversed(word.as_bytes().get(start..end).unwrap_or_default(), ids)?;
            } else {
                ids.push(step.token);
            }
            end = start;
        }
        if let Some(found) = ids.get_mut(from..) {
            found.reverse();
        }
        Ok(())
    }

    /// Appends an unknown character from its last byte to its first, or as the unknown token.
    fn spell_reversed(&self, character: &[u8], ids: &mut Vec<u32>) -> Result<(), TokenizerError> {
        if let Some(bytes) = &self.bytes {
            let bytes = |&byte: &u8| bytes.get(usize::from(byte)).copied();
            ids.extend(character.iter().rev().filter_map(bytes));
            return Ok(());
        }
        let byte = character.first().copied().unwrap_or_default();
        let unk = self.unk.ok_or(TokenizerError::NoToken { byte })?;
        if ids.last() != Some(&unk.0) {
            ids.push(unk.0);
        }
        Ok(())
    }
}
