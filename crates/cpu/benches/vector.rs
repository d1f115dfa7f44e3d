//! Speed of the vector kernels by set, in GB/s of input: `cargo bench -p puna-cpu --bench vector`.
//!
//! The data lies in the second-level cache, as between the steps of a plan.

use puna_cpu::kernels::{
    Set,
    elementwise::{Activation, Combine, Map, combine, map},
    math,
    norm::{Norm, layer_norm, rms_norm},
    quantize::quantize,
    rope::{RopeParams, RopeTable, rope},
    simd::{LANES, Simd, simd_entries},
};
use puna_graph::ops::{RopeOrder, RopeScaling};
use puna_quant::Q8RowMut;
use std::{hint::black_box, time::Instant};

simd_entries! { mod exp_entries = exp_kernel(x: &[f32], out: &mut [f32]); }

#[inline(always)]
#[allow(
    clippy::inline_always,
    reason = "compiled with the features of its entry"
)]
fn exp_kernel<S: Simd>(s: S, x: &[f32], out: &mut [f32]) {
    let (x, _) = x.as_chunks::<LANES>();
    let (out, _) = out.as_chunks_mut::<LANES>();
    for (x, out) in x.iter().zip(out) {
        s.store(math::exp(s, s.load(x)), out);
    }
}

/// The best of many turns: GB/s for `bytes` a turn.
fn report(set: Set, name: &str, bytes: usize, mut turn: impl FnMut()) {
    let mut best = f64::INFINITY;
    for _ in 0..200 {
        let start = Instant::now();
        turn();
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!("{set:?} {name}: {:.2} GB/s", bytes as f64 / best / 1e9);
}

fn main() {
    let mut sets = vec![Set::Portable];
    #[cfg(target_arch = "x86_64")]
    {
        use puna_cpu::kernels::simd::{avx2::Avx2, avx512::Avx512};
        if Avx2::new().is_some() {
            sets.extend([Set::PortableFma, Set::Avx2]);
        }
        if Avx512::new().is_some() {
            sets.push(Set::Avx512);
        }
    }
    for set in sets {
        bench(set);
    }
    let params = RopeParams {
        dims: 128,
        base: 1e6,
        scaling: RopeScaling::None,
        factors: None,
        magnitude: 1.0,
    };
    let table = RopeTable::new(&params).expect("parameters");
    let (mut cos, mut sin) = ([0.0; 64], [0.0; 64]);
    let start = Instant::now();
    for position in 0..10_000 {
        table.fill(black_box(position), &mut cos, &mut sin);
    }
    let time = start.elapsed().as_secs_f64() / 10_000.0;
    println!("angles of 64 pairs: {:.2} us a position", time * 1e6);
}

fn bench(set: Set) {
    const N: usize = 1 << 15;
    const COLS: usize = 2048;
    let x: Vec<f32> = (0..N)
        .map(|i| (i * 37 % 1001) as f32 * 0.01 - 5.0)
        .collect();
    let (mut out, mut y) = (vec![0.0; N], x.clone());
    let bytes = N * 4;
    // SAFETY (all calls): only sets that the CPU has are tried.
    let exp = match set {
        #[cfg(target_arch = "x86_64")]
        Set::PortableFma => exp_entries::portable_fma,
        #[cfg(target_arch = "x86_64")]
        Set::Avx2 => exp_entries::avx2,
        #[cfg(target_arch = "x86_64")]
        Set::Avx512 => exp_entries::avx512,
        _ => exp_entries::portable as unsafe fn(&[f32], &mut [f32]),
    };
    // SAFETY: see above.
    report(set, "exp", bytes, || unsafe {
        exp(black_box(&x), &mut out);
    });
    for activation in [
        Activation::Silu,
        Activation::Gelu,
        Activation::GeluErf,
        Activation::Tanh,
    ] {
        let op = Map::Activation(activation);
        report(set, &format!("{activation:?}"), bytes, || {
            y.copy_from_slice(&x);
            // SAFETY: see above.
            unsafe { map(set)(op, black_box(&mut y)) };
        });
    }
    for op in [Combine::Add, Combine::Gate(Activation::Silu)] {
        report(set, &format!("{op:?}"), bytes, || {
            out.copy_from_slice(&x);
            // SAFETY: see above.
            unsafe { combine(set)(op, black_box(&mut out), &x) };
        });
    }
    let weight = vec![1.1; COLS];
    for (name, f) in [("rms_norm", rms_norm(set)), ("layer_norm", layer_norm(set))] {
        let norm = Norm {
            group: COLS,
            weight: Some(&weight),
            bias: None,
            eps: 1e-5,
        };
        report(set, name, bytes, || {
            // SAFETY: see above.
            unsafe { f(&norm, black_box(&x), &mut out) };
        });
    }
    let (cos, sin) = (vec![0.6; 64], vec![0.8; 64]);
    for order in [RopeOrder::Normal, RopeOrder::Neox] {
        report(set, &format!("rope {order:?}"), bytes, || {
            // SAFETY: see above.
            unsafe { rope(set)(order, black_box(&mut y), 128, &cos, &sin) };
        });
    }
    let (mut quants, mut halves) = (vec![0i8; N], vec![0i32; N / 16]);
    let (mut scales, mut sums) = (vec![0.0; N / 32], vec![0.0; N / 32]);
    let mut offsets = vec![0i32; N / 32];
    report(set, "quantize", bytes, || {
        let mut to = Q8RowMut {
            quants: &mut quants,
            scales: &mut scales,
            sums: &mut sums,
            offsets: &mut offsets,
            halves: &mut halves,
        };
        // SAFETY: see above.
        unsafe { quantize(set)(black_box(&x), &mut to) };
    });
}
