//! What panels are cut into: segments of columns, tiles of turned weights, groups of tokens.

use super::ahead::Ahead;
use super::isa::{Isa, Rows};
use super::{PANEL_ROWS, Panel};
use std::mem::MaybeUninit;

/// Expands a block once for each literal, so that arrays indexed by it stay in registers: the compiler gives up on larger loops, and then
/// keeps whole arrays in memory.
macro_rules! each {
    ([$($k:literal),*], |$i:ident| $body:block) => { $({ let $i: usize = $k; $body })* };
}
/// The same for those of up to eight tokens that are below a constant.
macro_rules! each_token {
    ($count:ident, |$t:ident| $body:block) => {
        each_token!(@ $count $t $body 0 1 2 3 4 5 6 7)
    };
    (@ $count:ident $t:ident $body:block $($k:literal)*) => {
        $(if const { $k < $count } { let $t: usize = $k; $body })*
    };
}
/// The same for the panels of a pair that are below a constant.
macro_rules! each_panel {
    ($count:ident, |$p:ident| $body:block) => {{
        {
            let $p: usize = 0;
            $body
        }
        if const { $count > 1 } {
            let $p: usize = 1;
            $body
        }
    }};
}
/// Runs a block for the next group `T` of tokens, of as many as fit the registers beside `P` panels; gives `T`.
macro_rules! match_group {
    ($isa:ident, $p:ident, $left:expr, |$t:ident| $body:block) => {
        match $left {
            8.. if const { most_tokens::<$isa, $p>() >= 8 } => match_group!(@ $t 8 $body),
            6 | 9.. if const { most_tokens::<$isa, $p>() == 6 } => match_group!(@ $t 6 $body),
            // Five are three and two, seven are four and three, eight are four twice: smaller groups leave the multipliers waiting.
            3 | 5 if const { $p == 2 } => match_group!(@ $t 3 $body),
            4.. => match_group!(@ $t 4 $body),
            2.. => match_group!(@ $t 2 $body),
            _ => match_group!(@ $t 1 $body),
        }
    };
    (@ $t:ident $n:literal $body:block) => {{
        const $t: usize = $n;
        $body
        $n
    }};
}
pub(super) use {each, each_panel, each_token, match_group};

/// Tokens of a full group beside `P` panels.
pub(super) const fn most_tokens<I: Isa, const P: usize>() -> usize {
    match P {
        1 => I::TOKENS,
        // Twelve accumulators, twelve dots, and what they are made of.
        _ => 6,
    }
}

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
    /// All blocks of a panel that lacks no row.
    #[inline(always)]
    pub(super) fn whole(panel: &Panel<'_>, blocks: usize) -> Self {
        Self {
            rows: Rows {
                base: panel.bytes.as_ptr(),
                stride: panel.row_bytes,
            },
            first: 0,
            blocks,
            left: Some(panel.bytes.len()),
        }
    }

    /// The rows of the lanes from `first` on, and what to ask for ahead of `rows` of them, `step_bytes` of each at a time.
    #[inline(always)]
    pub(super) fn lanes(&self, first: usize, rows: usize, step_bytes: usize) -> (Rows, Ahead) {
        let skipped = first * self.rows.stride;
        let lanes = self.rows.skip(skipped);
        let ahead = match self.left {
            Some(left) if self.blocks > 0 => Ahead::new(lanes, rows, step_bytes, left - skipped),
            _ => Ahead::nothing(),
        };
        (lanes, ahead)
    }
}

/// Largest block of a type.
pub(super) const MOST_BLOCK_BYTES: usize = 256;
/// Largest copy of a panel with fewer than sixteen rows.
const STAGE_BYTES: usize = PANEL_ROWS * MOST_BLOCK_BYTES;

/// Cuts up to sixteen rows into segments: one if there are sixteen; else copies of a few blocks with the last row repeated, so that no
/// kernel has to know.
pub(super) struct Segments<'a> {
    panel: Panel<'a>,
    blocks: usize,
    block_bytes: usize,
    next: usize,
    stage: [MaybeUninit<u8>; STAGE_BYTES],
}

