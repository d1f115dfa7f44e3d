//! A pass over rows: ops whose result in a row depends on that row alone, one after another.

use super::{Packed, RunState};
use crate::{
    kernels::{
        elementwise::{Combine, Map},
        kv::KvLayout,
        linear::Activations,
        rope::RopeTable,
    },
    plan::arena::Plain,
};
use puna_graph::{
    LayerId, PAGE_POSITIONS, Rows, WeightId, Work,
    ops::{Norm, RopeOrder},
};
use puna_quant::{Codec, Q8Row, Q8RowMut};
use std::{fmt, ops::Range};

/// Most rows of a chunk: enough to make taking one cheap, few enough to share the work.
const MAX_ROWS: usize = 16;

/// Decodes the rows of an embedding table.
#[derive(Clone, Copy)]
pub(crate) struct RowCodec(pub &'static dyn Codec);

impl fmt::Debug for RowCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.element_type().name())
    }
}

/// One op on a row; numbers are buffers.
#[derive(Debug)]
pub(crate) enum RowOp {
    Embed {
        table: WeightId,
        codec: RowCodec,
        scale: f32,
        out: usize,
    },
    Angles {
        table: RopeTable,
        out: usize,
    },
    Norm {
        norm: Norm,
        x: usize,
        out: usize,
    },
    /// `out = op(a, b)`
    Combine {
        op: Combine,
        a: usize,
        b: usize,
        out: usize,
    },
    /// `out = op(x)`
    Map {
        op: Map,
        x: usize,
        out: usize,
    },
    Rope {
        head_dim: usize,
        order: RopeOrder,
        angles: usize,
        x: usize,
        out: usize,
    },
    Select {
        x: usize,
        out: usize,
    },
    Quantize {
        x: usize,
        out: Packed,
    },
    /// Appends keys and values to the cache.
    Store {
        layer: LayerId,
        group: usize,
        layout: KvLayout,
        k: usize,
        v: usize,
    },
}

/// See the file's text.
#[derive(Debug)]
pub(crate) struct RowsStep {
    pub rows: Rows,
    pub ops: Vec<RowOp>,
}

impl RowsStep {
    fn rows_per_chunk(&self, run: &RunState<'_>) -> usize {
        let rows = run.row_count(self.rows);
        rows.div_ceil(4 * run.workers).clamp(1, MAX_ROWS)
    }

    pub(crate) fn chunks(&self, run: &RunState<'_>) -> usize {
        run.row_count(self.rows).div_ceil(self.rows_per_chunk(run))
    }

    /// Rows of embedding tables, and what goes into the cache.
    pub(crate) fn work(&self, run: &RunState<'_>) -> Work {
        let mut work = Work::default();
        let rows = run.row_count(self.rows) as u64;
        for op in &self.ops {
            match op {
                RowOp::Embed { table, .. } => {
                    work.weight_bytes += rows * run.graph.weight(*table).row_bytes() as u64;
                }
                RowOp::Store { layout, .. } => {
                    work.cache_bytes += rows * (layout.page_bytes() / PAGE_POSITIONS) as u64;
                }
                _ => {}
            }
        }
        work
    }

    pub(crate) fn execute(&self, run: &RunState<'_>, chunk: usize) {
        let size = self.rows_per_chunk(run);
        let rows = chunk * size..((chunk + 1) * size).min(run.row_count(self.rows));
        for op in &self.ops {
            for row in rows.clone() {
                op.execute(run, row);
            }
        }
    }
}

/// A row of a buffer.
///
/// # Safety
/// `T` is the buffer's type, and nobody writes the row while the slice lives: an earlier step has made it, or this chunk.
unsafe fn read<'a, T: Plain>(run: &RunState<'a>, buffer: usize, row: usize) -> &'a [T] {
    // SAFETY: the caller's.
    unsafe { run.arena.rows(&run.buffers[buffer], row..row + 1) }
}

/// A row of a buffer that this step makes.
///
/// # Safety
/// `T` is the buffer's type, and the row belongs to this chunk, which holds no other slice of it.
unsafe fn write<'a, T: Plain>(run: &RunState<'a>, buffer: usize, row: usize) -> &'a mut [T] {
    let columns = 0..run.buffers[buffer].len;
    // SAFETY: the caller's.
    unsafe { run.arena.row_mut(&run.buffers[buffer], row, columns) }
}

