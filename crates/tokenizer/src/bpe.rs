//! Byte-level BPE (`tokenizer.ggml.model` = `gpt2`): the pre-tokenizer cuts text into words, each word begins as its bytes, and the
//! merge of lowest rank is done until none is left.

use rustc_hash::FxHashMap;

use crate::TokenId;
use crate::byte_chars::{self, CHARS};
use crate::error::TokenizerError;
use crate::from_gguf::printable;
use crate::merge::{Candidate, Merger, Rules, Symbol};
use crate::pre::PreTokenizer;
use crate::texts::{TextIndex, Texts};
use crate::vocabulary::{TokenKind, Vocabulary};
use crate::word_cache::WordCache;

/// The encoder. Symbols are token ids; texts of merges that are no token have numbers beyond the vocabulary.
pub(crate) struct Bpe {
    pre: &'static PreTokenizer,
    /// Symbol of each byte.
    bytes: Vec<u32>,
    merges: Merges,
    /// Tokens in the vocabulary; larger symbols are in `extra`.
    len: u32,
    extra: Texts,
    unk: Option<TokenId>,
}

/// Rank and result of each pair of symbols, `left << 32 | right`.
struct Merges(FxHashMap<u64, Candidate>);

impl Rules for Merges {
    #[inline]
    fn candidate(&self, left: Symbol, right: Symbol) -> Candidate {
        let pair = u64::from(left.id) << 32 | u64::from(right.id);
        self.0.get(&pair).copied().unwrap_or(Candidate::NONE)
    }
}

/// Memory for encoding, reused from text to text.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) merger: Merger,
    pub(crate) symbols: Vec<Symbol>,
    pub(crate) ids: Vec<u32>,
    pub(crate) cache: WordCache,
}

/// Gives numbers to texts: those of tokens, and fresh ones.
struct Numbering<'v> {
    vocabulary: &'v Vocabulary,
    index: &'v TextIndex,
    extra: Texts,
    extra_numbers: FxHashMap<Vec<u8>, u32>,
}

impl Numbering<'_> {
    fn number(&mut self, text: &[u8]) -> Result<u32, TokenizerError> {
        if let Some(id) = plain_token(self.vocabulary, self.index, text) {
            return Ok(id);
        }
        if let Some(&number) = self.extra_numbers.get(text) {
            return Ok(number);
        }
        let number = self.vocabulary.tokens.len() as u64 + self.extra.len() as u64;
        let number = u32::try_from(number).map_err(|_| TokenizerError::TooLarge {
            what: "tokens and parts of merges",
            found: self.extra.len(),
            limit: u32::MAX as usize,
        })?;
        self.extra.push(&[text])?;
        self.extra_numbers.insert(text.to_vec(), number);
        Ok(number)
    }
}

/// The token of a text, if it is one that text may become.
fn plain_token(vocabulary: &Vocabulary, index: &TextIndex, text: &[u8]) -> Option<u32> {
    let id = index.get(&vocabulary.tokens, text)?;
    let kind = vocabulary.kind(TokenId(id));
    (!matches!(kind, TokenKind::Control | TokenKind::Unknown)).then_some(id)
}

impl Bpe {
    pub(crate) fn new(
        vocabulary: &Vocabulary,
        index: &TextIndex,
        pre: &'static PreTokenizer,
    ) -> Result<Self, TokenizerError> {
        let mut numbering = Numbering {
            vocabulary,
            index,
            extra: Texts::default(),
            extra_numbers: FxHashMap::default(),
        };
        let mut buffer = [0; 4];
        let bytes: Result<Vec<u32>, _> = CHARS
            .iter()
            .map(|c| numbering.number(c.encode_utf8(&mut buffer).as_bytes()))
            .collect();
        let mut merges = FxHashMap::default();
        merges.reserve(vocabulary.merges.len());
        let mut merged = Vec::new();
        for (rank, text) in vocabulary.merges.iter().enumerate() {
            let (left, right) = parts(text).ok_or_else(|| TokenizerError::BadMerge {
                index: rank,
                text: format!("\"{}\"", printable(text)),
            })?;
            merged.clear();
            merged.extend_from_slice(left);
            merged.extend_from_slice(right);
            let pair =
                u64::from(numbering.number(left)?) << 32 | u64::from(numbering.number(right)?);
            let candidate = Candidate {
                order: rank as u32,
                id: numbering.number(&merged)?,
            };
            merges.entry(pair).or_insert(candidate);
        }
        Ok(Self {
            pre,
            bytes: bytes?,
            merges: Merges(merges),
            len: vocabulary.tokens.len() as u32,
            extra: numbering.extra,
            unk: vocabulary.special.unk,
        })
    }

    /// Appends the tokens of a text without special tokens.
    pub(crate) fn encode(
        &self,
        text: &str,
        vocabulary: &Vocabulary,
        index: &TextIndex,
        scratch: &mut Scratch,
        out: &mut Vec<TokenId>,
    ) -> Result<(), TokenizerError> {
        let mut result = Ok(());
        self.pre.split(text, &mut |word| {
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
        scratch.ids.clear();
        match self.whole_word(word, vocabulary, index) {
            Some(id) => scratch.ids.push(id),
            None => self.merge_word(word, scratch)?,
        }
        if let Some(key) = key {
            scratch.cache.put(key, &scratch.ids);
        }
        out.extend(scratch.ids.iter().map(|&id| TokenId(id)));
        Ok(())
    }

    fn whole_word(&self, word: &str, vocabulary: &Vocabulary, index: &TextIndex) -> Option<u32> {
        if !self.pre.ignore_merges {
            return None;
        }
        let text: String = word.bytes().map(|b| CHARS[usize::from(b)]).collect();
        plain_token(vocabulary, index, text.as_bytes())
    }

    fn merge_word(&self, word: &str, scratch: &mut Scratch) -> Result<(), TokenizerError> {
        let Scratch {
            merger,
            symbols,
            ids,
            ..
        } = scratch;
        symbols.clear();
        symbols.extend(word.bytes().zip(0..).map(|(byte, at)| {
            Symbol {
                id: self
                    .bytes
                    .get(usize::from(byte))
                    .copied()
                    .unwrap_or(u32::MAX),
                start: at,
                end: at + 1,
            }
        }));
        merger.merge(&self.merges, symbols);
        for symbol in symbols.iter() {
            if symbol.id < self.len {
                ids.push(symbol.id);
            } else {
                self.spell(symbol.id, ids)?;
            }
        }
        Ok(())
    }

    /// Appends the bytes of a symbol that is no token, each as its own token.
    fn spell(&self, symbol: u32, ids: &mut Vec<u32>) -> Result<(), TokenizerError> {
        let mut bytes = Vec::new();
        if let Some(text) = self.extra.get(symbol.saturating_sub(self.len) as usize) {
            byte_chars::decode(text, &mut bytes);
        }
        for byte in bytes {
            let id = self
                .bytes
                .get(usize::from(byte))
                .copied()
                .filter(|&id| id < self.len);
            ids.push(
                id.or(self.unk.map(|id| id.0))
                    .ok_or(TokenizerError::NoToken { byte })?,
            );
        }
        Ok(())
    }
}

/// Left and right of a merge: the space after the first byte parts them (the left text may begin with a space in theory).
fn parts(merge: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = merge.iter().skip(1).position(|&b| b == b' ')? + 1;
    let (left, right) = merge.split_at_checked(space)?;
    let right = right.get(1..)?;
    (!right.is_empty()).then_some((left, right))
}
