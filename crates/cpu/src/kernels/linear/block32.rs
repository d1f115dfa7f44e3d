//! The frame of the types with blocks of 32 weights.

use super::ahead::Ahead;
use super::frame::{
    InTile, Quads, Segment, Segments, Strip, Turned, Vectors, each, groups, leave, resume,
};
use super::isa::{Isa, Rows};
use super::{Activations, PANEL_ROWS, Panel};
use std::marker::PhantomData;

/// How a type's blocks become unsigned bytes and scales.
pub(super) trait Block32 {
    /// Bytes of a block.
    const BYTES: usize;
    /// Largest weight byte.
    const MAX: u32;
    /// What was added to weights to make them unsigned.
    const BIAS: i32;
    /// Whether weight bytes are signed where the instruction set takes them so.
    const SIGNED: bool = false;
    /// Whether blocks have minima.
    const MIN: bool = false;
    /// A block's words in registers.
    type Raw<I: Isa>;

    /// Loads and turns a block of each row.
    ///
    /// # Safety
    /// `rows` are at a block.
    unsafe fn load<I: Isa>(isa: I, rows: Rows) -> Self::Raw<I>;
    /// Weights `4 i` to `4 i + 3` of the block.
    fn quad<I: Isa>(isa: I, raw: &Self::Raw<I>, i: usize) -> I::V;
    /// Scale, and minimum or anything.
    fn scales<I: Isa>(isa: I, raw: &Self::Raw<I>) -> (I::F, I::F);
}

/// A block in registers.
struct InBlock<'a, I: Isa, W: Block32>(&'a W::Raw<I>);

impl<I: Isa, W: Block32> Quads<I> for InBlock<'_, I, W> {
    #[inline(always)]
    unsafe fn quad(&self, isa: I, i: usize) -> I::V {
        W::quad(isa, self.0, i)
    }
}

/// Activations, checked.
#[derive(Clone, Copy)]
struct X {
    quants: *const i8,
    scales: *const f32,
    sums: *const i32,
    scaled_sums: *const f32,
    cols: usize,
    blocks: usize,
}

impl X {
    /// At block `block` of token `token`.
    #[inline(always)]
    fn at(self, token: usize, block: usize) -> Self {
        let b = token * self.blocks + block;
        Self {
            quants: self.quants.wrapping_add(token * self.cols + block * 32),
            scales: self.scales.wrapping_add(b),
            sums: self.sums.wrapping_add(b),
            scaled_sums: self.scaled_sums.wrapping_add(b),
            ..self
        }
    }
}

/// One block of all lanes' rows times `T` tokens.
///
/// # Safety
/// `x` is at a block and `T` tokens follow.
#[inline(always)]
unsafe fn block<I: Isa, W: Block32, const T: usize>(
    isa: I,
    quads: &impl Quads<I>,
    (d, m): (I::F, I::F),
    x: X,
    acc: &mut [I::F; T],
) {
    let bias = if W::SIGNED { I::SIGNED_BIAS } else { W::BIAS };
    let depth = I::depth(W::MAX, W::SIGNED);
    let mut total = [isa.zero(); T];
    let mut dots = total;
    // SAFETY: the caller's promise.
    unsafe {
        for t in 0..T {
            if bias != 0 {
                total[t] = isa.minus_bias(bias, x.sums.wrapping_add(t * x.blocks));
            }
            dots[t] = isa.begin(total[t]);
        }
        each!([0 1 2 3 4 5 6 7] |i| {
            let w = quads.quad(isa, i);
            if i > 0 && i % depth == 0 {
                for t in 0..T {
                    total[t] = isa.end(total[t], dots[t]);
                    dots[t] = isa.begin(total[t]);
                }
            }
            for t in 0..T {
                let q = x.quants.wrapping_add(t * x.cols + 4 * i);
                dots[t] = if W::SIGNED {
                    isa.dot::<true>(dots[t], w, q)
                } else {
                    isa.dot::<false>(dots[t], w, q)
                };
            }
        });
        for t in 0..T {
            let b = t * x.blocks;
            let sum = isa.float(isa.end(total[t], dots[t]));
            acc[t] = isa.fma(isa.scale_f(d, *x.scales.wrapping_add(b)), sum, acc[t]);
            if W::MIN {
                acc[t] = isa.fma_x(m, *x.scaled_sums.wrapping_add(b), acc[t]);
            }
        }
    }
}

/// Up to eight blocks of all lanes' rows, turned.
struct Tile {
    quads: Turned,
    scales: Vectors<8>,
    minima: Vectors<8>,
}

impl Tile {
    /// # Safety
    /// `rows` hold `blocks` blocks, at most 8.
    #[inline(always)]
    unsafe fn fill<I: Isa, W: Block32>(&mut self, isa: I, rows: Rows, blocks: usize) {
        for b in 0..blocks {
            // SAFETY: the caller's promise.
            unsafe {
                let raw = W::load(isa, rows.skip(b * W::BYTES));
                each!([0 1 2 3 4 5 6 7] |i| {
                    isa.store(W::quad(isa, &raw, i), self.quads.0[b * 8 + i].as_mut_ptr());
                });
                let (d, m) = W::scales(isa, &raw);
                isa.store_f(d, self.scales.0[b].as_mut_ptr().cast());
                if W::MIN {
                    isa.store_f(m, self.minima.0[b].as_mut_ptr().cast());
                }
            }
        }
    }
    /// Scale and minimum of a block.
    #[inline(always)]
    fn scales<I: Isa, W: Block32>(&self, isa: I, b: usize) -> (I::F, I::F) {
        // SAFETY: vectors of sixteen words.
        unsafe {
            let d = isa.load_f(self.scales.0[b].as_ptr().cast());
            let m = if W::MIN {
                isa.load_f(self.minima.0[b].as_ptr().cast())
            } else {
                d
            };
            (d, m)
        }
    }
}

