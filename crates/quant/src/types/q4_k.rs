//! 4 bits per weight in super-blocks: weight `i` of sub-block `j` is `d * scale[j] * q[i] - dmin * min[j]`.
//!
//! Super-block of 8 sub-blocks of 32 weights, 144 bytes: `d` f16 (2), `dmin` f16 (2), eight scales and eight minima of
//! 6 bits (12, see `scales_and_minima`), `q` (128: of each 32 bytes the low halves are one sub-block, the high halves the next).

use crate::block256::{self, Affine};
use crate::float::f16_at;
use crate::{ActivationKind, ActivationRow, Codec, ElementType, QuantError, ScaleField};

/// The arithmetic of [`ElementType::Q4_K`].
#[derive(Debug, Clone, Copy)]
pub struct Q4_K;

/// A super-block as integers in 0..=15.
#[inline(always)]
pub fn unpack(block: &[u8; 144]) -> Affine<8> {
    let (sub_scales, sub_mins) = scales_and_minima(block, 4);
    let mut weights = [0; 256];
    for (weights, bytes) in weights
        .as_chunks_mut::<64>()
        .0
        .iter_mut()
        .zip(block[16..].as_chunks::<32>().0)
    {
        for (i, byte) in bytes.iter().enumerate() {
            weights[i] = (byte & 0x0f) as i8;
            weights[i + 32] = (byte >> 4) as i8;
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

/// The eight scales and eight minima of 6 bits that `Q4_K` and `Q5_K` keep in twelve bytes, from `offset` of the block.
///
/// Bytes 0 to 3 hold scales 0 to 3 in their low six bits, bytes 4 to 7 minima 0 to 3. Bytes 8 to 11 hold the low four bits of
/// scales 4 to 7 (low halves) and minima 4 to 7 (high halves), whose upper two bits are the top bits of bytes 0 to 3 and 4 to 7.
#[inline(always)]
pub(crate) fn scales_and_minima<const B: usize>(
    block: &[u8; B],
    offset: usize,
) -> ([u8; 8], [u8; 8]) {
    let (mut scales, mut minima) = ([0; 8], [0; 8]);
    for j in 0..4 {
        let [s, m, both] = [0, 4, 8].map(|part| block[offset + part + j]);
        scales[j] = s & 0x3f;
        minima[j] = m & 0x3f;
        scales[j + 4] = (both & 0x0f) | ((s >> 6) << 4);
        minima[j + 4] = (both >> 4) | ((m >> 6) << 4);
    }
    (scales, minima)
}

impl Codec for Q4_K {
    fn element_type(&self) -> ElementType {
        ElementType::Q4_K
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
