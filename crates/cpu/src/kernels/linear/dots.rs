//! Turned weights times quantized activations, 32 columns at a time: the innermost loop of all types.

use super::frame::{Quads, each, each_panel, each_token};
use super::isa::Isa;
use super::{Activations, PANEL_ROWS, Panel};

/// How a type's weight bytes are to be taken, and their products summed.
pub(super) trait WeightBytes {
    /// Largest weight byte.
    const MAX: u32;
    /// What was added to weights to make them unsigned.
    const BIAS: i32 = 0;
    /// Whether weight bytes are signed where the instruction set takes them so.
    const SIGNED: bool = false;
    /// Weights with one scale: 32, or 16.
    const SUB: usize = 32;
    /// Whether weights have minima.
    const MIN: bool = false;
}

/// By how many bits weights are shifted up; see [`Isa::WIDE`]. Scales are divided by as much, which is exact: products of scales are far from
/// subnormal, see [`puna_quant::SMALLEST_BLOCK`].
pub(super) const fn raise<I: Isa, W: WeightBytes>() -> i32 {
    if I::WIDE && W::BIAS != 0 {
        7 - W::BIAS.trailing_zeros() as i32
    } else {
        0
    }
}

/// What scales are multiplied with in turn.
pub(super) const fn lower<I: Isa, W: WeightBytes>() -> f32 {
    1.0 / (1 << raise::<I, W>()) as f32
}

/// Quantized activations, checked, at a block of a token; the parts are those of [`puna_quant::Q8Row`].
#[derive(Clone, Copy)]
pub(super) struct X {
    quants: *const i8,
    scales: *const f32,
    sums: *const f32,
    offsets: *const i32,
    halves: *const i32,
    cols: usize,
    blocks: usize,
}

impl X {
    /// Checks shapes once, so that kernels need not; gives the number of tokens too.
    pub(super) fn checked(
        panel: &Panel<'_>,
        (block_len, block_bytes): (usize, usize),
        x: &Activations<'_>,
        out: &[f32],
    ) -> (Self, usize) {
        let &Activations::Q8 {
            parts,
            tokens,
            cols,
        } = x
        else {
            panic!("quantized weights take quantized activations");
        };
        panel.check(cols, block_len, block_bytes);
        parts.check(tokens * cols);
        assert!(
            out.len() >= panel.rows.div_ceil(PANEL_ROWS) * tokens * PANEL_ROWS,
            "out"
        );
        let x = Self {
            quants: parts.quants.as_ptr(),
            scales: parts.scales.as_ptr(),
            sums: parts.sums.as_ptr(),
            offsets: parts.offsets.as_ptr(),
            halves: parts.halves.as_ptr(),
            cols,
            blocks: cols / 32,
        };
        (x, tokens)
    }

    /// So many tokens and blocks of 32 further on.
    #[inline(always)]
    pub(super) fn at(self, token: usize, block: usize) -> Self {
        let b = token * self.blocks + block;
        Self {
            quants: self.quants.wrapping_add(b * 32),
            scales: self.scales.wrapping_add(b),
            sums: self.sums.wrapping_add(b),
            offsets: self.offsets.wrapping_add(b),
            halves: self.halves.wrapping_add(2 * b),
            ..self
        }
    }

    /// Blocks of a token.
    #[inline(always)]
    pub(super) fn blocks(self) -> usize {
        self.blocks
    }

    /// Scale of the block for token `t`.
    ///
    /// # Safety
    /// It exists, as for all below.
    #[inline(always)]
    unsafe fn scale(self, t: usize) -> f32 {
        // SAFETY: the caller's promise.
        unsafe { *self.scales.wrapping_add(t * self.blocks) }
    }

    /// Scaled sum of the block for token `t`.
    ///
    /// # Safety
    /// It exists.
    #[inline(always)]
    unsafe fn sum(self, t: usize) -> f32 {
        // SAFETY: the caller's promise.
        unsafe { *self.sums.wrapping_add(t * self.blocks) }
    }

    /// Offset of a half of the block for token `t`, as a number.
    ///
    /// # Safety
    /// It exists.
    #[inline(always)]
    unsafe fn half(self, t: usize, half: usize) -> f32 {
        // SAFETY: the caller's promise.
        let offset = unsafe { *self.halves.wrapping_add(2 * t * self.blocks + half) };
        offset as f32
    }

    /// Where offsets of the whole block, or of a half of it, are for token `t`.
    #[inline(always)]
    fn offset(self, t: usize, part: Part) -> *const i32 {
        match part {
            Part::Whole => self.offsets.wrapping_add(t * self.blocks),
            Part::Half(h) => self.halves.wrapping_add(2 * t * self.blocks + h),
        }
    }

    /// Quant `i` of the block for token `t`.
    #[inline(always)]
    fn quant(self, t: usize, i: usize) -> *const i8 {
        self.quants.wrapping_add(t * self.cols + i)
    }
}

