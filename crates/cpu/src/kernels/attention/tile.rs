//! One tile for a block of rows: scores, running softmax, weighted sum of the values.

use super::blocks::Blocks;
use super::merge::{clear, exp};
use super::{Rows, SEGMENT, SEGMENT_TILES, Scratch};
use crate::kernels::kv::tile::{Element, F16, Prefetch, load_keys, load_values};
use crate::kernels::kv::{KvType, PAGE};
use crate::kernels::math;
use crate::kernels::simd::{LANES, Simd};
use std::ops::Range;

/// Vectors of a tile's positions.
const GROUPS: usize = PAGE / LANES;

/// Calls a function with the number of rows as a constant. Counts above the set's largest block are never compiled.
macro_rules! with_rows {
    ($s:ty, $rows:expr, $f:ident::<$e:ty>($($arg:expr),* $(,)?)) => {
        match $rows {
            1 => $f::<$s, $e, 1>($($arg),*),
            2 => $f::<$s, $e, 2>($($arg),*),
            3 if const { <$s>::DIRECT > 2 } => $f::<$s, $e, 3>($($arg),*),
            4 if const { <$s>::DIRECT > 2 } => $f::<$s, $e, 4>($($arg),*),
            5 if const { <$s>::DIRECT > 2 } => $f::<$s, $e, 5>($($arg),*),
            6 if const { <$s>::DIRECT > 2 } => $f::<$s, $e, 6>($($arg),*),
            7 if const { <$s>::DIRECT > 6 } => $f::<$s, $e, 7>($($arg),*),
            8 if const { <$s>::DIRECT > 6 } => $f::<$s, $e, 8>($($arg),*),
            _ => unreachable!("blocks are cut to the set's size"),
        }
    };
}

/// What a row sees of a tile, as positions in the tile.
#[inline(always)]
fn seen(rows: &Rows<'_>, tile: usize, row: usize) -> Range<usize> {
    let visible = rows.attention.mask.visible(rows.position(row));
    let first = tile * PAGE;
    let start = visible.start.max(first).min(first + PAGE) - first;
    let end = visible.end.max(first).min(first + PAGE) - first;
    start..end.max(start)
}

/// Computes one segment for a block of rows, into `scratch.segment`.
#[inline(always)]
pub(super) fn segment<S: Blocks>(s: S, rows: &Rows<'_>, index: usize, scratch: &mut Scratch<'_>) {
    let attention = rows.attention;
    clear(attention, scratch.segment);
    let visible = attention.visible(rows.positions());
    let start = visible.start.max(index * SEGMENT);
    let end = visible.end.min((index + 1) * SEGMENT);
    if start >= end {
        return;
    }
    let last = end.div_ceil(PAGE);
    debug_assert!(last - start / PAGE <= SEGMENT_TILES);
    for tile in start / PAGE..last {
        let page = Page::new(rows, tile);
        let after = match tile + 1 {
            next if next * PAGE < visible.end => Some(Page::new(rows, next)),
            _ => None,
        };
        // Consecutive rows see it, since both ends of what they see only move forward.
        let first = (0..rows.len()).find(|&r| !seen(rows, tile, r).is_empty());
        let Some(first) = first else { continue };
        let end = (first..rows.len())
            .rev()
            .find(|&r| !seen(rows, tile, r).is_empty())
            .map_or(first, |r| r + 1);
        one(s, rows, tile, first..end, &page, after.as_ref(), scratch);
    }
}

/// The keys and values of one head in a page.
struct Page {
    keys: *const u8,
    values: *const u8,
}

impl Page {
    #[inline(always)]
    fn new(rows: &Rows<'_>, tile: usize) -> Self {
        let layout = rows.attention.layout;
        let page = rows.run.pages.page(tile);
        assert!(
            page.len() >= layout.page_bytes() && page.as_ptr().cast::<u32>().is_aligned(),
            "the page of a visible tile is there, and aligned"
        );
        // SAFETY: the offsets of a head are inside a page.
        unsafe {
            Self {
                keys: page.as_ptr().add(layout.k_offset(rows.kv_head)),
                values: page.as_ptr().add(layout.v_offset(rows.kv_head)),
            }
        }
    }
}

