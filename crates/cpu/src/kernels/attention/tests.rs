//! Against plain `f64`, and bit for bit against itself: other sets, chunks, splits, cache contents that are not seen.

use super::*;
use crate::kernels::kv::{KvType, load_row, store_fn};

/// A small generator of random numbers.
pub(crate) struct Rng(pub u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        self.0 >> 33
    }
    /// In [-1, 1).
    pub(crate) fn float(&mut self) -> f32 {
        self.next() as f32 / (1u64 << 30) as f32 - 1.0
    }
    pub(crate) fn floats(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.float()).collect()
    }
}

/// The sets that this CPU has.
pub(crate) fn sets() -> Vec<Set> {
    let mut sets = vec![Set::Portable];
    #[cfg(target_arch = "x86_64")]
    {
        use crate::kernels::simd::{avx2::Avx2, avx512::Avx512};
        if Avx2::new().is_some() {
            sets.extend([Set::PortableFma, Set::Avx2]);
        }
        if Avx512::new().is_some() {
            sets.push(Set::Avx512);
        }
    }
    sets
}

/// The fastest set that is not slow in tests.
fn best() -> Set {
    *sets().last().unwrap()
}

#[derive(Clone, Copy, Debug)]
struct Case {
    types: (KvType, KvType),
    kv_heads: usize,
    group: usize,
    k_dim: usize,
    v_dim: usize,
    first: usize,
    queries: usize,
    mask: Mask,
    softcap: Option<f32>,
    alibi: bool,
    sinks: bool,
}

const PLAIN: Case = Case {
    types: (KvType::F16, KvType::F16),
    kv_heads: 2,
    group: 2,
    k_dim: 32,
    v_dim: 32,
    first: 60,
    queries: 7,
    mask: Mask::Causal,
    softcap: None,
    alibi: false,
    sinks: false,
};

fn window(n: usize) -> Mask {
    Mask::Window(NonZeroUsize::new(n).unwrap())
}

/// A page of 64-byte lines.
#[derive(Clone)]
struct Page(Vec<Line>);
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

impl AsRef<[u8]> for Page {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: lines are plain bytes without padding.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() * 64) }
    }
}

/// A case with its data.
struct Data {
    case: Case,
    layout: KvLayout,
    pages: Vec<Page>,
    q: Vec<f32>,
    slopes: Vec<f32>,
    sinks: Vec<f32>,
}

impl Data {
    /// Pages hold positions before `stored`, and NaN beyond.
    fn new(case: Case, stored: usize) -> Self {
        let layout = KvLayout::new(
            case.types.0,
            case.types.1,
            case.kv_heads,
            case.k_dim,
            case.v_dim,
        )
        .unwrap();
        let heads = case.kv_heads * case.group;
        let mut rng = Rng(42);
        let empty = Page(vec![Line([0xff; 64]); layout.page_bytes() / 64]);
        let mut pages = vec![empty; stored.div_ceil(PAGE)];
        for position in 0..stored {
            let k = rng.floats(case.kv_heads * case.k_dim);
            let v = rng.floats(case.kv_heads * case.v_dim);
            let page = pages[position / PAGE].0.as_mut_ptr().cast();
            // SAFETY: the set is one that the CPU has, and the page is as large as the layout says.
            unsafe {
                store_fn(best())(&layout, page, 0..case.kv_heads, position % PAGE, &k, &v);
            }
        }
        let mut rng = Rng(43);
        let q = rng
            .floats(case.queries * heads * case.k_dim)
            .iter()
            .map(|x| x * 4.0)
            .collect();
        let optional = |on: bool, x: Vec<f32>| if on { x } else { Vec::new() };
        let slopes = (0..heads).map(|h| 0.5f32.powi(h as i32 + 1)).collect();
        let sinks = (0..heads).map(|h| h as f32 - 1.0).collect();
        Self {
            case,
            layout,
            pages,
            q,
            slopes: optional(case.alibi, slopes),
            sinks: optional(case.sinks, sinks),
        }
    }

