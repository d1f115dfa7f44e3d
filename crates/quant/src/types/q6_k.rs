//! 6 bits per weight in super-blocks: weight `i` of sub-block `j` is `d * scale[j] * (q[i] - 32)`.
//!
//! Super-block of 16 sub-blocks of 16 weights, 210 bytes: lower four bits (128), upper two bits (64), `scale` i8 (16), `d` f16 (2).
//! Each half of 128 weights takes 64 and 32 of the bytes: weight `32 k + i` has its lower bits in byte `32 (k mod 2) + i` (low
//! halves for `k` 0 and 1, high halves for 2 and 3), its upper bits in byte `i` at bit `2 k`.

use crate::block256::{self, Symmetric};
use crate::float::f16_at;
use crate::{ActivationKind, ActivationRow, Codec, ElementType, QuantError, ScaleField};

/// The arithmetic of [`ElementType::Q6_K`].
#[derive(Debug, Clone, Copy)]
pub struct Q6_K;

/// A super-block as integers in -32..=31.
#[inline(always)]
pub fn unpack(block: &[u8; 210]) -> Symmetric<16> {
    let mut weights = [0; 256];
    let low = block[..128].as_chunks::<64>().0;
    let high = block[128..192].as_chunks::<32>().0;
    let halves = weights.as_chunks_mut::<128>().0.iter_mut();
    for ((weights, low), high) in halves.zip(low).zip(high) {
        for i in 0..32 {
            let [a, b, h] = [low[i], low[i + 32], high[i]];
            weights[i] = ((a & 0x0f) | ((h & 3) << 4)) as i8 - 32;
            weights[i + 32] = ((b & 0x0f) | ((h >> 2 & 3) << 4)) as i8 - 32;
            weights[i + 64] = ((a >> 4) | ((h >> 4 & 3) << 4)) as i8 - 32;
            weights[i + 96] = ((b >> 4) | ((h >> 6) << 4)) as i8 - 32;
        }
    }
    Symmetric {
        scale: f16_at(block, 208),
        sub_scales: std::array::from_fn(|j| block[192 + j] as i8),
        weights,
    }
}

impl Codec for Q6_K {
    fn element_type(&self) -> ElementType {
        ElementType::Q6_K
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
        const FIELDS: &[ScaleField] = &[ScaleField::f16(208)];
        FIELDS
    }
}
