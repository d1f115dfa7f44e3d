//! The vocabulary as data, wherever it came from: token texts, kinds, scores, merges, special ids.

use crate::TokenId;
use crate::error::TokenizerError;
use crate::from_gguf::printable;
use crate::texts::{TextIndex, Texts};

/// What a token is, with the numbers of `tokenizer.ggml.token_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TokenKind {
    /// Text (1).
    Normal,
    /// Stands for text that has no token (2).
    Unknown,
    /// A marker that is no text: begin, end, roles (3). Text never becomes one unless special tokens are parsed.
    Control,
    /// Text that is always this token, before anything else is looked at (4).
    UserDefined,
    /// In the table, but not in use (5, and the undefined 0).
    Unused,
    /// One byte, written `<0x41>` (6).
    Byte,
}

impl TokenKind {
    /// The kind with this number in a file.
    pub const fn from_number(number: i64) -> Option<Self> {
        Some(match number {
            1 => Self::Normal,
            2 => Self::Unknown,
            3 => Self::Control,
            4 => Self::UserDefined,
            0 | 5 => Self::Unused,
            6 => Self::Byte,
            _ => return None,
        })
    }
}

/// How text becomes tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Model {
    /// `SentencePiece` BPE by scores (`tokenizer.ggml.model` = `llama`).
    SentencePiece,
    /// BPE by merges (`gpt2`, `gemma4`), over bytes or, where the pre-tokenizer says so, over characters.
    Bpe,
    /// BPE by merges over the characters of words; spaces are dropped (`whitespace`).
    WhitespaceBpe,
    /// BPE by merges, with DNA between tags cut into sixes of bases (`hybriddna`).
    HybridDna,
    /// Longest pieces of words, as in BERT (`bert`).
    WordPiece,
    /// The most probable pieces, as in T5 (`t5`).
    Unigram,
    /// Longest byte strings (`rwkv`).
    Rwkv,
    /// The cheapest pieces, as in `PLaMo` 2 (`plamo2`).
    Plamo2,
    /// No texts: the model is used by token ids alone (`none`, `no_vocab`).
    None,
}

impl Model {
    /// Every model with its names in `tokenizer.ggml.model`; the first is the one to write.
    const NAMES: &[(Self, &[&str])] = &[
        (Self::SentencePiece, &["llama"]),
        (Self::Bpe, &["gpt2", "gemma4"]),
        (Self::WhitespaceBpe, &["whitespace"]),
        (Self::HybridDna, &["hybriddna"]),
        (Self::WordPiece, &["bert"]),
        (Self::Unigram, &["t5"]),
        (Self::Rwkv, &["rwkv"]),
        (Self::Plamo2, &["plamo2"]),
        (Self::None, &["none", "no_vocab"]),
    ];

    /// The model that a value of `tokenizer.ggml.model` names.
    pub fn from_name(name: &str) -> Option<Self> {
        let row = Self::NAMES
            .iter()
            .find(|(_, names)| names.contains(&name))?;
        Some(row.0)
    }

    /// The value of `tokenizer.ggml.model`.
    pub fn name(self) -> &'static str {
        let row = Self::NAMES.iter().find(|(model, _)| *model == self);
        row.and_then(|(_, names)| names.first().copied())
            .unwrap_or_default()
    }

    /// Every name, for an error message.
    pub(crate) fn known_names() -> String {
        let names: Vec<&str> = Self::NAMES
            .iter()
            .flat_map(|(_, names)| names.iter().copied())
            .collect();
        names.join(", ")
    }

    /// Whether merges are part of the vocabulary.
    pub(crate) fn has_merges(self) -> bool {
        matches!(self, Self::Bpe | Self::WhitespaceBpe | Self::HybridDna)
    }
}

