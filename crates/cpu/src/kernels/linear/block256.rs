//! The frame of the types with super-blocks of 256 weights.

use super::ahead::Ahead;
use super::frame::{
    InTile, Quads, Segment, Segments, Strip, Turned, Vectors, each, groups, leave, resume,
};
use super::isa::{Isa, Rows};
use super::{Activations, PANEL_ROWS, Panel};
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
    /// Which sub-block of the super-block it is.
    fn sub_block(chunk: usize, unit: usize) -> usize;
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

/// Activations, checked.
#[derive(Clone, Copy)]
struct X {
    quants: *const i8,
    scales: *const f32,
    sums: *const i16,
    cols: usize,
    blocks: usize,
    /// Sums of a block.
    parts: usize,
}

impl X {
    /// At block `block` of token `token`.
    #[inline(always)]
    fn at(self, token: usize, block: usize) -> Self {
        let b = token * self.blocks + block;
        Self {
            quants: self.quants.wrapping_add(b * 256),
            scales: self.scales.wrapping_add(b),
            sums: self.sums.wrapping_add(b * self.parts),
            ..self
        }
    }
}

/// Scales as the integer steps use them.
struct Scales<I: Isa> {
    d: I::F,
    dmin: I::F,
    /// By sub-block.
    units: [I::V; 16],
    /// Minima, or scales where there are none, of two sub-blocks.
    pairs: [I::V; 8],
}

impl<I: Isa> Scales<I> {
    #[inline(always)]
    fn new<W: Block256>(isa: I, header: &Header<I>) -> Self {
        let mut units = [isa.zero(); 16];
        let mut pairs = [isa.zero(); 8];
        let from = if W::MIN {
            &header.minima
        } else {
            &header.scales
        };
        each!([0 1 2 3] |w| {
            if w < 64 / W::SUB {
                each!([0 1 2 3] |j| {
                    units[4 * w + j] = isa.scale(header.scales[w], j, !W::MIN);
                });
                each!([0 2] |j| {
                    let b = j as i8;
                    pairs[2 * w + j / 2] = if W::MIN {
                        isa.shuffle(from[w], [b, -1, b + 1, -1])
                    } else {
                        isa.sar16(isa.shuffle(from[w], [-1, b, -1, b + 1]), 8)
                    };
                });
            }
        });
        Self {
            d: header.d,
            dmin: header.dmin,
            units,
            pairs,
        }
    }

    /// The sums of the sub-blocks come together: the floating-point step of a super-block.
    ///
    /// # Safety
    /// `x` is at a block and `T` tokens follow.
    #[inline(always)]
    unsafe fn finish<W: Block256, const T: usize>(
        &self,
        isa: I,
        sums: &[I::V; T],
        x: X,
        acc: &mut [I::F; T],
    ) {
        let bias = if W::SIGNED { I::SIGNED_BIAS } else { W::BIAS };
        for t in 0..T {
            let mut isum = sums[t];
            let mut by_sums = isa.zero();
            if W::MIN || bias != 0 {
                let at = x.sums.wrapping_add(t * x.blocks * x.parts);
                for (p, pair) in self.pairs.iter().take(x.parts / 2).enumerate() {
                    // SAFETY: the caller's promise.
                    by_sums = unsafe { isa.dot16(by_sums, *pair, at.wrapping_add(2 * p)) };
                }
                if bias != 0 {
                    isum = isa.sub32(isum, isa.shl(by_sums, bias.trailing_zeros()));
                }
            }
            // SAFETY: the caller's promise.
            let x_scale = unsafe { *x.scales.wrapping_add(t * x.blocks) };
            acc[t] = isa.fma(isa.scale_f(self.d, x_scale), isa.float(isum), acc[t]);
            if W::MIN {
                let m = isa.scale_f(self.dmin, x_scale);
                acc[t] = isa.fnma(m, isa.float(by_sums), acc[t]);
            }
        }
    }
}