/// One tile for the rows that see something of it.
#[inline(always)]
fn one<S: Blocks>(
    s: S,
    rows: &Rows<'_>,
    tile: usize,
    which: Range<usize>,
    page: &Page,
    after: Option<&Page>,
    scratch: &mut Scratch<'_>,
) {
    let layout = rows.attention.layout;
    let (k_bytes, v_bytes) = (layout.k_bytes(), layout.v_bytes());
    let direct = which.len() <= S::DIRECT;
    let tile = Tile {
        rows,
        index: tile,
        which,
    };
    // SAFETY: a page holds the head's keys and values in the layout's types and is aligned for them; scratch has a tile of floats each, and
    // rows for the block.
    unsafe {
        // While on keys the values are fetched, and while on values the next keys.
        let mut fetch = Prefetch::new(page.values, v_bytes);
        let mut keys = page.keys;
        let mut ty = layout.k_type();
        if ty != KvType::F32 && !(direct && ty == KvType::F16) {
            load_keys(s, layout, keys, scratch.keys.as_mut_ptr(), &mut fetch);
            (keys, ty) = (scratch.keys.as_ptr().cast(), KvType::F32);
            fetch.rest();
        }
        let weights = scratch.weights.as_mut_ptr();
        match ty {
            KvType::F16 => tile.scores::<S, F16>(s, keys.cast(), weights, &mut fetch),
            _ => tile.scores::<S, f32>(s, keys.cast(), weights, &mut fetch),
        }
        fetch.rest();
        tile.softmax(s, scratch);
        let mut fetch = match after {
            Some(after) => Prefetch::new(after.keys, k_bytes),
            None => Prefetch::NONE,
        };
        let mut values = page.values;
        let mut ty = layout.v_type();
        // Without scratch a row's last vector may not reach into the next row.
        let whole = layout.v_dim().is_multiple_of(LANES);
        if !whole || (ty != KvType::F32 && !(direct && ty == KvType::F16)) {
            load_values(s, layout, values, scratch.values.as_mut_ptr(), &mut fetch);
            (values, ty) = (scratch.values.as_ptr().cast(), KvType::F32);
            fetch.rest();
        }
        match ty {
            KvType::F16 => tile.values::<S, F16>(s, values.cast(), scratch, &mut fetch),
            _ => tile.values::<S, f32>(s, values.cast(), scratch, &mut fetch),
        }
        fetch.rest();
    }
}

/// A tile and the rows of a block that see something of it.
struct Tile<'a> {
    rows: &'a Rows<'a>,
    /// Number of the tile.
    index: usize,
    which: Range<usize>,
}

