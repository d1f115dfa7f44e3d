//! The frame of the types with super-blocks of 256 weights.

use super::ahead::Ahead;
use super::frame::{
    ASKING_TOKENS, DIRECT_TOKENS, Quads, Segment, Segments, Strip, Tile, Tokens, each, each_panel,
    each_token, groups, leave, match_group, most_tokens, resume,
};
use super::isa::{Isa, Rows};
use super::types::raise;
use super::{Activations, MOST_ROWS, PANEL_ROWS, Panel};
use puna_quant::{ActivationKind, sub_block_at};
use std::marker::PhantomData;

/// How a type's super-blocks become unsigned bytes and scales. A super-block is loaded in chunks, a chunk gives [`Self::UNITS`] sub-blocks.
pub(super) trait Block256 {
    /// Bytes of a super-block.
    const BYTES: usize;
    /// Weights of a sub-block: 16 or 32.
    const SUB: usize;
    /// Sub-blocks of a chunk: 1, 2 or 4.
    const UNITS: usize;
    /// Largest weight byte.
    const MAX: u32;
    /// What was added to weights to make them unsigned.
    const BIAS: i32;
    /// Whether weight bytes are signed where the instruction set takes them so.
    const SIGNED: bool = false;
    /// Whether sub-blocks have minima; then scales are unsigned, else signed.
    const MIN: bool;
    /// What is kept of a super-block from chunk to chunk.
    type Kept<I: Isa>;
    /// A chunk's words in registers.
    type Raw<I: Isa>;

    /// Loads what all chunks need, and the scales.
    ///
    /// # Safety
    /// `rows` are at a super-block.
    unsafe fn header<I: Isa>(isa: I, rows: Rows) -> (Self::Kept<I>, Header<I>);
    /// Loads and turns a chunk.
    ///
    /// # Safety
    /// `rows` are at a super-block, which has the chunk.
    unsafe fn load<I: Isa>(isa: I, rows: Rows, kept: &Self::Kept<I>, chunk: usize) -> Self::Raw<I>;
    /// Weights `4 i` to `4 i + 3` of sub-block `unit` of the chunk.
    fn quad<I: Isa>(isa: I, raw: &Self::Raw<I>, unit: usize, i: usize) -> I::V;
    /// Which sub-block of the super-block it is: chunk by chunk, they come in the order of sums.
    #[inline(always)]
    fn sub_block(chunk: usize, unit: usize) -> usize {
        sub_block_at(256 / Self::SUB, chunk * Self::UNITS + unit)
    }
}

/// A sub-block of a chunk in registers.
struct InChunk<'a, I: Isa, W: Block256>(&'a W::Raw<I>, usize);

impl<I: Isa, W: Block256> Quads<I> for InChunk<'_, I, W> {
    #[inline(always)]
    unsafe fn quad(&self, isa: I, i: usize) -> I::V {
        W::quad(isa, self.0, self.1, i)
    }
}

/// Scales of a super-block as bytes in the order of the sub-blocks, four to a word.
pub(super) struct Header<I: Isa> {
    /// Scale of the super-block.
    pub(super) d: I::F,
    /// Scale of the minima, or anything.
    pub(super) dmin: I::F,
    /// Scales; two words for sub-blocks of 32, else four.
    pub(super) scales: [I::V; 4],
    /// Minima, likewise, or anything.
    pub(super) minima: [I::V; 4],
}

impl<I: Isa> Header<I> {
    /// With the scales as they are multiplied with sub-blocks.
    #[inline(always)]
    fn ready<W: Block256>(self, isa: I) -> Self {
        let raised = (1 << raise::<I>(W::BIAS)) as f32;
        // Sums of sixteen come as offsets, which are -128 times as much.
        let sums = if W::SUB == 16 { 1.0 / 128.0 } else { -1.0 };
        Self {
            d: isa.scale_f(self.d, 1.0 / raised),
            dmin: isa.scale_f(self.dmin, sums),
            ..self
        }
    }

    /// Scale of sub-block `j`: at most 19 bits, so that the product is exact.
    #[inline(always)]
    fn scale<W: Block256>(&self, isa: I, j: usize) -> I::F {
        let byte = isa.byte(self.scales[j / 4], j % 4, !W::MIN);
        isa.mul(self.d, isa.float(byte))
    }

