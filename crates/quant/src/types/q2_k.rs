//! 2 bits per weight in super-blocks: weight `i` of sub-block `j` is `d * scale[j] * q[i] - dmin * min[j]`.
//!
//! Super-block of 16 sub-blocks of 16 weights, 84 bytes: scales and minima (16: byte `j` has scale `j` in its low half, minimum
//! `j` in its high half), `q` (64), `d` f16 (2), `dmin` f16 (2). Each half of 128 weights takes 32 bytes of `q`: weight `32 k + i` lies
//! in byte `i` at bit `2 k`.

use crate::block256::{self, Affine};
use crate::float::f16_at;
use crate::{ActivationKind, ActivationRow, Codec, ElementType, QuantError, ScaleField};

/// The arithmetic of [`ElementType::Q2_K`].
#[derive(Debug, Clone, Copy)]
pub struct Q2_K;

/// A super-block as integers in 0..=3.
#[inline(always)]
pub fn unpack(block: &[u8; 84]) -> Affine<16> {
    let mut weights = [0; 256];
    let halves = weights.as_chunks_mut::<128>().0.iter_mut();
    for (weights, bytes) in halves.zip(block[16..80].as_chunks::<32>().0) {
        for (k, weights) in weights.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            *weights = bytes.map(|byte| (byte >> (2 * k) & 3) as i8);
        }
    }
    Affine {
        scale: f16_at(block, 80),
        min_scale: f16_at(block, 82),
        sub_scales: std::array::from_fn(|j| block[j] & 0x0f),
        sub_mins: std::array::from_fn(|j| block[j] >> 4),
        weights,
    }
}

impl Codec for Q2_K {
    fn element_type(&self) -> ElementType {
        ElementType::Q2_K
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
        const FIELDS: &[ScaleField] = &[ScaleField::f16(80), ScaleField::f16(82)];
        FIELDS
    }
}