/// Some lanes of a segment, for all tokens.
struct Lanes<'a, I, W> {
    isa: I,
    types: PhantomData<W>,
    segment: &'a Segment,
    rows: Rows,
    x: X,
    out: *mut f32,
}

impl<I: Isa, W: Block32> Strip for Lanes<'_, I, W> {
    #[inline(always)]
    unsafe fn direct<const T: usize>(&self, token: usize, mut ahead: Ahead) {
        let Self { isa, segment, .. } = *self;
        let out = self.out.wrapping_add(token * PANEL_ROWS);
        // SAFETY: shapes were checked; rows hold `blocks` blocks.
        unsafe {
            let mut acc = resume::<I, T>(isa, segment.first == 0, out);
            for b in 0..segment.blocks {
                let raw = W::load(isa, self.rows.skip(b * W::BYTES));
                block::<I, W, T>(
                    isa,
                    &InBlock::<I, W>(&raw),
                    W::scales(isa, &raw),
                    self.x.at(token, segment.first + b),
                    &mut acc,
                );
                ahead.step(isa);
            }
            leave(isa, acc, out);
        }
    }

    #[inline(always)]
    unsafe fn tiled<const T: usize>(&self, groups: usize, mut ahead: Ahead) {
        let Self { isa, segment, .. } = *self;
        let mut tile = Tile {
            quads: Turned([[0; PANEL_ROWS]; 64]),
            scales: Vectors([[0; PANEL_ROWS]; 8]),
            minima: Vectors([[0; PANEL_ROWS]; 8]),
        };
        for done in (0..segment.blocks).step_by(8) {
            let blocks = (segment.blocks - done).min(8);
            let first = segment.first + done;
            // SAFETY: shapes were checked; rows hold `blocks` blocks.
            unsafe {
                tile.fill::<I, W>(isa, self.rows.skip(done * W::BYTES), blocks);
                for g in 0..groups {
                    let out = self.out.wrapping_add(g * T * PANEL_ROWS);
                    let x = self.x.at(g * T, first);
                    let mut acc = resume::<I, T>(isa, first == 0, out);
                    for b in 0..blocks {
                        block::<I, W, T>(
                            isa,
                            &InTile(tile.quads.0.as_ptr().wrapping_add(b * 8)),
                            tile.scales::<I, W>(isa, b),
                            x.at(0, b),
                            &mut acc,
                        );
                    }
                    leave(isa, acc, out);
                    for _ in 0..blocks.div_ceil(groups) {
                        ahead.step(isa);
                    }
                }
            }
        }
    }
}

/// A panel times all tokens.
///
/// # Safety
/// The token vouches for the CPU.
#[inline(always)]
pub(super) unsafe fn panel<I: Isa, W: Block32>(
    isa: I,
    panel: &Panel<'_>,
    x: &Activations<'_>,
    out: &mut [f32],
) {
    let (x, tokens) = checked::<W>(panel, x, out);
    let mut segments = Segments::new(panel, x.blocks, W::BYTES);
    while let Some(segment) = segments.next() {
        for strip in (0..PANEL_ROWS).step_by(I::LANES) {
            let (rows, ahead) = segment.strip::<I>(strip, W::BYTES);
            let lanes = Lanes {
                isa,
                types: PhantomData::<W>,
                segment: &segment,
                rows,
                x,
                out: out.as_mut_ptr().wrapping_add(strip),
            };
            // SAFETY: shapes were checked.
            unsafe { groups::<I>(&lanes, tokens, ahead) };
        }
    }
}

/// Checks shapes once, so that the rest need not.
fn checked<W: Block32>(panel: &Panel<'_>, x: &Activations<'_>, out: &[f32]) -> (X, usize) {
    let &Activations::Q8Block32 {
        quants,
        scales,
        sums,
        scaled_sums,
        tokens,
        cols,
    } = x
    else {
        panic!("weights with blocks of 32 take activations with blocks of 32");
    };
    let blocks = cols / 32;
    panel.check(cols, 32, W::BYTES);
    assert_eq!(quants.len(), tokens * cols, "quants");
    assert_eq!(scales.len(), tokens * blocks, "scales");
    assert_eq!(sums.len(), tokens * blocks, "sums");
    assert_eq!(scaled_sums.len(), tokens * blocks, "scaled sums");
    assert!(out.len() >= tokens * PANEL_ROWS, "out");
    let x = X {
        quants: quants.as_ptr(),
        scales: scales.as_ptr(),
        sums: sums.as_ptr(),
        scaled_sums: scaled_sums.as_ptr(),
        cols,
        blocks,
    };
    (x, tokens)
}
