//! The error type of this crate.

use crate::{ActivationKind, ElementType};

/// Why a buffer could not be decoded, encoded or multiplied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuantError {
    /// The type is in the GGUF table, but this engine cannot compute with it.
    #[error("type {0} is not supported yet")]
    NotSupported(ElementType),
    /// The type can be read but not written.
    #[error("quantizing to {0} is not supported yet")]
    NoQuantizer(ElementType),
    /// The bytes end inside a block.
    #[error("{bytes} bytes of {element_type}, expected a multiple of its {} byte block", element_type.block_bytes())]
    PartialBlock {
        /// Type of the row.
        element_type: ElementType,
        /// Bytes that were given.
        bytes: usize,
    },
    /// The number of values does not fit the type's block length.
    #[error("{values} values for {element_type}, expected a multiple of its {} value block", element_type.block_len())]
    PartialBlockValues {
        /// Type to be written.
        element_type: ElementType,
        /// Values that were given.
        values: usize,
    },
    /// The output or the activations have another length than the row.
    #[error("{element_type}: {what} has {found} entries, expected {expected}")]
    Length {
        /// Type of the row.
        element_type: ElementType,
        /// Which buffer.
        what: &'static str,
        /// Its length.
        found: usize,
        /// The length that fits the row.
        expected: usize,
    },
    /// An output buffer of an activation quantizer has the wrong length.
    #[error("activations in 8-bit blocks: {what} has {found} entries, expected {expected}")]
    ActivationLength {
        /// Which buffer.
        what: &'static str,
        /// Its length.
        found: usize,
        /// The length that fits the input.
        expected: usize,
    },
    /// The activations come in a form which the type's dot product does not take.
    #[error("{element_type} is multiplied with activations as {expected}, found {found}")]
    WrongActivation {
        /// Type of the row.
        element_type: ElementType,
        /// What was given.
        found: ActivationKind,
        /// What [`Codec::activation`](crate::Codec::activation) says.
        expected: ActivationKind,
    },
}
