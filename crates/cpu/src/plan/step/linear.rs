//! Linears that read the same value, with what follows them row by row.

use super::{Packed, RunState, rows::activations};
use crate::kernels::{
    PanelKernel,
    elementwise::{Activation, Combine},
    linear::{Activations, MOST_ROWS, PANEL_ROWS, Panel},
};
use puna_graph::{Rows, ValueId, Vector, Weight, WeightId, Work};
use std::ops::Range;

/// Weight bytes of a chunk for few tokens: some microseconds of memory traffic.
const CHUNK_BYTES: usize = 96 << 10;
/// Multiply-adds of a chunk for many tokens.
const CHUNK_WORK: usize = 8 << 20;
/// Activation bytes that stay in the second-level cache while panels pass over them.
const CACHED_BYTES: usize = 1280 << 10;
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

/// A chunk: some pairs of panels of one part for some tokens.
struct Chunk<'s> {
    part: &'s LinearPart,
    pairs: Range<usize>,
    tokens: Range<usize>,
}

/// Floats of scratch that a worker needs for `tokens` tokens: results of a pair of panels of two matrices.
pub(crate) fn scratch_floats(tokens: usize) -> usize {
    2 * MOST_ROWS * tokens
}

impl LinearPart {
    /// Its matrices.
    pub(crate) fn matrices(&self) -> impl Iterator<Item = &Matrix> {
        let gated = self.gated.as_ref().map(|(matrix, _)| matrix);
        std::iter::once(&self.matrix).chain(gated)
    }

    fn pairs(&self, run: &RunState<'_>) -> usize {
        run.graph
            .weight(self.matrix.weight)
            .rows()
            .div_ceil(MOST_ROWS)
    }

    fn pairs_per_chunk(&self, run: &RunState<'_>, tokens: usize) -> usize {
        let weight = run.graph.weight(self.matrix.weight);
        let matrices = 1 + usize::from(self.gated.is_some());
        let by_bytes = CHUNK_BYTES / (matrices * MOST_ROWS * weight.row_bytes()).max(1);
        let by_work = CHUNK_WORK / (matrices * MOST_ROWS * weight.cols() * tokens).max(1);
        // The last chunks should not leave a worker alone for long.
        let fair = self.pairs(run).div_ceil(4 * run.workers);
        by_bytes.min(by_work).min(fair).max(1)
    }
}

impl LinearStep {
    /// Tokens whose activations stay in cache together.
    fn tokens_per_block(&self, run: &RunState<'_>) -> usize {
        let cols = run.graph.node(self.input).shape.features;
        let plain = |part: &LinearPart| matches!(part.matrix.input, Packed::F32(_));
        let bytes = if self.parts.iter().any(plain) {
            4 * cols
        } else {
            // A byte each, and five words for 32.
            cols * 13 / 8
        };
        (CACHED_BYTES / bytes.max(1)).max(MIN_TOKENS)
    }

    fn blocks(&self, run: &RunState<'_>) -> usize {
        run.row_count(self.rows)
            .div_ceil(self.tokens_per_block(run))
    }

    pub(crate) fn chunks(&self, run: &RunState<'_>) -> usize {
        let tokens = run.row_count(self.rows).min(self.tokens_per_block(run));
        let per_block: usize = self
            .parts
            .iter()
            .map(|p| p.pairs(run).div_ceil(p.pairs_per_chunk(run, tokens)))
            .sum();
        self.blocks(run) * per_block
    }