    fn whole(case: Case) -> Self {
        Self::new(case, case.first + case.queries)
    }

    fn attention(&self) -> Attention<'_> {
        Attention {
            layout: &self.layout,
            heads: self.case.kv_heads * self.case.group,
            scale: 1.0 / (self.case.k_dim as f32).sqrt(),
            softcap: self.case.softcap,
            mask: self.case.mask,
            slopes: &self.slopes,
            sinks: &self.sinks,
        }
    }

    fn run(&self) -> Run<'_> {
        Run {
            q: &self.q,
            first_position: self.case.first,
            pages: &self.pages,
        }
    }

    /// All output rows, in tasks of at most `chunk` queries.
    fn attend(&self, set: Set, chunk: usize) -> Vec<f32> {
        let (attention, run) = (self.attention(), self.run());
        let mut out = vec![f32::NAN; self.case.queries * attention.heads * self.case.v_dim];
        let output = Output {
            at: out.as_mut_ptr(),
            queries: self.case.queries,
        };
        for task in self.tasks(chunk) {
            let mut scratch = vec![f32::NAN; attention.scratch_len(task.queries.len())];
            // SAFETY: the set is one that the CPU has, and `out` has the rows.
            unsafe { (kernels(set).attend)(&attention, &run, &task, &mut scratch, output) };
        }
        out
    }

    /// The same through segments, computed in descending order.
    fn attend_by_segments(&self, set: Set, chunk: usize) -> Vec<f32> {
        let (attention, run) = (self.attention(), self.run());
        let mut out = vec![f32::NAN; self.case.queries * attention.heads * self.case.v_dim];
        let output = Output {
            at: out.as_mut_ptr(),
            queries: self.case.queries,
        };
        for task in self.tasks(chunk) {
            let first = self.case.first + task.queries.start;
            let segments = attention.segments(first..first + task.queries.len());
            let len = task.queries.len() * attention.group() * attention.partial_len();
            let mut partials = vec![f32::NAN; segments.len() * len];
            let mut scratch = vec![f32::NAN; attention.scratch_len(task.queries.len())];
            for segment in segments.clone().rev() {
                let part = &mut partials[(segment - segments.start) * len..][..len];
                // SAFETY: the set is one that the CPU has.
                unsafe {
                    (kernels(set).segment)(&attention, &run, &task, segment, &mut scratch, part);
                }
            }
            // SAFETY: as before, and `out` has the rows.
            unsafe { (kernels(set).merge)(&attention, &task, &mut partials, output) };
        }
        out
    }

    fn tasks(&self, chunk: usize) -> Vec<Task> {
        let mut tasks = Vec::new();
        for kv_head in 0..self.case.kv_heads {
            for start in (0..self.case.queries).step_by(chunk) {
                let end = (start + chunk).min(self.case.queries);
                tasks.push(Task {
                    kv_head,
                    queries: start..end,
                });
            }
        }
        tasks
    }

    /// Plain softmax attention in `f64` on the stored numbers.
    fn reference(&self) -> Vec<f64> {
        let attention = self.attention();
        let Case { k_dim, v_dim, .. } = self.case;
        let rows: Vec<_> = (0..self.pages.len() * PAGE)
            .map(|position| {
                let mut k = vec![0.0; self.case.kv_heads * k_dim];
                let mut v = vec![0.0; self.case.kv_heads * v_dim];
                let page = self.pages[position / PAGE].as_ref();
                load_row(&self.layout, page, position % PAGE, &mut k, &mut v);
                (k, v)
            })
            .collect();
        let mut out = Vec::new();
        for query in 0..self.case.queries {
            let position = self.case.first + query;
            for head in 0..attention.heads {
                let kv = head / self.case.group;
                let q = &self.q[(query * attention.heads + head) * k_dim..][..k_dim];
                let visible = self.case.mask.visible(position);
                let scores: Vec<f64> = visible
                    .clone()
                    .map(|p| {
                        let k = &rows[p].0[kv * k_dim..][..k_dim];
                        let dot: f64 = q.iter().zip(k).map(|(&a, &b)| a as f64 * b as f64).sum();
                        let mut x = dot * attention.scale as f64;
                        if let Some(cap) = attention.softcap {
                            x = cap as f64 * (x / cap as f64).tanh();
                        }
                        if self.case.alibi {
                            x += self.slopes[head] as f64 * (p as f64 - position as f64);
                        }
                        x
                    })
                    .collect();
                let sink = self.sinks.get(head).map(|&x| x as f64);
                let m = scores.iter().copied().chain(sink).fold(f64::MIN, f64::max);
                let l: f64 = scores
                    .iter()
                    .copied()
                    .chain(sink)
                    .map(|x| (x - m).exp())
                    .sum();
                for d in 0..v_dim {
                    let sum: f64 = visible
                        .clone()
                        .zip(&scores)
                        .map(|(p, x)| (x - m).exp() * rows[p].1[kv * v_dim + d] as f64)
                        .sum();
                    out.push(sum / l);
                }
            }
        }
        out
    }
}

