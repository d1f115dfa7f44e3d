//! What can be wrong with a vocabulary, or keep a text from being encoded.

/// An error of this crate. Texts from the file are quoted in a printable form.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerError {
    /// A metadata value is not of the type that its key asks for.
    #[error(transparent)]
    Metadata(#[from] puna_gguf::GgufError),
    /// A key that this tokenizer model cannot do without is absent.
    #[error("metadata key `{key}` is missing: a tokenizer of model `{model}` needs it")]
    MissingKey {
        /// The key.
        key: &'static str,
        /// The value of `tokenizer.ggml.model`.
        model: String,
    },
    /// The file has no vocabulary at all.
    #[error(
        "metadata key `tokenizer.ggml.model` is {found}: the model has no vocabulary, only token ids can be used with it"
    )]
    NoVocabulary {
        /// `missing`, or the value that says so.
        found: String,
    },
    /// A tokenizer model that this crate does not know.
    #[error(
        "tokenizer model `{model}` is unknown (metadata key `tokenizer.ggml.model`); known: {known}"
    )]
    UnknownModel {
        /// The value of `tokenizer.ggml.model`.
        model: String,
        /// Every known name, comma-separated.
        known: String,
    },
    /// An unknown pre-tokenizer: guessing another would give wrong ids.
    #[error(
        "pre-tokenizer `{name}` is unknown (metadata key `tokenizer.ggml.pre`); known: {known}"
    )]
    UnknownPreTokenizer {
        /// The value of `tokenizer.ggml.pre`.
        name: String,
        /// Every known name, comma-separated.
        known: String,
    },
    /// A special token id lies outside of the vocabulary.
    #[error(
        "metadata key `{key}`: token id {id} is outside of the vocabulary, expected less than {len}"
    )]
    IdOutOfRange {
        /// The key.
        key: &'static str,
        /// The id found.
        id: String,
        /// Tokens in the vocabulary.
        len: usize,
    },
    /// A per-token array has another length than the vocabulary.
    #[error("metadata key `{key}`: {found} entries, expected {expected}, one for each token")]
    WrongLength {
        /// The key.
        key: &'static str,
        /// Entries found.
        found: usize,
        /// Tokens in the vocabulary.
        expected: usize,
    },
    /// A token type that the format does not define.
    #[error("metadata key `tokenizer.ggml.token_type`: entry {index} is {found}, expected 0 to 6")]
    BadTokenType {
        /// Position of the entry, which is the token id.
        index: usize,
        /// The value found.
        found: i64,
    },
    /// A score that is not a number, or endless.
    #[error(
        "metadata key `tokenizer.ggml.scores`: entry {index} (token \"{text}\") is {found}, expected a finite number"
    )]
    BadScore {
        /// Position of the entry, which is the token id.
        index: usize,
        /// The token.
        text: String,
        /// The value found.
        found: f32,
    },
    /// A token of an RWKV vocabulary whose escapes are broken.
    #[error(
        "metadata key `tokenizer.ggml.tokens`: entry {index} is \"{text}\", expected two hexadecimal digits after `\\x` and \
         a character after `\\`"
    )]
    BadEscape {
        /// Position of the entry, which is the token id.
        index: usize,
        /// The text found.
        text: String,
    },
    /// The rules that rewrite characters are broken.
    #[error("metadata key `tokenizer.ggml.precompiled_charsmap`: {problem}")]
    BadCharsmap {
        /// What is wrong.
        problem: &'static str,
    },
    /// A vocabulary that spells unknown characters has no token for a byte.
    #[error(
        "metadata key `tokenizer.ggml.tokens`: the token `<0x{byte:02X}>` is missing, expected one for every byte"
    )]
    MissingByteToken {
        /// The byte.
        byte: u8,
    },
    /// A merge that is not two texts with a space between.
    #[error(
        "metadata key `tokenizer.ggml.merges`: entry {index} is {text}, expected two token texts with a space between"
    )]
    BadMerge {
        /// Position of the entry.
        index: usize,
        /// The text found, quoted.
        text: String,
    },
    /// More tokens, merges or bytes of text than ids and offsets of 32 bits can count.
    #[error("the vocabulary is too large: {found} {what}, expected at most {limit}")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// The number found.
        found: usize,
        /// The largest number that would do.
        limit: usize,
    },
    /// Vocabulary and metadata contradict each other: a token shall be added that is not named.
    #[error(
        "`tokenizer.ggml.{role}_token_id` is missing, but this token shall be added to texts (by the metadata or by the \
         pre-tokenizer): the token to add is not known"
    )]
    MissingSpecialToken {
        /// The part of the key that names the token.
        role: &'static str,
    },
    /// A text has a byte that no token of the vocabulary stands for, and there is no unknown token.
    #[error(
        "byte 0x{byte:02x} of the text has no token in this vocabulary, and the vocabulary has no unknown token"
    )]
    NoToken {
        /// The byte.
        byte: u8,
    },
}