    /// What its minimum adds, by sum or by offset.
    #[inline(always)]
    fn minimum<W: Block256>(&self, isa: I, j: usize) -> I::F {
        if !W::MIN {
            return self.dmin;
        }
        isa.mul(
            self.dmin,
            isa.float(isa.byte(self.minima[j / 4], j % 4, false)),
        )
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
            quants: self.quants.wrapping_add(b * 256),
            scales: self.scales.wrapping_add(b),
            offsets: self.offsets.wrapping_add(b * 16),
            sums: self.sums.wrapping_add(b * 8),
            ..self
        }
    }

    /// At sub-block `j`, which has 16 or 32 columns.
    #[inline(always)]
    fn sub_block(self, j: usize, cols: usize) -> Self {
        Self {
            quants: self.quants.wrapping_add(j * cols),
            offsets: self.offsets.wrapping_add(j * cols / 16),
            sums: self.sums.wrapping_add(j * cols / 32),
            ..self
        }
    }
}

/// One sub-block of all lanes' rows of `P` panels times `T` tokens, added to their parts of the super-block.
///
/// # Safety
/// `x` is at the sub-block and `T` tokens follow.
#[inline(always)]
unsafe fn unit<I: Isa, W: Block256, const P: usize, const T: usize>(
    isa: I,
    quads: [impl Quads<I>; P],
    scales: [(I::F, I::F); P],
    x: X,
    part: &mut [[I::F; T]; P],
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
                let at = x.offsets.wrapping_add(t * x.blocks * 16);
                let mut offset = isa.splat_at(at, shift);
                if W::SUB == 32 {
                    offset = isa.add32(offset, isa.splat_at(at.wrapping_add(1), shift));
                }
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
            if i < W::SUB / 4 {
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
            }
        });
        each_panel!(P, |p| {
            let (d, m) = scales[p];
            each_token!(T, |t| {
                let sum = isa.float(isa.end(total[p][t], dots[p][t]));
                part[p][t] = isa.fma(d, sum, part[p][t]);
                if W::MIN && W::SUB == 32 {
                    part[p][t] = isa.fma_x(m, *x.sums.wrapping_add(t * x.blocks * 8), part[p][t]);
                } else if W::MIN {
                    let offset = *x.offsets.wrapping_add(t * x.blocks * 16);
                    part[p][t] = isa.fma_x(m, offset as f32, part[p][t]);
                }
            });
        });
    }
}

/// The parts of a super-block are complete.
///
/// # Safety
/// `x` is at the super-block and `T` tokens follow.
#[inline(always)]
unsafe fn finish<I: Isa, const T: usize>(isa: I, part: &[I::F; T], x: X, acc: &mut [I::F; T]) {
    each_token!(T, |t| {
        // SAFETY: the caller's promise.
        let x_scale = unsafe { *x.scales.wrapping_add(t * x.blocks) };
        acc[t] = isa.fma_x(part[t], x_scale, acc[t]);
    });
}

/// Turns a super-block of all lanes' rows.
///
/// # Safety
/// `rows` are at it.
#[inline(always)]
unsafe fn fill<I: Isa, W: Block256>(isa: I, tile: &mut Tile, rows: Rows, ahead: &mut Ahead) {
    // SAFETY: the caller's promise.
    let (kept, header) = unsafe { W::header(isa, rows) };
    let header = header.ready::<W>(isa);
    each!([0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15] |j| {
        if j < 256 / W::SUB {
            let scales = (header.scale::<W>(isa, j), header.minimum::<W>(isa, j));
            tile.set_scales(isa, j, scales, W::MIN);
        }
    });
    for chunk in 0..256 / W::SUB / W::UNITS {
        // SAFETY: the caller's promise.
        let raw = unsafe { W::load(isa, rows, &kept, chunk) };
        each!([0 1 2 3] |u| {
            if u < W::UNITS {
                let at = W::sub_block(chunk, u) * (W::SUB / 4);
                each!([0 1 2 3 4 5 6 7] |i| {
                    if i < W::SUB / 4 {
                        tile.set_quad(isa, at + i, W::quad(isa, &raw, u, i));
                    }
                });
                ahead.step(isa);
            }
        });
    }
}

