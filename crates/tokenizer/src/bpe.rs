//! BPE by merges (`tokenizer.ggml.model` = `gpt2`, `gemma4`): the pre-tokenizer cuts text into words, each word begins as its bytes
//! or characters, and the merge of lowest rank is done until none is left.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::TokenId;
use crate::byte_chars::CHARS;
use crate::error::TokenizerError;
use crate::from_gguf::printable;
use crate::merge::{Candidate, Merger, Rules, Symbol};
use crate::pre::{Alphabet, PreTokenizer};
use crate::spaces::{WordCuts, mark_spaces};
use crate::texts::TextIndex;
use crate::unicode::Class;
use crate::vocabulary::{TokenKind, Vocabulary, byte_tokens};
use crate::word_cache::WordCache;

/// Number of a symbol that no token and no merge knows.
const UNKNOWN: u32 = u32::MAX;

/// The encoder. Symbols are token ids; texts of merges that are no token have numbers beyond the vocabulary.
pub(crate) struct Bpe {
    pre: &'static PreTokenizer,
    symbols: Symbols,
    merges: Merges,
    /// Tokens in the vocabulary; larger symbols are no tokens.
    len: u32,
    unk: Option<TokenId>,
}

/// What a word is made of before anything has merged.
enum Symbols {
    /// Symbol of each byte.
    Bytes(Vec<u32>),
    Characters {
        numbers: FxHashMap<char, u32>,
        /// Token of each byte, for characters without a token.
        bytes: Vec<Option<u32>>,
        cuts: WordCuts,
    },
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
    extra: FxHashMap<Vec<u8>, u32>,
}

