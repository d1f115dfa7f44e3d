//! The table of element types that a GGUF file may name, supported here or not.

use std::fmt;

/// The type of a tensor's elements, with the id that GGUF gives it.
///
/// Ids 4, 5, 31 to 33 and 36 to 38 belonged to types that were removed from the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
// The names are the format's own.
#[allow(non_camel_case_types)]
#[repr(u32)]
#[non_exhaustive]
pub enum ElementType {
    /// 32-bit IEEE float.
    F32 = 0,
    /// 16-bit IEEE float.
    F16 = 1,
    /// 4-bit, one f16 scale per 32.
    Q4_0 = 2,
    /// 4-bit, one f16 scale and minimum per 32.
    Q4_1 = 3,
    /// 5-bit, one f16 scale per 32.
    Q5_0 = 6,
    /// 5-bit, one f16 scale and minimum per 32.
    Q5_1 = 7,
    /// 8-bit, one f16 scale per 32.
    Q8_0 = 8,
    /// 8-bit, one f16 scale and one f16 scaled sum per 32.
    Q8_1 = 9,
    /// 2-bit in super-blocks of 256, 4-bit scales and minima per 16.
    Q2_K = 10,
    /// 3-bit in super-blocks of 256, 6-bit scales per 16.
    Q3_K = 11,
    /// 4-bit in super-blocks of 256, 6-bit scales and minima per 32.
    Q4_K = 12,
    /// 5-bit in super-blocks of 256, 6-bit scales and minima per 32.
    Q5_K = 13,
    /// 6-bit in super-blocks of 256, 8-bit scales per 16.
    Q6_K = 14,
    /// 8-bit in super-blocks of 256, one f32 scale.
    Q8_K = 15,
    /// 2-bit codebook.
    IQ2_XXS = 16,
    /// 2-bit codebook.
    IQ2_XS = 17,
    /// 3-bit codebook.
    IQ3_XXS = 18,
    /// 1.5-bit codebook.
    IQ1_S = 19,
    /// 4-bit into a non-linear table, one f16 scale per 32.
    IQ4_NL = 20,
    /// 3-bit codebook.
    IQ3_S = 21,
    /// 2-bit codebook.
    IQ2_S = 22,
    /// 4-bit into a non-linear table, super-blocks of 256, 6-bit scales per 32.
    IQ4_XS = 23,
    /// Signed 8-bit integer.
    I8 = 24,
    /// Signed 16-bit integer.
    I16 = 25,
    /// Signed 32-bit integer.
    I32 = 26,
    /// Signed 64-bit integer.
    I64 = 27,
    /// 64-bit IEEE float.
    F64 = 28,
    /// 1.75-bit codebook.
    IQ1_M = 29,
    /// The upper half of a 32-bit float.
    BF16 = 30,
    /// Ternary, five to a byte.
    TQ1_0 = 34,
    /// Ternary, four to a byte.
    TQ2_0 = 35,
    /// FP4 (E2M1) with one E8M0 scale per 32.
    MXFP4 = 39,
    /// FP4 (E2M1) with one UE4M3 scale per 16.
    NVFP4 = 40,
    /// Binary, one f16 scale per 128.
    Q1_0 = 41,
    /// 2-bit, one f16 scale per 64.
    Q2_0 = 42,
}

/// One row of the table: name, values per block, bytes per block.
struct Row {
    name: &'static str,
    block_len: usize,
    block_bytes: usize,
}

const fn row(name: &'static str, block_len: usize, block_bytes: usize) -> Row {
    Row {
        name,
        block_len,
        block_bytes,
    }
}

