//! Types with super-blocks of 256 weights.

use super::ahead::Ahead;
use super::dots::{Scales, WeightBytes, X, add_block, lower};
use super::frame::{Quads, Tile, each};
use super::isa::{Isa, Rows};
use super::panel::Blocks;

/// How a type's super-blocks become unsigned bytes and scales. A super-block is loaded in chunks, a chunk gives [`Self::UNITS`] times
/// 32 columns, all of them in order. Scales are unsigned where there are minima, else signed.
pub(super) trait Block256: WeightBytes {
    /// Bytes of a super-block.
    const BYTES: usize;
    /// Blocks of 32 weights of a chunk: 1, 2 or 4.
    const UNITS: usize;
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

/// The super-blocks of such a type.
pub(super) struct Of256<W>(W);

impl<W: WeightBytes> WeightBytes for Of256<W> {
    const MAX: u32 = W::MAX;
    const BIAS: i32 = W::BIAS;
    const SIGNED: bool = W::SIGNED;
    const SUB: usize = W::SUB;
    const MIN: bool = W::MIN;
}

impl<W: Block256> Blocks for Of256<W> {
    const BYTES: usize = W::BYTES;
    const COLS: usize = 256;

    /// One super-block is a whole tile.
    #[inline(always)]
    unsafe fn fill<I: Isa>(isa: I, tile: &mut Tile, rows: Rows, _blocks: usize, ahead: &mut Ahead) {
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
            let (kept, header) = W::header(isa, rows);
            let header = header.ready::<W>(isa);
            for chunk in 0..8 / W::UNITS {
                let raw = W::load(isa, rows, &kept, chunk);
                each!([0, 1, 2, 3], |u| {
                    if u < W::UNITS {
                        let j = chunk * W::UNITS + u;
                        let quads = [InChunk::<I, W>(&raw, u)];
                        let scales = header.scales_of::<W>(isa, j);
                        add_block::<I, W, 1, T>(isa, &quads, &scales, x.at(0, j), acc);
                        ahead.step(isa);
                    }
                });
            }
        }
    }
}