impl RowOp {
    fn execute(&self, run: &RunState<'_>, row: usize) {
        let k = &run.kernels;
        // SAFETY: rows of earlier steps are complete, and rows of this step are written by this chunk alone, by ops before this one.
        let read = |buffer: usize| unsafe { read::<f32>(run, buffer, row) };
        // SAFETY: an op writes its result once and never reads the buffer that it writes, and this row belongs to this chunk.
        let write = |buffer: usize| unsafe { write::<f32>(run, buffer, row) };
        match self {
            Self::Embed {
                table,
                codec,
                scale,
                out,
            } => {
                let table = run.graph.weight(*table);
                let token = run.batch.tokens[row];
                k.embed(table, codec.0, token, *scale, write(*out));
            }
            Self::Angles { table, out } => {
                let (cos, sin) = write(*out).split_at_mut(table.pairs());
                table.fill(run.positions[row], cos, sin);
            }
            Self::Norm { norm, x, out } => k.norm(norm, read(*x), write(*out)),
            Self::Combine { op, a, b, out } => k.combine(*op, read(*a), read(*b), write(*out)),
            Self::Map { op, x, out } => k.map(*op, read(*x), write(*out)),
            Self::Rope {
                head_dim,
                order,
                angles,
                x,
                out,
            } => k.rope(*order, *head_dim, read(*angles), read(*x), write(*out)),
            Self::Select { x, out } => {
                let source = run.batch.outputs[row] as usize;
                // SAFETY: values of tokens are never made in a step over outputs, so that an earlier step has written it.
                write(*out).copy_from_slice(unsafe { self::read(run, *x, source) });
            }
            Self::Quantize { x, out } => quantize(run, read(*x), *out, row),
            Self::Store {
                layer,
                group,
                layout,
                k: keys,
                v,
            } => {
                let Some(batch_run) = run.batch.runs.iter().find(|r| r.rows.contains(&row)) else {
                    return;
                };
                let position = batch_run.first_position as usize + row - batch_run.rows.start;
                let page = batch_run.pages[*group][position / PAGE_POSITIONS];
                let page = run.cache.page(*layer, page);
                let position = position % PAGE_POSITIONS;
                // SAFETY: a page of this layout, and each row is another position.
                unsafe { k.store(layout, page, position, read(*keys), read(*v)) }
            }
        }
    }
}

fn quantize(run: &RunState<'_>, x: &[f32], out: Packed, row: usize) {
    let Packed::Q8 {
        quants,
        scales,
        sums,
        offsets,
        halves,
    } = out
    else {
        return;
    };
    // SAFETY: the parts are different buffers of these types that only this op writes, and the row belongs to this chunk.
    let mut to = unsafe {
        Q8RowMut {
            quants: write(run, quants, row),
            scales: write(run, scales, row),
            sums: write(run, sums, row),
            offsets: write(run, offsets, row),
            halves: write(run, halves, row),
        }
    };
    run.kernels.quantize_q8(x, &mut to);
}

/// Rows of a packed value as a panel kernel reads them.
///
/// # Safety
/// An earlier step has written them.
pub(super) unsafe fn activations<'a>(
    run: &RunState<'a>,
    packed: Packed,
    rows: Range<usize>,
    cols: usize,
) -> Activations<'a> {
    /// # Safety
    /// As above, and `T` is the buffer's type.
    unsafe fn all<'a, T: Plain>(run: &RunState<'a>, buffer: usize, rows: &Range<usize>) -> &'a [T] {
        // SAFETY: the caller's.
        unsafe { run.arena.rows(&run.buffers[buffer], rows.clone()) }
    }
    let tokens = rows.len();
    // SAFETY (all calls): written by the caller's word, and the types are those that the compiler made the buffers of.
    match packed {
        Packed::F32(x) => Activations::F32 {
            // SAFETY: see above.
            x: unsafe { all(run, x, &rows) },
            tokens,
            cols,
        },
        Packed::Q8 {
            quants,
            scales,
            sums,
            offsets,
            halves,
        } => Activations::Q8 {
            // SAFETY: see above.
            parts: unsafe {
                Q8Row {
                    quants: all(run, quants, &rows),
                    scales: all(run, scales, &rows),
                    sums: all(run, sums, &rows),
                    offsets: all(run, offsets, &rows),
                    halves: all(run, halves, &rows),
                }
            },
            tokens,
            cols,
        },
    }
}
