//! The frame of the types with super-blocks of 256 weights.

use super::ahead::Ahead;
use super::dots::{Part, WeightBytes, X, add_block, dots, lower};
use super::frame::{
    ASKING_TOKENS, DIRECT_TOKENS, MOST_BLOCK_BYTES, Quads, Segment, Segments, Strip, Tile, each,
    each_panel, each_token, groups, leave, match_group, most_tokens, resume,
};
use super::isa::{Isa, Rows};
use super::{Activations, MOST_ROWS, PANEL_ROWS, Panel};
use std::marker::PhantomData;

/// How a type's super-blocks become unsigned bytes and scales. A super-block is loaded in chunks, a chunk gives [`Self::UNITS`] times
/// 32 columns, all of them in order.
pub(super) trait Block256: WeightBytes {
    /// Bytes of a super-block.
    const BYTES: usize;
    /// Weights of a sub-block: 16 or 32.
    const SUB: usize;
    /// Blocks of 32 weights of a chunk: 1, 2 or 4.
    const UNITS: usize;
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
    /// Weights `4 i` to `4 i + 3` of block `unit` of the chunk.
    fn quad<I: Isa>(isa: I, raw: &Self::Raw<I>, unit: usize, i: usize) -> I::V;
}

/// A block of a chunk in registers.
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
        // Sums of sixteen come as offsets, which are -128 times as much.
        let sums = if W::SUB == 16 { 1.0 / 128.0 } else { -1.0 };
        Self {
            d: isa.scale_f(self.d, lower::<I, W>()),
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

impl<I: Isa> Header<I> {
    /// Of block `b` of 32 columns.
    #[inline(always)]
    fn scales_of<W: Block256>(&self, isa: I, b: usize) -> Scales<I, 1> {
        let sub = |j| [(self.scale::<W>(isa, j), self.minimum::<W>(isa, j))];
        if W::SUB == 32 {
            let one = sub(b);
            [one, one]
        } else {
            [sub(2 * b), sub(2 * b + 1)]
        }
    }
}

/// Scales and minima of the one or two sub-blocks of a block of 32 columns, by panel.
type Scales<I, const P: usize> = [[(<I as Isa>::F, <I as Isa>::F); P]; 2];

/// One block of 32 columns of all lanes' rows of `P` panels times `T` tokens, added to `acc`.
///
/// # Safety
/// `x` is at the block and `T` tokens follow.
#[inline(always)]
unsafe fn block<I: Isa, W: Block256, const P: usize, const T: usize>(
    isa: I,
    quads: &[impl Quads<I>; P],
    scales: &Scales<I, P>,
    x: X,
    acc: &mut [[I::F; T]; P],
) {
    let mut sums = *acc;
    // SAFETY: the caller's promise.
    unsafe {
        if W::SUB == 32 {
            dots::<I, W, P, T>(isa, quads, Part::Whole, x, &mut sums);
            add_block(isa, &sums, &scales[0], W::MIN, x, acc);
            return;
        }
        let mut part = sums;
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

/// Turns a super-block of all lanes' rows.
///
/// # Safety
/// `rows` are at it.
#[inline(always)]
unsafe fn fill<I: Isa, W: Block256>(isa: I, tile: &mut Tile, rows: Rows, ahead: &mut Ahead) {
    // SAFETY: the caller's promise.
    let (kept, header) = unsafe { W::header(isa, rows) };
    let header = header.ready::<W>(isa);
    each!(
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        |j| {
            if j < 256 / W::SUB {
                let scales = (header.scale::<W>(isa, j), header.minimum::<W>(isa, j));
                tile.set_scales(isa, j, scales, W::MIN);
            }
        }
    );
    for chunk in 0..8 / W::UNITS {
        // SAFETY: the caller's promise.
        let raw = unsafe { W::load(isa, rows, &kept, chunk) };
        each!([0, 1, 2, 3], |u| {
            if u < W::UNITS {
                let at = (chunk * W::UNITS + u) * 8;
                each!([0, 1, 2, 3, 4, 5, 6, 7], |i| {
                    tile.set_quad(isa, at + i, W::quad(isa, &raw, u, i));
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
        let mut acc = [[isa.zero_f(); T]; P];
        each_panel!(P, |p| {
            resume(isa, first, out[p], &mut acc[p]);
        });
        for b in 0..8 {
            ahead.step(isa);
            let mut quads = [tiles[0].quads(8 * b); P];
            let mut scales = [[tiles[0].scales(isa, b, false); P]; 2];
            each_panel!(P, |p| {
                quads[p] = tiles[p].quads(8 * b);
                if W::SUB == 32 {
                    scales[0][p] = tiles[p].scales(isa, b, W::MIN);
                } else {
                    scales[0][p] = tiles[p].scales(isa, 2 * b, W::MIN);
                    scales[1][p] = tiles[p].scales(isa, 2 * b + 1, W::MIN);
                }
            });
            block::<I, W, P, T>(isa, &quads, &scales, x.at(0, b), &mut acc);
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
            let mut acc = [[isa.zero_f(); T]; 1];
            resume(isa, self.first == 0, out[0], &mut acc[0]);
            for b in 0..self.blocks {
                let rows = self.rows[0].skip(b * W::BYTES);
                let (kept, header) = W::header(isa, rows);
                let header = header.ready::<W>(isa);
                for chunk in 0..8 / W::UNITS {
                    let raw = W::load(isa, rows, &kept, chunk);
                    each!([0, 1, 2, 3], |u| {
                        if u < W::UNITS {
                            let j = chunk * W::UNITS + u;
                            let scales = header.scales_of::<W>(isa, j);
                            let x = self.x.at(0, 8 * (self.first + b) + j);
                            block::<I, W, 1, T>(
                                isa,
                                &[InChunk::<I, W>(&raw, u)],
                                &scales,
                                x,
                                &mut acc,
                            );
                            ahead.step(isa);
                        }
                    });
                }
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
                    let x = self.x.at(token, 8 * block);
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
    const { assert!(W::BYTES <= MOST_BLOCK_BYTES) };
    let (x, tokens) = X::checked(panel, (256, W::BYTES), x, out);
    let blocks = x.blocks() / 8;
    let out = out.as_mut_ptr();
    let step_bytes = W::BYTES.div_ceil(8);
    if I::WIDE && panel.rows == MOST_ROWS && tokens > DIRECT_TOKENS {
        let segment = Segment::whole(panel, blocks);
        let (rows, ahead) = segment.lanes(0, MOST_ROWS, step_bytes);
        let lanes = Lanes {
            isa,
            types: PhantomData::<W>,
            rows: [rows, rows.skip(PANEL_ROWS * rows.stride)],
            first: 0,
            blocks,
            x,
            out: [out, out.wrapping_add(tokens * PANEL_ROWS)],
        };
        // SAFETY: shapes were checked.
        unsafe { lanes.tiled(tokens, ahead) };
        return;
    }
    for (p, panel) in panel.halves().into_iter().flatten().enumerate() {
        let mut segments = Segments::new(panel, blocks, W::BYTES);
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
