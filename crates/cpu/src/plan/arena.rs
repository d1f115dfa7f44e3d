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

    /// Makes room for `tokens` and `outputs` rows, rounded up so that slowly rising batches do not allocate each time. Contents are
    /// lost when it grows.
    pub(crate) fn reserve(&mut self, tokens: usize, outputs: usize) -> Result<(), BackendError> {
        for (i, rows) in [tokens, outputs].into_iter().enumerate() {
            if rows > self.capacity[i] {
                // Also if the allocation fails: capacity and block go together.
                self.capacity[i] = 0;
                self.blocks[i] = Block::empty();
                let capacity = rows.checked_next_power_of_two().unwrap_or(usize::MAX);
                let bytes = self.bytes_per_row[i].saturating_mul(capacity);
                self.blocks[i] = Block::zeroed("scratch", bytes)?;
                self.capacity[i] = capacity;
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
        let capacity = self.capacity[block];
        let inside = || {
            let start = buffer.offset.checked_mul(capacity)?;
            let end = buffer.row_bytes.checked_mul(capacity)?.checked_add(start)?;
            let first = element.checked_mul(size)?.checked_add(start)?;
            let last = count.checked_mul(size)?.checked_add(first)?;
            (last <= end && end <= self.blocks[block].len()).then_some(first)
        };
        let Some(first) = inside() else {
            panic!("row outside of the arena");
        };
        self.blocks[block].pointer(first)
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

    fn arena_of_one_buffer(row_bytes: usize) -> (Arena, Buffer) {
        let mut buffers = [Buffer::of::<f32>(Rows::Tokens, row_bytes / 4)];
        let lifetimes = [Lifetime { first: 0, last: 0 }];
        let size = place(&mut buffers, &lifetimes);
        (Arena::new(size), buffers[0])
    }

    #[test]
    fn after_a_failed_allocation_there_are_no_rows_and_a_smaller_one_succeeds() {
        let (mut arena, buffer) = arena_of_one_buffer(1 << 40);
        arena.capacity[0] = 4;
        for rows in [1 << 22, usize::MAX] {
            let error = arena.reserve(rows, 0).unwrap_err();
            assert!(matches!(error, BackendError::Memory { .. }), "{error}");
            assert_eq!(arena.capacity, [0, 0]);
            assert_eq!(arena.bytes(), 0);
        }
        let row = std::panic::AssertUnwindSafe(|| arena.row_pointer(&buffer, 0));
        assert!(std::panic::catch_unwind(row).is_err(), "a row of nothing");

        let (mut arena, buffer) = arena_of_one_buffer(256);
        assert!(arena.reserve(usize::MAX, 0).is_err());
        arena.reserve(3, 0).unwrap();
        // SAFETY: an `f32` buffer, and nobody else uses it.
        unsafe { arena.row_mut::<f32>(&buffer, 2, 0..64) }.fill(1.0);
        // SAFETY: as above.
        assert_eq!(unsafe { arena.rows::<f32>(&buffer, 2..3) }, [1.0; 64]);
    }

    #[test]
    fn rising_batches_allocate_only_at_powers_of_two() {
        let (mut arena, buffer) = arena_of_one_buffer(64);
        let mut starts = Vec::new();
        for rows in 1..=100 {
            arena.reserve(rows, 0).unwrap();
            starts.push((arena.bytes(), arena.row_pointer(&buffer, rows - 1)));
        }
        let mut sizes: Vec<usize> = starts.iter().map(|s| s.0).collect();
        sizes.dedup();
        assert_eq!(sizes, [1, 2, 4, 8, 16, 32, 64, 128].map(|rows| 64 * rows));
    }

    #[test]
    fn a_row_that_is_not_there_is_never_handed_out() {
        let (mut arena, buffer) = arena_of_one_buffer(64);
        arena.reserve(4, 0).unwrap();
        for row in [4, usize::MAX / 64, usize::MAX / 16 + 1] {
            let pointer = std::panic::AssertUnwindSafe(|| arena.row_pointer(&buffer, row));
            assert!(std::panic::catch_unwind(pointer).is_err(), "row {row}");
        }
    }

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
