//! 8 bits per weight, symmetric, with a sum: weight `i` is `d * q[i]`. Meant for activations, but files may hold it.
//!
//! Block of 32 weights, 36 bytes: `d` f16 (2), `s` f16 (2: `d` times the sum of `q`; not needed here), `q` i8 (32).

use crate::block32::{self, Symmetric};
use crate::float::f16_at;
use crate::{ActivationKind, ActivationRow, Codec, ElementType, QuantError, ScaleField};

/// The arithmetic of [`ElementType::Q8_1`].
#[derive(Debug, Clone, Copy)]
pub struct Q8_1;

/// A block as its integers.
#[inline(always)]
pub fn unpack(block: &[u8; 36]) -> Symmetric {
    Symmetric {
        scale: f16_at(block, 0),
        weights: std::array::from_fn(|i| block[4 + i] as i8),
    }
}

impl Codec for Q8_1 {
    fn element_type(&self) -> ElementType {
        ElementType::Q8_1
    }

    fn dequantize(&self, bytes: &[u8], out: &mut [f32]) -> Result<(), QuantError> {
        block32::dequantize_symmetric(self.element_type(), bytes, out, unpack)
    }

    fn activation(&self) -> ActivationKind {
        ActivationKind::Q8
    }

    #[inline(always)]
    fn dot(&self, row: &[u8], x: ActivationRow<'_>) -> Result<f32, QuantError> {
        block32::dot_symmetric(self.element_type(), row, x, unpack)
    }

    fn scale_fields(&self) -> &'static [ScaleField] {
        const FIELDS: &[ScaleField] = &[ScaleField::f16(0), ScaleField::f16(2)];
        FIELDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_times_each_integer_and_the_sum_is_passed_over() {
        let mut block = [0u8; 36];
        block[..2].copy_from_slice(&0x3555u16.to_le_bytes()); // about a third
        block[2..4].copy_from_slice(&0x7e00u16.to_le_bytes()); // NaN
        for i in 0..32 {
            block[4 + i] = (i as u8).wrapping_mul(37).wrapping_add(0x80);
        }
        let mut out = [0.0; 32];
        Q8_1.dequantize(&block, &mut out).unwrap();
        let scale = half::f16::from_bits(0x3555).to_f32();
        for (i, o) in out.iter().enumerate() {
            assert_eq!(*o, scale * f32::from(block[4 + i] as i8), "{i}");
        }
        assert_eq!(out[0], scale * -128.0);
    }
}
