//! What the two families of block types share: a panel cut into strips of lanes, tokens cut into groups.

use super::ahead::Ahead;
use super::isa::{Isa, Rows};
use super::{PANEL_ROWS, Panel};
use std::mem::MaybeUninit;

/// Weights of a panel's rows between two columns, in memory as the file has them or as a copy.
pub(super) struct Segment {
    /// At the first column.
    pub(super) rows: Rows,
    /// First block of the columns.
    pub(super) first: usize,
    /// Blocks.
    pub(super) blocks: usize,
    /// Bytes from the panel's begin to the end of the matrix; nothing where rows are a copy.
    left: Option<usize>,
}

impl Segment {
    /// The rows of the lanes from `strip` on, and what to ask for ahead of them.
    #[inline(always)]
    pub(super) fn strip<I: Isa>(&self, strip: usize, step_bytes: usize) -> (Rows, Ahead) {
        let skipped = strip * self.rows.stride;
        let rows = self.rows.skip(skipped);
        let ahead = match self.left {
            Some(left) if self.blocks > 0 => Ahead::new(rows, I::LANES, step_bytes, left - skipped),
            _ => Ahead::nothing(),
        };
        (rows, ahead)
    }
}

/// A kernel over some lanes of a segment.
pub(super) trait Strip {
    /// Turns each block and uses it at once for the `T` tokens from `token` on.
    ///
    /// # Safety
    /// The tokens exist.
    unsafe fn direct<const T: usize>(&self, token: usize, ahead: Ahead);
    /// Turns 256 columns at a time and streams the first `groups` groups of `T` tokens over them.
    ///
    /// # Safety
    /// The tokens exist.
    unsafe fn tiled<const T: usize>(&self, groups: usize, ahead: Ahead);
}

/// Tokens from which on writing a tile pays.
const TILE_FROM: usize = 32;

/// All tokens in groups that fit the registers.
///
/// # Safety
/// The tokens exist.
#[inline(always)]
pub(super) unsafe fn groups<I: Isa>(strip: &impl Strip, tokens: usize, mut ahead: Ahead) {
    let mut token = 0;
    // SAFETY: the caller's promise.
    unsafe {
        if tokens >= TILE_FROM {
            if I::LANES == 16 {
                strip.tiled::<8>(tokens / 8, ahead);
                token = tokens / 8 * 8;
            } else {
                strip.tiled::<4>(tokens / 4, ahead);
                token = tokens / 4 * 4;
            }
            ahead = Ahead::nothing();
        }
        while token < tokens {
            let left = tokens - token;
            token += if I::LANES == 16 && left >= 8 {
                strip.direct::<8>(token, ahead);
                8
            } else if I::LANES == 16 && left >= 6 {
                strip.direct::<6>(token, ahead);
                6
            } else if left >= 4 {
                strip.direct::<4>(token, ahead);
                4
            } else if left == 3 {
                strip.direct::<3>(token, ahead);
                3
            } else if left == 2 {
                strip.direct::<2>(token, ahead);
                2
            } else {
                strip.direct::<1>(token, ahead);
                1
            };
            ahead = Ahead::nothing();
        }
    }
}

/// Largest copy of a panel with fewer than sixteen rows.
const STAGE_BYTES: usize = PANEL_ROWS * 292;

/// Cuts a panel into segments: one if it is full; else copies of a few blocks with the last row repeated, so that no kernel has to know.
pub(super) struct Segments<'a> {
    panel: &'a Panel<'a>,
    blocks: usize,
    block_bytes: usize,
    next: usize,
    stage: [MaybeUninit<u8>; STAGE_BYTES],
}

impl<'a> Segments<'a> {
    /// Of a panel that was checked.
    #[inline(always)]
    pub(super) fn new(panel: &'a Panel<'a>, blocks: usize, block_bytes: usize) -> Self {
        Self {
            panel,
            blocks,
            block_bytes,
            next: 0,
            stage: [MaybeUninit::uninit(); STAGE_BYTES],
        }
    }