impl Tile<'_> {
    #[inline(always)]
    fn seen(&self, row: usize) -> Range<usize> {
        seen(self.rows, self.index, row)
    }

    /// The rows in blocks that fit the registers.
    #[inline(always)]
    fn blocks<S: Blocks>(&self) -> impl Iterator<Item = Range<usize>> + use<S> {
        let which = self.which.clone();
        let most = if which.len() <= S::DIRECT {
            S::DIRECT
        } else {
            S::ROWS
        };
        let end = which.end;
        which.step_by(most).map(move |r| r..end.min(r + most))
    }

    /// Dot products of the rows with the keys of the vectors of positions that some row of a block sees.
    ///
    /// # Safety
    /// `keys` points to `[4][k_dim][16]`, `out` to `[rows, 64]`.
    #[inline(always)]
    unsafe fn scores<S: Blocks, E: Element>(
        &self,
        s: S,
        keys: *const E,
        out: *mut f32,
        fetch: &mut Prefetch,
    ) {
        let attention = self.rows.attention;
        let dim = attention.layout.k_dim();
        for block in self.blocks::<S>() {
            let groups =
                self.seen(block.start).start / LANES..self.seen(block.end - 1).end.div_ceil(LANES);
            let query = self.rows.query + block.start / attention.group();
            // SAFETY: queries and heads are inside the run; groups are below 4.
            unsafe {
                let q = self.rows.run.q.as_ptr();
                let row = (self.rows.query * attention.heads
                    + self.rows.kv_head * attention.group())
                    * dim;
                debug_assert!(query < self.rows.query + self.rows.queries);
                let q = RowPointers {
                    q: q.add(row),
                    dim,
                    group: attention.group(),
                    stride: attention.heads * dim,
                    first: block.start,
                };
                let out = out.add(block.start * PAGE);
                with_rows!(
                    S,
                    block.len(),
                    score_rows::<E>(s, keys, groups, q, out, fetch)
                );
            }
        }
    }

    /// Scores to weights, in place; running maximum and sum of each row.
    #[inline(always)]
    fn softmax<S: Simd>(&self, s: S, scratch: &mut Scratch<'_>) {
        let attention = self.rows.attention;
        let len = attention.partial_len();
        let iota = {
            let mut lanes = [0.0; LANES];
            for (i, l) in lanes.iter_mut().enumerate() {
                *l = i as f32;
            }
            s.load(&lanes)
        };
        // All rows of a query see the same, so what is seen begins and ends with a query.
        let group = attention.group();
        let mut seen = 0..0;
        let mut head = group;
        for row in self.which.clone() {
            if head == group {
                head = 0;
                seen = self.seen(row);
            }
            let slope = attention.slopes.get(self.rows.kv_head * group + head);
            head += 1;
            let weights = &mut scratch.weights[row * PAGE..][..PAGE];
            let weights = weights.as_chunks_mut::<LANES>().0;
            let state = &mut scratch.segment[(row + 1) * len - LANES..][..2];
            let (m, l) = (state[0], state[1]);

            let none = s.splat(f32::NEG_INFINITY);
            let mut scores = [none; GROUPS];
            for g in 0..GROUPS {
                if g * LANES >= seen.end || (g + 1) * LANES <= seen.start {
                    continue;
                }
                let mut x = s.mul(s.load(&weights[g]), s.splat(attention.scale));
                if let Some(cap) = attention.softcap {
                    let cap = s.splat(cap);
                    x = s.mul(cap, math::tanh(s, s.div(x, cap)));
                }
                let at = s.add(iota, s.splat((g * LANES) as f32));
                if let Some(&slope) = slope {
                    let query = self.rows.position(row) as f32;
                    let key = s.add(at, s.splat((self.index * PAGE) as f32));
                    x = s.fma(s.splat(slope), s.sub(key, s.splat(query)), x);
                }
                if g * LANES < seen.start || (g + 1) * LANES > seen.end {
                    x = s.select_lt(at, s.splat(seen.end as f32), x, none);
                    x = s.select_lt(at, s.splat(seen.start as f32), none, x);
                }
                scores[g] = x;
            }
            let top = s.max(s.max(scores[0], scores[1]), s.max(scores[2], scores[3]));
            let top = s.max_lane(top);
            let m_new = if m > top { m } else { top };
            // Nothing before counts for nothing; and e^0 is 1.
            let correction = if l == 0.0 || m == m_new {
                1.0
            } else {
                exp(s, m - m_new)
            };
            let shift = s.splat(m_new);
            for g in 0..GROUPS {
                // A score of minus infinity, as all unseen have, is a weight of zero.
                let p = math::exp(s, s.sub(scores[g], shift));
                s.store(p, &mut weights[g]);
                scores[g] = p;
            }
            let sum = s.add(s.add(scores[0], scores[1]), s.add(scores[2], scores[3]));
            state[0] = m_new;
            state[1] = l.mul_add(correction, s.sum(sum));
            scratch.corrections[row] = correction;
        }
    }

    /// `acc = acc * correction`, then `fma` with the values of the positions that the row sees.
    ///
    /// # Safety
    /// `values` points to `[64][v_stride]`; scratch has the block's rows.
    #[inline(always)]
    unsafe fn values<S: Blocks, E: Element>(
        &self,
        s: S,
        values: *const E,
        scratch: &mut Scratch<'_>,
        fetch: &mut Prefetch,
    ) {
        let attention = self.rows.attention;
        let (stride, len) = (attention.v_stride(), attention.partial_len());
        let weights = scratch.weights.as_ptr();
        let corrections = scratch.corrections.as_mut_ptr();
        let acc = scratch.segment.as_mut_ptr();
        for block in self.blocks::<S>() {
            let (first, last) = (self.seen(block.start), self.seen(block.end - 1));
            // What all rows of the block see; before and after it rows go one by one.
            let mut all = last.start..first.end;
            if all.is_empty() {
                all = PAGE..PAGE;
            }
            let same = first == last;
            let steps = block.len();
            let (mut step, end) = if same {
                (steps, steps + 1)
            } else {
                (0, 2 * steps + 1)
            };
            while step < end {
                let (rows, positions) = match step {
                    _ if step == steps => (block.clone(), all.clone()),
                    _ if step < steps => {
                        let row = block.start + step;
                        let seen = self.seen(row);
                        (row..row + 1, seen.start..seen.end.min(all.start))
                    }
                    _ => {
                        let row = block.start + step - steps - 1;
                        (row..row + 1, all.end..self.seen(row).end)
                    }
                };
                step += 1;
                if positions.is_empty() {
                    continue;
                }
                // SAFETY: the caller's; rows are in the block, positions below 64.
                unsafe {
                    let args = Weighted {
                        values: values.add(positions.start * stride),
                        stride,
                        weights: weights.add(rows.start * PAGE + positions.start),
                        positions: positions.len(),
                        corrections: corrections.add(rows.start),
                        acc: acc.add(rows.start * len),
                        len,
                    };
                    with_rows!(S, rows.len(), weigh_rows::<E>(s, &args, fetch));
                    // Done; what follows in this tile must not correct again.
                    corrections
                        .add(rows.start)
                        .copy_from_nonoverlapping([1.0; 8].as_ptr(), rows.len());
                }
            }
        }
    }
}

