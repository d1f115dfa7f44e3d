//! `Q4_0`.

use super::super::block32::Block32;
use super::super::dots::{WeightBytes, raise};
use super::super::isa::{Isa, Rows};
use super::{nibbles, word};

pub(in super::super) struct Q4_0;

impl WeightBytes for Q4_0 {
    const MAX: u32 = 15;
    const BIAS: i32 = 8;
}

impl Block32 for Q4_0 {
    const BYTES: usize = 18;
    type Raw<I: Isa> = (I::V, [I::V; 4]);

    #[inline(always)]
    unsafe fn load<I: Isa>(isa: I, rows: Rows) -> Self::Raw<I> {
        // SAFETY: bytes 0 to 15 and 2 to 17 of the block.
        unsafe { (word(isa, rows), isa.turn(rows.skip(2))) }
    }
    #[inline(always)]
    fn quad<I: Isa>(isa: I, raw: &Self::Raw<I>, i: usize) -> I::V {
        nibbles(isa, &raw.1, i, raise::<I, Self>())
    }
    #[inline(always)]
    fn scales<I: Isa>(isa: I, raw: &Self::Raw<I>) -> (I::F, I::F) {
        (isa.f16(raw.0), isa.zero_f())
    }
}