/// Ids of the tokens with a role. Each is absent when the vocabulary has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpecialIds {
    /// Begin of sequence.
    pub bos: Option<TokenId>,
    /// End of sequence.
    pub eos: Option<TokenId>,
    /// End of turn.
    pub eot: Option<TokenId>,
    /// End of message.
    pub eom: Option<TokenId>,
    /// Unknown text.
    pub unk: Option<TokenId>,
    /// Separator.
    pub sep: Option<TokenId>,
    /// Padding.
    pub pad: Option<TokenId>,
    /// Mask.
    pub mask: Option<TokenId>,
    /// Fill in the middle: the text before the gap follows.
    pub fim_prefix: Option<TokenId>,
    /// Fill in the middle: the text after the gap follows.
    pub fim_suffix: Option<TokenId>,
    /// Fill in the middle: the text of the gap follows.
    pub fim_middle: Option<TokenId>,
    /// Fill in the middle: padding.
    pub fim_pad: Option<TokenId>,
    /// Fill in the middle: the name of the repository follows.
    pub fim_repository: Option<TokenId>,
    /// Fill in the middle: another file follows.
    pub fim_separator: Option<TokenId>,
}

/// Everything a [`Tokenizer`](crate::Tokenizer) is made of, independent of the file it came from.
///
/// Defaults are those of a BPE without special tokens; fill in what the source knows. Nothing here is checked
/// before [`Tokenizer::new`](crate::Tokenizer::new).
#[derive(Clone, Debug)]
pub struct Vocabulary {
    /// How text becomes tokens.
    pub model: Model,
    /// Name of the pre-tokenizer (BPE by merges only); `None` means the default, with a warning.
    pub pre_tokenizer: Option<String>,
    /// Text of each token, by id: bytes, usually UTF-8. Byte-level BPE writes every byte as one printable character; `WordPiece`
    /// writes pieces that begin a word with U+2581 before them and others as they are.
    pub tokens: Texts,
    /// Kind of each token; empty means that all are normal.
    pub kinds: Vec<TokenKind>,
    /// Score of each token (`SentencePiece`: higher merges first; Unigram: logarithm of the probability); empty means that all
    /// are 0.
    pub scores: Vec<f32>,
    /// Merges, `left right` with a space between, best first (BPE by merges).
    pub merges: Texts,
    /// Ids of tokens with a role.
    pub special: SpecialIds,
    /// Whether BOS comes first; `None` means as usual for the model.
    pub add_bos: Option<bool>,
    /// Whether EOS comes last; `None` means as usual for the model.
    pub add_eos: Option<bool>,
    /// Whether a space is put before text (`SentencePiece`, Unigram); `None` means yes for the first and no for the second.
    pub add_space_prefix: Option<bool>,
    /// Whether the separator comes last (`WordPiece`); `None` means yes.
    pub add_sep: Option<bool>,
    /// Whether runs of spaces become one, and none at the ends of the text (Unigram); `None` means no.
    pub remove_extra_whitespaces: Option<bool>,
    /// Whether text is written in small letters (`WordPiece`: `None` means yes; whitespace BPE: `None` means no).
    pub lowercase: Option<bool>,
    /// Whether accents are taken off letters (`WordPiece`); `None` means as `lowercase`.
    pub strip_accents: Option<bool>,
    /// Rules that rewrite characters before anything else (Unigram), as `SentencePiece` compiles them; empty for none.
    pub precompiled_charsmap: Vec<u8>,
    /// Whether spaces after a special token belong to it: the special tokens of Phi-3 are so.
    pub special_tokens_take_spaces_after: bool,
}

impl Vocabulary {
    /// A vocabulary of a model with these token texts and nothing else.
    pub fn new(model: Model, tokens: Texts) -> Self {
        Self {
            model,
            pre_tokenizer: None,
            tokens,
            kinds: Vec::new(),
            scores: Vec::new(),
            merges: Texts::default(),
            special: SpecialIds::default(),
            add_bos: None,
            add_eos: None,
            add_space_prefix: None,
            add_sep: None,
            remove_extra_whitespaces: None,
            lowercase: None,
            strip_accents: None,
            precompiled_charsmap: Vec::new(),
            special_tokens_take_spaces_after: false,
        }
    }

