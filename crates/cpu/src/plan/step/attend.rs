//! Attention of a layer: the batch's queries over the cache.
//!
//! Usually a chunk is one KV head with some queries of one sequence, over all that they see. Where that makes too few chunks and the
//! context is long, as when a single token is generated, a chunk is one segment of the context, and the merge step puts the segments
//! together. The result has the same bits either way.

use super::RunState;
use crate::kernels::{
    attention::{Attention, Mask, Output, Pages, Run, Task},
    kv::KvLayout,
};
use puna_graph::{Batch, LayerId, PAGE_POSITIONS, PageId, Reach, ops};
use std::{num::NonZeroUsize, ops::Range};

/// Queries of a chunk, at most.
const QUERIES: usize = 32;

/// See the file's text.
#[derive(Debug)]
pub(crate) struct AttendStep {
    layer: LayerId,
    group: usize,
    layout: KvLayout,
    heads: usize,
    scale: f32,
    softcap: Option<f32>,
    mask: Mask,
    /// Buffers of queries and results.
    pub q: usize,
    pub out: usize,
}

/// Queries of one run that are computed together.
#[derive(Clone, Debug)]
struct Work {
    run: usize,
    queries: Range<usize>,
    /// Segments of the context, where they are chunks of their own.
    split: Option<Range<usize>>,
}

/// What the layers of a group have to do for a batch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schedule {
    work: Vec<Work>,
    /// Most partial results of one layer, in floats.
    pub partial_floats: usize,
    /// Scratch that a worker needs, in floats.
    pub scratch_floats: usize,
}

/// Pages of one sequence in one layer.
struct LayerPages<'a> {
    run: &'a RunState<'a>,
    layer: LayerId,
    table: &'a [PageId],
}

impl Pages for LayerPages<'_> {
    fn page(&self, tile: usize) -> &[u8] {
        // SAFETY: only `AttendStep::attend` makes this, in a step in which nobody writes to the cache.
        unsafe { self.run.cache.read(self.layer, self.table[tile]) }
    }
}

impl AttendStep {
    /// `None` for a window of no positions.
    pub(crate) fn new(op: &ops::Attention, layout: KvLayout, group: usize) -> Option<Self> {
        let mask = match op.cache.reach {
            Reach::Full => Mask::Causal,
            Reach::Window(n) => Mask::Window(NonZeroUsize::new(n as usize)?),
        };
        Some(Self {
            layer: op.layer,
            group,
            layout,
            heads: op.heads,
            scale: op.scale,
            softcap: op.softcap,
            mask,
            q: 0,
            out: 0,
        })
    }

