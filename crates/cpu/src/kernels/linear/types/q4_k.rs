//! `Q4_K`.

use super::super::block256::{Block256, Header};
use super::super::dots::WeightBytes;
use super::super::isa::{Isa, Rows};
use super::six_bits;

pub(in super::super) struct Q4K;

impl WeightBytes for Q4K {
    const MAX: u32 = 15;
    const MIN: bool = true;
}

impl Block256 for Q4K {
    const BYTES: usize = 144;
    const UNITS: usize = 2;
    type Kept<I: Isa> = ();
    type Raw<I: Isa> = [[I::V; 4]; 2];

    #[inline(always)]
    unsafe fn header<I: Isa>(isa: I, rows: Rows) -> ((), Header<I>) {
        // SAFETY: the first sixteen bytes of the super-block.
        let [d, s, m, high] = unsafe { isa.turn(rows) };
        let (scales, minima) = six_bits(isa, s, m, high);
        let header = Header {
            d: isa.f16(d),
            dmin: isa.f16(isa.shr(d, 16)),
            scales,
            minima,
        };
        ((), header)
    }
    #[inline(always)]
    unsafe fn load<I: Isa>(isa: I, rows: Rows, (): &(), chunk: usize) -> Self::Raw<I> {
        // SAFETY: four chunks of 32 bytes follow the first sixteen.
        unsafe {
            let rows = rows.skip(16 + 32 * chunk);
            [isa.turn(rows), isa.turn(rows.skip(16))]
        }
    }
    #[inline(always)]
    fn quad<I: Isa>(isa: I, raw: &Self::Raw<I>, unit: usize, i: usize) -> I::V {
        let w = raw[i / 4][i % 4];
        let w = if unit == 0 { w } else { isa.shr(w, 4) };
        isa.and(w, isa.splat(0x0f0f_0f0f))
    }
}
