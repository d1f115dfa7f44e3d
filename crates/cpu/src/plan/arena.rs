//! Scratch memory of a plan: one block for values with a row per token, one for values with a row per output.
//!
//! Offsets are fixed when the plan is compiled, in bytes per row; the blocks grow with the largest batch seen. Workers share the
//! blocks: the compiled steps see to it that nothing is written while another chunk reads or writes it.

use crate::memory::Block;
use puna_graph::{BackendError, Rows};
use std::ops::Range;

/// Bytes to which rows of buffers are padded, so that every buffer starts on a cache line.
const LINE: usize = 64;

/// An array of `len` elements per row, somewhere in the arena.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffer {
    /// Which block.
    pub rows: Rows,
    /// Elements of one row.
    pub len: usize,
    /// Bytes of one row, padded.
    pub row_bytes: usize,
    /// Where it starts, in bytes per row of the block's capacity.
    pub offset: usize,
}

/// Element types that may lie in the arena: any bits are a value.
pub(crate) trait Plain: Copy {}
impl Plain for f32 {}
impl Plain for i8 {}
impl Plain for i16 {}
impl Plain for i32 {}

impl Buffer {
    /// A buffer of `len` elements of `T` per row, not placed yet.
    pub(crate) fn of<T: Plain>(rows: Rows, len: usize) -> Self {
        let row_bytes = (len * size_of::<T>()).next_multiple_of(LINE);
        Self {
            rows,
            len,
            row_bytes,
            offset: 0,
        }
    }
}

/// When a buffer is written first and read last, in steps.
#[derive(Clone, Debug)]
pub(crate) struct Lifetime {
    pub first: usize,
    pub last: usize,
}

/// Places buffers so that those which live at the same time do not overlap; returns bytes per row of the two blocks (tokens, outputs).
pub(crate) fn place(buffers: &mut [Buffer], lifetimes: &[Lifetime]) -> [usize; 2] {
    let mut order: Vec<usize> = (0..buffers.len()).collect();
    // Large ones first leave small gaps for small ones.
    order.sort_by_key(|i| (std::cmp::Reverse(buffers[*i].row_bytes), *i));
    let mut placed: Vec<usize> = Vec::new();
    let mut size = [0; 2];
    for i in order {
        let overlaps = |j: usize| {
            buffers[j].rows == buffers[i].rows
                && lifetimes[i].first <= lifetimes[j].last
                && lifetimes[j].first <= lifetimes[i].last
        };
        let mut taken: Vec<Range<usize>> = placed
            .iter()
            .filter(|j| overlaps(**j))
            .map(|j| buffers[*j].offset..buffers[*j].offset + buffers[*j].row_bytes)
            .collect();
        taken.sort_by_key(|r| r.start);
        let mut offset = 0;
        for range in taken {
            if offset + buffers[i].row_bytes <= range.start {
                break;
            }
            offset = offset.max(range.end);
        }
        buffers[i].offset = offset;
        let total = &mut size[usize::from(buffers[i].rows != Rows::Tokens)];
        *total = (*total).max(offset + buffers[i].row_bytes);
        placed.push(i);
    }
    size
}

/// The two blocks.
#[derive(Debug)]
pub(crate) struct Arena {
    bytes_per_row: [usize; 2],
    capacity: [usize; 2],
    blocks: [Block; 2],
}

impl Arena {
    /// Blocks of `bytes_per_row` (tokens, outputs), without memory yet.
    pub(crate) fn new(bytes_per_row: [usize; 2]) -> Self {
        Self {
            bytes_per_row,
            capacity: [0; 2],
            blocks: [Block::empty(), Block::empty()],
        }
    }

    /// Makes room for `tokens` and `outputs` rows. Contents are lost when it grows.
    pub(crate) fn reserve(&mut self, tokens: usize, outputs: usize) -> Result<(), BackendError> {
        for (i, rows) in [tokens, outputs].into_iter().enumerate() {
            if rows > self.capacity[i] {
                self.blocks[i] = Block::empty();
                self.blocks[i] =
                    Block::zeroed("scratch", self.bytes_per_row[i].saturating_mul(rows))?;
                self.capacity[i] = rows;
            }
        }
        Ok(())
    }

