//! `Q2_K`.

use super::super::block256::{Block256, Header};
use super::super::dots::WeightBytes;
use super::super::isa::{Isa, Rows};

pub(in super::super) struct Q2K;

impl WeightBytes for Q2K {
    const MAX: u32 = 3;
    const SUB: usize = 16;
    const MIN: bool = true;
}

impl Block256 for Q2K {
    const BYTES: usize = 84;
    const UNITS: usize = 4;
    type Kept<I: Isa> = ();
    type Raw<I: Isa> = [[I::V; 4]; 2];

    #[inline(always)]
    unsafe fn header<I: Isa>(isa: I, rows: Rows) -> ((), Header<I>) {
        // SAFETY: bytes 0 to 15 and 68 to 83.
        let ([a, b, c, d], last) = unsafe { (isa.turn(rows), isa.turn(rows.skip(68))) };
        let low = isa.splat(0x0f0f_0f0f);
        let header = Header {
            d: isa.f16(last[3]),
            dmin: isa.f16(isa.shr(last[3], 16)),
            scales: [
                isa.and(a, low),
                isa.and(b, low),
                isa.and(c, low),
                isa.and(d, low),
            ],
            minima: [
                isa.and(isa.shr(a, 4), low),
                isa.and(isa.shr(b, 4), low),
                isa.and(isa.shr(c, 4), low),
                isa.and(isa.shr(d, 4), low),
            ],
        };
        ((), header)
    }
    /// A chunk is half of the super-block.
    #[inline(always)]
    unsafe fn load<I: Isa>(isa: I, rows: Rows, (): &(), chunk: usize) -> Self::Raw<I> {
        let rows = rows.skip(16 + 32 * chunk);
        // SAFETY: two halves of 32 bytes follow the first sixteen.
        unsafe { [isa.turn(rows), isa.turn(rows.skip(16))] }
    }
    #[inline(always)]
    fn quad<I: Isa>(isa: I, raw: &Self::Raw<I>, unit: usize, i: usize) -> I::V {
        let words = isa.shr(raw[i / 4][i % 4], 2 * unit as u32);
        isa.and(words, isa.splat(0x0303_0303))
    }
}