fn assert_bits(a: &[f32], b: &[f32], what: &dyn std::fmt::Debug) {
    let differ = a
        .iter()
        .zip(b)
        .position(|(a, b)| a.to_bits() != b.to_bits());
    assert_eq!((a.len(), differ), (b.len(), None), "{what:?}");
}

/// Near to `f64`, and equal bits for every set, chunking and split.
fn check(case: Case) {
    let set = Data::whole(case);
    let all = set.attend(best(), case.queries);
    for (i, (got, want)) in all.iter().zip(set.reference()).enumerate() {
        let error = (f64::from(*got) - want).abs();
        assert!(
            error < 3e-6,
            "{case:?}: element {i} is {got}, expected {want}"
        );
    }
    for chunk in [1, 2, 3, 5] {
        if chunk < case.queries {
            assert_bits(&set.attend(best(), chunk), &all, &(case, chunk));
        }
    }
    for chunk in [1, case.queries] {
        assert_bits(&set.attend_by_segments(best(), chunk), &all, &(case, chunk));
    }
    for other in sets() {
        assert_bits(&set.attend(other, case.queries), &all, &(case, other));
        assert_bits(&set.attend(other, 1), &all, &(case, other));
    }
}

#[test]
fn every_pair_of_cache_types_gives_its_numbers() {
    for &k in KvType::ALL {
        for &v in KvType::ALL {
            check(Case {
                types: (k, v),
                k_dim: 64,
                ..PLAIN
            });
        }
    }
}

#[test]
fn odd_head_sizes_work() {
    for (k_dim, v_dim) in [
        (8, 8),
        (20, 20),
        (40, 40),
        (48, 48),
        (72, 72),
        (80, 80),
        (96, 96),
        (100, 100),
        (7, 13),
        (192, 128),
        (256, 256),
        (1, 512),
    ] {
        for (ty, group) in [(KvType::F32, 1), (KvType::F16, 3), (KvType::Bf16, 5)] {
            check(Case {
                types: (ty, ty),
                k_dim,
                v_dim,
                group,
                kv_heads: 1,
                queries: 4,
                ..PLAIN
            });
        }
    }
}

#[test]
fn groups_of_any_size_share_a_head() {
    for group in [1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 100] {
        check(Case {
            group,
            kv_heads: 1,
            queries: 3,
            first: 62,
            ..PLAIN
        });
    }
}

#[test]
fn windows_of_any_size_see_what_they_should() {
    for n in [1, 2, 17, 63, 64, 65, 128, 200] {
        for first in [0, 30, 127, 190] {
            check(Case {
                mask: window(n),
                first,
                queries: 9,
                group: 1,
                ..PLAIN
            });
        }
    }
}

