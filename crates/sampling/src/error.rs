//! What can go wrong while choosing a token.

/// An option, a name or a row of logits that cannot be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SamplingError {
    /// An option outside its range; refused when the chain is built.
    #[error("sampling option `{option}` is {found}, expected {expected}")]
    Option {
        /// Name of the field of `SamplerOptions`.
        option: &'static str,
        /// The value that was given.
        found: String,
        /// The range that is allowed.
        expected: &'static str,
    },
    /// A sampler that exists elsewhere (llama.cpp) but not here yet. It is refused rather than left out.
    #[error("sampler `{found}` is not implemented yet, expected some of {known}")]
    NotImplemented {
        /// The name or letter that was given.
        found: String,
        /// The names or letters that are known.
        known: String,
    },
    /// A name or letter that no sampler has.
    #[error("unknown sampler `{found}`, expected some of {known}")]
    UnknownSampler {
        /// The name or letter that was given.
        found: String,
        /// The names or letters that are known.
        known: String,
    },
    /// `sample` was given no logits.
    #[error("no logits: found a vocabulary of 0 entries, expected at least 1")]
    EmptyVocabulary,
    /// A logit is not a number, which means that the model or its file is damaged.
    #[error("logit of token {token} is not a number, expected a number for each of {len} tokens")]
    NotANumber {
        /// Lowest such token.
        token: u32,
        /// Size of the vocabulary.
        len: usize,
    },
    /// Every token has been banned or has a logit of minus infinity.
    #[error("no token is left: all {len} logits are minus infinity")]
    NothingLeft {
        /// Size of the vocabulary.
        len: usize,
    },
    /// A bias for a token that the vocabulary does not have.
    #[error("logit bias for token {token}, expected an id below the vocabulary size {len}")]
    BiasOutOfRange {
        /// The id that was given.
        token: u32,
        /// Size of the vocabulary.
        len: usize,
    },
}
