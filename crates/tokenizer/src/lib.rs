//! Text to token ids and back, exactly as the model was trained: `SentencePiece`, BPE with the pre-tokenizers of the field, `WordPiece`,
//! Unigram, RWKV and `PLaMo` 2, special tokens, and a decoder that works token by token. A [`Vocabulary`] is the data, wherever it came from; a
//! [`Tokenizer`] is made of one, usually by [`Tokenizer::from_gguf`]. Encoding is linear in the text whatever the text is, and never
//! turns untrusted text into control tokens.

mod bpe;
mod byte_chars;
mod charsmap;
mod decode;
mod encoder;
mod error;
mod from_gguf;
pub mod hf;
mod hybrid_dna;
mod matcher;
mod merge;
mod pieces;
mod plamo2;
mod pre;
mod rwkv;
mod spaces;
mod special;
mod spm;
mod texts;
mod to_gguf;
mod tokenizer;
mod trie;
mod unicode;
mod unigram;
mod vocabulary;
mod whitespace_bpe;
mod word_cache;
mod wordpiece;

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
