//! Linears that read the same value, with what follows them row by row.

use super::{Packed, RunState, rows::activations};
use crate::kernels::{
    PanelKernel,
    elementwise::{Activation, Combine},
    linear::{PANEL_ROWS, Panel},
};
use puna_graph::{Rows, ValueId, Vector, Weight, WeightId, Work};
use std::ops::Range;

/// Weight bytes of a chunk for few tokens: some microseconds of memory traffic.
const CHUNK_BYTES: usize = 96 << 10;
/// Multiply-adds of a chunk for many tokens.
const CHUNK_WORK: usize = 8 << 20;
/// Activation bytes that stay in the second-level cache while panels pass over them.
const CACHED_BYTES: usize = 768 << 10;
/// Fewest tokens worth a pass of their own over the weights.
const MIN_TOKENS: usize = 64;

/// A matrix and what is computed with it.
#[derive(Debug)]
pub(crate) struct Matrix {
    pub weight: WeightId,
    pub kernel: PanelKernel,
    /// The form of the input that the kernel reads.
    pub input: Packed,
    pub bias: Option<Vector>,
}

/// One matrix, or a gated pair.
#[derive(Debug)]
pub(crate) struct LinearPart {
    pub matrix: Matrix,
    /// The result is `activation(weight x) * (this x)`.
    pub gated: Option<(Matrix, Activation)>,
    /// Added to the result.
    pub residual: Option<usize>,
    pub out: usize,
}

/// See the file's text.
#[derive(Debug)]
pub(crate) struct LinearStep {
    pub rows: Rows,
    pub input: ValueId,
    pub parts: Vec<LinearPart>,
}

/// A chunk: some panels of one part for some tokens.
struct Chunk<'s> {
    part: &'s LinearPart,
    panels: Range<usize>,
    tokens: Range<usize>,
}

/// Floats of scratch that a worker needs for `tokens` tokens: results of two panels.
pub(crate) fn scratch_floats(tokens: usize) -> usize {
    2 * PANEL_ROWS * tokens
}

impl LinearPart {
    /// Its matrices.
    pub(crate) fn matrices(&self) -> impl Iterator<Item = &Matrix> {
        let gated = self.gated.as_ref().map(|(matrix, _)| matrix);
        std::iter::once(&self.matrix).chain(gated)
    }

    fn panels(&self, run: &RunState<'_>) -> usize {
        run.graph
            .weight(self.matrix.weight)
            .rows()
            .div_ceil(PANEL_ROWS)
    }

    fn panels_per_chunk(&self, run: &RunState<'_>, tokens: usize) -> usize {
        let weight = run.graph.weight(self.matrix.weight);
        let matrices = 1 + usize::from(self.gated.is_some());
        let by_bytes = CHUNK_BYTES / (matrices * PANEL_ROWS * weight.row_bytes()).max(1);
        let by_work = CHUNK_WORK / (matrices * PANEL_ROWS * weight.cols() * tokens).max(1);
        // The last chunks should not leave a worker alone for long.
        let fair = self.panels(run).div_ceil(4 * run.workers);
        by_bytes.min(by_work).min(fair).max(1)
    }
}

impl LinearStep {
    /// Tokens whose activations stay in cache together.
    fn tokens_per_block(&self, run: &RunState<'_>) -> usize {
        let cols = run.graph.node(self.input).shape.features;
        (CACHED_BYTES / cols.max(1)).max(MIN_TOKENS)
    }

    fn blocks(&self, run: &RunState<'_>) -> usize {
        run.row_count(self.rows)
            .div_ceil(self.tokens_per_block(run))
    }

    pub(crate) fn chunks(&self, run: &RunState<'_>) -> usize {
        let tokens = run.row_count(self.rows).min(self.tokens_per_block(run));
        let panels: usize = self
            .parts
            .iter()
            .map(|p| p.panels(run).div_ceil(p.panels_per_chunk(run, tokens)))
            .sum();
        self.blocks(run) * panels
    }

    /// Chunks are ordered by token block, so that its activations stay in cache.
    fn chunk<'s>(&'s self, run: &RunState<'_>, mut index: usize) -> Option<Chunk<'s>> {
        let (rows, block) = (run.row_count(self.rows), self.tokens_per_block(run));
        let tokens = rows.min(block);
        let per_block = self.chunks(run) / self.blocks(run).max(1);
        let first = index / per_block * block;
        index %= per_block;
        for part in &self.parts {
            let size = part.panels_per_chunk(run, tokens);
            let chunks = part.panels(run).div_ceil(size);
            if index < chunks {
                return Some(Chunk {
                    part,
                    panels: index * size..((index + 1) * size).min(part.panels(run)),
                    tokens: first..(first + block).min(rows),
                });
            }
            index -= chunks;
        }
        None
    }

