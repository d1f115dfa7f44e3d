//! Attention of query rows to the cached keys and values of their sequence.
//!
//! One order of operations, whatever the blocking, chunking and splitting:
//!
//! - Tiles are the sequence's own positions `64 i` to `64 i + 63`. A score is `fma` over the key's dimensions in ascending order from zero, then
//!   times `scale`, then the softcap, then `ALiBi` as one `fma`.
//! - Per tile, over the positions that the row sees: `m' = max(m, largest score)`, `c = exp(m - m')`, `p = exp(score - m')`, `l = fma(l, c, sum of
//!   p)` (four vectors added pairwise, then the fixed tree), and each output dimension `acc = acc * c`, then `fma(p, v, acc)` in ascending position.
//! - Sixteen tiles are a segment, which begins from nothing. Segments are merged in ascending order (`merge`), so that they can be computed
//!   anywhere. A sink takes part after the last segment; then `acc * (1 / l)`.
//!
//! Positions that a row does not see are never touched by its sums, so it does not matter what the cache holds there.

#![allow(
    clippy::inline_always,
    reason = "a kernel must end up inside the function that enables the instruction set"
)]
#![allow(
    clippy::needless_range_loop,
    reason = "blocks of registers are clearest by row and column"
)]
#![allow(
    clippy::cast_ptr_alignment,
    reason = "pages are checked to be aligned, and stores are unaligned ones"
)]

mod blocks;
mod merge;
mod tile;

use super::Set;
use super::kv::{KvLayout, PAGE};
use super::simd::{LANES, simd_entries};
use blocks::Blocks;
use std::num::NonZeroUsize;
use std::ops::Range;

/// Tiles of a segment.
pub const SEGMENT_TILES: usize = 16;
/// Positions of a segment.
pub const SEGMENT: usize = SEGMENT_TILES * PAGE;

/// Rows that share one pass over a tile, if a single query has no more.
const BLOCK_ROWS: usize = 192;

/// Which positions a query sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mask {
    /// All up to its own.
    Causal,
    /// That many, of which its own is the last.
    Window(NonZeroUsize),
    /// Up to its own, in chunks of that many positions that do not see each other.
    Chunked(NonZeroUsize),
    /// The first that many, whatever its own position (encoders, cross attention).
    First(usize),
}

impl Mask {
    /// The positions that the query at `position` sees. Both ends never fall as `position` rises.
    #[inline(always)]
    pub fn visible(self, position: usize) -> Range<usize> {
        match self {
            Self::Causal => 0..position + 1,
            Self::Window(n) => (position + 1).saturating_sub(n.get())..position + 1,
            Self::Chunked(n) => position - position % n.get()..position + 1,
            Self::First(n) => 0..n,
        }
    }
}

/// What is the same for all sequences of a layer.
#[derive(Clone, Copy, Debug)]
pub struct Attention<'a> {
    /// The layer's cache pages.
    pub layout: &'a KvLayout,
    /// Query heads: a multiple of the KV heads. Query head `h` uses KV head `h / (heads / kv_heads)`.
    pub heads: usize,
    /// Factor of the scores.
    pub scale: f32,
    /// Scores become `cap * tanh(score / cap)`.
    pub softcap: Option<f32>,
    /// Which positions are seen.
    pub mask: Mask,
    /// `ALiBi`: `slope * (key position - query position)` is added to the score. Per query head, or empty.
    pub slopes: &'a [f32],
    /// A logit that takes its share of the softmax and has no value. Per query head, or empty.
    pub sinks: &'a [f32],
}

/// Consecutive queries of one sequence.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// Query rows: `[queries, heads * k_dim]`.
    pub q: &'a [f32],
    /// Position of the first.
    pub first_position: usize,
    /// The sequence's pages.
    pub pages: &'a dyn Pages,
}

/// The pages of a sequence in one layer.
pub trait Pages: Sync {
    /// The page of a tile, at least [`KvLayout::page_bytes`] long and aligned to four bytes (better: to 64). Only tiles that some query of a task sees
    /// are asked for.
    fn page(&self, tile: usize) -> &[u8];
}

