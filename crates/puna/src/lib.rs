//! Runs GGUF language models on the CPU: the public library of Puna, and what an application uses.
//!
//! It re-exports the crates below it, one module each, and puts the few types that every application needs at the top. Its only own
//! code is [`Chat`], which ties a model's chat template to its tokenizer.
//!
//! ```no_run
//! use puna::{CpuBackend, Engine, EngineOptions, Generation, GenerationOptions, tokenizer::EncodeOptions};
//!
//! let backend = CpuBackend::new(4, None)?;
//! let mut engine = Engine::open("model.gguf".as_ref(), &backend, &EngineOptions::default())?;
//! let encode = EncodeOptions { add_special: true, parse_special: false };
//! let prompt = engine.tokenizer()?.encode("The capital of France is", encode)?;
//! let sequence = engine.sequence();
//! let mut generation = Generation::new(&mut engine, sequence, &prompt, &GenerationOptions::default())?;
//! while let Some(step) = generation.step(&mut engine)? {
//!     print!("{}", step.text());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod chat_prompt;

pub use chat_prompt::{Chat, ChatPromptError};
pub use puna_chat::{Conversation, Message};
pub use puna_cpu::CpuBackend;
pub use puna_engine::{
    Engine, EngineError, EngineOptions, Feed, FinishReason, Generation, GenerationOptions,
    LogitsSlot, MemoryNeed, SeqId, Step, Want,
};
pub use puna_gguf::Gguf;
pub use puna_graph::CacheType;
pub use puna_sampling::{SamplerKind, SamplerOptions};
pub use puna_tokenizer::{TokenId, Tokenizer};

/// Chat templates and conversations.
pub use puna_chat as chat;
/// The CPU backend, its kernel sets and measurements of the machine.
pub use puna_cpu as cpu;
/// Sequences, cache and generation.
pub use puna_engine as engine;
/// The GGUF container.
pub use puna_gguf as gguf;
/// What backends implement.
pub use puna_graph as graph;
/// Names to files: downloads, cache folder, default model.
pub use puna_hub as hub;
/// Architectures and hyper-parameters.
pub use puna_model as model;
/// Samplers and chains of them.
pub use puna_sampling as sampling;
/// Text to token ids and back.
pub use puna_tokenizer as tokenizer;
