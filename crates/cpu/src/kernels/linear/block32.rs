//! The frame of the types with blocks of 32 weights.

use super::ahead::Ahead;
use super::frame::{
    ASKING_TOKENS, DIRECT_TOKENS, Quads, Segment, Segments, Strip, Tile, Tokens, each, each_panel,
    each_token, groups, leave, match_group, most_tokens, resume,
};
use super::isa::{Isa, Rows};
use super::types::raise;
use super::{Activations, MOST_ROWS, PANEL_ROWS, Panel};
use puna_quant::ActivationKind;
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

/// Activations, checked; the parts are those of [`puna_quant::Q8Row`].
#[derive(Clone, Copy)]
struct X {
    quants: *const i8,
    scales: *const f32,
    offsets: *const i32,
    sums: *const f32,
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
            offsets: self.offsets.wrapping_add(b),
            sums: self.sums.wrapping_add(b),
            ..self
        }
    }
}

/// What a scale is multiplied with where weights are shifted up.
const fn unraise<I: Isa, W: Block32>() -> f32 {
    1.0 / (1 << raise::<I>(W::BIAS)) as f32
}

/// One block of all lanes' rows of `P` panels times `T` tokens.
///
/// # Safety
/// `x` is at a block and `T` tokens follow.
#[inline(always)]
unsafe fn block<I: Isa, W: Block32, const P: usize, const T: usize>(
    isa: I,
    quads: [impl Quads<I>; P],
    scales: [(I::F, I::F); P],
    x: X,
    acc: &mut [[I::F; T]; P],
) {
    let q = Tokens::new(x.quants, x.cols);
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
                let offset = isa.splat_at(x.offsets.wrapping_add(t * x.blocks), shift);
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
        each!([0 1 2 3 4 5 6 7] |i| {
            if i > 0 && i.is_multiple_of(depth) {
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
                    dots[p][t] = isa.dot(W::SIGNED, dots[p][t], w[p], q.at(t, 4 * i));
                });
            });
        });
        each_panel!(P, |p| {
            let (d, m) = scales[p];
            each_token!(T, |t| {
                let b = t * x.blocks;
                let sum = isa.float(isa.end(total[p][t], dots[p][t]));
                let scale = isa.scale_f(d, *x.scales.wrapping_add(b));
                acc[p][t] = isa.fma(scale, sum, acc[p][t]);
                if W::MIN {
                    acc[p][t] = isa.fma_x(m, *x.sums.wrapping_add(b), acc[p][t]);
                }
            });
        });
    }
}

/// Turns up to eight blocks of all lanes' rows.
///
/// # Safety
/// `rows` hold so many blocks.
#[inline(always)]
unsafe fn fill<I: Isa, W: Block32>(
    isa: I,
    tile: &mut Tile,
    rows: Rows,
    blocks: usize,
    ahead: &mut Ahead,
) {
    for b in 0..blocks {
        // SAFETY: the caller's promise.
        let raw = unsafe { W::load(isa, rows.skip(b * W::BYTES)) };
        each!([0 1 2 3 4 5 6 7] |i| {
            tile.set_quad(isa, b * 8 + i, W::quad(isa, &raw, i));
        });
        let (d, m) = W::scales(isa, &raw);
        tile.set_scales(isa, b, (isa.scale_f(d, unraise::<I, W>()), m), W::MIN);
        ahead.step(isa);
    }
}

/// The blocks of `P` tiles times `T` tokens, added to `out` unless they are the first.
///
/// # Safety
/// The tiles were filled with as many blocks; `x` is at the first, `out` at the lanes, and `T` tokens follow.
#[inline(always)]
unsafe fn multiply<I: Isa, W: Block32, const P: usize, const T: usize>(
    isa: I,
    tiles: &[Tile; P],
    blocks: usize,
    x: X,
    first: bool,
    out: [*mut f32; P],
    ahead: &mut Ahead,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut acc = [[isa.zero_f(); T]; P];
        each_panel!(P, |p| {
            resume(isa, first, out[p], &mut acc[p]);
        });
        for b in 0..blocks {
            ahead.step(isa);
            let mut quads = [tiles[0].quads(b * 8); P];
            let mut scales = [tiles[0].scales(isa, b, W::MIN); P];
            each_panel!(P, |p| {
                quads[p] = tiles[p].quads(b * 8);
                scales[p] = tiles[p].scales(isa, b, W::MIN);
            });
            block::<I, W, P, T>(isa, quads, scales, x.at(0, b), &mut acc);
        }
        each_panel!(P, |p| {
            leave(isa, &acc[p], out[p]);
        });
    }
}

/// The lanes of one panel or two, for all tokens.
struct Lanes<I, W, const P: usize> {
    isa: I,
    types: PhantomData<W>,
    /// At the first block.
    rows: [Rows; P],
    /// Which it is.
    first: usize,
    blocks: usize,
    x: X,
    out: [*mut f32; P],
}

