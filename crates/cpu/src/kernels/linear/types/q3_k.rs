//! `Q3_K`.

use super::super::block256::{Block256, Header};
use super::super::dots::{WeightBytes, raise};
use super::super::isa::{Isa, Rows};
use super::shift;

pub(in super::super) struct Q3K;

/// Lower two bits; third bits; which of these belong to the chunk's four blocks.
pub(in super::super) struct Raw<V>([[V; 4]; 2], [[V; 4]; 2], [V; 4]);

/// The word that begins in the middle of `low`.
#[inline(always)]
fn join<I: Isa>(isa: I, low: I::V, high: I::V) -> I::V {
    isa.or(isa.shr(low, 16), isa.shl(high, 16))
}

/// Four scales from their lower four bits and, in place, their upper two.
#[inline(always)]
fn scales<I: Isa>(isa: I, low: I::V, high: I::V) -> I::V {
    let low = isa.and(low, isa.splat(0x0f0f_0f0f));
    let six = isa.or(low, isa.and(high, isa.splat(0x3030_3030)));
    isa.sub8(six, isa.splat(0x2020_2020))
}

impl WeightBytes for Q3K {
    const MAX: u32 = 7;
    const BIAS: i32 = 4;
    const SUB: usize = 16;
}

impl Block256 for Q3K {
    const BYTES: usize = 110;
    const UNITS: usize = 4;
    type Kept<I: Isa> = [[I::V; 4]; 2];
    type Raw<I: Isa> = Raw<I::V>;

    /// Scale `j` has its lower four bits in byte `j mod 8` of twelve (high half from 8 on), its upper two in byte `8 + j mod 4` at bit
    /// `2 (j / 4)`.
    #[inline(always)]
    unsafe fn header<I: Isa>(isa: I, rows: Rows) -> (Self::Kept<I>, Header<I>) {
        // SAFETY: bytes 94 to 109, then 0 to 31.
        let ([a, b, c, d], kept) = unsafe {
            let last = isa.turn(rows.skip(94));
            (last, [isa.turn(rows), isa.turn(rows.skip(16))])
        };
        // Twelve bytes from the second half of the first word on.
        let (a, b, c) = (join(isa, a, b), join(isa, b, c), join(isa, c, d));
        let header = Header {
            d: isa.f16(isa.shr(d, 16)),
            dmin: isa.zero_f(),
            scales: [
                scales(isa, a, isa.shl(c, 4)),
                scales(isa, b, isa.shl(c, 2)),
                scales(isa, isa.shr(a, 4), c),
                scales(isa, isa.shr(b, 4), isa.shr(c, 2)),
            ],
            minima: [isa.zero(); 4],
        };
        (kept, header)
    }
    /// A chunk is half of the super-block.
    #[inline(always)]
    unsafe fn load<I: Isa>(isa: I, rows: Rows, kept: &Self::Kept<I>, chunk: usize) -> Self::Raw<I> {
        let low = rows.skip(32 + 32 * chunk);
        // SAFETY: two halves of 32 bytes follow the first 32.
        let low = unsafe { [isa.turn(low), isa.turn(low.skip(16))] };
        let first = chunk * 4;
        let masks = [
            isa.splat(0x0101_0101 << first),
            isa.splat(0x0202_0202 << first),
            isa.splat(0x0404_0404 << first),
            isa.splat(0x0808_0808 << first),
        ];
        Raw(low, *kept, masks)
    }
    #[inline(always)]
    fn quad<I: Isa>(isa: I, raw: &Self::Raw<I>, unit: usize, i: usize) -> I::V {
        let up = raise::<I, Self>();
        let low = shift(isa, raw.0[i / 4][i % 4], up - 2 * unit as i32);
        let low = isa.and(low, isa.splat(0x0303_0303 << up));
        isa.set_where(low, raw.1[i / 4][i % 4], raw.2[unit], 4 << up)
    }
}
