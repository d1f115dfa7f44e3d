//! Attention of one token and of a prompt, beside this core's peaks: `cargo bench -p puna-cpu --bench attention [token|prompt] [portable_fma|avx2|avx512]`.

use puna_cpu::kernels::Set;
use puna_cpu::kernels::attention::{Attention, Mask, Output, Pages, Run, Task, kernels};
use puna_cpu::kernels::kv::{KvLayout, KvType, PAGE, store_fn};

mod peaks;

/// Pages after another in one allocation.
struct Slab {
    bytes: peaks::Lines,
    page_bytes: usize,
}

impl Pages for Slab {
    fn page(&self, tile: usize) -> &[u8] {
        &self.bytes.bytes()[tile * self.page_bytes..][..self.page_bytes]
    }
}

fn slab(layout: &KvLayout, positions: usize, set: Set) -> Slab {
    let mut bytes = peaks::Lines::new(positions.div_ceil(PAGE) * layout.page_bytes());
    let k: Vec<f32> = (0..layout.kv_heads() * layout.k_dim())
        .map(|i| (i as f32 * 0.37).sin())
        .collect();
    let v: Vec<f32> = (0..layout.kv_heads() * layout.v_dim())
        .map(|i| (i as f32 * 0.73).cos())
        .collect();
    for position in 0..positions {
        let page = &mut bytes.bytes_mut()[position / PAGE * layout.page_bytes()..];
        // SAFETY: the set was detected, and the page lies inside the slab.
        unsafe {
            store_fn(set)(
                layout,
                page.as_mut_ptr(),
                0..layout.kv_heads(),
                position % PAGE,
                &k,
                &v,
            );
        }
    }
    Slab {
        bytes,
        page_bytes: layout.page_bytes(),
    }
}

#[derive(Clone, Copy)]
struct Shape {
    ty: KvType,
    kv_heads: usize,
    group: usize,
    dim: usize,
    /// Position of the first query.
    first: usize,
    queries: usize,
}

fn bench(set: Set, shape: &Shape, peak: f64, read: f64) {
    let Shape {
        ty,
        kv_heads,
        group,
        dim,
        first,
        queries,
    } = *shape;
    let layout = KvLayout::new(ty, ty, kv_heads, dim, dim).expect("sizes are right");
    print!(
        "{:5} {kv_heads:2} x {group} heads of {dim:3}, {queries:3} queries at {first:5} ",
        ty.name()
    );
    // A prompt uses its pages again and again; one token streams through those of all layers.
    let layers = if queries < 32 { 8 } else { 1 };
    let pages: Vec<_> = (0..layers)
        .map(|_| slab(&layout, first + queries, set))
        .collect();
    let heads = kv_heads * group;
    let q: Vec<f32> = (0..queries * heads * dim)
        .map(|i| (i as f32 * 0.11).sin())
        .collect();
    let attention = Attention {
        layout: &layout,
        heads,
        scale: 1.0 / (dim as f32).sqrt(),
        softcap: None,
        mask: Mask::Causal,
        slopes: &[],
        sinks: &[],
    };
    let mut out = vec![0.0; queries * heads * dim];
    let output = Output {
        at: out.as_mut_ptr(),
        queries,
    };
    let mut scratch = vec![0.0; attention.scratch_len(queries)];
    let seconds = peaks::median(|| {
        for pages in &pages {
            let run = Run {
                q: &q,
                first_position: first,
                pages,
            };
            for kv_head in 0..kv_heads {
                let task = Task {
                    kv_head,
                    queries: 0..queries,
                };
                // SAFETY: the set was detected, and `out` has the rows.
                unsafe { (kernels(set).attend)(&attention, &run, &task, &mut scratch, output) };
            }
        }
    }) / layers as f64;
    let bytes = (first + queries) as f64
        * (kv_heads * (layout.k_bytes() + layout.v_bytes())) as f64
        / PAGE as f64;
    let pairs = queries as f64 * (first as f64 + 0.5 * (queries as f64 + 1.0));
    let flops = pairs * (heads * dim * 4) as f64;
    println!(
        "{:8.3} ms  {:5.1} GB/s ({:3.0} %)  {:6.1} GFLOP/s ({:3.0} %)",
        seconds * 1e3,
        bytes / seconds / 1e9,
        100.0 * bytes / seconds / read,
        flops / seconds / 1e9,
        100.0 * flops / seconds / peak,
    );
}

fn main() {
    let set = peaks::chosen_set();
    let (peak, read) = (peaks::fma_peak(set), peaks::read_peak());
    println!(
        "{set:?}: {:.0} GFLOP/s, plain read {:.1} GB/s",
        peak / 1e9,
        read / 1e9
    );
    let plain = Shape {
        ty: KvType::F16,
        kv_heads: 4,
        group: 1,
        dim: 128,
        first: 8191,
        queries: 1,
    };
    let only = |name: &str| {
        let mut named = std::env::args()
            .filter(|a| a == "token" || a == "prompt")
            .peekable();
        named.peek().is_none() || named.any(|a| a == name)
    };
    if only("token") {
        tokens(set, &plain, peak, read);
    }
    if only("prompt") {
        prompts(set, &plain, peak, read);
    }
}

/// One token and a few.
fn tokens(set: Set, plain: &Shape, peak: f64, read: f64) {
    for dim in [64, 128] {
        for group in [1, 2, 3, 4, 6, 7, 8] {
            bench(
                set,
                &Shape {
                    group,
                    dim,
                    kv_heads: 512 / dim,
                    ..*plain
                },
                peak,
                read,
            );
        }
    }
    for ty in [KvType::F32, KvType::Bf16, KvType::Q8_0, KvType::Q4_0] {
        bench(
            set,
            &Shape {
                ty,
                group: 4,
                ..*plain
            },
            peak,
            read,
        );
    }
    for queries in [4, 16] {
        bench(
            set,
            &Shape {
                group: 4,
                queries,
                ..*plain
            },
            peak,
            read,
        );
    }
}

/// Whole prompts.
fn prompts(set: Set, plain: &Shape, peak: f64, read: f64) {
    for (first, queries) in [(0, 128), (0, 512), (4096, 512)] {
        for (dim, kv_heads, group) in [(64, 3, 3), (80, 4, 1), (128, 2, 6), (256, 1, 4)] {
            let shape = Shape {
                kv_heads,
                group,
                dim,
                first,
                queries,
                ..*plain
            };
            bench(set, &shape, peak, read);
        }
    }
    for ty in [KvType::F32, KvType::Bf16, KvType::Q8_0, KvType::Q4_0] {
        bench(
            set,
            &Shape {
                ty,
                group: 4,
                first: 0,
                queries: 512,
                ..*plain
            },
            peak,
            read,
        );
    }
}