impl<I: Isa, W: Block32, const P: usize> Strip for Lanes<I, W, P> {
    #[inline(always)]
    unsafe fn direct<const T: usize>(&self, mut ahead: Ahead) {
        let Self { isa, out, .. } = *self;
        // SAFETY: shapes were checked; rows hold `blocks` blocks.
        unsafe {
            let mut acc = [[isa.zero_f(); T]; 1];
            resume(isa, self.first == 0, out[0], &mut acc[0]);
            for b in 0..self.blocks {
                let raw = W::load(isa, self.rows[0].skip(b * W::BYTES));
                let (d, m) = W::scales(isa, &raw);
                block::<I, W, 1, T>(
                    isa,
                    [InBlock::<I, W>(&raw)],
                    [(isa.scale_f(d, unraise::<I, W>()), m)],
                    self.x.at(0, self.first + b),
                    &mut acc,
                );
                ahead.step(isa);
            }
            leave(isa, &acc[0], out[0]);
        }
    }

    #[inline(always)]
    unsafe fn tiled(&self, tokens: usize, ahead: Ahead) {
        let Self { isa, .. } = *self;
        // The first groups ask for what is due.
        let asking = tokens.min(ASKING_TOKENS);
        let mut ahead = ahead.spread(P + asking.div_ceil(most_tokens::<I, P>()));
        let mut tiles = [const { Tile::new() }; P];
        let mut nothing = Ahead::nothing();
        for done in (0..self.blocks).step_by(8) {
            let blocks = (self.blocks - done).min(8);
            let first = self.first + done;
            // SAFETY: shapes were checked; rows hold `blocks` blocks.
            unsafe {
                each_panel!(P, |p| {
                    fill::<I, W>(
                        isa,
                        &mut tiles[p],
                        self.rows[p].skip(done * W::BYTES),
                        blocks,
                        &mut ahead,
                    );
                });
                let mut token = 0;
                while token < tokens {
                    let x = self.x.at(token, first);
                    let out = self.out.map(|out| out.wrapping_add(token * PANEL_ROWS));
                    let ahead = if token < asking {
                        &mut ahead
                    } else {
                        &mut nothing
                    };
                    token += match_group!(I, P, tokens - token, |T| {
                        multiply::<I, W, P, T>(isa, &tiles, blocks, x, first == 0, out, ahead);
                    });
                }
            }
        }
    }
}

/// Panels times all tokens.
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
    let out = out.as_mut_ptr();
    if I::WIDE && panel.rows == MOST_ROWS && tokens > DIRECT_TOKENS {
        let segment = Segment::whole(panel, x.blocks);
        let (rows, ahead) = segment.lanes(0, MOST_ROWS, W::BYTES);
        let lanes = Lanes {
            isa,
            types: PhantomData::<W>,
            rows: [rows, rows.skip(PANEL_ROWS * rows.stride)],
            first: 0,
            blocks: x.blocks,
            x,
            out: [out, out.wrapping_add(tokens * PANEL_ROWS)],
        };
        // SAFETY: shapes were checked.
        unsafe { lanes.tiled(tokens, ahead) };
        return;
    }
    for (p, panel) in panel.halves().into_iter().flatten().enumerate() {
        let mut segments = Segments::new(panel, x.blocks, W::BYTES);
        while let Some(segment) = segments.next() {
            for strip in (0..PANEL_ROWS).step_by(I::LANES) {
                let (rows, ahead) = segment.lanes(strip, I::LANES, W::BYTES);
                let lanes = Lanes {
                    isa,
                    types: PhantomData::<W>,
                    rows: [rows],
                    first: segment.first,
                    blocks: segment.blocks,
                    x,
                    out: [out.wrapping_add(p * tokens * PANEL_ROWS + strip)],
                };
                // SAFETY: shapes were checked.
                unsafe { groups(&lanes, tokens, ahead) };
            }
        }
    }
}

/// Checks shapes once, so that the rest need not.
fn checked<W: Block32>(panel: &Panel<'_>, x: &Activations<'_>, out: &[f32]) -> (X, usize) {
    let &Activations::Q8 {
        kind: ActivationKind::Q8Block32,
        parts,
        tokens,
        cols,
    } = x
    else {
        panic!("weights with blocks of 32 take activations with blocks of 32");
    };
    let blocks = cols / 32;
    panel.check(cols, 32, W::BYTES);
    parts.check(ActivationKind::Q8Block32, tokens * cols);
    assert!(
        out.len() >= panel.rows.div_ceil(PANEL_ROWS) * tokens * PANEL_ROWS,
        "out"
    );
    let x = X {
        quants: parts.quants.as_ptr(),
        scales: parts.scales.as_ptr(),
        offsets: parts.offsets.as_ptr(),
        sums: parts.sums.as_ptr(),
        cols,
        blocks,
    };
    (x, tokens)
}
