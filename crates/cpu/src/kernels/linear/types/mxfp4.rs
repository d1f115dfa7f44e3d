//! `MXFP4`.

use super::super::block32::Block32;
use super::super::dots::WeightBytes;
use super::super::isa::{Isa, Rows};
use super::{levels, nibbles, word};
use puna_quant::types::mxfp4::LEVELS;

pub(in super::super) struct Mxfp4;

impl WeightBytes for Mxfp4 {
    const MAX: u32 = 255;
    const SIGNED: bool = true;
}

impl Block32 for Mxfp4 {
    const BYTES: usize = 17;
    type Raw<I: Isa> = (I::V, [I::V; 4]);

    #[inline(always)]
    unsafe fn load<I: Isa>(isa: I, rows: Rows) -> Self::Raw<I> {
        // SAFETY: bytes 0 to 15 and 1 to 16 of the block.
        unsafe { (word(isa, rows), isa.turn(rows.skip(1))) }
    }
    #[inline(always)]
    fn quad<I: Isa>(isa: I, raw: &Self::Raw<I>, i: usize) -> I::V {
        isa.lookup(levels::<I>(LEVELS), nibbles(isa, &raw.1, i, 0))
    }
    /// Half of `2^(e - 127)`: exponent bits `e - 1`, or for `e` of 0 and 1 a subnormal of one bit.
    #[inline(always)]
    fn scales<I: Isa>(isa: I, raw: &Self::Raw<I>) -> (I::F, I::F) {
        let e = isa.and(raw.0, isa.splat(0xff));
        // From 2 on the count is 64 or more, and nothing is left.
        let count = isa.or(e, isa.shl(isa.and(e, isa.splat(0xfe)), 5));
        let subnormal = isa.shl_by(isa.splat(0x0020_0000), count);
        // For 0 the exponent would be -1: its bits are cleared by a mask that is 0 there, all ones elsewhere.
        let is_zero = isa.shl_by(isa.splat(1), e);
        let is_zero = isa.and(is_zero, isa.splat(1));
        let mask = isa.sub32(is_zero, isa.splat(1));
        let normal = isa.and(isa.shl(isa.sub32(e, isa.splat(1)), 23), mask);
        (isa.bits(isa.or(normal, subnormal)), isa.zero_f())
    }
}
