//! A panel, or two, times all tokens: the frame around every type's blocks, in both forms.

use super::ahead::Ahead;
use super::dots::{WeightBytes, X, add_block};
use super::frame::{
    MOST_BLOCK_BYTES, Segment, Segments, Tile, each_panel, leave, match_group, most_tokens, resume,
};
use super::isa::{Isa, Rows};
use super::{Activations, MOST_ROWS, PANEL_ROWS, Panel};
use std::marker::PhantomData;

/// Most tokens for which a turned block is used at once; from the next on, writing a tile pays.
const DIRECT_TOKENS: usize = 4;
/// Tokens over which the tile form spreads its asking for what lies ahead.
const ASKING_TOKENS: usize = 24;
/// Columns of a tile.
const TILE_COLS: usize = 256;

/// Blocks of a weight type, as the frame uses them.
pub(super) trait Blocks: WeightBytes {
    /// Bytes of a block.
    const BYTES: usize;
    /// Weights of a block: 32 or 256.
    const COLS: usize;
    /// Parts of 32 columns.
    const PARTS: usize = Self::COLS / 32;

    /// Turns blocks of all lanes' rows into a tile, with a step of `ahead` for each 32 columns.
    ///
    /// # Safety
    /// `rows` hold so many blocks, and the tile has room for them.
    unsafe fn fill<I: Isa>(isa: I, tile: &mut Tile, rows: Rows, blocks: usize, ahead: &mut Ahead);

    /// Turns a block of all lanes' rows in registers and adds its products with `T` tokens to `acc`, with a step of `ahead` for each 32
    /// columns.
    ///
    /// # Safety
    /// `rows` and `x` are at the block, and `T` tokens follow.
    unsafe fn add<I: Isa, const T: usize>(
        isa: I,
        rows: Rows,
        x: X,
        acc: &mut [[I::F; T]; 1],
        ahead: &mut Ahead,
    );
}

/// The lanes of one panel or two between two columns, for all tokens.
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

impl<I: Isa, W: Blocks> Lanes<I, W, 1> {
    /// All tokens, in the form that is faster for so many.
    ///
    /// # Safety
    /// Rows, tokens and outputs exist.
    #[inline(always)]
    unsafe fn run(&self, tokens: usize, ahead: Ahead) {
        // SAFETY: the caller's promise.
        unsafe {
            match tokens {
                0 => {}
                1 => self.direct::<1>(ahead),
                2 => self.direct::<2>(ahead),
                3 => self.direct::<3>(ahead),
                DIRECT_TOKENS => self.direct::<DIRECT_TOKENS>(ahead),
                _ => self.tiled(tokens, ahead),
            }
        }
    }

    /// Turns each block and uses it at once for all tokens, which are `T`.
    ///
    /// # Safety
    /// As for [`Self::run`].
    #[inline(always)]
    unsafe fn direct<const T: usize>(&self, mut ahead: Ahead) {
        let Self { isa, out, .. } = *self;
        // SAFETY: the caller's promise.
        unsafe {
            let mut acc = [[isa.zero_f(); T]; 1];
            resume(isa, self.first == 0, out[0], &mut acc[0]);
            for b in 0..self.blocks {
                let rows = self.rows[0].skip(b * W::BYTES);
                let x = self.x.at(0, (self.first + b) * W::PARTS);
                W::add(isa, rows, x, &mut acc, &mut ahead);
            }
            leave(isa, &acc[0], out[0]);
        }
    }
}

impl<I: Isa, W: Blocks, const P: usize> Lanes<I, W, P> {
    /// Turns 256 columns at a time and streams all tokens over them.
    ///
    /// # Safety
    /// Rows, tokens and outputs exist.
    #[inline(always)]
    unsafe fn tiled(&self, tokens: usize, ahead: Ahead) {
        let Self { isa, .. } = *self;
        // Turning and the first groups ask for what is due.
        let asking = tokens.min(ASKING_TOKENS);
        let mut ahead = ahead.spread(P + asking.div_ceil(most_tokens::<I, P>()));
        let mut tiles = [const { Tile::new() }; P];
        let mut nothing = Ahead::nothing();
        for done in (0..self.blocks).step_by(TILE_COLS / W::COLS) {
            let blocks = (self.blocks - done).min(TILE_COLS / W::COLS);
            let first = self.first + done;
            // SAFETY: the caller's promise.
            unsafe {
                each_panel!(P, |p| {
                    let rows = self.rows[p].skip(done * W::BYTES);
                    W::fill(isa, &mut tiles[p], rows, blocks, &mut ahead);
                });
                let mut token = 0;
                while token < tokens {
                    let x = self.x.at(token, first * W::PARTS);
                    let out = self.out.map(|out| out.wrapping_add(token * PANEL_ROWS));
                    let ahead = if token < asking {
                        &mut ahead
                    } else {
                        &mut nothing
                    };
                    token += match_group!(I, P, tokens - token, |T| {
                        // A constant where it can be one.
                        let parts = if W::COLS == TILE_COLS {
                            W::PARTS
                        } else {
                            blocks
                        };
                        multiply::<I, W, P, T>(isa, &tiles, parts, x, first == 0, out, ahead);
                    });
                }
            }
        }
    }
}

/// `parts` times 32 columns of `P` tiles times `T` tokens, added to `out` unless they are the first.
///
/// # Safety
/// The tiles were filled with as many; `x` is at the first, `out` at the lanes, and `T` tokens follow.
#[inline(always)]
unsafe fn multiply<I: Isa, W: Blocks, const P: usize, const T: usize>(
    isa: I,
    tiles: &[Tile; P],
    parts: usize,
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
        for part in 0..parts {
            ahead.step(isa);
            // Both begin with any value.
            let mut quads = [tiles[0].quads(8 * part); P];
            let mut scales = [[tiles[0].scales(isa, part, false); P]; 2];
            each_panel!(P, |p| {
                quads[p] = tiles[p].quads(8 * part);
                if W::SUB == 32 {
                    scales[0][p] = tiles[p].scales(isa, part, W::MIN);
                } else {
                    scales[0][p] = tiles[p].scales(isa, 2 * part, W::MIN);
                    scales[1][p] = tiles[p].scales(isa, 2 * part + 1, W::MIN);
                }
            });
            add_block::<I, W, P, T>(isa, &quads, &scales, x.at(0, part), &mut acc);
        }
        each_panel!(P, |p| {
            leave(isa, &acc[p], out[p]);
        });
    }
}

/// Panels times all tokens.
#[inline(always)]
pub(super) fn panel<I: Isa, W: Blocks>(
    isa: I,
    panel: &Panel<'_>,
    x: &Activations<'_>,
    out: &mut [f32],
) {
    const { assert!(W::BYTES <= MOST_BLOCK_BYTES) };
    let (x, tokens) = X::checked(panel, (W::COLS, W::BYTES), x, out);
    let blocks = x.blocks() / W::PARTS;
    let step_bytes = W::BYTES.div_ceil(W::PARTS);
    let out = out.as_mut_ptr();
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
                unsafe { lanes.run(tokens, ahead) };
            }
        }
    }
}