impl<T: AsRef<[u8]> + Sync> Pages for Vec<T> {
    fn page(&self, tile: usize) -> &[u8] {
        self[tile].as_ref()
    }
}

impl std::fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run")
            .field("q", &self.q.len())
            .field("first_position", &self.first_position)
            .finish_non_exhaustive()
    }
}

/// A share of the work on a run: the query heads of one KV head for some of the queries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// The KV head.
    pub kv_head: usize,
    /// Queries, counted from the run's first.
    pub queries: Range<usize>,
}

/// Where output rows go: `[queries, heads * v_dim]`, counted from the run's first query.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// The first query's row.
    pub at: *mut f32,
    /// Rows that exist.
    pub queries: usize,
}

impl Attention<'_> {
    /// Query heads of a KV head.
    pub const fn group(&self) -> usize {
        self.heads / self.layout.kv_heads()
    }

    /// Value dimensions rounded up to whole vectors.
    const fn v_stride(&self) -> usize {
        self.layout.v_dim().next_multiple_of(LANES)
    }

    /// Floats of a row of a partial result: the accumulator in whole vectors, then the running maximum and sum.
    pub const fn partial_len(&self) -> usize {
        self.v_stride() + LANES
    }

    /// Segments that queries at these positions see.
    pub fn segments(&self, positions: Range<usize>) -> Range<usize> {
        let visible = self.visible(positions);
        visible.start / SEGMENT..visible.end.div_ceil(SEGMENT)
    }

    /// Positions that queries at these positions see.
    fn visible(&self, positions: Range<usize>) -> Range<usize> {
        if positions.is_empty() {
            return 0..0;
        }
        let last = self.mask.visible(positions.end - 1);
        let first = self.mask.visible(positions.start);
        first.start..last.end.max(first.start)
    }

    /// Floats of scratch that a task of `queries` queries needs.
    pub const fn scratch_len(&self, queries: usize) -> usize {
        let rows = self.block_rows(queries);
        let tile = PAGE * (self.layout.k_dim() + self.v_stride());
        tile + rows * (PAGE + 2 * self.partial_len()) + rows.next_multiple_of(LANES) + LANES
    }

    /// Queries that share a pass over a tile.
    const fn block_queries(&self) -> usize {
        match BLOCK_ROWS / self.group() {
            0 => 1,
            n => n,
        }
    }

    const fn block_rows(&self, queries: usize) -> usize {
        let block = self.block_queries();
        self.group() * if queries < block { queries } else { block }
    }
}

/// Computes the output rows of a task.
///
/// `scratch` has at least [`Attention::scratch_len`] floats for the task's number of queries.
///
/// # Safety
/// The CPU has the features of the [`Set`]; `out.at` points to `out.queries * heads * v_dim` floats, of which nobody else uses those of the task's
/// queries and heads meanwhile. Shapes are checked, with a panic.
pub type AttendFn = unsafe fn(
    attention: &Attention<'_>,
    run: &Run<'_>,
    task: &Task,
    scratch: &mut [f32],
    out: Output,
);

/// Computes one segment of a task, for [`MergeFn`].
///
/// `partial` is `[queries of the task, group, partial_len]`; `scratch` as in [`AttendFn`].
///
/// # Safety
/// The CPU has the features of the [`Set`]. Shapes are checked, with a panic.
pub type SegmentFn = unsafe fn(
    attention: &Attention<'_>,
    run: &Run<'_>,
    task: &Task,
    segment: usize,
    scratch: &mut [f32],
    partial: &mut [f32],
);