    /// Its matrices.
    pub(crate) fn matrices(&self) -> impl Iterator<Item = &Matrix> {
        self.parts.iter().flat_map(LinearPart::matrices)
    }

    /// Every matrix once, and two operations per element and row.
    pub(crate) fn work(&self, run: &RunState<'_>) -> Work {
        let mut work = Work::default();
        let rows = run.row_count(self.rows) as u64;
        if rows == 0 {
            return work;
        }
        for matrix in self.matrices() {
            let weight = run.graph.weight(matrix.weight);
            let ops = 2 * weight.rows() as u64 * weight.cols() as u64 * rows;
            work.weight_bytes += weight.rows() as u64 * weight.row_bytes() as u64;
            match matrix.input {
                Packed::F32(_) => work.float_ops += ops,
                Packed::Q8Block32 { .. } | Packed::Q8Block256 { .. } => work.integer_ops += ops,
            }
        }
        work
    }

    pub(crate) fn execute(&self, run: &RunState<'_>, chunk: usize, worker: usize) {
        if let Some(chunk) = self.chunk(run, chunk) {
            chunk.execute(run, worker);
        }
    }
}

impl Chunk<'_> {
    fn execute(&self, run: &RunState<'_>, worker: usize) {
        let tokens = self.tokens.len();
        // SAFETY: the worker runs this chunk, which asks once.
        let scratch = unsafe { run.scratch(worker, scratch_floats(tokens)) };
        let (first, second) = scratch.split_at_mut(PANEL_ROWS * tokens);
        for panel in self.panels.clone() {
            self.multiply(run, &self.part.matrix, panel, first);
            if let Some((matrix, kind)) = &self.part.gated {
                self.multiply(run, matrix, panel, second);
                run.kernels
                    .combine_in_place(Combine::Gate(*kind), first, second);
            }
            self.store(run, panel, first);
        }
    }

    /// `[tokens, 16]` products of a panel, with factor and bias.
    fn multiply(&self, run: &RunState<'_>, matrix: &Matrix, panel: usize, out: &mut [f32]) {
        let weight = run.graph.weight(matrix.weight);
        let row = panel * PANEL_ROWS;
        let rows = PANEL_ROWS.min(weight.rows() - row);
        let tokens = self.tokens.clone();
        // SAFETY: an earlier step has written the input.
        let x = unsafe { activations(run, matrix.input, tokens, weight.cols()) };
        matrix
            .kernel
            .multiply(&panel_of(weight, row, rows), &x, out);
        let scale = weight.scale();
        if scale != 1.0 {
            for y in out.iter_mut() {
                *y *= scale;
            }
        }
        if let Some(bias) = &matrix.bias {
            let bias = &bias.data[row..row + rows];
            for lanes in out.chunks_exact_mut(PANEL_ROWS) {
                for (y, b) in lanes.iter_mut().zip(bias) {
                    *y += b;
                }
            }
        }
    }

    fn store(&self, run: &RunState<'_>, panel: usize, results: &[f32]) {
        let out = &run.buffers[self.part.out];
        let columns = panel * PANEL_ROWS..out.len.min((panel + 1) * PANEL_ROWS);
        for (token, lanes) in self.tokens.clone().zip(results.chunks_exact(PANEL_ROWS)) {
            // SAFETY: these columns of the result belong to this chunk, which reads them nowhere.
            let target = unsafe { run.arena.row_mut::<f32>(out, token, columns.clone()) };
            target.copy_from_slice(&lanes[..columns.len()]);
            if let Some(residual) = self.part.residual {
                // SAFETY: an earlier step has written the other operand.
                let row = unsafe {
                    run.arena
                        .rows::<f32>(&run.buffers[residual], token..token + 1)
                };
                for (y, r) in target.iter_mut().zip(&row[columns.clone()]) {
                    *y += r;
                }
            }
        }
    }
}

fn panel_of(weight: &Weight, row: usize, rows: usize) -> Panel<'_> {
    Panel {
        bytes: &weight.bytes()[row * weight.row_bytes()..],
        row_bytes: weight.row_bytes(),
        rows,
        cols: weight.cols(),
    }
}
