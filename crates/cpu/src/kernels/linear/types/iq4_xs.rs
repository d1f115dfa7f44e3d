//! `IQ4_XS`.

use super::super::block256::{Block256, Header};
use super::super::dots::WeightBytes;
use super::super::isa::{Isa, Rows};
use super::{levels, nibbles};
use puna_quant::types::iq4::LEVELS;

pub(in super::super) struct Iq4Xs;

/// Scales 0 to 3 or 4 to 7: lower four bits in halves of `low`, upper two in the second half of `d`.
#[inline(always)]
fn scales<I: Isa>(isa: I, d: I::V, low: I::V, word: i8) -> I::V {
    let halves = isa.shuffle(low, [2 * word, 2 * word, 2 * word + 1, 2 * word + 1]);
    let even = isa.and(halves, isa.splat(0x000f_000f));
    let odd = isa.and(isa.shr(halves, 4), isa.splat(0x0f00_0f00));
    let upper = isa.shuffle(d, [2 + word; 4]);
    let upper = isa.or(
        isa.or(
            isa.and(isa.shl(upper, 4), isa.splat(0x0000_0030)),
            isa.and(isa.shl(upper, 2), isa.splat(0x0000_3000)),
        ),
        isa.or(
            isa.and(upper, isa.splat(0x0030_0000)),
            isa.and(isa.shr(upper, 2), isa.splat(0x3000_0000)),
        ),
    );
    let six = isa.or(isa.or(even, odd), upper);
    isa.sub8(six, isa.splat(0x2020_2020))
}

impl WeightBytes for Iq4Xs {
    const MAX: u32 = 255;
    const SIGNED: bool = true;
}

impl Block256 for Iq4Xs {
    const BYTES: usize = 136;
    const UNITS: usize = 1;
    type Kept<I: Isa> = ();
    type Raw<I: Isa> = [I::V; 4];

    /// Scale `j` has its lower four bits in half `j` of the second word, its upper two at bit `16 + 2 j` of the first.
    #[inline(always)]
    unsafe fn header<I: Isa>(isa: I, rows: Rows) -> ((), Header<I>) {
        // SAFETY: the first sixteen bytes of the super-block.
        let [d, low, ..] = unsafe { isa.turn(rows) };
        let header = Header {
            d: isa.f16(d),
            dmin: isa.zero_f(),
            scales: [
                scales(isa, d, low, 0),
                scales(isa, d, low, 1),
                isa.zero(),
                isa.zero(),
            ],
            minima: [isa.zero(); 4],
        };
        ((), header)
    }
    #[inline(always)]
    unsafe fn load<I: Isa>(isa: I, rows: Rows, (): &(), chunk: usize) -> Self::Raw<I> {
        // SAFETY: eight chunks of sixteen bytes follow the first eight.
        unsafe { isa.turn(rows.skip(8 + 16 * chunk)) }
    }
    #[inline(always)]
    fn quad<I: Isa>(isa: I, raw: &Self::Raw<I>, _unit: usize, i: usize) -> I::V {
        isa.lookup(levels::<I>(LEVELS), nibbles(isa, raw, i, 0))
    }
}