impl Numbering<'_> {
    fn number(&mut self, text: &[u8]) -> Result<u32, TokenizerError> {
        if let Some(id) = plain_token(self.vocabulary, self.index, text) {
            return Ok(id);
        }
        if let Some(&number) = self.extra.get(text) {
            return Ok(number);
        }
        let len = self.vocabulary.tokens.len();
        let number = len + self.extra.len();
        let number = u32::try_from(number).ok().filter(|&n| n != UNKNOWN).ok_or(
            TokenizerError::TooLarge {
                what: "tokens and merges",
                found: number,
                limit: UNKNOWN as usize - 1,
            },
        )?;
        self.extra.insert(text.to_vec(), number);
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
            extra: FxHashMap::default(),
        };
        let bytes = byte_symbols(&mut numbering)?;
        let mut merges = FxHashMap::default();
        merges.reserve(vocabulary.merges.len());
        let mut merged = Vec::new();
        let mut before_space = FxHashSet::default();
        let mut characters = FxHashMap::default();
        let by_characters = pre.alphabet != Alphabet::Bytes;
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
            if by_characters {
                WordCuts::collect(&merged, &mut before_space);
                number_characters(&merged, &mut numbering, &mut characters)?;
            }
        }
        let symbols = if by_characters {
            for text in vocabulary.tokens.iter() {
                // Only tokens of one character can come out of characters that never merge.
                if text.len() <= 4 {
                    number_characters(text, &mut numbering, &mut characters)?;
                }
            }
            Symbols::Characters {
                numbers: characters,
                bytes: byte_tokens(vocabulary, index),
                cuts: WordCuts::new(before_space),
            }
        } else {
            Symbols::Bytes(bytes)
        };
        Ok(Self {
            pre,
            symbols,
            merges: Merges(merges),
            len: vocabulary.tokens.len() as u32,
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
        let marked;
        let text = if self.pre.alphabet == Alphabet::CharactersWithMarkedSpaces {
            let mut buffer = String::with_capacity(text.len() + text.len() / 2);
            mark_spaces(text, &mut buffer);
            marked = buffer;
            &marked
        } else {
            text
        };
        let mut result = Ok(());
        self.pre.split(text, &mut |piece| {
            let mut encode = |word: &str| {
                if result.is_ok() {
                    result = self.encode_word(word, vocabulary, index, scratch, out);
                }
            };
            match &self.symbols {
                Symbols::Bytes(_) => encode(piece),
                Symbols::Characters { cuts, .. } => cuts.cut(piece, &mut encode),
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
        let newlines = || self.pre.whole_newlines && word.bytes().all(|b| b == b'\n');
        if !self.pre.ignore_merges && !newlines() {
            return None;
        }
        if self.pre.alphabet != Alphabet::Bytes {
            return plain_token(vocabulary, index, word.as_bytes());
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
        match &self.symbols {
            Symbols::Bytes(numbers) => symbols.extend(word.bytes().zip(0..).map(|(byte, at)| {
                let id = numbers.get(usize::from(byte)).copied();
                Symbol {
                    id: id.unwrap_or(UNKNOWN),
                    start: at,
                    end: at + 1,
                }
            })),
            Symbols::Characters { numbers, .. } => {
                symbols.extend(word.char_indices().map(|(at, c)| Symbol {
                    id: numbers.get(&c).copied().unwrap_or(UNKNOWN),
                    start: at as u32,
                    end: (at + c.len_utf8()) as u32,
                }));
            }
        }
        merger.merge(&self.merges, symbols);
        for symbol in symbols.iter() {
            if symbol.id < self.len {
                ids.push(symbol.id);
            } else {
                let range = symbol.start as usize..symbol.end as usize;
                self.spell(word.as_bytes().get(range).unwrap_or_default(), ids)?;
            }
        }
        Ok(())
    }

    /// Appends the bytes of a symbol that is no token, each as its own token.
    fn spell(&self, symbol: &[u8], ids: &mut Vec<u32>) -> Result<(), TokenizerError> {
        if self.pre.alphabet == Alphabet::Characters && is_space(symbol) {
            return Ok(()); // what is between words is not there for a vocabulary without it
        }
        let kept = ids.len();
        for &byte in symbol {
            let id = match &self.symbols {
                Symbols::Bytes(numbers) => numbers
                    .get(usize::from(byte))
                    .copied()
                    .filter(|&id| id < self.len),
                Symbols::Characters { bytes, .. } => {
                    bytes.get(usize::from(byte)).copied().flatten()
                }
            };
            if let Some(id) = id {
                ids.push(id);
                continue;
            }
            let unk = self.unk.ok_or(TokenizerError::NoToken { byte })?;
            if matches!(self.symbols, Symbols::Characters { .. }) {
                ids.truncate(kept);
                ids.push(unk.0);
                break;
            }
            ids.push(unk.0);
        }
        Ok(())
    }
}

fn is_space(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| text.chars().all(|c| Class::of(c).is(Class::SPACE)))
}

/// Symbol of each byte, as byte-level BPE writes it.
fn byte_symbols(numbering: &mut Numbering<'_>) -> Result<Vec<u32>, TokenizerError> {
    let mut buffer = [0; 4];
    CHARS
        .iter()
        .map(|c| numbering.number(c.encode_utf8(&mut buffer).as_bytes()))
        .collect()
}

fn number_characters(
    text: &[u8],
    numbering: &mut Numbering<'_>,
    numbers: &mut FxHashMap<char, u32>,
) -> Result<(), TokenizerError> {
    let mut buffer = [0; 4];
    for c in std::str::from_utf8(text).unwrap_or_default().chars() {
        if let std::collections::hash_map::Entry::Vacant(entry) = numbers.entry(c) {
            entry.insert(numbering.number(c.encode_utf8(&mut buffer).as_bytes())?);
        }
    }
    Ok(())
}

/// Left and right of a merge: the space after the first byte parts them (the left text may begin with a space in theory).
fn parts(merge: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = merge.iter().skip(1).position(|&b| b == b' ')? + 1;
    let (left, right) = merge.split_at_checked(space)?;
    let right = right.get(1..)?;
    (!right.is_empty()).then_some((left, right))
}
