//! More than six tokens, or an incomplete panel: a piece of the panel is widened once into the first-level cache, and tokens stream over it.

use super::{Blocks, MOST, Weights, iota, load_rest};
use crate::kernels::kv::tile::{Bf16, Element, F16, prefetch};
use crate::kernels::linear::{PANEL_ROWS, Panel};
use crate::kernels::simd::{LANES, Simd};
use puna_quant::ElementType;
use std::mem::MaybeUninit;

/// Columns of a piece: its widened rows (24 KiB) and those of a block of tokens (9 KiB) stay in the first-level cache together.
const PIECE: usize = 384;
/// Tokens whose sums wait in the second-level cache between pieces.
const TOKENS: usize = super::TOKENS;

/// A widened row, and a line that keeps rows from falling on the same places of the cache.
type Row = [Line; PIECE / LANES + 1];

/// Sixteen columns of a row, or the sums of a row and token.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line([f32; LANES]);

/// Widened weights.
type Piece = [Row; PANEL_ROWS];
/// Sums of a token.
type Sums = [Line; PANEL_ROWS];

#[expect(
    clippy::large_stack_arrays,
    reason = "threads have far more, and only what is used is touched"
)]
#[inline(always)]
pub(super) fn multiply<S: Blocks>(
    s: S,
    ty: ElementType,
    panel: &Panel<'_>,
    x: &[f32],
    tokens: usize,
    out: &mut [f32],
) {
    // 150 KiB on the stack, of which only what is used is touched.
    let mut wide = MaybeUninit::<Piece>::uninit();
    let mut sums = [const { MaybeUninit::<Sums>::uninit() }; TOKENS];
    let cols = panel.cols;
    for first in (0..tokens).step_by(TOKENS) {
        let count = TOKENS.min(tokens - first);
        let x = &x[first * cols..][..count * cols];
        // SAFETY: zero bytes are zeros, and `count` is at most TOKENS.
        let sums = unsafe {
            sums.as_mut_ptr().write_bytes(0, count);
            sums[..count].assume_init_mut()
        };
        let mut c = 0;
        while c + LANES <= cols {
            let vectors = (PIECE / LANES).min((cols - c) / LANES);
            let wide = wide.as_mut_ptr().cast::<Row>();
            // SAFETY: the piece is inside the rows, tokens and rows of a block are inside `x` and `sums`; every row's first `vectors` lines are
            // written before they are read.
            unsafe {
                let fetch = first == 0;
                match ty {
                    ElementType::F16 => {
                        widen(s, Weights::<F16>::new(panel), c, vectors, wide, fetch);
                    }
                    ElementType::BF16 => {
                        widen(s, Weights::<Bf16>::new(panel), c, vectors, wide, fetch);
                    }
                    _ => widen(s, Weights::<f32>::new(panel), c, vectors, wide, fetch),
                }
                for token in (0..count).step_by(S::TILE_TOKENS) {
                    let n = S::TILE_TOKENS.min(count - token);
                    let x = x.as_ptr().add(token * cols + c);
                    for row in (0..PANEL_ROWS).step_by(S::TILE_ROWS) {
                        let sums = sums.as_mut_ptr().add(token);
                        piece(s, n, wide.add(row), x, cols, vectors, row, sums);
                    }
                }
            }
            c += vectors * LANES;
        }
        if c < cols {
            match ty {
                ElementType::F16 => rest(s, Weights::<F16>::new(panel), c, x, sums),
                ElementType::BF16 => rest(s, Weights::<Bf16>::new(panel), c, x, sums),
                _ => rest(s, Weights::<f32>::new(panel), c, x, sums),
            }
        }
        let out = &mut out[first * PANEL_ROWS..];
        for (sums, out) in sums.iter().zip(out.chunks_exact_mut(PANEL_ROWS)) {
            for (sums, out) in sums.iter().zip(out) {
                *out = s.sum(s.load(&sums.0));
            }
        }
    }
}

