//! 8 bits per weight in super-blocks: weight `i` is `d * q[i]`. Meant for activations, but files may hold it.
//!
//! Super-block of 256 weights, 292 bytes: `d` f32 (4), `q` i8 (256), sums of each 16 of `q` i16 (32; not needed here).

use crate::block256::{self, Symmetric};
use crate::{ActivationKind, ActivationRow, Codec, ElementType, QuantError, ScaleField, ScaleKind};

/// The arithmetic of [`ElementType::Q8_K`].
#[derive(Debug, Clone, Copy)]
pub struct Q8_K;

/// A super-block as its integers; the sub-blocks that the common code expects all have scale 1, which changes no bit.
#[inline(always)]
pub fn unpack(block: &[u8; 292]) -> Symmetric<8> {
    Symmetric {
        scale: f32::from_le_bytes([block[0], block[1], block[2], block[3]]),
        sub_scales: [1; 8],
        weights: std::array::from_fn(|i| block[4 + i] as i8),
    }
}

impl Codec for Q8_K {
    fn element_type(&self) -> ElementType {
        ElementType::Q8_K
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
        const FIELDS: &[ScaleField] = &[ScaleField {
            offset: 0,
            kind: ScaleKind::F32,
        }];
        FIELDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_times_each_integer_and_the_sums_are_passed_over() {
        let mut block = [0xff_u8; 292];
        let scale = 1.0f32 / 3.0;
        block[..4].copy_from_slice(&scale.to_le_bytes());
        for i in 0..=255u8 {
            block[4 + usize::from(i)] = i;
        }
        let mut out = [0.0; 256];
        Q8_K.dequantize(&block, &mut out).unwrap();
        for (i, o) in (0..=255u8).zip(out) {
            assert_eq!(o, scale * f32::from(i as i8), "{i}");
        }
        assert_eq!(out[128], scale * -128.0);
    }
}
