//! A quick look for damage: block scales that are infinite or no number.

use crate::ElementType;

/// Where one floating-point field lies in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScaleField {
    /// Byte offset in the block.
    pub offset: usize,
    /// Its format; little endian.
    pub kind: ScaleKind,
}

/// Format of a scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScaleKind {
    /// IEEE half precision.
    F16,
    /// bfloat16.
    BF16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
    /// A power of two in one byte; 255 is NaN by the OCP MX specification.
    E8M0,
}

impl ScaleField {
    /// An f16 at this offset.
    pub(crate) const fn f16(offset: usize) -> Self {
        Self {
            offset,
            kind: ScaleKind::F16,
        }
    }

    /// Whether the field of this block is infinite or NaN. Blocks that are too short count as finite.
    #[inline(always)]
    fn is_non_finite(self, block: &[u8]) -> bool {
        // The two bytes with the exponent decide; they are the last ones of the field.
        let (top, exponent) = match self.kind {
            ScaleKind::E8M0 => return block.get(self.offset) == Some(&0xff),
            ScaleKind::F16 => (self.offset, 0x7c00),
            ScaleKind::BF16 => (self.offset, 0x7f80),
            ScaleKind::F32 => (self.offset + 2, 0x7f80),
            ScaleKind::F64 => (self.offset + 6, 0x7ff0),
        };
        match block.get(top..top + 2) {
            Some(&[low, high]) => u16::from_le_bytes([low, high]) & exponent == exponent,
            _ => false,
        }
    }
}

/// Index of the first block whose scale (dense floats: the value) is infinite or NaN, without decoding anything.
///
/// `None` if all are finite, and for types that have no floating-point scale or no codec. Bytes after the last whole block are
/// not looked at.
pub fn first_non_finite(element_type: ElementType, bytes: &[u8]) -> Option<usize> {
    let fields = element_type.codec()?.scale_fields();
    if element_type.block_len() == 1 {
        return match fields.first()?.kind {
            ScaleKind::F16 => first_dense(bytes, u16::from_le_bytes, 0x7c00),
            ScaleKind::BF16 => first_dense(bytes, u16::from_le_bytes, 0x7f80),
            ScaleKind::F32 => first_dense(bytes, u32::from_le_bytes, 0x7f80_0000),
            ScaleKind::F64 => first_dense(bytes, u64::from_le_bytes, 0x7ff0 << 48),
            ScaleKind::E8M0 => bytes.iter().position(|&e| e == 0xff),
        };
    }
    bytes
        .chunks_exact(element_type.block_bytes())
        .position(|block| fields.iter().any(|field| field.is_non_finite(block)))
}

/// Index of the first value that has all bits of the exponent set. Looks at a group at a time without stopping inside it, which
/// vectorizes, and then for the place.
fn first_dense<const B: usize, T>(
    bytes: &[u8],
    from_le_bytes: impl Fn([u8; B]) -> T,
    exponent: T,
) -> Option<usize>
where
    T: Copy + PartialEq + std::ops::BitAnd<Output = T>,
{
    const GROUP: usize = 1024;
    let bad = |value: &[u8; B]| from_le_bytes(*value) & exponent == exponent;
    let groups = bytes.as_chunks::<B>().0.chunks(GROUP).enumerate();
    for (i, group) in groups {
        if group.iter().fold(false, |any, value| any | bad(value)) {
            return group.iter().position(bad).map(|j| i * GROUP + j);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_block_with_a_bad_scale_is_found() {
        let infinite_f16 = 0x7c00u16.to_le_bytes();
        let nan_f16 = 0xfe00u16.to_le_bytes();
        let nan_bf16 = 0x7fc0u16.to_le_bytes();
        let infinite_f32 = f32::NEG_INFINITY.to_le_bytes();
        let nan_f64 = f64::NAN.to_le_bytes();
        let cases: &[(ElementType, usize, &[u8])] = &[
            (ElementType::F16, 0, &infinite_f16),
            (ElementType::BF16, 0, &nan_bf16),
            (ElementType::F32, 0, &infinite_f32),
            (ElementType::F64, 0, &nan_f64),
            (ElementType::Q4_0, 0, &nan_f16),
            (ElementType::Q4_1, 2, &infinite_f16),
            (ElementType::Q5_0, 0, &nan_f16),
            (ElementType::Q5_1, 2, &nan_f16),
            (ElementType::Q8_0, 0, &infinite_f16),
            (ElementType::Q8_1, 0, &infinite_f16),
            (ElementType::Q2_K, 80, &nan_f16),
            (ElementType::Q2_K, 82, &nan_f16),
            (ElementType::Q3_K, 108, &nan_f16),
            (ElementType::Q4_K, 0, &nan_f16),
            (ElementType::Q4_K, 2, &nan_f16),
            (ElementType::Q5_K, 2, &nan_f16),
            (ElementType::Q6_K, 208, &nan_f16),
            (ElementType::Q8_K, 0, &infinite_f32),
            (ElementType::IQ4_NL, 0, &nan_f16),
            (ElementType::IQ4_XS, 0, &nan_f16),
            (ElementType::MXFP4, 0, &[0xff]),
        ];
        for &(t, offset, bad) in cases {
            let size = t.block_bytes();
            // 0x3b is a finite number in every format, whatever surrounds it.
            let mut bytes = vec![0x3b; 5 * size];
            assert_eq!(first_non_finite(t, &bytes), None, "{t}");
            for block in [4, 2] {
                bytes[block * size + offset..][..bad.len()].copy_from_slice(bad);
                assert_eq!(first_non_finite(t, &bytes), Some(block), "{t}");
            }
        }
    }

    #[test]
    fn a_bad_value_far_into_a_dense_tensor_is_found() {
        for (t, bad) in [
            (ElementType::F16, &[0, 0x7c][..]),
            (ElementType::F64, &[0, 0, 0, 0, 0, 0, 0xf8, 0xff][..]),
        ] {
            let mut bytes = vec![0x3b; 5000 * t.block_bytes()];
            for place in [4999, 3000, 1024, 1023] {
                bytes[place * bad.len()..][..bad.len()].copy_from_slice(bad);
                assert_eq!(first_non_finite(t, &bytes), Some(place), "{t}");
            }
        }
    }

    #[test]
    fn integers_have_nothing_to_check_and_quants_are_not_mistaken_for_scales() {
        assert_eq!(first_non_finite(ElementType::I32, &[0xff; 64]), None);
        let mut block = [0xff; 18];
        block[..2].fill(0);
        assert_eq!(first_non_finite(ElementType::Q4_0, &block), None);
        assert_eq!(first_non_finite(ElementType::Q4_0, &block[..17]), None);
    }
}
