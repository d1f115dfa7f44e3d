//! `Q8_0`.

use super::super::block32::Block32;
use super::super::dots::WeightBytes;
use super::super::isa::{Isa, Rows};
use super::word;

pub(in super::super) struct Q8_0;

/// Scale, bytes.
pub(in super::super) struct Raw<V>(V, [V; 4], [V; 4]);

impl WeightBytes for Q8_0 {
    const MAX: u32 = 255;
    const SIGNED: bool = true;
}

impl Block32 for Q8_0 {
    const BYTES: usize = 34;
    type Raw<I: Isa> = Raw<I::V>;

    #[inline(always)]
    unsafe fn load<I: Isa>(isa: I, rows: Rows) -> Raw<I::V> {
        // SAFETY: bytes 0 to 15, 2 to 17 and 18 to 33 of the block.
        unsafe {
            Raw(
                word(isa, rows),
                isa.turn(rows.skip(2)),
                isa.turn(rows.skip(18)),
            )
        }
    }
    #[inline(always)]
    fn quad<I: Isa>(isa: I, raw: &Raw<I::V>, i: usize) -> I::V {
        let w = if i < 4 { raw.1[i] } else { raw.2[i - 4] };
        if I::WIDE {
            isa.xor(w, isa.splat(0x8080_8080))
        } else {
            w
        }
    }
    #[inline(always)]
    fn scales<I: Isa>(isa: I, raw: &Raw<I::V>) -> (I::F, I::F) {
        (isa.f16(raw.0), isa.zero_f())
    }
}
