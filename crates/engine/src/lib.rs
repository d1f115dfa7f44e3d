//! Sequences, their paged cache, and the loop that turns logits into text.
//!
//! An [`Engine`] is one loaded model with its cache. It is synchronous and owned by one thread. Tokens are fed to sequences in any
//! mixture ([`Engine::decode`]); the logits of a token depend on its sequence alone, bit for bit, never on how tokens were grouped into
//! batches. A [`Generation`] is one text in the making; any number of them can share a batch.

mod decode;
mod engine;
mod error;
mod generation;
mod memory;
mod options;
mod pages;
mod sequence;
mod text;

pub use decode::{Feed, Want};
pub use engine::Engine;
pub use error::EngineError;
pub use generation::{FinishReason, Generation, GenerationOptions, LogitsSlot, Step};
pub use memory::MemoryNeed;
pub use options::EngineOptions;
pub use sequence::SeqId;
