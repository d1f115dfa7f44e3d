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
        while let Some(line) = self.next() {
            isa.prefetch(line);
        }
    }

    /// The next line that is due.
    #[inline(always)]
    fn next(&mut self) -> Option<*const u8> {
        if self.due < LINE {
            return None;
        }
        if self.at >= self.end {
            self.due = 0;
            return None;
        }
        self.due -= LINE;
        let line = self.at;
        self.at = line.wrapping_add(LINE);
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines that a kernel asks for which takes `steps` steps, as distances from its first row.
    fn asked(mut ahead: Ahead, base: *const u8, steps: usize) -> Vec<usize> {
        let mut lines = Vec::new();
        for _ in 0..steps {
            ahead.due += ahead.pace;
            lines.extend(
                std::iter::from_fn(|| ahead.next()).map(|line| line as usize - base as usize),
            );
        }
        lines
    }

    #[test]
    fn a_kernel_asks_once_for_each_line_that_follows_its_rows_and_for_none_beyond_the_matrix() {
        let matrix = vec![0u8; 4 * LEAST];
        let first = Rows {
            base: matrix.as_ptr(),
            stride: LEAST / 16,
        };
        // Sixteen rows in steps of 48 bytes, of a matrix that goes on for as many rows, or for less.
        let steps = first.stride / 48;
        for (left, expected) in [(3 * LEAST, LEAST), (LEAST + 1000, 1024), (LEAST, 0)] {
            for times in [1, 3] {
                let ahead = Ahead::new(first, 16, 48, left).spread(times);
                let lines = asked(ahead, first.base, steps * times);
                let begun = (0..expected / LINE).map(|i| LEAST + i * LINE);
                assert_eq!(lines, begun.collect::<Vec<_>>(), "{left} {times}");
            }
        }
        assert!(asked(Ahead::nothing(), std::ptr::null(), 10).is_empty());
    }
}
