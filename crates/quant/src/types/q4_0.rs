//! 4 bits per weight, symmetric: weight `i` is `d * (q[i] - 8)`.
//!
//! Block of 32 weights, 18 bytes: `d` f16 (2), `q` (16: low halves weights 0 to 15, high halves 16 to 31).

use crate::block32::{self, Symmetric};
use crate::float::{f16_at, f32_to_f16};
use crate::{ActivationKind, ActivationRow, Codec, ElementType, QuantError, ScaleField};

/// The arithmetic of [`ElementType::Q4_0`].
#[derive(Debug, Clone, Copy)]
pub struct Q4_0;

/// A block as integers in -8..=7.
#[inline(always)]
pub fn unpack(block: &[u8; 18]) -> Symmetric {
    let weights = block32::nibbles(&block[2..]).map(|q| q as i8 - 8);
    Symmetric {
        scale: f16_at(block, 0),
        weights,
    }
}

/// Encodes a block; the value of greatest magnitude becomes -8.
#[inline]
pub fn pack(x: &[f32; 32]) -> [u8; 18] {
    let (scale, weights) = block32::round_symmetric(x, 8.0);
    let mut block = [0; 18];
    block[..2].copy_from_slice(&f32_to_f16(scale).to_le_bytes());
    block32::pack_nibbles(&weights, &mut block[2..]);
    block
}

impl Codec for Q4_0 {
    fn element_type(&self) -> ElementType {
        ElementType::Q4_0
    }

    fn dequantize(&self, bytes: &[u8], out: &mut [f32]) -> Result<(), QuantError> {
        block32::dequantize_symmetric(self.element_type(), bytes, out, unpack)
    }

    fn quantize(&self, x: &[f32], out: &mut [u8]) -> Result<(), QuantError> {
        block32::quantize(self.element_type(), x, out, pack)
    }

    fn activation(&self) -> ActivationKind {
        ActivationKind::Q8
    }

    #[inline(always)]
    fn dot(&self, row: &[u8], x: ActivationRow<'_>) -> Result<f32, QuantError> {
        block32::dot_symmetric(self.element_type(), row, x, unpack)
    }

    fn scale_fields(&self) -> &'static [ScaleField] {
        const FIELDS: &[ScaleField] = &[ScaleField::f16(0)];
        FIELDS
    }
}
