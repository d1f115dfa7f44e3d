//! How many rows and vectors of a tile are worked on at once: what the registers of a set hold. Has no effect on results.

use crate::kernels::simd::{Simd, portable::Portable};

/// Register blocking of a set.
pub(super) trait Blocks: Simd {
    /// Rows of one block when the tile is in the first-level cache.
    const ROWS: usize;
    /// Rows up to which a tile is used where it lies, in one pass.
    const DIRECT: usize;
    /// Vectors of the tile that a block of so many rows takes at once: 1, 2 or 4.
    fn vectors(rows: usize) -> usize;
}

/// No registers are known: small blocks.
impl Blocks for Portable {
    const ROWS: usize = 2;
    const DIRECT: usize = 2;
    #[inline(always)]
    fn vectors(_: usize) -> usize {
        1
    }
}

/// Sixteen registers, two per vector.
#[cfg(target_arch = "x86_64")]
impl Blocks for crate::kernels::simd::avx2::Avx2 {
    const ROWS: usize = 6;
    const DIRECT: usize = 6;
    #[inline(always)]
    fn vectors(rows: usize) -> usize {
        match rows {
            1 => 4,
            2 => 2,
            _ => 1,
        }
    }
}

/// Thirty-two registers.
#[cfg(target_arch = "x86_64")]
impl Blocks for crate::kernels::simd::avx512::Avx512 {
    const ROWS: usize = 6;
    const DIRECT: usize = 8;
    #[inline(always)]
    fn vectors(rows: usize) -> usize {
        if rows <= 6 { 4 } else { 2 }
    }
}
