//! 3 bits per weight in super-blocks: weight `i` of sub-block `j` is `d * (scale[j] - 32) * (q[i] - 4)`.
//!
//! Super-block of 16 sub-blocks of 16 weights, 110 bytes: third bits (32), lower two bits (64), scales of 6 bits (12), `d` f16 (2).
//! Each half of 128 weights takes 32 bytes of the lower bits: weight `32 k + i` lies in byte `i` at bit `2 k`. Its third bit is bit `k` of byte `i`
//! in the first half, `k + 4` in the second. The low four bits of scales 0 to 7 are the low halves of bytes 0 to 7, those of 8 to 15 the
//! high halves; the upper two bits of scale `4 k + i` are in byte `8 + i` at bit `2 k`.

use crate::block256::{self, Symmetric};
use crate::float::f16_at;
use crate::{ActivationKind, ActivationRow, Codec, ElementType, QuantError, ScaleField};

/// The arithmetic of [`ElementType::Q3_K`].
#[derive(Debug, Clone, Copy)]
pub struct Q3_K;

/// A super-block as integers in -4..=3, its scales in -32..=31.
#[inline(always)]
pub fn unpack(block: &[u8; 110]) -> Symmetric<16> {
    let high = &block[..32];
    let mut weights = [0; 256];
    let halves = weights.as_chunks_mut::<128>().0.iter_mut();
    for (half, (weights, low)) in halves.zip(block[32..96].as_chunks::<32>().0).enumerate() {
        for (k, weights) in weights.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            for i in 0..32 {
                let third = high[i] >> (4 * half + k) & 1;
                weights[i] = ((low[i] >> (2 * k) & 3) | (third << 2)) as i8 - 4;
            }
        }
    }
    let scales = &block[96..108];
    let sub_scales = std::array::from_fn(|j| {
        let low = scales[j % 8] >> (4 * (j / 8)) & 0x0f;
        let high = scales[8 + j % 4] >> (2 * (j / 4)) & 3;
        (low | (high << 4)) as i8 - 32
    });
    Symmetric {
        scale: f16_at(block, 108),
        sub_scales,
        weights,
    }
}

impl Codec for Q3_K {
    fn element_type(&self) -> ElementType {
        ElementType::Q3_K
    }

    fn dequantize(&self, bytes: &[u8], out: &mut [f32]) -> Result<(), QuantError> {
        block256::dequantize_symmetric(self.element_type(), bytes, out, unpack)
    }

    fn activation(&self) -> ActivationKind {
        ActivationKind::Q8
    }

    #[inline(always)]
    fn dot(&self, row: &[u8], x: ActivationRow<'_>) -> Result<f32, QuantError> {
        block256::dot_symmetric(self.element_type(), row, x, unpack)
    }

    fn scale_fields(&self) -> &'static [ScaleField] {
        const FIELDS: &[ScaleField] = &[ScaleField::f16(108)];
        FIELDS
    }
}
