//! 5 bits per weight in super-blocks: weight `i` of sub-block `j` is `d * scale[j] * q[i] - dmin * min[j]`.
//!
//! Super-block of 8 sub-blocks of 32 weights, 176 bytes: `d` f16 (2), `dmin` f16 (2), scales and minima of 6 bits (12, as
//! in `Q4_K`), fifth bits (32: bit `j` of byte `i` is weight `i` of sub-block `j`), lower four bits (128: of each 32 bytes the
//! low halves are one sub-block, the high halves the next).

use super::q4_k::scales_and_minima;
use crate::block256::{self, Affine};
use crate::float::f16_at;
use crate::{ActivationKind, ActivationRow, Codec, ElementType, QuantError, ScaleField};

/// The arithmetic of [`ElementType::Q5_K`].
#[derive(Debug, Clone, Copy)]
pub struct Q5_K;

/// A super-block as integers in 0..=31.
#[inline(always)]
pub fn unpack(block: &[u8; 176]) -> Affine<8> {
    let (sub_scales, sub_mins) = scales_and_minima(block, 4);
    let high = &block[16..48];
    let mut weights = [0; 256];
    let pairs = weights.as_chunks_mut::<64>().0.iter_mut();
    for (j, (weights, low)) in pairs.zip(block[48..].as_chunks::<32>().0).enumerate() {
        for i in 0..32 {
            let fifths = high[i] >> (2 * j);
            weights[i] = ((low[i] & 0x0f) | ((fifths & 1) << 4)) as i8;
            weights[i + 32] = ((low[i] >> 4) | ((fifths >> 1 & 1) << 4)) as i8;
        }
    }
    Affine {
        scale: f16_at(block, 0),
        min_scale: f16_at(block, 2),
        sub_scales,
        sub_mins,
        weights,
    }
}

impl Codec for Q5_K {
    fn element_type(&self) -> ElementType {
        ElementType::Q5_K
    }

    fn dequantize(&self, bytes: &[u8], out: &mut [f32]) -> Result<(), QuantError> {
        block256::dequantize_affine(self.element_type(), bytes, out, unpack)
    }

    fn activation(&self) -> ActivationKind {
        ActivationKind::Q8
    }

    #[inline(always)]
    fn dot(&self, row: &[u8], x: ActivationRow<'_>) -> Result<f32, QuantError> {
        block256::dot_affine(self.element_type(), row, x, unpack)
    }

    fn scale_fields(&self) -> &'static [ScaleField] {
        const FIELDS: &[ScaleField] = &[ScaleField::f16(0), ScaleField::f16(2)];
        FIELDS
    }
}