/// Where the query rows of a block lie.
#[derive(Clone, Copy)]
struct RowPointers {
    /// Row 0 of the block of queries: the first query's first head of the group.
    q: *const f32,
    dim: usize,
    group: usize,
    /// Floats from one query to the next.
    stride: usize,
    /// First row.
    first: usize,
}

/// # Safety
/// See [`Tile::scores`].
#[inline(always)]
unsafe fn score_rows<S: Blocks, E: Element, const R: usize>(
    s: S,
    keys: *const E,
    groups: Range<usize>,
    rows: RowPointers,
    out: *mut f32,
    fetch: &mut Prefetch,
) {
    let mut q = [rows.q; R];
    // SAFETY: the caller's: rows exist, groups are below 4.
    unsafe {
        let (mut query, mut head) = (rows.first / rows.group, rows.first % rows.group);
        for q in &mut q {
            *q = q.add(query * rows.stride + head * rows.dim);
            head += 1;
            if head == rows.group {
                (query, head) = (query + 1, 0);
            }
        }
        let mut g = groups.start;
        let wide = S::vectors(R);
        while g + wide <= groups.end {
            let keys = keys.add(g * rows.dim * LANES);
            let out = out.add(g * LANES);
            match wide {
                4 => score_block::<S, E, R, 4>(s, keys, rows.dim, &q, out, fetch),
                2 => score_block::<S, E, R, 2>(s, keys, rows.dim, &q, out, fetch),
                _ => score_block::<S, E, R, 1>(s, keys, rows.dim, &q, out, fetch),
            }
            g += wide;
        }
        if wide > 2 && g + 2 <= groups.end {
            let keys = keys.add(g * rows.dim * LANES);
            score_block::<S, E, R, 2>(s, keys, rows.dim, &q, out.add(g * LANES), fetch);
            g += 2;
        }
        while g < groups.end {
            let keys = keys.add(g * rows.dim * LANES);
            score_block::<S, E, R, 1>(s, keys, rows.dim, &q, out.add(g * LANES), fetch);
            g += 1;
        }
    }
}

