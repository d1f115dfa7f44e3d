//! `IQ4_NL`.

use super::super::block32::Block32;
use super::super::dots::WeightBytes;
use super::super::isa::{Isa, Rows};
use super::{levels, nibbles, word};
use puna_quant::types::iq4::LEVELS;

pub(in super::super) struct Iq4Nl;

impl WeightBytes for Iq4Nl {
    const MAX: u32 = 255;
    const SIGNED: bool = true;
}

impl Block32 for Iq4Nl {
    const BYTES: usize = 18;
    type Raw<I: Isa> = (I::V, [I::V; 4]);

    #[inline(always)]
    unsafe fn load<I: Isa>(isa: I, rows: Rows) -> Self::Raw<I> {
        // SAFETY: bytes 0 to 15 and 2 to 17 of the block.
        unsafe { (word(isa, rows), isa.turn(rows.skip(2))) }
    }
    #[inline(always)]
    fn quad<I: Isa>(isa: I, raw: &Self::Raw<I>, i: usize) -> I::V {
        isa.lookup(levels::<I>(LEVELS), nibbles(isa, &raw.1, i, 0))
    }
    #[inline(always)]
    fn scales<I: Isa>(isa: I, raw: &Self::Raw<I>) -> (I::F, I::F) {
        (isa.f16(raw.0), isa.zero_f())
    }
}
