//! Types with blocks of 32 weights.

use super::ahead::Ahead;
use super::dots::{WeightBytes, X, add_block, lower};
use super::frame::{Quads, Tile, each};
use super::isa::{Isa, Rows};
use super::panel::Blocks;

/// How a type's blocks become unsigned bytes and scales.
pub(super) trait Block32: WeightBytes {
    /// Bytes of a block.
    const BYTES: usize;
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

/// The blocks of such a type.
pub(super) struct Of32<W>(W);

impl<W: WeightBytes> WeightBytes for Of32<W> {
    const MAX: u32 = W::MAX;
    const BIAS: i32 = W::BIAS;
    const SIGNED: bool = W::SIGNED;
    const SUB: usize = W::SUB;
    const MIN: bool = W::MIN;
}

impl<W: Block32> Blocks for Of32<W> {
    const BYTES: usize = W::BYTES;
    const COLS: usize = 32;

    #[inline(always)]
    unsafe fn fill<I: Isa>(isa: I, tile: &mut Tile, rows: Rows, blocks: usize, ahead: &mut Ahead) {
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

    #[inline(always)]
    unsafe fn add<I: Isa, const T: usize>(
        isa: I,
        rows: Rows,
        x: X,
        acc: &mut [[I::F; T]; 1],
        ahead: &mut Ahead,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            let raw = W::load(isa, rows);
            let (d, m) = W::scales(isa, &raw);
            let scales = [(isa.scale_f(d, lower::<I, W>()), m)];
            add_block::<I, W, 1, T>(isa, &[InBlock::<I, W>(&raw)], &[scales, scales], x, acc);
        }
        ahead.step(isa);
    }
}
