//! From logits to the next token: a [`Chain`] of samplers over [`Candidates`], ended by one seeded draw.
//!
//! Names, order, defaults and meaning are llama.cpp's, so that its users find the text they expect from the flags they know. Two
//! things are stricter here: the same logits, options and seed give the same token on every system and for ever (own generator,
//! own `exp`, a fixed order for ties), and nothing panics or is silently ignored: a bad option, an unknown sampler name or a logit
//! that is not a number is a [`SamplingError`]. Each sampler is one file in `samplers/`.

mod candidates;
mod chain;
mod error;
pub mod math;
mod options;
mod random;
mod samplers;

pub use candidates::{Candidate, Candidates};
pub use chain::Chain;
pub use error::SamplingError;
pub use options::SamplerOptions;
pub use random::Xoshiro256;
pub use samplers::{Sampler, SamplerKind};
