//! The frame of the types with blocks of 32 weights.

use super::ahead::Ahead;
use super::dots::{Part, WeightBytes, X, add_block, dots, lower};
use super::frame::{
    ASKING_TOKENS, DIRECT_TOKENS, MOST_BLOCK_BYTES, Quads, Segment, Segments, Strip, Tile, each,
    each_panel, groups, leave, match_group, most_tokens, resume,
};
use super::isa::{Isa, Rows};
use super::{Activations, MOST_ROWS, PANEL_ROWS, Panel};
use std::marker::PhantomData;

/// How a type's blocks become unsigned bytes and scales.
pub(super) trait Block32: WeightBytes {
    /// Bytes of a block.
    const BYTES: usize;
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
        each!([0, 1, 2, 3, 4, 5, 6, 7], |i| {
            tile.set_quad(isa, b * 8 + i, W::quad(isa, &raw, i));
        });
        let (d, m) = W::scales(isa, &raw);
        tile.set_scales(isa, b, (isa.scale_f(d, lower::<I, W>()), m), W::MIN);
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
            let x = x.at(0, b);
            let mut sums = acc;
            dots::<I, W, P, T>(isa, &quads, Part::Whole, x, &mut sums);
            add_block(isa, &sums, &scales, W::MIN, x, &mut acc);
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
                let x = self.x.at(0, self.first + b);
                let mut sums = acc;
                dots::<I, W, 1, T>(isa, &[InBlock::<I, W>(&raw)], Part::Whole, x, &mut sums);
                let scales = [(isa.scale_f(d, lower::<I, W>()), m)];
                add_block(isa, &sums, &scales, W::MIN, x, &mut acc);
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
    const { assert!(W::BYTES <= MOST_BLOCK_BYTES) };
    let (x, tokens) = X::checked(panel, (32, W::BYTES), x, out);
    let out = out.as_mut_ptr();
    if I::WIDE && panel.rows == MOST_ROWS && tokens > DIRECT_TOKENS {
        let segment = Segment::whole(panel, x.blocks());
        let (rows, ahead) = segment.lanes(0, MOST_ROWS, W::BYTES);
        let lanes = Lanes {
            isa,
            types: PhantomData::<W>,
            rows: [rows, rows.skip(PANEL_ROWS * rows.stride)],
            first: 0,
            blocks: x.blocks(),
            x,
            out: [out, out.wrapping_add(tokens * PANEL_ROWS)],
        };
        // SAFETY: shapes were checked.
        unsafe { lanes.tiled(tokens, ahead) };
        return;
    }
    for (p, panel) in panel.halves().into_iter().flatten().enumerate() {
        let mut segments = Segments::new(panel, x.blocks(), W::BYTES);
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
