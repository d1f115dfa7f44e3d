//! `Q5_0`.

use super::super::block32::Block32;
use super::super::dots::{WeightBytes, raise};
use super::super::isa::{Isa, Rows};
use super::{fifth_bits, nibbles};

pub(in super::super) struct Q5_0;

/// Scale, fifth bits, nibbles.
pub(in super::super) struct Raw<V>(V, V, [V; 4]);

impl WeightBytes for Q5_0 {
    const MAX: u32 = 31;
    const BIAS: i32 = 16;
}

impl Block32 for Q5_0 {
    const BYTES: usize = 22;
    type Raw<I: Isa> = Raw<I::V>;

    #[inline(always)]
    unsafe fn load<I: Isa>(isa: I, rows: Rows) -> Raw<I::V> {
        // SAFETY: bytes 0 to 15 and 6 to 21 of the block.
        unsafe {
            let [a, b, ..] = isa.turn(rows);
            let bits = isa.or(isa.shr(a, 16), isa.shl(b, 16));
            Raw(a, bits, isa.turn(rows.skip(6)))
        }
    }
    #[inline(always)]
    fn quad<I: Isa>(isa: I, raw: &Raw<I::V>, i: usize) -> I::V {
        let up = raise::<I, Self>();
        fifth_bits(isa, nibbles(isa, &raw.2, i, up), raw.1, i, 16 << up)
    }
    #[inline(always)]
    fn scales<I: Isa>(isa: I, raw: &Raw<I::V>) -> (I::F, I::F) {
        (isa.f16(raw.0), isa.zero_f())
    }
}