/// One sub-block of all lanes' rows times `T` tokens.
///
/// # Safety
/// `q` is at the sub-block's columns and `T` tokens follow every `cols`.
#[inline(always)]
unsafe fn unit<I: Isa, W: Block256, const T: usize>(
    isa: I,
    quads: &impl Quads<I>,
    scale: I::V,
    q: *const i8,
    cols: usize,
    sums: &mut [I::V; T],
) {
    let depth = I::depth(W::MAX, W::SIGNED);
    let mut dots = [isa.zero(); T];
    each!([0 1 2 3 4 5 6 7] |i| {
        if i < W::SUB / 4 {
            // SAFETY: sub-blocks have 8 or 4 of them.
            let w = unsafe { quads.quad(isa, i) };
            if i > 0 && i % depth == 0 {
                for t in 0..T {
                    sums[t] = isa.end_scaled(sums[t], dots[t], scale);
                    dots[t] = isa.zero();
                }
            }
            for t in 0..T {
                let q = q.wrapping_add(t * cols + 4 * i);
                // SAFETY: the caller's promise.
                dots[t] = unsafe {
                    if W::SIGNED {
                        isa.dot::<true>(dots[t], w, q)
                    } else {
                        isa.dot::<false>(dots[t], w, q)
                    }
                };
            }
        }
    });
    for t in 0..T {
        sums[t] = isa.end_scaled(sums[t], dots[t], scale);
    }
}

/// A super-block of all lanes' rows, turned.
struct Tile {
    quads: Turned,
    /// The parts of [`Scales`], one after another.
    scales: Vectors<26>,
}

impl Tile {
    /// # Safety
    /// `rows` are at a super-block.
    #[inline(always)]
    unsafe fn fill<I: Isa, W: Block256>(&mut self, isa: I, rows: Rows) {
        // SAFETY: the caller's promise.
        unsafe {
            let (kept, header) = W::header(isa, rows);
            let scales = Scales::new::<W>(isa, &header);
            let to = &mut self.scales.0;
            for (v, to) in scales.units.into_iter().zip(&mut to[..16]) {
                isa.store(v, to.as_mut_ptr());
            }
            for (v, to) in scales.pairs.into_iter().zip(&mut to[16..24]) {
                isa.store(v, to.as_mut_ptr());
            }
            isa.store_f(scales.d, to[24].as_mut_ptr().cast());
            isa.store_f(scales.dmin, to[25].as_mut_ptr().cast());
            for chunk in 0..256 / W::SUB / W::UNITS {
                let raw = W::load(isa, rows, &kept, chunk);
                each!([0 1 2 3] |u| {
                    if u < W::UNITS {
                        let at = W::sub_block(chunk, u) * (W::SUB / 4);
                        each!([0 1 2 3 4 5 6 7] |i| {
                            if i < W::SUB / 4 {
                                isa.store(W::quad(isa, &raw, u, i), self.quads.0[at + i].as_mut_ptr());
                            }
                        });
                    }
                });
            }
        }
    }