    /// Checks that the parts fit together, and fills in kinds and scores that are absent.
    pub(crate) fn complete(&mut self) -> Result<(), TokenizerError> {
        let len = self.tokens.len();
        if self.kinds.is_empty() {
            self.kinds = vec![TokenKind::Normal; len];
        }
        if self.scores.is_empty() {
            self.scores = vec![0.0; len];
        }
        let lengths = [
            ("tokenizer.ggml.token_type", self.kinds.len()),
            ("tokenizer.ggml.scores", self.scores.len()),
        ];
        for (key, found) in lengths {
            if found != len {
                return Err(TokenizerError::WrongLength {
                    key,
                    found,
                    expected: len,
                });
            }
        }
        if let Some(index) = self.scores.iter().position(|score| !score.is_finite()) {
            return Err(TokenizerError::BadScore {
                index,
                text: printable(self.tokens.get(index).unwrap_or_default()),
                found: self.scores.get(index).copied().unwrap_or_default(),
            });
        }
        for (key, id) in self.special.by_key() {
            if let Some(id) = id.filter(|id| id.index() >= len) {
                return Err(TokenizerError::IdOutOfRange {
                    key,
                    id: id.0.to_string(),
                    len,
                });
            }
        }
        Ok(())
    }

    pub(crate) fn kind(&self, id: TokenId) -> TokenKind {
        self.kinds
            .get(id.index())
            .copied()
            .unwrap_or(TokenKind::Unused)
    }
}

/// The byte that a byte token stands for: exactly `<0x`, two hexadecimal digits, `>`.
pub(crate) fn byte_of_token(text: &[u8]) -> Option<u8> {
    let [b'<', b'0', b'x', high, low, b'>'] = *text else {
        return None;
    };
    let digit = |b: u8| char::from(b).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

/// The token of each byte: byte tokens, else tokens that are written like one, else tokens of that one byte.
pub(crate) fn byte_tokens(vocabulary: &Vocabulary, index: &TextIndex) -> Vec<Option<u32>> {
    let mut bytes = vec![None; 256];
    for ((number, text), kind) in (0..).zip(vocabulary.tokens.iter()).zip(&vocabulary.kinds) {
        if *kind == TokenKind::Byte
            && let Some(byte) = byte_of_token(text)
            && let Some(slot @ None) = bytes.get_mut(usize::from(byte))
        {
            *slot = Some(number);
        }
    }
    for (slot, byte) in bytes.iter_mut().zip(0..=u8::MAX) {
        if slot.is_none() {
            let written = format!("<0x{byte:02X}>");
            *slot = index
                .get(&vocabulary.tokens, written.as_bytes())
                .or_else(|| index.get(&vocabulary.tokens, &[byte]))
                .filter(|&id| {
                    !matches!(
                        vocabulary.kind(TokenId(id)),
                        TokenKind::Control | TokenKind::Unknown
                    )
                });
        }
    }
    bytes
}

impl SpecialIds {
    /// Every id with the metadata key that gives it.
    pub(crate) fn by_key(&self) -> [(&'static str, Option<TokenId>); 14] {
        [
            ("tokenizer.ggml.bos_token_id", self.bos),
            ("tokenizer.ggml.eos_token_id", self.eos),
            ("tokenizer.ggml.eot_token_id", self.eot),
            ("tokenizer.ggml.eom_token_id", self.eom),
            ("tokenizer.ggml.unknown_token_id", self.unk),
            ("tokenizer.ggml.seperator_token_id", self.sep),
            ("tokenizer.ggml.padding_token_id", self.pad),
            ("tokenizer.ggml.mask_token_id", self.mask),
            ("tokenizer.ggml.fim_pre_token_id", self.fim_prefix),
            ("tokenizer.ggml.fim_suf_token_id", self.fim_suffix),
            ("tokenizer.ggml.fim_mid_token_id", self.fim_middle),
            ("tokenizer.ggml.fim_pad_token_id", self.fim_pad),
            ("tokenizer.ggml.fim_rep_token_id", self.fim_repository),
            ("tokenizer.ggml.fim_sep_token_id", self.fim_separator),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_token_is_two_hexadecimal_digits_and_nothing_else() {
        assert_eq!(byte_of_token(b"<0x0A>"), Some(10));
        assert_eq!(byte_of_token(b"<0xff>"), Some(255));
        for text in [
            "<0x-1>", "<0xZZ>", "<0x+1>", "<0x1>", "<0x001>", "<0X41>", "0x41", "",
        ] {
            assert_eq!(byte_of_token(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn every_model_has_names_that_lead_back_to_it() {
        for (model, names) in Model::NAMES {
            assert_eq!(Model::from_name(model.name()), Some(*model));
            for name in *names {
                assert_eq!(Model::from_name(name), Some(*model));
            }
        }
    }
}