    /// Bytes in use.
    pub(crate) fn bytes(&self) -> usize {
        self.blocks.iter().map(Block::len).sum()
    }

    fn pointer(&self, buffer: &Buffer, element: usize, size: usize, count: usize) -> *mut u8 {
        let block = usize::from(buffer.rows != Rows::Tokens);
        let start = buffer.offset * self.capacity[block];
        let end = start + buffer.row_bytes * self.capacity[block];
        assert!(
            start + (element + count) * size <= end,
            "row outside of the arena"
        );
        self.blocks[block].pointer(start + element * size)
    }

    /// Rows `rows` of a buffer, row after row.
    ///
    /// # Safety
    /// `T` is the type that the buffer was made for, and nobody writes these rows while the slice lives.
    pub(crate) unsafe fn rows<T: Plain>(&self, buffer: &Buffer, rows: Range<usize>) -> &[T] {
        let count = rows.len() * buffer.len;
        let start = self.pointer(buffer, rows.start * buffer.len, size_of::<T>(), count);
        // SAFETY: in bounds by `pointer`, aligned since blocks and offsets are multiples of a cache line, initialized since blocks are
        // zeroed, and free of writers by the caller.
        unsafe { std::slice::from_raw_parts(start.cast(), count) }
    }

    /// Where row `row` of a buffer of `f32` begins.
    pub(crate) fn row_pointer(&self, buffer: &Buffer, row: usize) -> *mut f32 {
        let pointer = self.pointer(buffer, row * buffer.len, size_of::<f32>(), buffer.len);
        pointer.cast()
    }

    /// Elements `columns` of row `row`, to write.
    ///
    /// # Safety
    /// `T` is the type that the buffer was made for, and nobody else reads or writes these elements while the slice lives.
    #[allow(
        clippy::mut_from_ref,
        reason = "the arena is shared memory; see the contract"
    )]
    pub(crate) unsafe fn row_mut<T: Plain>(
        &self,
        buffer: &Buffer,
        row: usize,
        columns: Range<usize>,
    ) -> &mut [T] {
        assert!(columns.end <= buffer.len, "column outside of the row");
        let element = row * buffer.len + columns.start;
        let start = self.pointer(buffer, element, size_of::<T>(), columns.len());
        // SAFETY: as in `rows`, and exclusive by the caller.
        unsafe { std::slice::from_raw_parts_mut(start.cast(), columns.len()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_that_live_at_the_same_time_never_overlap() {
        let mut buffers = Vec::new();
        let mut lifetimes = Vec::new();
        for i in 0..40_usize {
            let rows = if i % 5 == 0 {
                Rows::Outputs
            } else {
                Rows::Tokens
            };
            buffers.push(Buffer::of::<f32>(rows, 1 + i * 37 % 300));
            lifetimes.push(Lifetime {
                first: i / 2,
                last: i / 2 + i * 7 % 5,
            });
        }
        let size = place(&mut buffers, &lifetimes);
        for i in 0..buffers.len() {
            let (a, la) = (&buffers[i], &lifetimes[i]);
            assert!(a.offset + a.row_bytes <= size[usize::from(a.rows != Rows::Tokens)]);
            for j in 0..i {
                let (b, lb) = (&buffers[j], &lifetimes[j]);
                let together = a.rows == b.rows && la.first <= lb.last && lb.first <= la.last;
                let apart =
                    a.offset + a.row_bytes <= b.offset || b.offset + b.row_bytes <= a.offset;
                assert!(!together || apart, "{i} and {j}");
            }
        }
        let naive: usize = buffers.iter().map(|b| b.row_bytes).sum();
        assert!(size[0] + size[1] < naive / 2, "lifetimes are used");
    }
}
