//! Kernels: one file per job, generic over the instruction set; see [`simd`].

#![allow(
    clippy::inline_always,
    reason = "a kernel must become part of the function that enables its instructions"
)]

pub mod attention;
pub mod dense;
pub mod elementwise;
mod entry;
pub mod kv;
pub mod linear;
pub mod math;
pub mod norm;
pub mod quantize;
pub mod rope;
pub mod simd;

mod set;
mod table;

pub use set::Set;
pub(crate) use table::{Kernels, PanelKernel, activation};
