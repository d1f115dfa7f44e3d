//! The CPU backend of Puna: a thread pool, kernels by instruction set, and fused steps that run a compiled graph.
//!
//! [`CpuBackend`] chooses a set of kernels once; a plan is compiled once per model into a list of steps (`plan`), each one parallel
//! region of the pool. Every kernel gives the same bits in every set, for any number of threads, and however tokens are grouped.

mod backend;
mod cache;
#[doc(hidden)] // Public for the benches.
pub mod kernels;
pub mod measure;
mod memory;
mod plan;
#[doc(hidden)] // Public for the benches.
pub mod pool;

pub use backend::{CpuBackend, MAX_THREADS};
pub use kernels::Set;
