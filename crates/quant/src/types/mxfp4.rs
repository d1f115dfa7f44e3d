//! FP4 (E2M1) weights with one power of two as scale, after the OCP Microscaling specification.
//!
//! Block of 32 weights, 17 bytes: `e` E8M0 (1), `q` (16: low halves weights 0 to 15, high halves 16 to 31).
//! Weight `i` is `2^(e - 127)` times an FP4 value; the values are kept doubled, as integers, and the scale halved.

use crate::block32::{self, Symmetric};
use crate::float::e8m0_half_to_f32;
use crate::{ActivationKind, ActivationRow, Codec, ElementType, QuantError, ScaleField, ScaleKind};

/// The sixteen FP4 values, doubled. Index 8 is minus zero, which as an integer is zero.
pub const LEVELS: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// The arithmetic of [`ElementType::MXFP4`].
#[derive(Debug, Clone, Copy)]
pub struct MXFP4;

/// A block as doubled FP4 values and half the scale.
#[inline(always)]
pub fn unpack(block: &[u8; 17]) -> Symmetric {
    Symmetric {
        scale: e8m0_half_to_f32(block[0]),
        weights: block32::nibbles(&block[1..]).map(|q| LEVELS[usize::from(q & 0x0f)]),
    }
}

impl Codec for MXFP4 {
    fn element_type(&self) -> ElementType {
        ElementType::MXFP4
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
        const FIELDS: &[ScaleField] = &[ScaleField {
            offset: 0,
            kind: ScaleKind::E8M0,
        }];
        FIELDS
    }
}
