//! 5 bits per weight with a minimum: weight `i` is `d * q[i] + m`.
//!
//! Block of 32 weights, 24 bytes: `d` f16 (2), `m` f16 (2), fifth bits (4: bit `i` of the little-endian word is weight `i`),
//! lower four bits (16: low halves weights 0 to 15, high halves 16 to 31).

use crate::block32::{self, Affine};
use crate::float::{f16_at, f32_to_f16};
use crate::{ActivationKind, ActivationRow, Codec, ElementType, QuantError, ScaleField};

/// The arithmetic of [`ElementType::Q5_1`].
#[derive(Debug, Clone, Copy)]
pub struct Q5_1;

/// A block as integers in 0..=31.
#[inline(always)]
pub fn unpack(block: &[u8; 24]) -> Affine {
    let high = block32::fifth_bits([block[4], block[5], block[6], block[7]]);
    let low = block32::nibbles(&block[8..]);
    Affine {
        scale: f16_at(block, 0),
        minimum: f16_at(block, 2),
        weights: std::array::from_fn(|i| (low[i] | high[i]) as i8),
    }
}

/// Encodes a block; its least value becomes 0, its greatest 31.
#[inline]
pub fn pack(x: &[f32; 32]) -> [u8; 24] {
    let (scale, minimum, weights) = block32::round_affine(x, 31.0);
    let mut block = [0; 24];
    block[..2].copy_from_slice(&f32_to_f16(scale).to_le_bytes());
    block[2..4].copy_from_slice(&f32_to_f16(minimum).to_le_bytes());
    block[4..8].copy_from_slice(&block32::pack_fifth_bits(&weights));
    block32::pack_nibbles(&weights, &mut block[8..]);
    block
}

impl Codec for Q5_1 {
    fn element_type(&self) -> ElementType {
        ElementType::Q5_1
    }

    fn dequantize(&self, bytes: &[u8], out: &mut [f32]) -> Result<(), QuantError> {
        block32::dequantize_affine(self.element_type(), bytes, out, unpack)
    }

    fn quantize(&self, x: &[f32], out: &mut [u8]) -> Result<(), QuantError> {
        block32::quantize(self.element_type(), x, out, pack)
    }

    fn activation(&self) -> ActivationKind {
        ActivationKind::Q8
    }

    #[inline(always)]
    fn dot(&self, row: &[u8], x: ActivationRow<'_>) -> Result<f32, QuantError> {
        block32::dot_affine(self.element_type(), row, x, unpack)
    }

    fn scale_fields(&self) -> &'static [ScaleField] {
        const FIELDS: &[ScaleField] = &[ScaleField::f16(0), ScaleField::f16(2)];
        FIELDS
    }
}
