//! One to six tokens and a whole panel: weights are used where they lie, sums stay in registers.

use super::{Blocks, Weights, iota, load_rest};
use crate::kernels::kv::tile::{Element, prefetch};
use crate::kernels::linear::PANEL_ROWS;
use crate::kernels::simd::{LANES, Simd};

/// Bytes that are fetched ahead of their use, over all rows of a block.
const AHEAD: usize = 40 << 10;

#[inline(always)]
pub(super) fn multiply<S: Blocks, E: Element>(
    s: S,
    weights: Weights<E>,
    x: &[f32],
    tokens: usize,
    out: &mut [f32],
) {
    assert!(weights.rows == PANEL_ROWS, "the panel is whole");
    let (x, out) = (x.as_ptr(), out.as_mut_ptr());
    // SAFETY: `x` is `[tokens, cols]` and `out` at least `[tokens, 16]`.
    unsafe {
        match tokens {
            0 => {}
            1 => tokens_of::<S, E, 1>(s, weights, x, out),
            2 => tokens_of::<S, E, 2>(s, weights, x, out),
            3 => tokens_of::<S, E, 3>(s, weights, x, out),
            4 => tokens_of::<S, E, 4>(s, weights, x, out),
            5 => tokens_of::<S, E, 5>(s, weights, x, out),
            6 => tokens_of::<S, E, 6>(s, weights, x, out),
            _ => unreachable!("more tokens go another way"),
        }
    }
}

/// # Safety
/// `x` points to `[T, cols]`, `out` to `[T, 16]`.
#[inline(always)]
unsafe fn tokens_of<S: Blocks, E: Element, const T: usize>(
    s: S,
    weights: Weights<E>,
    x: *const f32,
    out: *mut f32,
) {
    let step = S::rows(T);
    let mut row = 0;
    // SAFETY: the caller's; the panel is whole.
    unsafe {
        while row < PANEL_ROWS {
            match step {
                8 => block::<S, E, 8, T>(s, weights, row, x, out.add(row)),
                4 => block::<S, E, 4, T>(s, weights, row, x, out.add(row)),
                2 => block::<S, E, 2, T>(s, weights, row, x, out.add(row)),
                _ => block::<S, E, 1, T>(s, weights, row, x, out.add(row)),
            }
            row += step;
        }
    }
}

/// What is used some time after the vectors of a block of rows: further columns, then the next rows.
struct Ahead {
    at: *const u8,
    /// Bytes left of this block's rows.
    left: usize,
    row_bytes: usize,
    /// From the end of a block's first row to the next block.
    skip: usize,
}

impl Ahead {
    #[inline(always)]
    fn new(block: *const u8, row_bytes: usize, rows: usize) -> Self {
        let bytes = AHEAD / rows;
        let (blocks, offset) = (bytes / row_bytes, bytes % row_bytes);
        Self {
            at: block.wrapping_add(blocks * rows * row_bytes + offset),
            left: row_bytes - offset,
            row_bytes,
            skip: (rows - 1) * row_bytes,
        }
    }

    /// Fetches a line of each row.
    #[inline(always)]
    fn step<const R: usize>(&mut self) {
        for r in 0..R {
            prefetch(self.at.wrapping_add(r * self.row_bytes));
        }
        if self.left > 64 {
            self.at = self.at.wrapping_add(64);
            self.left -= 64;
        } else {
            self.at = self.at.wrapping_add(self.left + self.skip);
            self.left = self.row_bytes;
        }
    }
}

/// Products of `R` rows with `T` tokens.
///
/// # Safety
/// Rows `row` to `row + R - 1` exist, `x` points to `[T, cols]`, `out` to `T` rows of sixteen, from this block's first row on.
#[inline(always)]
unsafe fn block<S: Simd, E: Element, const R: usize, const T: usize>(
    s: S,
    weights: Weights<E>,
    row: usize,
    x: *const f32,
    out: *mut f32,
) {
    let cols = weights.cols;
    let mut acc = [[s.splat(0.0); T]; R];
    // SAFETY: all vectors lie inside their rows; the incomplete last one is read element by element.
    unsafe {
        let w = weights.at.add(row * cols);
        let mut ahead = Ahead::new(w.cast(), (cols * size_of::<E>()).max(1), R);
        // Vectors that fill a cache line.
        let line = 4 / size_of::<E>();
        let mut c = 0;
        while c + line * LANES <= cols {
            ahead.step::<R>();
            for _ in 0..line {
                step(s, w.add(c), x.add(c), cols, &mut acc);
                c += LANES;
            }
        }
        while c + LANES <= cols {
            step(s, w.add(c), x.add(c), cols, &mut acc);
            c += LANES;
        }
        if c < cols {
            let rest = cols - c;
            let (lane, end) = (iota(s), s.splat(rest as f32));
            for t in 0..T {
                let x = load_rest(s, x.add(t * cols + c), rest);
                for r in 0..R {
                    let w = load_rest(s, w.add(r * cols + c), rest);
                    let sum = s.fma(w, x, acc[r][t]);
                    // A sum that has no column here keeps even its sign of zero.
                    acc[r][t] = s.select_lt(lane, end, sum, acc[r][t]);
                }
            }
        }
        for t in 0..T {
            for r in 0..R {
                *out.add(t * PANEL_ROWS + r) = s.sum(acc[r][t]);
            }
        }
    }
}

/// Sixteen columns.
///
/// # Safety
/// Sixteen elements lie at `w` and at every further row of `cols`, likewise at `x`.
#[inline(always)]
unsafe fn step<S: Simd, E: Element, const R: usize, const T: usize>(
    s: S,
    w: *const E,
    x: *const f32,
    cols: usize,
    acc: &mut [[S::F; T]; R],
) {
    let mut v = [s.splat(0.0); T];
    // SAFETY: the caller's.
    unsafe {
        for t in 0..T {
            v[t] = s.load(&*x.add(t * cols).cast());
        }
        for r in 0..R {
            let w = E::load(s, &*w.add(r * cols).cast());
            for t in 0..T {
                acc[r][t] = s.fma(w, v[t], acc[r][t]);
            }
        }
    }
}
