//! Flags that several subcommands share, one group per file.

mod engine;
mod model;
mod prompt;
mod sampling;

pub(crate) use engine::{CacheArgs, EngineArgs, positive, threads};
pub(crate) use model::ModelArgs;
pub(crate) use prompt::{PromptArgs, without_last_newline};
pub(crate) use sampling::{Predict, SamplingArgs};