    /// Chunks are ordered by token block, so that its activations stay in cache.
    fn chunk<'s>(&'s self, run: &RunState<'_>, mut index: usize) -> Option<Chunk<'s>> {
        let (rows, block) = (run.row_count(self.rows), self.tokens_per_block(run));
        let tokens = rows.min(block);
        let per_block = self.chunks(run) / self.blocks(run).max(1);
        let first = index / per_block * block;
        index %= per_block;
        for part in &self.parts {
            let size = part.pairs_per_chunk(run, tokens);
            let chunks = part.pairs(run).div_ceil(size);
            if index < chunks {
                return Some(Chunk {
                    part,
                    pairs: index * size..((index + 1) * size).min(part.pairs(run)),
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
                Packed::Q8 { .. } => work.integer_ops += ops,
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

/// A matrix beside the activations that it is multiplied with.
struct Product<'a> {
    matrix: &'a Matrix,
    weight: &'a Weight,
    /// All rows.
    bytes: &'a [u8],
    x: Activations<'a>,
}

impl<'a> Product<'a> {
    fn new(run: &RunState<'a>, matrix: &'a Matrix, tokens: Range<usize>) -> Self {
        let weight = run.graph.weight(matrix.weight);
        Self {
            matrix,
            weight,
            bytes: weight.bytes(),
            // SAFETY: an earlier step has written the input.
            x: unsafe { activations(run, matrix.input, tokens, weight.cols()) },
        }
    }

    /// `[panels, tokens, 16]` products of some rows, with factor and bias.
    fn multiply(&self, rows: Range<usize>, out: &mut [f32]) {
        let row_bytes = self.weight.row_bytes();
        let panel = Panel {
            bytes: &self.bytes[rows.start * row_bytes..],
            row_bytes,
            rows: rows.len(),
            cols: self.weight.cols(),
        };
        self.matrix.kernel.multiply(&panel, &self.x, out);
        let scale = self.weight.scale();
        if scale != 1.0 {
            for y in out.iter_mut() {
                *y *= scale;
            }
        }
        if let Some(bias) = &self.matrix.bias {
            let panels = out.chunks_mut(PANEL_ROWS * self.x.tokens());
            for (out, bias) in panels.zip(bias.data[rows].chunks(PANEL_ROWS)) {
                for lanes in out.chunks_exact_mut(PANEL_ROWS) {
                    for (y, b) in lanes.iter_mut().zip(bias) {
                        *y += b;
                    }
                }
            }
        }
    }
}

impl Chunk<'_> {
    fn execute(&self, run: &RunState<'_>, worker: usize) {
        let tokens = self.tokens.len();
        let product = |matrix| Product::new(run, matrix, self.tokens.clone());
        let main = product(&self.part.matrix);
        let gated = self
            .part
            .gated
            .as_ref()
            .map(|(matrix, kind)| (product(matrix), Combine::Gate(*kind)));
        // SAFETY: the worker runs this chunk, which asks once.
        let scratch = unsafe { run.scratch(worker, scratch_floats(tokens)) };
        let (first, second) = scratch.split_at_mut(MOST_ROWS * tokens);
        for pair in self.pairs.clone() {
            let rows = pair * MOST_ROWS..main.weight.rows().min((pair + 1) * MOST_ROWS);
            let floats = rows.len().div_ceil(PANEL_ROWS) * PANEL_ROWS * tokens;
            let (first, second) = (&mut first[..floats], &mut second[..floats]);
            main.multiply(rows.clone(), first);
            if let Some((gated, op)) = &gated {
                gated.multiply(rows.clone(), second);
                run.kernels.combine_in_place(*op, first, second);
            }
            self.store(run, rows, first);
        }
    }

    fn store(&self, run: &RunState<'_>, rows: Range<usize>, results: &[f32]) {
        let panels = results.chunks(PANEL_ROWS * self.tokens.len());
        for (first, results) in rows.clone().step_by(PANEL_ROWS).zip(panels) {
            let columns = first..rows.end.min(first + PANEL_ROWS);
            for (token, lanes) in self.tokens.clone().zip(results.chunks_exact(PANEL_ROWS)) {
                self.store_row(run, token, columns.clone(), &lanes[..columns.len()]);
            }
        }
    }

    fn store_row(&self, run: &RunState<'_>, token: usize, columns: Range<usize>, lanes: &[f32]) {
        let out = &run.buffers[self.part.out];
        // SAFETY: these columns of the result belong to this chunk, which reads them nowhere.
        let target = unsafe { run.arena.row_mut::<f32>(out, token, columns.clone()) };
        target.copy_from_slice(lanes);
        if let Some(residual) = self.part.residual {
            // SAFETY: an earlier step has written the other operand.
            let row = unsafe {
                run.arena
                    .rows::<f32>(&run.buffers[residual], token..token + 1)
            };
            for (y, r) in target.iter_mut().zip(&row[columns]) {
                *y += r;
            }
        }
    }
}
