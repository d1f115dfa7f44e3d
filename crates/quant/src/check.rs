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
    let blocks = bytes.chunks_exact(element_type.block_bytes());
    match *fields {
        [] => None,
        [field] => first(blocks, |block| field.is_non_finite(block)),
        _ => first(blocks, |block| {
            fields.iter().any(|f| f.is_non_finite(block))
        }),
    }
}

#[inline(always)]
fn first<'a>(
    mut blocks: impl Iterator<Item = &'a [u8]>,
    bad: impl Fn(&[u8]) -> bool,
) -> Option<usize> {
    blocks.position(bad)
}