    fn attention(&self) -> Attention<'_> {
        Attention {
            layout: &self.layout,
            heads: self.heads,
            scale: self.scale,
            softcap: self.softcap,
            mask: self.mask,
            slopes: &[],
            sinks: &[],
        }
    }

    /// Adds to the schedule of this layer's group what this layer needs; the work itself is the same for all layers of a group.
    pub(crate) fn plan(&self, schedules: &mut [Schedule], batch: &Batch<'_>, workers: usize) {
        let attention = self.attention();
        let schedule = &mut schedules[self.group];
        if schedule.work.is_empty() {
            for (i, run) in batch.runs.iter().enumerate() {
                let positions = |queries: &Range<usize>| {
                    let first = run.first_position as usize;
                    first + queries.start..first + queries.end
                };
                let blocks = run.rows.len().div_ceil(QUERIES);
                for start in (0..run.rows.len()).step_by(QUERIES) {
                    let queries = start..(start + QUERIES).min(run.rows.len());
                    let segments = attention.segments(positions(&queries));
                    let few = blocks * batch.runs.len() * self.layout.kv_heads() < 4 * workers;
                    let split = (workers > 1 && few && segments.len() > 1).then_some(segments);
                    schedule.work.push(Work {
                        run: i,
                        queries,
                        split,
                    });
                }
            }
        }
        let partials = schedule.work.iter().map(|w| self.partial_floats(w));
        schedule.partial_floats = schedule.partial_floats.max(partials.sum());
        let scratch = attention.scratch_len(QUERIES.min(batch.tokens.len()));
        schedule.scratch_floats = schedule.scratch_floats.max(scratch);
    }

    /// The layer.
    pub(crate) fn layer(&self) -> LayerId {
        self.layer
    }

    /// Each position that a sequence's queries see is read once; each query is held against each that it sees.
    pub(crate) fn work(&self, run: &RunState<'_>) -> puna_graph::Work {
        let (mut positions, mut pairs) = (0, 0);
        for batch_run in run.batch.runs {
            let first = batch_run.first_position as usize;
            let seen = |position: usize| match self.mask {
                Mask::Window(n) => (position + 1).min(n.get()),
                _ => position + 1,
            };
            let queries = batch_run.rows.len();
            positions += (seen(first) + queries - 1).min(first + queries);
            pairs += (first..first + queries).map(seen).sum::<usize>();
        }
        let dims = self.layout.k_dim() + self.layout.v_dim();
        puna_graph::Work {
            cache_bytes: (positions * self.layout.page_bytes() / PAGE_POSITIONS) as u64,
            float_ops: 2 * pairs as u64 * self.heads as u64 * dims as u64,
            ..puna_graph::Work::default()
        }
    }

    /// Floats that the segments of `work` leave, over all KV heads.
    fn partial_floats(&self, work: &Work) -> usize {
        let rows = work.queries.len() * self.heads;
        let segments = work.split.as_ref().map_or(0, ExactSizeIterator::len);
        rows * segments * self.attention().partial_len()
    }

    fn chunks_of(&self, work: &Work) -> usize {
        let segments = work.split.as_ref().map_or(1, ExactSizeIterator::len);
        self.layout.kv_heads() * segments
    }

    pub(crate) fn chunks(&self, run: &RunState<'_>) -> usize {
        let work = &run.schedules[self.group].work;
        work.iter().map(|w| self.chunks_of(w)).sum()
    }

    pub(crate) fn execute(&self, run: &RunState<'_>, chunk: usize, worker: usize) {
        let schedule = &run.schedules[self.group];
        let (mut chunk, mut partials) = (chunk, 0);
        for work in &schedule.work {
            if chunk < self.chunks_of(work) {
                // SAFETY: the worker runs this chunk, which asks once.
                let scratch = unsafe { run.scratch(worker, schedule.scratch_floats) };
                return self.attend(run, work, chunk, partials, scratch);
            }
            chunk -= self.chunks_of(work);
            partials += self.partial_floats(work);
        }
    }

    fn attend(
        &self,
        run: &RunState<'_>,
        work: &Work,
        chunk: usize,
        partials: usize,
        scratch: &mut [f32],
    ) {
        let batch_run = &run.batch.runs[work.run];
        let pages = LayerPages {
            run,
            layer: self.layer,
            table: &batch_run.pages[self.group],
        };
        // SAFETY: an earlier step has written the queries.
        let q = unsafe { run.arena.rows(&run.buffers[self.q], batch_run.rows.clone()) };
        let queries = Run {
            q,
            first_position: batch_run.first_position as usize,
            pages: &pages,
        };
        let attention = self.attention();
        let segments = work.split.as_ref().map_or(1, ExactSizeIterator::len);
        let task = Task {
            kv_head: chunk / segments,
            queries: work.queries.clone(),
        };
        let Some(split) = &work.split else {
            let out = self.output(run, work);
            // SAFETY: chunks have different heads or queries, and nobody reads the result in this step.
            unsafe {
                run.kernels
                    .attend(&attention, &queries, &task, scratch, out);
            }
            return;
        };
        let segment = chunk % segments;
        let size = work.queries.len() * attention.group() * attention.partial_len();
        let at = partials + (task.kv_head * segments + segment) * size;
        // SAFETY: each chunk has its own part.
        let partial = unsafe { partial_slice(run, at, size) };
        run.kernels.attend_segment(
            &attention,
            &queries,
            &task,
            split.start + segment,
            scratch,
            partial,
        );
    }

    fn output(&self, run: &RunState<'_>, work: &Work) -> Output {
        let rows = &run.batch.runs[work.run].rows;
        let buffer = &run.buffers[self.out];
        Output {
            at: run.arena.row_pointer(buffer, rows.start),
            queries: rows.len(),
        }
    }

    /// Chunks of the merge step: KV heads of the work that was split.
    pub(crate) fn merge_chunks(&self, run: &RunState<'_>) -> usize {
        let work = &run.schedules[self.group].work;
        self.layout.kv_heads() * work.iter().filter(|w| w.split.is_some()).count()
    }

    pub(crate) fn merge(&self, run: &RunState<'_>, chunk: usize) {
        let attention = self.attention();
        let kv_heads = self.layout.kv_heads();
        let (mut skip, mut partials) = (chunk / kv_heads, 0);
        for work in &run.schedules[self.group].work {
            if let Some(split) = &work.split {
                if skip == 0 {
                    let task = Task {
                        kv_head: chunk % kv_heads,
                        queries: work.queries.clone(),
                    };
                    let size = work.queries.len()
                        * attention.group()
                        * attention.partial_len()
                        * split.len();
                    // SAFETY: the step before has written it, and this chunk alone uses it.
                    let parts = unsafe { partial_slice(run, partials + task.kv_head * size, size) };
                    let out = self.output(run, work);
                    // SAFETY: as in `attend`.
                    unsafe { run.kernels.attend_merge(&attention, &task, parts, out) }
                    return;
                }
                skip -= 1;
            }
            partials += self.partial_floats(work);
        }
    }
}

/// Floats of the partial results.
///
/// # Safety
/// Nobody else uses them meanwhile.
unsafe fn partial_slice<'a>(run: &RunState<'a>, at: usize, len: usize) -> &'a mut [f32] {
    assert!(
        (at + len) * size_of::<f32>() <= run.partials.len(),
        "outside of the partial results"
    );
    // SAFETY: zeroed memory of that size, exclusive by the caller.
    unsafe {
        std::slice::from_raw_parts_mut(run.partials.pointer(at * size_of::<f32>()).cast(), len)
    }
}
