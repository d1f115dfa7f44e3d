//! `Q5_K`.

use super::super::block256::{Block256, Header};
use super::super::dots::WeightBytes;
use super::super::isa::{Isa, Rows};
use super::six_bits;

pub(in super::super) struct Q5K;

/// Nibbles; fifth bits; which of these belong to the chunk's two sub-blocks.
pub(in super::super) struct Raw<V>([[V; 4]; 2], [[V; 4]; 2], [V; 2]);

impl WeightBytes for Q5K {
    const MAX: u32 = 31;
    const MIN: bool = true;
}

impl Block256 for Q5K {
    const BYTES: usize = 176;
    const UNITS: usize = 2;
    type Kept<I: Isa> = [[I::V; 4]; 2];
    type Raw<I: Isa> = Raw<I::V>;

    #[inline(always)]
    unsafe fn header<I: Isa>(isa: I, rows: Rows) -> (Self::Kept<I>, Header<I>) {
        // SAFETY: the first 48 bytes of the super-block.
        let ([d, s, m, high], kept) = unsafe {
            let kept = [isa.turn(rows.skip(16)), isa.turn(rows.skip(32))];
            (isa.turn(rows), kept)
        };
        let (scales, minima) = six_bits(isa, s, m, high);
        let header = Header {
            d: isa.f16(d),
            dmin: isa.f16(isa.shr(d, 16)),
            scales,
            minima,
        };
        (kept, header)
    }
    #[inline(always)]
    unsafe fn load<I: Isa>(isa: I, rows: Rows, kept: &Self::Kept<I>, chunk: usize) -> Self::Raw<I> {
        // SAFETY: four chunks of 32 bytes follow the first 48.
        let low = unsafe {
            let rows = rows.skip(48 + 32 * chunk);
            [isa.turn(rows), isa.turn(rows.skip(16))]
        };
        let masks = [
            isa.splat(0x0101_0101 << (2 * chunk)),
            isa.splat(0x0202_0202 << (2 * chunk)),
        ];
        Raw(low, *kept, masks)
    }
    #[inline(always)]
    fn quad<I: Isa>(isa: I, raw: &Self::Raw<I>, unit: usize, i: usize) -> I::V {
        let w = raw.0[i / 4][i % 4];
        let w = if unit == 0 { w } else { isa.shr(w, 4) };
        let w = isa.and(w, isa.splat(0x0f0f_0f0f));
        isa.set_where(w, raw.1[i / 4][i % 4], raw.2[unit], 16)
    }
}
