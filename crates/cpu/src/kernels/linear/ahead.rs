//! Asking for weights before they are needed.
//!
//! Sixteen short rows are more streams than the hardware follows by itself, so kernels ask for lines in the order in which they will use them:
//! the same rows further on, then the next rows. The second cache is the right place: hints for the first one hold its few miss slots.

use super::isa::{Isa, Rows};

/// How far ahead of their use bytes are asked for. Between 20 and 80 KB makes no difference; less than 10 does.
const DISTANCE: usize = 40 << 10;
/// Bytes of a line.
const LINE: usize = 64;
/// Rows asked for at a time.
const GROUP: usize = 4;

/// Walks over the lines that lie [`DISTANCE`] ahead of a kernel.
#[derive(Clone, Copy)]
pub(super) struct Ahead {
    /// First row of the group, at the line.
    at: *const u8,
    /// End of the matrix.
    end: *const u8,
    stride: usize,
    /// Rows walked over together, and which of them comes next.
    rows: usize,
    row: usize,
    /// Where in the rows.
    column: usize,
    /// Sixty-fourths of a group's line that are due, and how many become due per step.
    due: usize,
    pace: usize,
}

impl Ahead {
    /// For a kernel that goes over `rows` rows, `step_bytes` of each at a time; `left` bytes from the first row's begin the matrix ends.
    #[inline(always)]
    pub(super) fn new(first: Rows, rows: usize, step_bytes: usize, left: usize) -> Self {
        let row_bytes = first.stride;
        let whole = rows * row_bytes;
        let column = DISTANCE % whole / rows / LINE * LINE;
        Self {
            at: first.base.wrapping_add(DISTANCE / whole * whole + column),
            end: first.base.wrapping_add(left),
            stride: row_bytes,
            rows,
            row: 0,
            column,
            due: 0,
            // A row's lines number one more than its bytes suggest.
            pace: step_bytes * (rows / GROUP) * (row_bytes + LINE) / row_bytes + 1,
        }
    }

    /// Nothing to ask for.
    #[inline(always)]
    pub(super) fn nothing() -> Self {
        Self {
            at: std::ptr::null(),
            end: std::ptr::null(),
            stride: 0,
            rows: GROUP,
            row: 0,
            column: 0,
            due: 0,
            pace: 0,
        }
    }

    /// Asks for what is due after one step of the kernel.
    #[inline(always)]
    pub(super) fn step<I: Isa>(&mut self, isa: I) {
        self.due += self.pace;
        while self.due >= LINE {
            self.due -= LINE;
            self.group(isa);
        }
    }

    #[inline(always)]
    fn group<I: Isa>(&mut self, isa: I) {
        if self.at >= self.end {
            return;
        }
        let p = self.at.wrapping_add(self.row * self.stride);
        for r in 0..GROUP {
            isa.prefetch(p.wrapping_add(r * self.stride));
        }
        self.row += GROUP;
        if self.row >= self.rows {
            self.row = 0;
            self.column += LINE;
            self.at = self.at.wrapping_add(LINE);
            if self.column >= self.stride {
                self.at = self.at.wrapping_add(self.rows * self.stride - self.column);
                self.column = 0;
            }
        }
    }
}