/// A block of 32 columns, or its first or second half.
#[derive(Clone, Copy)]
enum Part {
    Whole,
    Half(usize),
}

impl Part {
    /// Whether it has quad `i` of the block.
    #[inline(always)]
    fn has(self, i: usize) -> bool {
        match self {
            Self::Whole => true,
            Self::Half(h) => i / 4 == h,
        }
    }

    #[inline(always)]
    fn first(self) -> usize {
        match self {
            Self::Whole => 0,
            Self::Half(h) => 4 * h,
        }
    }
}

/// The dot products of a block, or of half of it, for all lanes' rows of `P` panels and `T` tokens.
///
/// # Safety
/// `x` is at the block and `T` tokens follow.
#[inline(always)]
unsafe fn dots<I: Isa, W: WeightBytes, const P: usize, const T: usize>(
    isa: I,
    quads: &[impl Quads<I>; P],
    part: Part,
    x: X,
    out: &mut [[I::F; T]; P],
) {
    let depth = I::depth(W::MAX, W::SIGNED);
    let mut total = [[isa.zero(); T]; P];
    // SAFETY: the caller's promise.
    unsafe {
        if W::BIAS != 0 || (W::SIGNED && I::WIDE) {
            let shift = if I::WIDE {
                0
            } else {
                7 - W::BIAS.trailing_zeros()
            };
            each_token!(T, |t| {
                let offset = isa.splat_at(x.offset(t, part), shift);
                each_panel!(P, |p| {
                    total[p][t] = offset;
                });
            });
        }
        let mut dots = total;
        each_panel!(P, |p| {
            each_token!(T, |t| {
                dots[p][t] = isa.begin(total[p][t]);
            });
        });
        each!([0, 1, 2, 3, 4, 5, 6, 7], |i| {
            if part.has(i) {
                if i > part.first() && i.is_multiple_of(depth) {
                    each_panel!(P, |p| {
                        each_token!(T, |t| {
                            total[p][t] = isa.end(total[p][t], dots[p][t]);
                            dots[p][t] = isa.begin(total[p][t]);
                        });
                    });
                }
                let mut w = [isa.zero(); P];
                each_panel!(P, |p| {
                    w[p] = quads[p].quad(isa, i);
                });
                each_token!(T, |t| {
                    each_panel!(P, |p| {
                        dots[p][t] = isa.dot(W::SIGNED, dots[p][t], w[p], x.quant(t, 4 * i));
                    });
                });
            }
        });
        each_panel!(P, |p| {
            each_token!(T, |t| {
                out[p][t] = isa.float(isa.end(total[p][t], dots[p][t]));
            });
        });
    }
}

/// Scale and minimum of a block of 32 columns, or of each of its halves, by panel.
pub(super) type Scales<I, const P: usize> = [[(<I as Isa>::F, <I as Isa>::F); P]; 2];

/// A block of 32 columns of all lanes' rows of `P` panels times `T` tokens, added to `acc` as [`puna_quant::block32`] and
/// [`puna_quant::block256`] say.
///
/// # Safety
/// As for [`dots`].
#[inline(always)]
pub(super) unsafe fn add_block<I: Isa, W: WeightBytes, const P: usize, const T: usize>(
    isa: I,
    quads: &[impl Quads<I>; P],
    scales: &Scales<I, P>,
    x: X,
    acc: &mut [[I::F; T]; P],
) {
    // These begin with any value.
    let (mut sums, mut part) = (*acc, *acc);
    // SAFETY: the caller's promise.
    unsafe {
        if W::SUB == 32 {
            dots::<I, W, P, T>(isa, quads, Part::Whole, x, &mut sums);
            each_panel!(P, |p| {
                let (d, m) = scales[0][p];
                each_token!(T, |t| {
                    acc[p][t] = isa.fma(isa.scale_f(d, x.scale(t)), sums[p][t], acc[p][t]);
                    if W::MIN {
                        acc[p][t] = isa.fma_x(m, x.sum(t), acc[p][t]);
                    }
                });
            });
            return;
        }
        dots::<I, W, P, T>(isa, quads, Part::Half(0), x, &mut sums);
        each_panel!(P, |p| {
            each_token!(T, |t| {
                part[p][t] = isa.mul(scales[0][p].0, sums[p][t]);
            });
        });
        dots::<I, W, P, T>(isa, quads, Part::Half(1), x, &mut sums);
        each_panel!(P, |p| {
            each_token!(T, |t| {
                part[p][t] = isa.fma(scales[1][p].0, sums[p][t], part[p][t]);
                if W::MIN {
                    part[p][t] = isa.fma_x(scales[0][p].1, x.half(t, 0), part[p][t]);
                    part[p][t] = isa.fma_x(scales[1][p].1, x.half(t, 1), part[p][t]);
                }
                acc[p][t] = isa.fma_x(part[p][t], x.scale(t), acc[p][t]);
            });
        });
    }
}
