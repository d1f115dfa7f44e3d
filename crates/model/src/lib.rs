//! From a GGUF file to a graph: hyper-parameters, checked weights, and the forward pass of each architecture.
//!
//! An architecture is one file under [`arch`]; it holds its names, its table of tensors and its graph. Everything in this crate works
//! from those tables, and no architecture is named anywhere else.

pub mod arch;
pub mod blocks;
mod error;
mod hyper;
mod loader;
mod model;
mod tensors;
mod vocabulary;

pub use error::ModelError;
pub use hyper::{HyperParameters, Keys};
pub use loader::{Layer, Loader};
pub use model::{LoadOptions, Model};
pub use tensors::{Size, TensorSpec, Transform, optional, required};