    /// The next segment, valid until the next call.
    #[inline(always)]
    pub(super) fn next(&mut self) -> Option<Segment> {
        let first = self.next;
        if first >= self.blocks {
            return None;
        }
        if self.panel.rows == PANEL_ROWS {
            self.next = self.blocks;
            return Some(Segment {
                rows: Rows {
                    base: self.panel.bytes.as_ptr(),
                    stride: self.panel.row_bytes,
                },
                first,
                blocks: self.blocks,
                left: Some(self.panel.bytes.len()),
            });
        }
        let fit = STAGE_BYTES / PANEL_ROWS / self.block_bytes;
        let blocks = fit.min(self.blocks - first);
        self.next += blocks;
        let stride = blocks * self.block_bytes;
        self.copy(first * self.block_bytes, stride);
        Some(Segment {
            rows: Rows {
                base: self.stage.as_ptr().cast(),
                stride,
            },
            first,
            blocks,
            left: None,
        })
    }

    #[inline(never)]
    fn copy(&mut self, at: usize, bytes: usize) {
        for (r, to) in self
            .stage
            .chunks_exact_mut(bytes)
            .take(PANEL_ROWS)
            .enumerate()
        {
            let from = r.min(self.panel.rows - 1) * self.panel.row_bytes + at;
            to.write_copy_of_slice(&self.panel.bytes[from..from + bytes]);
        }
    }
}

/// Where a kernel gets turned weights from: registers or a tile.
pub(super) trait Quads<I: Isa> {
    /// Weights `4 i` to `4 i + 3`.
    ///
    /// # Safety
    /// The block has them.
    unsafe fn quad(&self, isa: I, i: usize) -> I::V;
}

/// Quads one after another in a tile.
pub(super) struct InTile(pub(super) *const [u32; PANEL_ROWS]);

impl<I: Isa> Quads<I> for InTile {
    #[inline(always)]
    unsafe fn quad(&self, isa: I, i: usize) -> I::V {
        // SAFETY: the caller's promise.
        unsafe { isa.load(self.0.wrapping_add(i).cast()) }
    }
}

/// Weights of a tile: sixteen rows of 256 columns, turned.
#[repr(C, align(64))]
pub(super) struct Turned(pub(super) [[u32; PANEL_ROWS]; 64]);

/// Vectors kept in memory with a tile.
#[repr(C, align(64))]
pub(super) struct Vectors<const N: usize>(pub(super) [[u32; PANEL_ROWS]; N]);

/// Accumulators of a group of tokens: zeros at the first block, else what is in `out`.
///
/// # Safety
/// `out` holds a vector at each of `T` rows of sixteen.
#[inline(always)]
pub(super) unsafe fn resume<I: Isa, const T: usize>(
    isa: I,
    first: bool,
    out: *const f32,
) -> [I::F; T] {
    let mut acc = [isa.zero_f(); T];
    if !first {
        for (t, acc) in acc.iter_mut().enumerate() {
            // SAFETY: the caller's promise.
            *acc = unsafe { isa.load_f(out.wrapping_add(t * PANEL_ROWS)) };
        }
    }
    acc
}

/// Puts the accumulators of a group of tokens into `out`.
///
/// # Safety
/// As for [`resume`].
#[inline(always)]
pub(super) unsafe fn leave<I: Isa, const T: usize>(isa: I, acc: [I::F; T], out: *mut f32) {
    for (t, acc) in acc.into_iter().enumerate() {
        // SAFETY: the caller's promise.
        unsafe { isa.store_f(acc, out.wrapping_add(t * PANEL_ROWS)) };
    }
}

/// Expands a block once for each literal, so that arrays indexed by it stay in registers.
macro_rules! each {
    ([$($k:literal)*] |$i:ident| $body:block) => { $({ let $i: usize = $k; $body })* };
}
pub(super) use each;
