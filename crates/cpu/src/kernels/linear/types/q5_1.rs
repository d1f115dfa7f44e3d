//! `Q5_1`.

use super::super::block32::Block32;
use super::super::dots::WeightBytes;
use super::super::isa::{Isa, Rows};
use super::{fifth_bits, nibbles};

pub(in super::super) struct Q5_1;

/// Scale and minimum, fifth bits, nibbles.
pub(in super::super) struct Raw<V>(V, V, [V; 4]);

impl WeightBytes for Q5_1 {
    const MAX: u32 = 31;
    const MIN: bool = true;
}

impl Block32 for Q5_1 {
    const BYTES: usize = 24;
    type Raw<I: Isa> = Raw<I::V>;

    #[inline(always)]
    unsafe fn load<I: Isa>(isa: I, rows: Rows) -> Raw<I::V> {
        // SAFETY: bytes 0 to 15 and 8 to 23 of the block.
        unsafe {
            let [scales, bits, ..] = isa.turn(rows);
            Raw(scales, bits, isa.turn(rows.skip(8)))
        }
    }
    #[inline(always)]
    fn quad<I: Isa>(isa: I, raw: &Raw<I::V>, i: usize) -> I::V {
        fifth_bits(isa, nibbles(isa, &raw.2, i, 0), raw.1, i, 16)
    }
    #[inline(always)]
    fn scales<I: Isa>(isa: I, raw: &Raw<I::V>) -> (I::F, I::F) {
        (isa.f16(raw.0), isa.f16(isa.shr(raw.0, 16)))
    }
}
