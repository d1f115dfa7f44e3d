//! 8 bits per weight, symmetric: weight `i` is `d * q[i]`.
//!
//! Block of 32 weights, 34 bytes: `d` f16 (2), `q` i8 (32).

use crate::block32::{self, Symmetric};
use crate::float::{f16_at, f32_to_f16};
use crate::{ActivationKind, ActivationRow, Codec, ElementType, QuantError, ScaleField};

/// The arithmetic of [`ElementType::Q8_0`].
#[derive(Debug, Clone, Copy)]
pub struct Q8_0;

/// A block as its integers.
#[inline(always)]
pub fn unpack(block: &[u8; 34]) -> Symmetric {
    Symmetric {
        scale: f16_at(block, 0),
        weights: std::array::from_fn(|i| block[2 + i] as i8),
    }
}

/// Encodes a block; the greatest magnitude becomes 127, ties are rounded away from zero.
#[inline]
pub fn pack(x: &[f32; 32]) -> [u8; 34] {
    let peak = x.iter().fold(0.0f32, |peak, v| peak.max(v.abs()));
    let scale = peak / 127.0;
    let inverse = if scale == 0.0 { 0.0 } else { 1.0 / scale };
    let mut block = [0; 34];
    block[..2].copy_from_slice(&f32_to_f16(scale).to_le_bytes());
    for (q, v) in block[2..].iter_mut().zip(x) {
        *q = (v * inverse).round() as i8 as u8;
    }
    block
}

impl Codec for Q8_0 {
    fn element_type(&self) -> ElementType {
        ElementType::Q8_0
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