impl ElementType {
    /// Every type, in the order of the ids.
    pub const ALL: &'static [Self] = &[
        Self::F32,
        Self::F16,
        Self::Q4_0,
        Self::Q4_1,
        Self::Q5_0,
        Self::Q5_1,
        Self::Q8_0,
        Self::Q8_1,
        Self::Q2_K,
        Self::Q3_K,
        Self::Q4_K,
        Self::Q5_K,
        Self::Q6_K,
        Self::Q8_K,
        Self::IQ2_XXS,
        Self::IQ2_XS,
        Self::IQ3_XXS,
        Self::IQ1_S,
        Self::IQ4_NL,
        Self::IQ3_S,
        Self::IQ2_S,
        Self::IQ4_XS,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::F64,
        Self::IQ1_M,
        Self::BF16,
        Self::TQ1_0,
        Self::TQ2_0,
        Self::MXFP4,
        Self::NVFP4,
        Self::Q1_0,
        Self::Q2_0,
    ];

    const fn row(self) -> Row {
        match self {
            Self::F32 => row("F32", 1, 4),
            Self::F16 => row("F16", 1, 2),
            Self::Q4_0 => row("Q4_0", 32, 18),
            Self::Q4_1 => row("Q4_1", 32, 20),
            Self::Q5_0 => row("Q5_0", 32, 22),
            Self::Q5_1 => row("Q5_1", 32, 24),
            Self::Q8_0 => row("Q8_0", 32, 34),
            Self::Q8_1 => row("Q8_1", 32, 36),
            Self::Q2_K => row("Q2_K", 256, 84),
            Self::Q3_K => row("Q3_K", 256, 110),
            Self::Q4_K => row("Q4_K", 256, 144),
            Self::Q5_K => row("Q5_K", 256, 176),
            Self::Q6_K => row("Q6_K", 256, 210),
            Self::Q8_K => row("Q8_K", 256, 292),
            Self::IQ2_XXS => row("IQ2_XXS", 256, 66),
            Self::IQ2_XS => row("IQ2_XS", 256, 74),
            Self::IQ3_XXS => row("IQ3_XXS", 256, 98),
            Self::IQ1_S => row("IQ1_S", 256, 50),
            Self::IQ4_NL => row("IQ4_NL", 32, 18),
            Self::IQ3_S => row("IQ3_S", 256, 110),
            Self::IQ2_S => row("IQ2_S", 256, 82),
            Self::IQ4_XS => row("IQ4_XS", 256, 136),
            Self::I8 => row("I8", 1, 1),
            Self::I16 => row("I16", 1, 2),
            Self::I32 => row("I32", 1, 4),
            Self::I64 => row("I64", 1, 8),
            Self::F64 => row("F64", 1, 8),
            Self::IQ1_M => row("IQ1_M", 256, 56),
            Self::BF16 => row("BF16", 1, 2),
            Self::TQ1_0 => row("TQ1_0", 256, 54),
            Self::TQ2_0 => row("TQ2_0", 256, 66),
            Self::MXFP4 => row("MXFP4", 32, 17),
            Self::NVFP4 => row("NVFP4", 64, 36),
            Self::Q1_0 => row("Q1_0", 128, 18),
            Self::Q2_0 => row("Q2_0", 64, 18),
        }
    }

    /// The type with this id in a GGUF file; `None` for ids that were removed or never given out.
    pub fn from_id(id: u32) -> Option<Self> {
        Self::ALL.iter().copied().find(|t| t.id() == id)
    }

    /// The id in a GGUF file.
    pub const fn id(self) -> u32 {
        self as u32
    }

    /// The name as users write it: `Q4_K`, `F16`.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// The type with this name, in upper or lower case.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|t| t.name().eq_ignore_ascii_case(name))
    }

    /// Values per block; 1 for the dense types.
    pub const fn block_len(self) -> usize {
        self.row().block_len
    }

    /// Bytes per block.
    pub const fn block_bytes(self) -> usize {
        self.row().block_bytes
    }

    /// Bytes of a row of `cols` values; `None` if `cols` is not a multiple of the block length or the product overflows.
    pub fn row_bytes(self, cols: usize) -> Option<usize> {
        let Row {
            block_len,
            block_bytes,
            ..
        } = self.row();
        if cols.is_multiple_of(block_len) {
            (cols / block_len).checked_mul(block_bytes)
        } else {
            None
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_found_again_by_id_and_by_name() {
        for &t in ElementType::ALL {
            assert_eq!(ElementType::from_id(t.id()), Some(t));
            assert_eq!(ElementType::from_name(t.name()), Some(t));
            assert_eq!(ElementType::from_name(&t.name().to_lowercase()), Some(t));
        }
        assert_eq!(ElementType::ALL.len(), 35);
        assert_eq!(ElementType::from_name("Q4"), None);
    }

    #[test]
    fn removed_and_unknown_ids_are_no_type() {
        for id in [4, 5, 31, 32, 33, 36, 37, 38, 43, 1000, u32::MAX] {
            assert_eq!(ElementType::from_id(id), None, "{id}");
        }
    }

    #[test]
    fn bytes_of_a_row_need_whole_blocks() {
        let cases = [
            (ElementType::F32, 3, Some(12)),
            (ElementType::Q4_0, 64, Some(36)),
            (ElementType::Q4_0, 33, None),
            (ElementType::Q4_K, 0, Some(0)),
            (ElementType::Q4_K, 512, Some(288)),
            (ElementType::Q4_K, 32, None),
            (ElementType::F64, usize::MAX, None),
            (ElementType::NVFP4, 128, Some(72)),
        ];
        for (t, cols, bytes) in cases {
            assert_eq!(t.row_bytes(cols), bytes, "{t} {cols}");
        }
    }
}
