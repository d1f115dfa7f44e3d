//! `Q6_K`.

use super::super::block256::{Block256, Header};
use super::super::isa::{Isa, Rows};
use super::{raise, shift};

pub(in super::super) struct Q6K;

/// Sixteen bytes of lower bits for sub-blocks 0 and 2 of the chunk, as many for 1 and 3; upper bits of all four.
pub(in super::super) struct Raw<V>([[V; 4]; 2], [V; 4]);

impl Block256 for Q6K {
    const BYTES: usize = 210;
    const SUB: usize = 16;
    const UNITS: usize = 4;
    const MAX: u32 = 63;
    const BIAS: i32 = 32;
    const MIN: bool = false;
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
    /// Chunks 0 and 1 are the first half, chunks 2 and 3 the second; each takes sixteen bytes of 32.
    #[inline(always)]
    unsafe fn load<I: Isa>(isa: I, rows: Rows, (): &(), chunk: usize) -> Self::Raw<I> {
        let (half, at) = (chunk / 2, chunk % 2 * 16);
        // SAFETY: two halves of 64 bytes, then two of 32.
        unsafe {
            let low = rows.skip(64 * half + at);
            let low = [isa.turn(low), isa.turn(low.skip(32))];
            Raw(low, isa.turn(rows.skip(128 + 32 * half + at)))
        }
    }
    #[inline(always)]
    fn quad<I: Isa>(isa: I, raw: &Self::Raw<I>, unit: usize, i: usize) -> I::V {
        let up = raise::<I>(Self::BIAS);
        let low = shift(isa, raw.0[unit % 2][i], up - unit as i32 / 2 * 4);
        let high = shift(isa, raw.1[i], up + 4 - 2 * unit as i32);
        isa.or(
            isa.and(low, isa.splat(0x0f0f_0f0f << up)),
            isa.and(high, isa.splat(0x3030_3030 << up)),
        )
    }
}
