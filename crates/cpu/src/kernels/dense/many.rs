//! More than six tokens, or an incomplete panel: a piece of the panel is widened once into the first-level cache, and tokens stream over it.

use super::{Blocks, MOST, Weights, iota, load_rest};
use crate::kernels::kv::tile::{Bf16, Element, F16, prefetch};
use crate::kernels::linear::{PANEL_ROWS, Panel};
use crate::kernels::simd::{LANES, Simd};
use puna_quant::ElementType;

/// Columns of a piece.
const PIECE: usize = 256;
/// Tokens whose sums wait in the cache between pieces.
const TOKENS: usize = 48;

/// Memory of a panel, about 64 KiB on the stack.
#[repr(align(64))]
struct Scratch {
    /// Widened weights: `[16, PIECE]`
    weights: [[[f32; LANES]; PIECE / LANES]; PANEL_ROWS],
    /// Sums: `[tokens, 16 rows]` of sixteen lanes
    sums: [[[f32; LANES]; PANEL_ROWS]; TOKENS],
}

#[inline(always)]
pub(super) fn multiply<S: Blocks>(
    s: S,
    ty: ElementType,
    panel: &Panel<'_>,
    x: &[f32],
    tokens: usize,
    out: &mut [f32],
) {
    let mut scratch = Scratch {
        weights: [[[0.0; LANES]; PIECE / LANES]; PANEL_ROWS],
        sums: [[[0.0; LANES]; PANEL_ROWS]; TOKENS],
    };
    let cols = panel.cols;
    for first in (0..tokens).step_by(TOKENS) {
        let count = TOKENS.min(tokens - first);
        let x = &x[first * cols..][..count * cols];
        scratch.sums[..count].fill([[0.0; LANES]; PANEL_ROWS]);
        let mut c = 0;
        while c + LANES <= cols {
            let vectors = (PIECE / LANES).min((cols - c) / LANES);
            // SAFETY: the piece is inside the rows.
            unsafe {
                let (out, fetch) = (&mut scratch.weights, first == 0);
                match ty {
                    ElementType::F16 => {
                        widen(s, Weights::<F16>::new(panel), c, vectors, out, fetch);
                    }
                    ElementType::BF16 => {
                        widen(s, Weights::<Bf16>::new(panel), c, vectors, out, fetch);
                    }
                    _ => widen(s, Weights::<f32>::new(panel), c, vectors, out, fetch),
                }
            }
            for token in (0..count).step_by(S::TILE_TOKENS) {
                let n = S::TILE_TOKENS.min(count - token);
                for row in (0..PANEL_ROWS).step_by(S::TILE_ROWS) {
                    // SAFETY: tokens and rows are inside `x` and scratch.
                    unsafe {
                        let x = x.as_ptr().add(token * cols + c);
                        let w = scratch.weights.as_ptr().add(row);
                        let sums = scratch.sums.as_mut_ptr().add(token);
                        piece(s, n, w, x, cols, vectors, row, sums);
                    }
                }
            }
            c += vectors * LANES;
        }
        if c < cols {
            let sums = &mut scratch.sums[..count];
            match ty {
                ElementType::F16 => rest(s, Weights::<F16>::new(panel), c, x, sums),
                ElementType::BF16 => rest(s, Weights::<Bf16>::new(panel), c, x, sums),
                _ => rest(s, Weights::<f32>::new(panel), c, x, sums),
            }
        }
        let out = &mut out[first * PANEL_ROWS..];
        for (sums, out) in scratch.sums[..count]
            .iter()
            .zip(out.chunks_exact_mut(PANEL_ROWS))
        {
            for (sums, out) in sums.iter().zip(out) {
                *out = s.sum(s.load(sums));
            }
        }
    }
}

/// A piece of every row as `f32`.
///
/// # Safety
/// `vectors` whole vectors lie at column `c` of each row.
#[inline(always)]
unsafe fn widen<S: Simd, E: Element>(
    s: S,
    weights: Weights<E>,
    c: usize,
    vectors: usize,
    out: &mut [[[f32; LANES]; PIECE / LANES]; PANEL_ROWS],
    fetch: bool,
) {
    for (r, out) in out.iter_mut().enumerate().take(weights.rows) {
        let start = weights.at.wrapping_add(r * weights.cols + c);
        for (v, out) in out[..vectors].iter_mut().enumerate() {
            // SAFETY: the caller's.
            let w = E::load(s, unsafe { &*start.add(v * LANES).cast() });
            s.store(w, out);
        }
        if fetch {
            // The next columns, or the next panel, which follows.
            let more = c + vectors * LANES < weights.cols;
            let ahead = if more {
                vectors * LANES
            } else {
                PANEL_ROWS * weights.cols - c
            };
            let ahead: *const u8 = start.wrapping_add(ahead).cast();
            for line in 0..(vectors * LANES * size_of::<E>()).div_ceil(64) {
                prefetch(ahead.wrapping_add(line * 64));
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
    w: *const [[f32; LANES]; PIECE / LANES],
    x: *const f32,
    cols: usize,
    vectors: usize,
    row: usize,
    sums: *mut [[f32; LANES]; PANEL_ROWS],
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
    w: *const [[f32; LANES]; PIECE / LANES],
    x: *const f32,
    cols: usize,
    vectors: usize,
    row: usize,
    sums: *mut [[f32; LANES]; PANEL_ROWS],
) {
    let mut acc = [[s.splat(0.0); R]; T];
    // SAFETY: the caller's.
    unsafe {
        for t in 0..T {
            for r in 0..R {
                acc[t][r] = s.load(&(&*sums.add(t))[row + r]);
            }
        }
        for v in 0..vectors {
            let mut weights = [s.splat(0.0); R];
            for (r, weights) in weights.iter_mut().enumerate() {
                *weights = s.load(&*w.add(r).cast::<[f32; LANES]>().add(v));
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
                s.store(acc[t][r], &mut (&mut *sums.add(t))[row + r]);
            }
        }
    }
}

/// The last, incomplete vector of every row.
#[inline(always)]
fn rest<S: Simd, E: Element>(
    s: S,
    weights: Weights<E>,
    c: usize,
    x: &[f32],
    sums: &mut [[[f32; LANES]; PANEL_ROWS]],
) {
    let (cols, rest) = (weights.cols, weights.cols - c);
    let (lane, end) = (iota(s), s.splat(rest as f32));
    for (x, sums) in x.chunks_exact(cols).zip(sums) {
        let x = s.load_partial(&x[c..]);
        for (r, sums) in sums.iter_mut().enumerate().take(weights.rows) {
            // SAFETY: the row has `rest` elements from column `c` on.
            let w = unsafe { load_rest(s, weights.at.add(r * cols + c), rest) };
            let old = s.load(sums);
            // A sum that has no column here keeps even its sign of zero.
            s.store(s.select_lt(lane, end, s.fma(w, x, old), old), sums);
        }
    }
}
