//! The CPU backend of Puna: a thread pool, kernels by instruction set, and fused steps that run a compiled graph.

pub mod kernels;
pub mod pool;