/// A piece of every row as `f32`; zero for rows that do not exist.
///
/// # Safety
/// `vectors` whole vectors lie at column `c` of each row; `out` points to sixteen rows.
#[inline(always)]
unsafe fn widen<S: Simd, E: Element>(
    s: S,
    weights: Weights<E>,
    c: usize,
    vectors: usize,
    out: *mut Row,
    fetch: bool,
) {
    for r in 0..PANEL_ROWS {
        let start = weights.at.wrapping_add(r * weights.cols + c);
        // The next columns, or the next panel, which follows.
        let ahead = if c + vectors * LANES < weights.cols {
            vectors * LANES
        } else {
            PANEL_ROWS * weights.cols - c
        };
        let ahead = start.wrapping_add(ahead);
        for v in 0..vectors {
            // SAFETY: the caller's.
            unsafe {
                let w = if r < weights.rows {
                    E::load(s, &*start.add(v * LANES).cast())
                } else {
                    s.splat(0.0)
                };
                s.store(w, &mut (*out.add(r).cast::<Line>().add(v)).0);
            }
            if fetch {
                prefetch(ahead.wrapping_add(v * LANES).cast());
            }
        }
    }
}

/// Adds a piece to the sums of a block of rows and `tokens` tokens.
///
/// # Safety
/// `w` points to `S::TILE_ROWS` rows, `x` to `vectors` whole vectors of each token, `sums` to as many tokens.
#[expect(clippy::too_many_arguments, reason = "a step of one loop")]
#[inline(always)]
unsafe fn piece<S: Blocks>(
    s: S,
    tokens: usize,
    w: *const Row,
    x: *const f32,
    cols: usize,
    vectors: usize,
    row: usize,
    sums: *mut Sums,
) {
    macro_rules! tokens {
        ($($t:literal)*) => {
            match tokens {
                $($t if const { $t <= S::TILE_TOKENS && S::TILE_ROWS == 4 } => block::<S, 4, $t>(s, w, x, cols, vectors, row, sums),
                $t if const { $t <= S::TILE_TOKENS && S::TILE_ROWS == 2 } => block::<S, 2, $t>(s, w, x, cols, vectors, row, sums),
                $t if const { $t <= S::TILE_TOKENS && S::TILE_ROWS == 1 } => block::<S, 1, $t>(s, w, x, cols, vectors, row, sums),)*
                _ => unreachable!("blocks are cut to the set's size"),
            }
        };
    }
    const { assert!(S::TILE_TOKENS <= MOST) };
    // SAFETY: the caller's.
    unsafe { tokens!(1 2 3 4 5 6) }
}

/// See [`piece`].
///
/// # Safety
/// As there.
#[inline(always)]
unsafe fn block<S: Simd, const R: usize, const T: usize>(
    s: S,
    w: *const Row,
    x: *const f32,
    cols: usize,
    vectors: usize,
    row: usize,
    sums: *mut Sums,
) {
    let mut acc = [[s.splat(0.0); R]; T];
    // SAFETY: the caller's.
    unsafe {
        for t in 0..T {
            for r in 0..R {
                acc[t][r] = s.load(&(&*sums.add(t))[row + r].0);
            }
        }
        for v in 0..vectors {
            let mut weights = [s.splat(0.0); R];
            for (r, weights) in weights.iter_mut().enumerate() {
                *weights = s.load(&(*w.add(r).cast::<Line>().add(v)).0);
            }
            for t in 0..T {
                let x = s.load(&*x.add(t * cols + v * LANES).cast());
                for r in 0..R {
                    acc[t][r] = s.fma(weights[r], x, acc[t][r]);
                }
            }
        }
        for t in 0..T {
            for r in 0..R {
                s.store(acc[t][r], &mut (&mut *sums.add(t))[row + r].0);
            }
        }
    }
}

/// The last, incomplete vector of every row.
#[inline(always)]
fn rest<S: Simd, E: Element>(s: S, weights: Weights<E>, c: usize, x: &[f32], sums: &mut [Sums]) {
    let (cols, rest) = (weights.cols, weights.cols - c);
    let (lane, end) = (iota(s), s.splat(rest as f32));
    for (x, sums) in x.chunks_exact(cols).zip(sums) {
        let x = s.load_partial(&x[c..]);
        for (r, sums) in sums.iter_mut().enumerate().take(weights.rows) {
            // SAFETY: the row has `rest` elements from column `c` on.
            let w = unsafe { load_rest(s, weights.at.add(r * cols + c), rest) };
            let old = s.load(&sums.0);
            // A sum that has no column here keeps even its sign of zero.
            s.store(s.select_lt(lane, end, s.fma(w, x, old), old), &mut sums.0);
        }
    }
}
