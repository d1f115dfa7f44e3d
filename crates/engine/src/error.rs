//! What can go wrong while loading and running.

use puna_gguf::GgufError;
use puna_graph::BackendError;
use puna_model::ModelError;
use puna_sampling::SamplingError;
use puna_tokenizer::TokenizerError;

/// Why the engine refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The file cannot be read.
    #[error(transparent)]
    Gguf(#[from] GgufError),
    /// The model cannot be built.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The vocabulary cannot be used, as was found when the file was opened.
    #[error(transparent)]
    Vocabulary(#[from] std::sync::Arc<TokenizerError>),
    /// The backend refused.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// An option of the samplers, or logits that are not numbers.
    #[error(transparent)]
    Sampling(#[from] SamplingError),
    /// More tokens than the context holds.
    #[error(
        "{tokens} tokens do not fit the context of {context}; shorten the prompt or raise the context (-c)"
    )]
    ContextExceeded {
        /// Tokens that were given, those already in the sequence included.
        tokens: usize,
        /// Tokens that the context holds.
        context: usize,
    },
    /// Fewer pages are free than are needed.
    #[error("the cache is full: {used} of its {total} pages are in use")]
    CacheFull {
        /// Pages in use.
        used: usize,
        /// Pages there are.
        total: usize,
    },
    /// A token that the vocabulary does not have.
    #[error("token {token}: the vocabulary has {vocabulary}")]
    UnknownToken {
        /// The token.
        token: u32,
        /// Entries of the vocabulary.
        vocabulary: usize,
    },
    /// A sequence that was never made or is gone.
    #[error("sequence {0} does not exist")]
    UnknownSequence(u64),
    /// A sequence that is fed twice in one call.
    #[error(
        "sequence {0} is fed twice in one call; give all of its tokens at once or in calls one after the other"
    )]
    DuplicateSequence(u64),
    /// Nothing to compute.
    #[error("there are no tokens to compute; give a prompt")]
    Empty,
    /// An option out of range.
    #[error("{option}: found {found}, expected {expected}")]
    Option {
        /// The option.
        option: &'static str,
        /// Its value.
        found: String,
        /// What would be allowed.
        expected: String,
    },
    /// The sequence cannot go back so far, because a sliding window has given back its pages.
    #[error(
        "cannot go back to position {position}: layers with a sliding window keep only the latest positions"
    )]
    WindowPassed {
        /// The position asked for.
        position: usize,
    },
}