/// Scores of `R` rows for `V` vectors of positions.
///
/// # Safety
/// `keys` points to `[V][dim][16]`, each of `q` to `dim` floats, `out` to R rows of 64 of which V vectors are written.
#[inline(always)]
unsafe fn score_block<S: Simd, E: Element, const R: usize, const V: usize>(
    s: S,
    keys: *const E,
    dim: usize,
    q: &[*const f32; R],
    out: *mut f32,
    fetch: &mut Prefetch,
) {
    let mut acc = [[s.splat(0.0); V]; R];
    let mut ahead = *fetch;
    // SAFETY: the caller's.
    unsafe {
        for d in 0..dim {
            let mut k = [s.splat(0.0); V];
            for (v, k) in k.iter_mut().enumerate() {
                *k = E::load(s, &*keys.add((v * dim + d) * LANES).cast());
            }
            ahead.step((V * size_of::<E>() / 4).max(1));
            for r in 0..R {
                let x = s.splat(*q[r].add(d));
                for v in 0..V {
                    acc[r][v] = s.fma(x, k[v], acc[r][v]);
                }
            }
        }
        for r in 0..R {
            for v in 0..V {
                s.store(acc[r][v], &mut *out.add(r * PAGE + v * LANES).cast());
            }
        }
    }
    *fetch = ahead;
}

/// Arguments of [`weigh_rows`].
struct Weighted<E> {
    values: *const E,
    /// Elements from one position to the next.
    stride: usize,
    weights: *const f32,
    positions: usize,
    corrections: *const f32,
    acc: *mut f32,
    /// Floats from one row's accumulator to the next.
    len: usize,
}

/// # Safety
/// See [`Tile::values`].
#[inline(always)]
unsafe fn weigh_rows<S: Blocks, E: Element, const R: usize>(
    s: S,
    args: &Weighted<E>,
    fetch: &mut Prefetch,
) {
    let vectors = args.stride / LANES;
    let wide = S::vectors(R);
    let mut d = 0;
    // SAFETY: the caller's; `d` counts vectors of a row.
    unsafe {
        while d + wide <= vectors {
            match wide {
                4 => weigh_block::<S, E, R, 4>(s, args, d * LANES, fetch),
                2 => weigh_block::<S, E, R, 2>(s, args, d * LANES, fetch),
                _ => weigh_block::<S, E, R, 1>(s, args, d * LANES, fetch),
            }
            d += wide;
        }
        if wide > 2 && d + 2 <= vectors {
            weigh_block::<S, E, R, 2>(s, args, d * LANES, fetch);
            d += 2;
        }
        while d < vectors {
            weigh_block::<S, E, R, 1>(s, args, d * LANES, fetch);
            d += 1;
        }
    }
}

/// Adds weighted values to `V` vectors of dimensions of `R` rows.
///
/// # Safety
/// As for [`weigh_rows`]; `first + 16 * V` is at most the stride.
#[inline(always)]
unsafe fn weigh_block<S: Simd, E: Element, const R: usize, const V: usize>(
    s: S,
    args: &Weighted<E>,
    first: usize,
    fetch: &mut Prefetch,
) {
    let mut acc = [[s.splat(0.0); V]; R];
    let mut ahead = *fetch;
    // SAFETY: the caller's.
    unsafe {
        for r in 0..R {
            let c = s.splat(*args.corrections.add(r));
            for v in 0..V {
                let at = args.acc.add(r * args.len + first + v * LANES);
                acc[r][v] = s.mul(s.load(&*at.cast()), c);
            }
        }
        for t in 0..args.positions {
            let mut x = [s.splat(0.0); V];
            for (v, x) in x.iter_mut().enumerate() {
                let at = args.values.add(t * args.stride + first + v * LANES);
                *x = E::load(s, &*at.cast());
            }
            ahead.step((V * size_of::<E>() / 4).max(1));
            for r in 0..R {
                let p = s.splat(*args.weights.add(r * PAGE + t));
                for v in 0..V {
                    acc[r][v] = s.fma(p, x[v], acc[r][v]);
                }
            }
        }
        for r in 0..R {
            for v in 0..V {
                let at = args.acc.add(r * args.len + first + v * LANES);
                s.store(acc[r][v], &mut *at.cast());
            }
        }
    }
    *fetch = ahead;
}