/// A super-block of `P` tiles times `T` tokens, added to `out` unless it is the first.
///
/// # Safety
/// The tiles were filled; `x` is at the super-block, `out` at the lanes, and `T` tokens follow.
#[inline(always)]
unsafe fn multiply<I: Isa, W: Block256, const P: usize, const T: usize>(
    isa: I,
    tiles: &[Tile; P],
    x: X,
    first: bool,
    out: [*mut f32; P],
    ahead: &mut Ahead,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut part = [[isa.zero_f(); T]; P];
        for k in 0..256 / W::SUB {
            let j = sub_block_at(256 / W::SUB, k);
            ahead.step(isa);
            let first = j * (W::SUB / 4);
            let mut quads = [tiles[0].quads(first); P];
            let mut scales = [tiles[0].scales(isa, j, W::MIN); P];
            each_panel!(P, |p| {
                quads[p] = tiles[p].quads(first);
                scales[p] = tiles[p].scales(isa, j, W::MIN);
            });
            unit::<I, W, P, T>(isa, quads, scales, x.sub_block(j, W::SUB), &mut part);
        }
        each_panel!(P, |p| {
            let mut acc = [isa.zero_f(); T];
            resume(isa, first, out[p], &mut acc);
            finish(isa, &part[p], x, &mut acc);
            leave(isa, &acc, out[p]);
        });
    }
}

/// The lanes of one panel or two, for all tokens.
struct Lanes<I, W, const P: usize> {
    isa: I,
    types: PhantomData<W>,
    /// At the first super-block.
    rows: [Rows; P],
    /// Which it is.
    first: usize,
    blocks: usize,
    x: X,
    out: [*mut f32; P],
}

impl<I: Isa, W: Block256, const P: usize> Strip for Lanes<I, W, P> {
    #[inline(always)]
    unsafe fn direct<const T: usize>(&self, mut ahead: Ahead) {
        let Self { isa, out, .. } = *self;
        // SAFETY: shapes were checked; rows hold `blocks` super-blocks.
        unsafe {
            let mut acc = [isa.zero_f(); T];
            resume(isa, self.first == 0, out[0], &mut acc);
            for b in 0..self.blocks {
                let rows = self.rows[0].skip(b * W::BYTES);
                let x = self.x.at(0, self.first + b);
                let (kept, header) = W::header(isa, rows);
                let header = header.ready::<W>(isa);
                let mut part = [[isa.zero_f(); T]; 1];
                for chunk in 0..256 / W::SUB / W::UNITS {
                    let raw = W::load(isa, rows, &kept, chunk);
                    each!([0 1 2 3] |u| {
                        if u < W::UNITS {
                            let j = W::sub_block(chunk, u);
                            let scales = (header.scale::<W>(isa, j), header.minimum::<W>(isa, j));
                            unit::<I, W, 1, T>(
                                isa,
                                [InChunk::<I, W>(&raw, u)],
                                [scales],
                                x.sub_block(j, W::SUB),
                                &mut part,
                            );
                            ahead.step(isa);
                        }
                    });
                }
                finish(isa, &part[0], x, &mut acc);
            }
            leave(isa, &acc, out[0]);
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
        for b in 0..self.blocks {
            let block = self.first + b;
            // SAFETY: shapes were checked; rows hold `blocks` super-blocks.
            unsafe {
                each_panel!(P, |p| {
                    fill::<I, W>(
                        isa,
                        &mut tiles[p],
                        self.rows[p].skip(b * W::BYTES),
                        &mut ahead,
                    );
                });
                let mut token = 0;
                while token < tokens {
                    let x = self.x.at(token, block);
                    let out = self.out.map(|out| out.wrapping_add(token * PANEL_ROWS));
                    let ahead = if token < asking {
                        &mut ahead
                    } else {
                        &mut nothing
                    };
                    token += match_group!(I, P, tokens - token, |T| {
                        multiply::<I, W, P, T>(isa, &tiles, x, block == 0, out, ahead);
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
pub(super) unsafe fn panel<I: Isa, W: Block256>(
    isa: I,
    panel: &Panel<'_>,
    x: &Activations<'_>,
    out: &mut [f32],
) {
    let (x, tokens) = checked::<W>(panel, x, out);
    let out = out.as_mut_ptr();
    let step_bytes = W::BYTES.div_ceil(256 / W::SUB);
    if I::WIDE && panel.rows == MOST_ROWS && tokens > DIRECT_TOKENS {
        let segment = Segment::whole(panel, x.blocks);
        let (rows, ahead) = segment.lanes(0, MOST_ROWS, step_bytes);
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
                let (rows, ahead) = segment.lanes(strip, I::LANES, step_bytes);
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
fn checked<W: Block256>(panel: &Panel<'_>, x: &Activations<'_>, out: &[f32]) -> (X, usize) {
    let &Activations::Q8 {
        kind: ActivationKind::Q8Block256,
        parts,
        tokens,
        cols,
    } = x
    else {
        panic!("weights with blocks of 256 take activations with blocks of 256");
    };
    panel.check(cols, 256, W::BYTES);
    parts.check(ActivationKind::Q8Block256, tokens * cols);
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
        blocks: cols / 256,
    };
    (x, tokens)
}
