//! The interface of a type's arithmetic, and the table from types to their implementations.

use crate::types::{self, dense};
use crate::{ActivationKind, ActivationRow, ElementType, QuantError, ScaleField};

/// How one element type is decoded and multiplied. Each file in `types` implements it; the code there is the specification
/// that faster kernels must equal bit for bit.
pub trait Codec: Sync {
    /// The type that this is the arithmetic of.
    fn element_type(&self) -> ElementType;

    /// Decodes whole blocks to f32, bit-equal to the `gguf` Python package (NaNs may differ in their payload).
    ///
    /// `out` must have exactly the number of values that `bytes` hold.
    fn dequantize(&self, bytes: &[u8], out: &mut [f32]) -> Result<(), QuantError>;

    /// Encodes whole blocks, bit-equal to the `gguf` Python package for finite values; `out` must have exactly the bytes that `x` needs.
    ///
    /// Only the simple types have it; the others answer [`QuantError::NoQuantizer`].
    fn quantize(&self, x: &[f32], out: &mut [u8]) -> Result<(), QuantError> {
        let _ = (x, out);
        Err(QuantError::NoQuantizer(self.element_type()))
    }

    /// The form of activations that [`dot`](Self::dot) takes.
    fn activation(&self) -> ActivationKind;

    /// The product of a row of weights with a row of activations of the same length, in the one defined order of operations.
    fn dot(&self, row: &[u8], x: ActivationRow<'_>) -> Result<f32, QuantError>;

    /// Where the floating-point scales lie in a block; for dense floats the value itself. Empty for integers.
    fn scale_fields(&self) -> &'static [ScaleField];
}

/// Something to be done with the arithmetic of a type that is known only at run time, compiled once per type: a kernel that
/// calls [`Codec::dot`] in a loop has it inlined and compiled for the CPU features of its own `#[target_feature]` function.
pub trait CodecVisitor {
    /// What comes out.
    type Output;

    /// Does it.
    fn visit<C: Codec>(self, codec: &'static C) -> Self::Output;
}

/// Gives out the codec as a trait object.
struct AsObject;

impl CodecVisitor for AsObject {
    type Output = &'static dyn Codec;

    fn visit<C: Codec>(self, codec: &'static C) -> Self::Output {
        codec
    }
}

impl ElementType {
    /// The arithmetic of this type; `None` for types that GGUF knows and this engine does not support yet.
    pub fn codec(self) -> Option<&'static dyn Codec> {
        self.visit_codec(AsObject)
    }

    /// Calls the visitor with the arithmetic of this type; `None` as for [`codec`](Self::codec). This is the list of what is supported.
    #[inline]
    pub fn visit_codec<V: CodecVisitor>(self, visitor: V) -> Option<V::Output> {
        Some(match self {
            Self::F32 => visitor.visit(&dense::F32),
            Self::F16 => visitor.visit(&dense::F16),
            Self::BF16 => visitor.visit(&dense::BF16),
            Self::F64 => visitor.visit(&dense::F64),
            Self::I8 => visitor.visit(&dense::I8),
            Self::I16 => visitor.visit(&dense::I16),
            Self::I32 => visitor.visit(&dense::I32),
            Self::I64 => visitor.visit(&dense::I64),
            Self::Q4_0 => visitor.visit(&types::Q4_0),
            Self::Q4_1 => visitor.visit(&types::Q4_1),
            Self::Q5_0 => visitor.visit(&types::Q5_0),
            Self::Q5_1 => visitor.visit(&types::Q5_1),
            Self::Q8_0 => visitor.visit(&types::Q8_0),
            Self::Q8_1 => visitor.visit(&types::Q8_1),
            Self::Q2_K => visitor.visit(&types::Q2_K),
            Self::Q3_K => visitor.visit(&types::Q3_K),
            Self::Q4_K => visitor.visit(&types::Q4_K),
            Self::Q5_K => visitor.visit(&types::Q5_K),
            Self::Q6_K => visitor.visit(&types::Q6_K),
            Self::Q8_K => visitor.visit(&types::Q8_K),
            Self::IQ4_NL => visitor.visit(&types::IQ4_NL),
            Self::IQ4_XS => visitor.visit(&types::IQ4_XS),
            Self::MXFP4 => visitor.visit(&types::MXFP4),
            Self::IQ2_XXS
            | Self::IQ2_XS
            | Self::IQ2_S
            | Self::IQ3_XXS
            | Self::IQ3_S
            | Self::IQ1_S
            | Self::IQ1_M
            | Self::TQ1_0
            | Self::TQ2_0
            | Self::NVFP4
            | Self::Q1_0
            | Self::Q2_0 => return None,
        })
    }
}

/// [`Codec::dequantize`] of the given type.
pub fn dequantize(
    element_type: ElementType,
    bytes: &[u8],
    out: &mut [f32],
) -> Result<(), QuantError> {
    supported(element_type)?.dequantize(bytes, out)
}

/// [`Codec::quantize`] of the given type.
pub fn quantize(element_type: ElementType, x: &[f32], out: &mut [u8]) -> Result<(), QuantError> {
    supported(element_type)?.quantize(x, out)
}

/// [`Codec::dot`] of the given type.
pub fn dot(element_type: ElementType, row: &[u8], x: ActivationRow<'_>) -> Result<f32, QuantError> {
    supported(element_type)?.dot(row, x)
}

fn supported(element_type: ElementType) -> Result<&'static dyn Codec, QuantError> {
    element_type
        .codec()
        .ok_or(QuantError::NotSupported(element_type))
}

/// The blocks of a row, if it is a whole number of them. `B` is the type's block size in bytes.
#[inline(always)]
pub(crate) fn blocks<const B: usize>(
    element_type: ElementType,
    bytes: &[u8],
) -> Result<&[[u8; B]], QuantError> {
    match bytes.as_chunks::<B>() {
        (blocks, []) => Ok(blocks),
        _ => Err(QuantError::PartialBlock {
            element_type,
            bytes: bytes.len(),
        }),
    }
}

/// Checks that a buffer which accompanies a row has the length that the row asks for.
#[inline(always)]
pub(crate) fn expect(
    element_type: ElementType,
    what: &'static str,
    found: usize,
    expected: usize,
) -> Result<(), QuantError> {
    if found == expected {
        return Ok(());
    }
    Err(QuantError::Length {
        element_type,
        what,
        found,
        expected,
    })
}

/// The error for activations of the wrong form.
#[cold]
pub(crate) fn wrong_activation(
    element_type: ElementType,
    expected: ActivationKind,
    found: &ActivationRow<'_>,
) -> QuantError {
    QuantError::WrongActivation {
        element_type,
        found: found.kind(),
        expected,
    }
}
