//! The running softmax of a row between segments: `[accumulator in whole vectors][maximum, sum, unused]`.

use super::{Attention, Output};
use crate::kernels::math;
use crate::kernels::simd::{LANES, Simd};

/// Begins rows from nothing: a sum of zero says that the row has seen no position.
pub(super) fn clear(attention: &Attention<'_>, rows: &mut [f32]) {
    for row in rows.chunks_exact_mut(attention.partial_len()) {
        row.fill(0.0);
        row[attention.v_stride()] = f32::NEG_INFINITY;
    }
}

/// `e^x` of a single number.
#[inline(always)]
pub(super) fn exp<S: Simd>(s: S, x: f32) -> f32 {
    let mut out = [0.0; LANES];
    s.store(math::exp(s, s.splat(x)), &mut out);
    out[0]
}

/// Adds a later segment to a row: `m' = max(m, m2)`, `a = exp(m - m')`, `b = exp(m2 - m')`, then `x = fma(x, a, x2 * b)` for the sum and each
/// dimension. A side that has seen nothing leaves the other as it is.
#[inline(always)]
pub(super) fn merge<S: Simd>(s: S, total: &mut [f32], part: &[f32]) {
    let state = total.len() - LANES;
    let (m1, l1) = (total[state], total[state + 1]);
    let (m2, l2) = (part[state], part[state + 1]);
    if l2 == 0.0 {
        return;
    }
    if l1 == 0.0 {
        total.copy_from_slice(part);
        return;
    }
    let m = if m2 > m1 { m2 } else { m1 };
    let (a, b) = (exp(s, m1 - m), exp(s, m2 - m));
    let (va, vb) = (s.splat(a), s.splat(b));
    let (x1, _) = total[..state].as_chunks_mut();
    let (x2, _) = part[..state].as_chunks();
    for (x1, x2) in x1.iter_mut().zip(x2) {
        let y = s.fma(s.load(x1), va, s.mul(s.load(x2), vb));
        s.store(y, x1);
    }
    total[state] = m;
    total[state + 1] = l1.mul_add(a, l2 * b);
}

/// Writes the output row of a query head: `x * (c / l)` with `c = 1`; with a sink first `m' = max(m, sink)`, `c = exp(m - m')`, `l = fma(l, c,
/// exp(sink - m'))`.
/// A row that has seen nothing is zero.
///
/// # Safety
/// `out` is as [`super::AttendFn`] says.
#[inline(always)]
pub(super) unsafe fn finish<S: Simd>(
    s: S,
    attention: &Attention<'_>,
    row: &[f32],
    query: usize,
    head: usize,
    out: Output,
) {
    let v_dim = attention.layout.v_dim();
    assert!(query < out.queries, "the output has the task's queries");
    // SAFETY: the query was just checked, the head is below `heads`.
    let out = unsafe {
        let at = out.at.add((query * attention.heads + head) * v_dim);
        std::slice::from_raw_parts_mut(at, v_dim)
    };
    let state = row.len() - LANES;
    let (m, mut l) = (row[state], row[state + 1]);
    if l == 0.0 {
        out.fill(0.0);
        return;
    }
    let mut c = 1.0;
    if let Some(&sink) = attention.sinks.get(head) {
        let top = if sink > m { sink } else { m };
        c = exp(s, m - top);
        l = l.mul_add(c, exp(s, sink - top));
    }
    let factor = s.splat(c / l);
    for (out, x) in out.chunks_mut(LANES).zip(row.as_chunks().0) {
        s.store_partial(s.mul(s.load(x), factor), out);
    }
}
