//! Asking for weights before they are needed.
//!
//! While a kernel goes over some rows, it asks for the rows that follow in memory, line by line. Asked for in this order they are a stream that
//! the hardware follows by itself, so that its misses wait in the second-level cache and leave the few miss slots of the first one to the
//! kernel. The second cache is where the lines should end up.

use super::isa::{Isa, Rows};

/// Bytes of a line.
const LINE: usize = 64;
/// How far beyond the begin of the rows at work asking begins at least.
const LEAST: usize = 48 << 10;

/// Walks over the lines that follow a kernel's rows.
#[derive(Clone, Copy)]
pub(super) struct Ahead {
    at: *const u8,
    /// End of the matrix.
    end: *const u8,
    /// Bytes that are due, and how many become due per step.
    due: usize,
    pace: usize,
}

impl Ahead {
    /// For a kernel that goes over `rows` rows, `step_bytes` of each at a time; `left` bytes from the first row's begin the matrix ends.
    #[inline(always)]
    pub(super) fn new(first: Rows, rows: usize, step_bytes: usize, left: usize) -> Self {
        let whole = rows * first.stride;
        Self {
            at: first.base.wrapping_add(whole.max(LEAST)),
            end: first.base.wrapping_add(left),
            due: 0,
            pace: step_bytes * rows,
        }
    }

    /// Nothing to ask for.
    #[inline(always)]
    pub(super) fn nothing() -> Self {
        Self {
            at: std::ptr::null(),
            end: std::ptr::null(),
            due: 0,
            pace: 0,
        }
    }

    /// For a kernel that takes each step `times` times.
    #[inline(always)]
    pub(super) fn spread(self, times: usize) -> Self {
        Self {
            pace: self.pace.div_ceil(times),
            ..self
        }
    }

    /// Asks for what is due after one step of the kernel.
    #[inline(always)]
    pub(super) fn step<I: Isa>(&mut self, isa: I) {
        self.due += self.pace;
        while self.due >= LINE {
            self.due -= LINE;
            if self.at < self.end {
                isa.prefetch(self.at);
                self.at = self.at.wrapping_add(LINE);
            }
        }
    }
}
