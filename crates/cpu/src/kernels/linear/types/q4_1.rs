//! `Q4_1`.

use super::super::block32::Block32;
use super::super::dots::WeightBytes;
use super::super::isa::{Isa, Rows};
use super::{nibbles, word};

pub(in super::super) struct Q4_1;

impl WeightBytes for Q4_1 {
    const MAX: u32 = 15;
    const MIN: bool = true;
}

impl Block32 for Q4_1 {
    const BYTES: usize = 20;
    type Raw<I: Isa> = (I::V, [I::V; 4]);

    #[inline(always)]
    unsafe fn load<I: Isa>(isa: I, rows: Rows) -> Self::Raw<I> {
        // SAFETY: bytes 0 to 15 and 4 to 19 of the block.
        unsafe { (word(isa, rows), isa.turn(rows.skip(4))) }
    }
    #[inline(always)]
    fn quad<I: Isa>(isa: I, raw: &Self::Raw<I>, i: usize) -> I::V {
        nibbles(isa, &raw.1, i, 0)
    }
    #[inline(always)]
    fn scales<I: Isa>(isa: I, raw: &Self::Raw<I>) -> (I::F, I::F) {
        (isa.f16(raw.0), isa.f16(isa.shr(raw.0, 16)))
    }
}
