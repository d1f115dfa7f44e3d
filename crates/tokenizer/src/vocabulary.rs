//! The vocabulary as data, wherever it came from: token texts, kinds, scores, merges, special ids.

use crate::TokenId;
use crate::error::TokenizerError;
use crate::texts::Texts;

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
    /// Byte-level BPE by merges (`gpt2`).
    ByteLevelBpe,
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
/// Defaults are those of a byte-level BPE without special tokens; fill in what the source knows. Nothing here is checked
/// before [`Tokenizer::new`](crate::Tokenizer::new).
#[derive(Clone, Debug)]
pub struct Vocabulary {
    /// How text becomes tokens.
    pub model: Model,
    /// Name of the pre-tokenizer (byte-level BPE only); `None` means the default, with a warning.
    pub pre_tokenizer: Option<String>,
    /// Text of each token, by id: bytes, usually UTF-8. Byte-level BPE writes every byte as one printable character.
    pub tokens: Texts,
    /// Kind of each token; empty means that all are normal.
    pub kinds: Vec<TokenKind>,
    /// Score of each token (`SentencePiece`: higher merges first); empty means that all are 0.
    pub scores: Vec<f32>,
    /// Merges, `left right` with a space between, best first (byte-level BPE).
    pub merges: Texts,
    /// Ids of tokens with a role.
    pub special: SpecialIds,
    /// Whether BOS comes first; `None` means as usual for the model.
    pub add_bos: Option<bool>,
    /// Whether EOS comes last; `None` means as usual for the model.
    pub add_eos: Option<bool>,
    /// Whether a space is put before text (`SentencePiece`); `None` means yes.
    pub add_space_prefix: Option<bool>,
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
