//! 4 bits per weight that index a fixed table with finer steps near zero: `IQ4_NL` in blocks of 32, `IQ4_XS` in super-blocks.
//!
//! `IQ4_NL`: block of 32 weights, 18 bytes, laid out as `Q4_0`: `d` f16 (2), `q` (16: low halves weights 0 to 15, high halves 16 to 31).
//! Weight `i` is `d * LEVELS[q[i]]`.
//!
//! `IQ4_XS`: super-block of 8 sub-blocks of 32 weights, 136 bytes: `d` f16 (2), upper two bits of the scales (2: scale `j` at bit `2 j` of
//! the little-endian word), their lower four bits (4: byte `j / 2`, low half for even `j`), `q` (128: 16 bytes per sub-block, halves as above).
//! Weight `i` of sub-block `j` is `d * (scale[j] - 32) * LEVELS[q[i]]`.

use crate::float::f16_at;
use crate::{
    ActivationKind, ActivationRow, Codec, ElementType, QuantError, ScaleField, block32, block256,
};

/// The sixteen values of a weight, in units of the scale.
pub const LEVELS: [i8; 16] = [
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113,
];

/// The arithmetic of [`ElementType::IQ4_NL`].
#[derive(Debug, Clone, Copy)]
pub struct IQ4_NL;

/// The arithmetic of [`ElementType::IQ4_XS`].
#[derive(Debug, Clone, Copy)]
pub struct IQ4_XS;

/// Sixteen bytes of indices as 32 table values.
#[inline(always)]
fn look_up(bytes: &[u8]) -> [i8; 32] {
    block32::nibbles(bytes).map(|q| LEVELS[usize::from(q & 0x0f)])
}

/// An `IQ4_NL` block as table values.
#[inline(always)]
pub fn unpack_nl(block: &[u8; 18]) -> block32::Symmetric {
    block32::Symmetric {
        scale: f16_at(block, 0),
        weights: look_up(&block[2..]),
    }
}

/// An `IQ4_XS` super-block as table values, its scales in -32..=31.
#[inline(always)]
pub fn unpack_xs(block: &[u8; 136]) -> block256::Symmetric<8> {
    let high = u16::from_le_bytes([block[2], block[3]]);
    let sub_scales = std::array::from_fn(|j| {
        let low = block[4 + j / 2] >> (4 * (j % 2)) & 0x0f;
        let high = (high >> (2 * j) & 3) as u8;
        (low | (high << 4)) as i8 - 32
    });
    let mut weights = [0; 256];
    for (weights, bytes) in weights
        .as_chunks_mut::<32>()
        .0
        .iter_mut()
        .zip(block[8..].as_chunks::<16>().0)
    {
        *weights = look_up(bytes);
    }
    block256::Symmetric {
        scale: f16_at(block, 0),
        sub_scales,
        weights,
    }
}

impl Codec for IQ4_NL {
    fn element_type(&self) -> ElementType {
        ElementType::IQ4_NL
    }

    fn dequantize(&self, bytes: &[u8], out: &mut [f32]) -> Result<(), QuantError> {
        block32::dequantize_symmetric(self.element_type(), bytes, out, unpack_nl)
    }

    fn activation(&self) -> ActivationKind {
        ActivationKind::Q8
    }

    #[inline(always)]
    fn dot(&self, row: &[u8], x: ActivationRow<'_>) -> Result<f32, QuantError> {
        block32::dot_symmetric(self.element_type(), row, x, unpack_nl)
    }

    fn scale_fields(&self) -> &'static [ScaleField] {
        const FIELDS: &[ScaleField] = &[ScaleField::f16(0)];
        FIELDS
    }
}

impl Codec for IQ4_XS {
    fn element_type(&self) -> ElementType {
        ElementType::IQ4_XS
    }

    fn dequantize(&self, bytes: &[u8], out: &mut [f32]) -> Result<(), QuantError> {
        block256::dequantize_symmetric(self.element_type(), bytes, out, unpack_xs)
    }

    fn activation(&self) -> ActivationKind {
        ActivationKind::Q8
    }

    #[inline(always)]
    fn dot(&self, row: &[u8], x: ActivationRow<'_>) -> Result<f32, QuantError> {
        block256::dot_symmetric(self.element_type(), row, x, unpack_xs)
    }

    fn scale_fields(&self) -> &'static [ScaleField] {
        const FIELDS: &[ScaleField] = &[ScaleField::f16(0)];
        FIELDS
    }
}
