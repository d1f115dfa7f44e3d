//! `Q3_K`.

use super::super::block256::{Block256, Header};
use super::super::isa::{Isa, Rows};

pub(in super::super) struct Q3K;

/// Lower two bits; third bits; which of these belong to the chunk's four sub-blocks.
pub(in super::super) struct Raw<V>([V; 4], [V; 4], [V; 4]);

impl Block256 for Q3K {
    const BYTES: usize = 110;
    const SUB: usize = 16;
    const UNITS: usize = 4;
    const MAX: u32 = 7;
    const BIAS: i32 = 4;
    const MIN: bool = false;
    type Kept<I: Isa> = [[I::V; 4]; 2];
    type Raw<I: Isa> = Raw<I::V>;

    /// Scale `j` has its lower four bits in byte `j mod 8` of twelve (high half from 8 on), its upper two in byte `8 + j mod 4` at bit
    /// `2 (j / 4)`.
    #[inline(always)]
    unsafe fn header<I: Isa>(isa: I, rows: Rows) -> (Self::Kept<I>, Header<I>) {
        // SAFETY: bytes 94 to 109, then 0 to 31.
        let ([a, b, c, d], kept) = unsafe {
            let last = isa.turn(rows.skip(94));
            (last, [0, 16].map(|at| isa.turn(rows.skip(at))))
        };
        // Twelve bytes from the second half of the first word on.
        let join = |low: I::V, high: I::V| isa.or(isa.shr(low, 16), isa.shl(high, 16));
        let [a, b, c] = [join(a, b), join(b, c), join(c, d)];
        let four = isa.splat(0x0f0f_0f0f);
        let top = isa.splat(0x3030_3030);
        let scale = |low: I::V, high: I::V| {
            let six = isa.or(isa.and(low, four), isa.and(high, top));
            isa.sub8(six, isa.splat(0x2020_2020))
        };
        let header = Header {
            d: isa.f16(isa.shr(d, 16)),
            dmin: isa.zero_f(),
            scales: [
                scale(a, isa.shl(c, 4)),
                scale(b, isa.shl(c, 2)),
                scale(isa.shr(a, 4), c),
                scale(isa.shr(b, 4), isa.shr(c, 2)),
            ],
            minima: [isa.zero(); 4],
        };
        (kept, header)
    }
    /// Chunks 0 and 1 are the first half, chunks 2 and 3 the second; each takes sixteen bytes of 32.
    #[inline(always)]
    unsafe fn load<I: Isa>(
        isa: I,
        rows: Rows,
        kept: &Self::Kept<I>,
        chunk: usize,
    ) -> Self::Raw<I> {
        // SAFETY: four chunks follow the first 32 bytes.
        let low = unsafe { isa.turn(rows.skip(32 + 16 * chunk)) };
        let masks = [0, 1, 2, 3].map(|u| isa.splat(0x0101_0101 << (chunk / 2 * 4 + u)));
        Raw(low, kept[chunk % 2], masks)
    }
    #[inline(always)]
    fn quad<I: Isa>(isa: I, raw: &Self::Raw<I>, unit: usize, i: usize) -> I::V {
        let low = isa.and(isa.shr(raw.0[i], 2 * unit as u32), isa.splat(0x0303_0303));
        isa.set_where(low, raw.1[i], raw.2[unit], 4)
    }
    #[inline(always)]
    fn sub_block(chunk: usize, unit: usize) -> usize {
        chunk / 2 * 8 + 2 * unit + chunk % 2
    }
}
