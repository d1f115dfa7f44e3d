//! Sequences, their paged cache, and the loop that turns logits into text.
//!
//! An [`Engine`] is one loaded model with its cache. It is synchronous and owned by one thread. Tokens are fed to sequences in any
//! mixture ([`Engine::decode`]); the logits of a token depend on its sequence alone, bit for bit, never on how tokens were grouped into
//! batches. [`Generation`] runs the sampling loop on one sequence.

mod engine;
mod error;
mod generation;
mod options;
mod pages;
mod sequence;

pub use engine::{Engine, Feed, MemoryNeed, Want};
pub use error::EngineError;
pub use generation::{FinishReason, Generation, GenerationOptions, Step};
pub use options::EngineOptions;
pub use sequence::SeqId;