    /// One super-block of all lanes' rows times `T` tokens.
    ///
    /// # Safety
    /// The tile was filled; `x` is at a block and `T` tokens follow.
    #[inline(always)]
    unsafe fn multiply<I: Isa, W: Block256, const T: usize>(
        &self,
        isa: I,
        x: X,
        acc: &mut [I::F; T],
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            let mut sums = [isa.zero(); T];
            for j in 0..256 / W::SUB {
                unit::<I, W, T>(
                    isa,
                    &InTile(self.quads.0.as_ptr().wrapping_add(j * (W::SUB / 4))),
                    isa.load(self.scales.0[j].as_ptr()),
                    x.quants.wrapping_add(j * W::SUB),
                    x.cols,
                    &mut sums,
                );
            }
            let mut pairs = [isa.zero(); 8];
            for (v, from) in pairs.iter_mut().zip(&self.scales.0[16..24]) {
                *v = isa.load(from.as_ptr());
            }
            let scales = Scales {
                d: isa.load_f(self.scales.0[24].as_ptr().cast()),
                dmin: isa.load_f(self.scales.0[25].as_ptr().cast()),
                units: [isa.zero(); 16],
                pairs,
            };
            scales.finish::<W, T>(isa, &sums, x, acc);
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

impl<I: Isa, W: Block256> Strip for Lanes<'_, I, W> {
    #[inline(always)]
    unsafe fn direct<const T: usize>(&self, token: usize, mut ahead: Ahead) {
        let Self { isa, segment, .. } = *self;
        let out = self.out.wrapping_add(token * PANEL_ROWS);
        // SAFETY: shapes were checked; rows hold `blocks` super-blocks.
        unsafe {
            let mut acc = resume::<I, T>(isa, segment.first == 0, out);
            for b in 0..segment.blocks {
                let rows = self.rows.skip(b * W::BYTES);
                let x = self.x.at(token, segment.first + b);
                let (kept, header) = W::header(isa, rows);
                let scales = Scales::new::<W>(isa, &header);
                let mut sums = [isa.zero(); T];
                for chunk in 0..256 / W::SUB / W::UNITS {
                    let raw = W::load(isa, rows, &kept, chunk);
                    each!([0 1 2 3] |u| {
                        if u < W::UNITS {
                            let j = W::sub_block(chunk, u);
                            unit::<I, W, T>(
                                isa,
                                &InChunk::<I, W>(&raw, u),
                                scales.units[j],
                                x.quants.wrapping_add(j * W::SUB),
                                x.cols,
                                &mut sums,
                            );
                        }
                    });
                    ahead.step(isa);
                }
                scales.finish::<W, T>(isa, &sums, x, &mut acc);
            }
            leave(isa, acc, out);
        }
    }

    #[inline(always)]
    unsafe fn tiled<const T: usize>(&self, groups: usize, mut ahead: Ahead) {
        let Self { isa, segment, .. } = *self;
        let mut tile = Tile {
            quads: Turned([[0; PANEL_ROWS]; 64]),
            scales: Vectors([[0; PANEL_ROWS]; 26]),
        };
        for b in 0..segment.blocks {
            let first = segment.first + b;
            // SAFETY: shapes were checked; rows hold `blocks` super-blocks.
            unsafe {
                tile.fill::<I, W>(isa, self.rows.skip(b * W::BYTES));
                for g in 0..groups {
                    let out = self.out.wrapping_add(g * T * PANEL_ROWS);
                    let x = self.x.at(g * T, first);
                    let mut acc = resume::<I, T>(isa, first == 0, out);
                    tile.multiply::<I, W, T>(isa, x, &mut acc);
                    leave(isa, acc, out);
                    for _ in 0..(256 / W::SUB / W::UNITS).div_ceil(groups) {
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
pub(super) unsafe fn panel<I: Isa, W: Block256>(
    isa: I,
    panel: &Panel<'_>,
    x: &Activations<'_>,
    out: &mut [f32],
) {
    let (x, tokens) = checked::<W>(panel, x, out);
    let mut segments = Segments::new(panel, x.blocks, W::BYTES);
    while let Some(segment) = segments.next() {
        for strip in (0..PANEL_ROWS).step_by(I::LANES) {
            let (rows, ahead) =
                segment.strip::<I>(strip, W::BYTES.div_ceil(256 / W::SUB / W::UNITS));
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
fn checked<W: Block256>(panel: &Panel<'_>, x: &Activations<'_>, out: &[f32]) -> (X, usize) {
    let &Activations::Q8Block256 {
        quants,
        scales,
        sums16,
        sums32,
        tokens,
        cols,
    } = x
    else {
        panic!("weights with blocks of 256 take activations with blocks of 256");
    };
    let blocks = cols / 256;
    panel.check(cols, 256, W::BYTES);
    assert_eq!(quants.len(), tokens * cols, "quants");
    assert_eq!(scales.len(), tokens * blocks, "scales");
    assert_eq!(sums16.len(), tokens * blocks * 16, "sums of 16");
    assert_eq!(sums32.len(), tokens * blocks * 8, "sums of 32");
    assert!(out.len() >= tokens * PANEL_ROWS, "out");
    let x = X {
        quants: quants.as_ptr(),
        scales: scales.as_ptr(),
        sums: if W::SUB == 16 { sums16 } else { sums32 }.as_ptr(),
        cols,
        blocks,
        parts: 256 / W::SUB,
    };
    (x, tokens)
}
