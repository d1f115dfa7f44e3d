//! One file per weight type: where its blocks keep bytes and scales. Layouts are described in the files of the same name in `puna_quant`.

use super::isa::{Isa, Rows};

mod iq4_nl;
mod iq4_xs;
mod mxfp4;
mod q2_k;
mod q3_k;
mod q4_0;
mod q4_1;
mod q4_k;
mod q5_0;
mod q5_1;
mod q5_k;
mod q6_k;
mod q8_0;

pub(super) use iq4_nl::Iq4Nl;
pub(super) use iq4_xs::Iq4Xs;
pub(super) use mxfp4::Mxfp4;
pub(super) use q2_k::Q2K;
pub(super) use q3_k::Q3K;
pub(super) use q4_0::Q4_0;
pub(super) use q4_1::Q4_1;
pub(super) use q4_k::Q4K;
pub(super) use q5_0::Q5_0;
pub(super) use q5_1::Q5_1;
pub(super) use q5_k::Q5K;
pub(super) use q6_k::Q6K;
pub(super) use q8_0::Q8_0;

/// Words shifted left, or right where `bits` is negative.
#[inline(always)]
fn shift<I: Isa>(isa: I, words: I::V, bits: i32) -> I::V {
    if bits >= 0 {
        isa.shl(words, bits.unsigned_abs())
    } else {
        isa.shr(words, bits.unsigned_abs())
    }
}

/// Quad `i` of a block whose sixteen bytes hold weights 0 to 15 in their low halves and 16 to 31 in their high halves, shifted up by `up`.
#[inline(always)]
fn nibbles<I: Isa>(isa: I, words: &[I::V; 4], i: usize, up: i32) -> I::V {
    let words = if i < 4 {
        shift(isa, words[i], up)
    } else {
        shift(isa, words[i - 4], up - 4)
    };
    isa.and(words, isa.splat(0x0f0f_0f0f << up))
}

/// The word at the start of each row.
///
/// # Safety
/// Sixteen bytes of each row can be read.
#[inline(always)]
unsafe fn word<I: Isa>(isa: I, rows: Rows) -> I::V {
    // SAFETY: the caller's promise.
    unsafe { isa.turn(rows)[0] }
}

/// Quad `i` of the fifth bits: sets `value` in those bytes of `w` whose bit of the word `bits` is set, bit `n` being weight `n`'s.
#[inline(always)]
fn fifth_bits<I: Isa>(isa: I, w: I::V, bits: I::V, i: usize, value: u8) -> I::V {
    let b = (i / 2) as i8;
    let mask = isa.splat(0x0804_0201 << (4 * (i % 2)));
    isa.set_where(w, isa.shuffle(bits, [b; 4]), mask, value)
}

/// Levels of a table as signed weights, with 128 added where sets want that.
const fn levels<I: Isa>(levels: [i8; 16]) -> [u8; 16] {
    let offset = if I::WIDE { 128 } else { 0 };
    let mut bytes = [0; 16];
    let mut i = 0;
    while i < 16 {
        bytes[i] = (levels[i] as i32 + offset) as u8;
        i += 1;
    }
    bytes
}

/// Scales and minima of six bits as `Q4_K` and `Q5_K` pack them into three words.
#[inline(always)]
fn six_bits<I: Isa>(isa: I, s: I::V, m: I::V, high: I::V) -> ([I::V; 4], [I::V; 4]) {
    let six = isa.splat(0x3f3f_3f3f);
    let four = isa.splat(0x0f0f_0f0f);
    let top = isa.splat(0x3030_3030);
    let zero = isa.zero();
    let s4 = isa.or(isa.and(high, four), isa.and(isa.shr(s, 2), top));
    let m4 = isa.or(isa.and(isa.shr(high, 4), four), isa.and(isa.shr(m, 2), top));
    (
        [isa.and(s, six), s4, zero, zero],
        [isa.and(m, six), m4, zero, zero],
    )
}
