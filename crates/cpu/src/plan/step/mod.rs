//! The steps of a plan. A step is one parallel region, cut into chunks that any worker may take in any order.

mod attend;
mod linear;
mod rows;

pub(crate) use attend::{AttendStep, Schedule};
pub(crate) use linear::{LinearPart, LinearStep, Matrix, scratch_floats as linear_scratch_floats};
pub(crate) use rows::{RowCodec, RowOp, RowsStep};

use super::arena::{Arena, Buffer};
use crate::{cache::CpuCache, kernels::Kernels, memory::Block};
use puna_graph::{Batch, Graph, Rows, Work};

/// One parallel region.
#[derive(Debug)]
pub(crate) enum Step {
    Rows(RowsStep),
    Linear(LinearStep),
    Attend(AttendStep),
    /// Puts together what the [`AttendStep`] before it left in parts.
    Merge,
}

impl Step {
    /// What it has to do at least.
    pub(crate) fn work(&self, run: &RunState<'_>) -> Work {
        match self {
            Self::Rows(step) => step.work(run),
            Self::Linear(step) => step.work(run),
            Self::Attend(step) => step.work(run),
            Self::Merge => Work::default(),
        }
    }
}

/// A value as linears read it, by its buffers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Packed {
    F32(usize),
    /// The parts of a [`puna_quant::Q8Row`].
    Q8 {
        quants: usize,
        scales: usize,
        sums: usize,
        offsets: usize,
        halves: usize,
    },
}

impl Packed {
    /// Its buffers.
    pub(crate) fn buffers(self) -> Vec<usize> {
        match self {
            Self::F32(x) => vec![x],
            Self::Q8 {
                quants,
                scales,
                sums,
                offsets,
                halves,
            } => vec![quants, scales, sums, offsets, halves],
        }
    }
}

/// What all chunks of a run share.
pub(crate) struct RunState<'a> {
    pub graph: &'a Graph,
    pub buffers: &'a [Buffer],
    pub arena: &'a Arena,
    pub kernels: Kernels,
    pub batch: &'a Batch<'a>,
    pub cache: &'a CpuCache,
    /// Position of each row.
    pub positions: &'a [u32],
    /// What attention has to do, by layer group.
    pub schedules: &'a [Schedule],
    /// Scratch of each worker.
    pub scratch: &'a [Block],
    /// Parts of long contexts, see [`AttendStep`].
    pub partials: &'a Block,
    pub workers: usize,
}

impl RunState<'_> {
    pub(crate) fn row_count(&self, rows: Rows) -> usize {
        match rows {
            Rows::Outputs => self.batch.outputs.len(),
            _ => self.batch.tokens.len(),
        }
    }

    /// Floats of scratch for `worker`.
    ///
    /// # Safety
    /// `worker` runs the chunk that asks, and the chunk holds no other slice of it.
    #[allow(clippy::mut_from_ref, reason = "each worker has its own")]
    pub(crate) unsafe fn scratch(&self, worker: usize, floats: usize) -> &mut [f32] {
        let block = &self.scratch[worker];
        assert!(
            floats * size_of::<f32>() <= block.len(),
            "scratch too small"
        );
        // SAFETY: zeroed memory of that size; two chunks that run at the same time have different workers, the rest by the caller.
        unsafe { std::slice::from_raw_parts_mut(block.pointer(0).cast(), floats) }
    }
}
