//! Tensor element types: what every GGUF type is called and how big its blocks are, and for each supported type how
//! its bytes become numbers and how a row of it is multiplied with a row of activations. Everything here is plain, safe
//! Rust; the scalar dot products are the specification of the engine's arithmetic, and every SIMD kernel equals them bit
//! for bit. The crate knows nothing of files, tensors or threads.

// The dot products are built from small generic pieces which have to end up inside the caller, so that a kernel crate
// can compile them again with more CPU features enabled.
#![allow(clippy::inline_always)]

pub mod activation;
pub mod block256;
pub mod block32;
mod check;
mod codec;
mod element_type;
mod error;
pub mod float;
pub mod types;

pub use activation::{
    ActivationBuffer, ActivationKind, ActivationRow, LARGEST_BLOCK, Q8Row, Q8RowMut,
    SMALLEST_BLOCK, quantize_q8,
};
pub use check::{ScaleField, ScaleKind, first_non_finite};
pub use codec::{Codec, CodecVisitor, dequantize, dot, quantize};
pub use element_type::ElementType;
pub use error::QuantError;