#[test]
fn chunked_and_whole_masks_see_what_they_should() {
    let chunked = Mask::Chunked(NonZeroUsize::new(50).unwrap());
    for mask in [chunked, Mask::First(1), Mask::First(64), Mask::First(130)] {
        check(Case {
            mask,
            first: 125,
            queries: 6,
            ..PLAIN
        });
    }
}

#[test]
fn tiles_outside_the_window_are_never_asked_for() {
    struct Only<'a>(&'a [Page], Range<usize>);
    impl Pages for Only<'_> {
        fn page(&self, tile: usize) -> &[u8] {
            assert!(self.1.contains(&tile), "tile {tile} is not visible");
            self.0[tile].as_ref()
        }
    }
    let case = Case {
        mask: window(70),
        first: 1200,
        queries: 5,
        ..PLAIN
    };
    let set = Data::whole(case);
    let pages = Only(&set.pages, (1200 - 69) / PAGE..1205usize.div_ceil(PAGE));
    let run = Run {
        pages: &pages,
        ..set.run()
    };
    let attention = set.attention();
    let mut out = vec![0.0; case.queries * attention.heads * case.v_dim];
    let output = Output {
        at: out.as_mut_ptr(),
        queries: case.queries,
    };
    for task in set.tasks(case.queries) {
        let mut scratch = vec![0.0; attention.scratch_len(case.queries)];
        // SAFETY: the set is one that the CPU has, and `out` has the rows.
        unsafe { (kernels(best()).attend)(&attention, &run, &task, &mut scratch, output) };
    }
    assert_bits(&out, &set.attend(best(), case.queries), &case);
}

#[test]
fn softcap_alibi_and_sinks_enter_the_scores() {
    for bits in 1..8 {
        check(Case {
            softcap: (bits & 1 != 0).then_some(3.0),
            alibi: bits & 2 != 0,
            sinks: bits & 4 != 0,
            group: 3,
            first: 100,
            ..PLAIN
        });
    }
}

#[test]
fn contexts_of_several_segments_merge_to_the_same_bits() {
    for (mask, sinks) in [
        (Mask::Causal, false),
        (Mask::Causal, true),
        (window(1024), false),
        (window(1500), true),
    ] {
        check(Case {
            mask,
            sinks,
            first: 2046,
            queries: 4,
            kv_heads: 1,
            group: 2,
            ..PLAIN
        });
        check(Case {
            mask,
            sinks,
            first: 2500,
            queries: 1,
            kv_heads: 1,
            group: 7,
            k_dim: 40,
            v_dim: 24,
            ..PLAIN
        });
    }
}

#[test]
fn a_long_prompt_is_the_same_in_blocks_of_any_size() {
    let case = Case {
        first: 0,
        queries: 300,
        group: 3,
        k_dim: 64,
        v_dim: 72,
        kv_heads: 1,
        mask: window(150),
        ..PLAIN
    };
    let set = Data::whole(case);
    let all = set.attend(best(), 300);
    for chunk in [1, 31, 32, 64, 100] {
        assert_bits(&set.attend(best(), chunk), &all, &chunk);
    }
    #[cfg(target_arch = "x86_64")]
    if best() == Set::Avx512 {
        assert_bits(&set.attend(Set::Avx2, 300), &all, &"avx2");
        assert_bits(&set.attend(Set::PortableFma, 300), &all, &"portable_fma");
    }
}

#[test]
fn what_the_cache_holds_beyond_the_last_query_does_not_matter() {
    for first in [0, 10, 63, 100] {
        let case = Case { first, ..PLAIN };
        let later = Data::new(case, first + case.queries + 40);
        assert_bits(
            &later.attend(best(), case.queries),
            &Data::whole(case).attend(best(), 1),
            &first,
        );
    }
}

#[test]
fn a_query_that_sees_nothing_gives_zeros() {
    let set = Data::whole(Case {
        mask: Mask::First(0),
        ..PLAIN
    });
    assert!(set.attend(best(), 7).iter().all(|&x| x.to_bits() == 0));
}