/// Merges the segments of a task in ascending order to output rows: the same bits as [`AttendFn`].
///
/// `partials` is `[segments, queries of the task, group, partial_len]`: all that [`Attention::segments`] gives for the task's positions, or more.
/// It is used up.
///
/// # Safety
/// As for [`AttendFn`].
pub type MergeFn =
    unsafe fn(attention: &Attention<'_>, task: &Task, partials: &mut [f32], out: Output);

/// The attention kernels of a set.
#[derive(Clone, Copy, Debug)]
pub struct AttentionKernels {
    /// Whole tasks.
    pub attend: AttendFn,
    /// Segments of a task.
    pub segment: SegmentFn,
    /// Merging of segments.
    pub merge: MergeFn,
}

/// The attention kernels of a set.
pub fn kernels(set: Set) -> AttentionKernels {
    macro_rules! of {
        ($entry:ident) => {{
            /// See [`AttendFn`].
            unsafe fn attend(
                attention: &Attention<'_>,
                run: &Run<'_>,
                task: &Task,
                scratch: &mut [f32],
                out: Output,
            ) {
                // SAFETY: the caller's.
                unsafe {
                    task_entries::$entry(attention, run, task, scratch, Target::Rows(out));
                }
            }
            /// See [`SegmentFn`].
            unsafe fn segment(
                attention: &Attention<'_>,
                run: &Run<'_>,
                task: &Task,
                segment: usize,
                scratch: &mut [f32],
                partial: &mut [f32],
            ) {
                let target = Target::Segment(segment, partial);
                // SAFETY: the caller's.
                unsafe { task_entries::$entry(attention, run, task, scratch, target) };
            }
            AttentionKernels {
                attend,
                segment,
                merge: merge_entries::$entry,
            }
        }};
    }
    match set {
        #[cfg(target_arch = "x86_64")]
        Set::PortableFma => of!(portable_fma),
        #[cfg(target_arch = "x86_64")]
        Set::Avx2 => of!(avx2),
        #[cfg(target_arch = "x86_64")]
        Set::Avx512 => of!(avx512),
        _ => of!(portable),
    }
}

/// What is computed of a task. One kernel does both, since it is large.
enum Target<'a> {
    Rows(Output),
    Segment(usize, &'a mut [f32]),
}

simd_entries! {
    mod task_entries = compute(
        attention: &Attention<'_>, run: &Run<'_>, task: &Task, scratch: &mut [f32], target: Target<'_>,
    );
}
simd_entries! {
    mod merge_entries = merge_partials(
        attention: &Attention<'_>, task: &Task, partials: &mut [f32], out: Output,
    );
}

/// Panics unless the arguments fit together.
fn check(attention: &Attention<'_>, task: &Task) {
    let kv_heads = attention.layout.kv_heads();
    let per_head = |x: &[f32]| x.is_empty() || x.len() == attention.heads;
    assert!(
        attention.heads >= kv_heads && attention.heads.is_multiple_of(kv_heads),
        "query heads are a multiple of the KV heads"
    );
    assert!(
        task.kv_head < kv_heads,
        "the task's KV head is in the layout"
    );
    assert!(
        per_head(attention.slopes) && per_head(attention.sinks),
        "slopes and sinks are per query head"
    );
}

/// Consecutive queries of a task with what points to them.
#[derive(Clone, Copy)]
struct Rows<'a> {
    attention: &'a Attention<'a>,
    run: &'a Run<'a>,
    kv_head: usize,
    /// First query, counted from the run's first.
    query: usize,
    queries: usize,
}

impl Rows<'_> {
    /// Rows: query after query, each with the heads of the group.
    #[inline(always)]
    fn len(&self) -> usize {
        self.queries * self.attention.group()
    }
    #[inline(always)]
    fn position(&self, row: usize) -> usize {
        self.run.first_position + self.query + row / self.attention.group()
    }
    #[inline(always)]
    fn head(&self, row: usize) -> usize {
        let group = self.attention.group();
        self.kv_head * group + row % group
    }
    fn positions(&self) -> Range<usize> {
        let first = self.run.first_position + self.query;
        first..first + self.queries
    }
}

/// Scratch of a block of rows; every part begins at a whole line.
struct Scratch<'a> {
    /// Keys of a tile: `[4][k_dim][16]`
    keys: &'a mut [f32],
    /// Values of a tile: `[64][v_stride]`
    values: &'a mut [f32],
    /// Scores, then weights: `[rows, 64]`
    weights: &'a mut [f32],
    /// What the accumulators of each row are multiplied by in this tile: `[rows]`
    corrections: &'a mut [f32],
    /// State of the segment: `[rows, partial_len]`
    segment: &'a mut [f32],
    /// State of the segments before: `[rows, partial_len]`
    total: &'a mut [f32],
}

