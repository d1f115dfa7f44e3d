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

/// Quad `i` of a block whose sixteen bytes hold weights 0 to 15 in their low halves and 16 to 31 in their high halves.
#[inline(always)]
fn nibbles<I: Isa>(isa: I, words: &[I::V; 4], i: usize) -> I::V {
    let low = isa.splat(0x0f0f_0f0f);
    if i < 4 {
        isa.and(words[i], low)
    } else {
        isa.and(isa.shr(words[i - 4], 4), low)
    }
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

/// Quad `i` of the fifth bits: sets 16 in those bytes of `w` whose bit of the word `bits` is set, bit `n` being weight `n`'s.
#[inline(always)]
fn fifth_bits<I: Isa>(isa: I, w: I::V, bits: I::V, i: usize) -> I::V {
    let b = (i / 2) as i8;
    let mask = isa.splat(0x0804_0201 << (4 * (i % 2)));
    isa.set_where(w, isa.shuffle(bits, [b; 4]), mask, 16)
}

/// Levels of a table, moved up by `bias`.
const fn levels(levels: [i8; 16], bias: i32) -> [u8; 16] {
    let mut bytes = [0; 16];
    let mut i = 0;
    while i < 16 {
        bytes[i] = (levels[i] as i32 + bias) as u8;
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