impl<'a> Segments<'a> {
    /// Of a panel that was checked.
    #[inline(always)]
    pub(super) fn new(panel: Panel<'a>, blocks: usize, block_bytes: usize) -> Self {
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
            return Some(Segment::whole(&self.panel, self.blocks));
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
#[derive(Clone, Copy)]
pub(super) struct InTile(*const u32);

impl<I: Isa> Quads<I> for InTile {
    #[inline(always)]
    unsafe fn quad(&self, isa: I, i: usize) -> I::V {
        // SAFETY: the caller's promise.
        unsafe { isa.load(self.0.wrapping_add(i * PANEL_ROWS)) }
    }
}

/// Sixteen rows of 256 columns, turned, with up to sixteen scales and minima of each row. It begins without any values: whoever reads a vector
/// has written it.
#[repr(C, align(64))]
pub(super) struct Tile {
    quads: [[MaybeUninit<u32>; PANEL_ROWS]; 64],
    scales: [[MaybeUninit<f32>; PANEL_ROWS]; 16],
    minima: [[MaybeUninit<f32>; PANEL_ROWS]; 16],
}

impl Tile {
    /// Without values.
    #[inline(always)]
    pub(super) const fn new() -> Self {
        Self {
            quads: [[MaybeUninit::uninit(); PANEL_ROWS]; 64],
            scales: [[MaybeUninit::uninit(); PANEL_ROWS]; 16],
            minima: [[MaybeUninit::uninit(); PANEL_ROWS]; 16],
        }
    }

    /// Writes weights `4 i` to `4 i + 3` of the lanes.
    #[inline(always)]
    pub(super) fn set_quad<I: Isa>(&mut self, isa: I, i: usize, quad: I::V) {
        // SAFETY: at least as many words as lanes.
        unsafe { isa.store(quad, self.quads[i].as_mut_ptr().cast()) }
    }

    /// Writes scale and, where the type has them, minimum `j` of the lanes.
    #[inline(always)]
    pub(super) fn set_scales<I: Isa>(
        &mut self,
        isa: I,
        j: usize,
        (scale, minimum): (I::F, I::F),
        has_minima: bool,
    ) {
        // SAFETY: at least as many words as lanes, in both.
        unsafe {
            isa.store_f(scale, self.scales[j].as_mut_ptr().cast());
            if has_minima {
                isa.store_f(minimum, self.minima[j].as_mut_ptr().cast());
            }
        }
    }

    /// Quads from `first` on, which were written.
    #[inline(always)]
    pub(super) fn quads(&self, first: usize) -> InTile {
        InTile(self.quads.as_ptr().wrapping_add(first).cast())
    }

    /// Scale and minimum `j`; the scale again where the type has no minima.
    ///
    /// # Safety
    /// They were written.
    #[inline(always)]
    pub(super) unsafe fn scales<I: Isa>(&self, isa: I, j: usize, has_minima: bool) -> (I::F, I::F) {
        // SAFETY: the caller's promise.
        unsafe {
            let d = isa.load_f(self.scales[j].as_ptr().cast());
            let m = if has_minima {
                isa.load_f(self.minima[j].as_ptr().cast())
            } else {
                d
            };
            (d, m)
        }
    }
}

/// Accumulators of a group of tokens: zeros at the first block, else what is in `out`.
///
/// # Safety
/// `out` holds a vector at each of `T` rows of sixteen.
#[inline(always)]
pub(super) unsafe fn resume<I: Isa, const T: usize>(
    isa: I,
    first: bool,
    out: *const f32,
    acc: &mut [I::F; T],
) {
    each_token!(T, |t| {
        acc[t] = if first {
            isa.zero_f()
        } else {
            // SAFETY: the caller's promise.
            unsafe { isa.load_f(out.wrapping_add(t * PANEL_ROWS)) }
        };
    });
}

/// Puts the accumulators of a group of tokens into `out`.
///
/// # Safety
/// As for [`resume`].
#[inline(always)]
pub(super) unsafe fn leave<I: Isa, const T: usize>(isa: I, acc: &[I::F; T], out: *mut f32) {
    each_token!(T, |t| {
        // SAFETY: the caller's promise.
        unsafe { isa.store_f(acc[t], out.wrapping_add(t * PANEL_ROWS)) };
    });
}
