//! Text to token ids and back, exactly as the model was trained: `SentencePiece` BPE and byte-level BPE with the pre-tokenizers of the
//! field, special tokens, and a decoder that works token by token. A [`Vocabulary`] is the data, wherever it came from; a
//! [`Tokenizer`] is made of one, usually by [`Tokenizer::from_gguf`]. Encoding is linear in the text whatever the text is, and never
//! turns untrusted text into control tokens.

mod bpe;
mod byte_chars;
mod decode;
mod error;
mod from_gguf;
mod matcher;
mod merge;
mod pre;
mod special;
mod spm;
mod texts;
mod tokenizer;
mod unicode;
mod vocabulary;
mod word_cache;

pub use decode::{DecodeOptions, Decoder};
pub use error::TokenizerError;
pub use texts::Texts;
pub use tokenizer::{EncodeOptions, Segment, Tokenizer};
pub use vocabulary::{Model, SpecialIds, TokenKind, Vocabulary};

/// Number of a token in its vocabulary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenId(pub u32);

impl TokenId {
    /// The number, to index with.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}
