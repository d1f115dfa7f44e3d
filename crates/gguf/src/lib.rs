//! The GGUF container: models as single files or split sets, opened through a memory map and checked before
//! anything is believed, and written again. [`Gguf`] reads, [`GgufWriter`] writes, [`Metadata`] and [`Value`]
//! are the key-value part, [`TensorInfo`] describes a tensor whose bytes stay in the map. What the keys mean
//! is the business of the crates above.

mod array;
mod bytes;
mod cursor;
mod encode;
mod error;
mod gguf;
mod metadata;
mod parse;
mod split;
mod tensor;
mod unfinished;
mod value;
mod writer;

pub use array::{Array, ScalarArray, StringArray};
pub use bytes::SharedBytes;
pub use error::GgufError;
pub use gguf::{Gguf, SourceFile};
pub use metadata::Metadata;
pub use parse::MAX_ARRAY_DEPTH;
pub use puna_quant::ElementType;
pub use split::{SplitLimit, SplitName};
pub use tensor::{MAX_DIMENSIONS, TensorInfo};
pub use value::{GgufString, Value, ValueType};
pub use writer::{GgufWriter, MAX_TENSOR_NAME_BYTES};