impl<'a> Scratch<'a> {
    fn new(attention: &Attention<'_>, rows: usize, scratch: &'a mut [f32]) -> Self {
        let skip = scratch.as_ptr().align_offset(64).min(LANES);
        let mut rest = &mut scratch[skip..];
        let mut take = |n: usize| {
            let (part, left) = std::mem::take(&mut rest).split_at_mut(n);
            rest = left;
            part
        };
        Self {
            keys: take(PAGE * attention.layout.k_dim()),
            values: take(PAGE * attention.v_stride()),
            weights: take(PAGE * rows),
            segment: take(attention.partial_len() * rows),
            total: take(attention.partial_len() * rows),
            corrections: take(rows),
        }
    }
}

/// The blocks of queries of a task.
fn blocks<'a>(
    attention: &'a Attention<'a>,
    run: &'a Run<'a>,
    task: &Task,
) -> impl Iterator<Item = Rows<'a>> {
    check(attention, task);
    let row_len = attention.heads * attention.layout.k_dim();
    assert!(
        run.q.len() / row_len >= task.queries.end,
        "the task's queries are in the run"
    );
    let (end, kv_head) = (task.queries.end, task.kv_head);
    let step = attention.block_queries();
    task.queries.clone().step_by(step).map(move |query| Rows {
        attention,
        run,
        kv_head,
        query,
        queries: step.min(end - query),
    })
}

/// Computes a task or a segment of it; see [`AttendFn`] and [`SegmentFn`].
#[inline(always)]
fn compute<S: Blocks>(
    s: S,
    attention: &Attention<'_>,
    run: &Run<'_>,
    task: &Task,
    scratch: &mut [f32],
    target: Target<'_>,
) {
    let len = attention.partial_len();
    let mut target = target;
    for rows in blocks(attention, run, task) {
        let mut scratch = Scratch::new(attention, rows.len(), scratch);
        let segments = match &target {
            Target::Rows(_) => attention.segments(rows.positions()),
            Target::Segment(index, _) => *index..index + 1,
        };
        merge::clear(attention, scratch.total);
        for index in segments {
            tile::segment(s, &rows, index, &mut scratch);
            let totals = scratch.total.chunks_exact_mut(len);
            for (total, part) in totals.zip(scratch.segment.chunks_exact(len)) {
                merge::merge(s, total, part);
            }
        }
        match &mut target {
            Target::Rows(out) => {
                for (row, total) in scratch.total.chunks_exact(len).enumerate() {
                    let (query, head) = (rows.query + row / attention.group(), rows.head(row));
                    // SAFETY: the caller's.
                    unsafe { merge::finish(s, attention, total, query, head, *out) };
                }
            }
            Target::Segment(_, partial) => {
                let (part, rest) = std::mem::take(partial).split_at_mut(rows.len() * len);
                part.copy_from_slice(scratch.total);
                *partial = rest;
            }
        }
    }
}

/// See [`MergeFn`].
#[inline(always)]
fn merge_partials<S: Blocks>(
    s: S,
    attention: &Attention<'_>,
    task: &Task,
    partials: &mut [f32],
    out: Output,
) {
    check(attention, task);
    let (len, group) = (attention.partial_len(), attention.group());
    let rows = task.queries.len() * group;
    assert!(
        rows > 0 && partials.len().is_multiple_of(rows * len) && !partials.is_empty(),
        "partials are [segments, rows, partial_len]"
    );
    let (total, parts) = partials.split_at_mut(rows * len);
    for part in parts.chunks_exact(rows * len) {
        for (total, part) in total.chunks_exact_mut(len).zip(part.chunks_exact(len)) {
            merge::merge(s, total, part);
        }
    }
    for (row, total) in total.chunks_exact(len).enumerate() {
        let (query, head) = (
            task.queries.start + row / group,
            task.kv_head * group + row % group,
        );
        // SAFETY: the caller's.
        unsafe { merge::finish(s, attention, total, query, head, out) };
    }
}

#[cfg(test)]
pub(crate) mod tests;
