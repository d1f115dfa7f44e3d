//! `Q6_K`.

use super::super::block256::{Block256, Header};
use super::super::dots::{WeightBytes, raise};
use super::super::isa::{Isa, Rows};
use super::shift;

pub(in super::super) struct Q6K;

/// 64 bytes of lower bits: 32 for blocks 0 and 2 of the chunk, then 32 for 1 and 3; 32 bytes with the upper bits of all four.
pub(in super::super) struct Raw<V>([[V; 4]; 4], [[V; 4]; 2]);

impl WeightBytes for Q6K {
    const MAX: u32 = 63;
    const BIAS: i32 = 32;
    const SUB: usize = 16;
}

impl Block256 for Q6K {
    const BYTES: usize = 210;
    const UNITS: usize = 4;
    type Kept<I: Isa> = ();
    type Raw<I: Isa> = Raw<I::V>;

    #[inline(always)]
    unsafe fn header<I: Isa>(isa: I, rows: Rows) -> ((), Header<I>) {
        // SAFETY: bytes 192 to 207 and 194 to 209.
        let (scales, last) = unsafe { (isa.turn(rows.skip(192)), isa.turn(rows.skip(194))) };
        let header = Header {
            d: isa.f16(isa.shr(last[3], 16)),
            dmin: isa.zero_f(),
            scales,
            minima: scales,
        };
        ((), header)
    }
    /// A chunk is half of the super-block.
    #[inline(always)]
    unsafe fn load<I: Isa>(isa: I, rows: Rows, (): &(), chunk: usize) -> Self::Raw<I> {
        let low = rows.skip(64 * chunk);
        let high = rows.skip(128 + 32 * chunk);
        // SAFETY: two halves of 64 bytes, then two of 32.
        unsafe {
            let low = [
                isa.turn(low),
                isa.turn(low.skip(16)),
                isa.turn(low.skip(32)),
                isa.turn(low.skip(48)),
            ];
            Raw(low, [isa.turn(high), isa.turn(high.skip(16))])
        }
    }
    #[inline(always)]
    fn quad<I: Isa>(isa: I, raw: &Self::Raw<I>, unit: usize, i: usize) -> I::V {
        let up = raise::<I, Self>();
        let low = raw.0[unit % 2 * 2 + i / 4][i % 4];
        let low = shift(isa, low, up - unit as i32 / 2 * 4);
        let high = shift(isa, raw.1[i / 4][i % 4], up + 4 - 2 * unit as i32);
        isa.or(
            isa.and(low, isa.splat(0x0f0f_0f0f << up)),
            isa.and(high, isa.splat(0x3030_3030 << up)),
        )
    }
}
