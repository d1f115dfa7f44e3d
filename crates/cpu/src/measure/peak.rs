//! How fast the cores multiply and add: loops of the instructions that the kernels are made of, on registers alone.

use super::rounds;
use std::{hint::black_box, time::Duration};

/// Turns of a loop; a millisecond or two.
const TURNS: u64 = 250_000;
/// Rounds of which the best counts.
const ROUNDS: usize = 48;

/// The best that an instruction gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peak {
    /// Operations per second of all threads together; a multiplication and an addition are two.
    pub per_second: f64,
    /// The instruction, as in `vpdpbusd zmm`.
    pub instruction: &'static str,
}

/// A loop of `turns` turns; returns operations of one turn.
type Loop = fn(u64) -> u64;

fn peak(threads: usize, (instruction, body): (&'static str, Loop)) -> Peak {
    let threads = threads.max(1);
    let per_turn = body(1);
    let times = rounds(
        threads,
        ROUNDS,
        |_| (),
        |(), _| {
            black_box(body(black_box(TURNS)));
        },
    );
    let time = times.into_iter().min().unwrap_or(Duration::MAX);
    Peak {
        per_second: (TURNS * per_turn * threads as u64) as f64 / time.as_secs_f64(),
        instruction,
    }
}

/// Peak of multiplying bytes and adding the products up in 32 bits.
pub fn integer_peak(threads: usize) -> Peak {
    #[cfg(target_arch = "x86_64")]
    let best = x86::integer();
    #[cfg(not(target_arch = "x86_64"))]
    let best = None;
    peak(threads, best.unwrap_or(("plain code", plain_integer)))
}

/// Peak of fused multiply-adds of 32-bit floats.
pub fn float_peak(threads: usize) -> Peak {
    #[cfg(target_arch = "x86_64")]
    let best = x86::float();
    #[cfg(not(target_arch = "x86_64"))]
    let best = None;
    peak(threads, best.unwrap_or(("plain code", plain_float)))
}

const PLAIN: usize = 64;

fn plain_integer(turns: u64) -> u64 {
    let mut sums = [0i32; PLAIN];
    let mut x = [3i32; PLAIN];
    for _ in 0..turns {
        x = black_box(x);
        for (sum, x) in sums.iter_mut().zip(x) {
            *sum = sum.wrapping_add(x.wrapping_mul(x));
        }
    }
    black_box(sums);
    2 * PLAIN as u64
}

fn plain_float(turns: u64) -> u64 {
    let mut sums = [0f32; PLAIN];
    let mut x = [0.5f32; PLAIN];
    for _ in 0..turns {
        x = black_box(x);
        for (sum, x) in sums.iter_mut().zip(x) {
            *sum += x * x;
        }
    }
    black_box(sums);
    2 * PLAIN as u64
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Loop, black_box};
    #[allow(clippy::wildcard_imports, reason = "intrinsics name what they are")]
    use std::arch::x86_64::*;

    /// Independent sums: more than an instruction's latency times those that begin in one cycle.
    const SUMS: usize = 12;

    pub(super) fn integer() -> Option<(&'static str, Loop)> {
        if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vnni") {
            // SAFETY: the CPU has the features.
            return Some(("vpdpbusd zmm", |turns| unsafe { dpbusd(turns) }));
        }
        // SAFETY: the CPU has the feature.
        is_x86_feature_detected!("avx2")
            .then_some(("vpmaddubsw ymm", |turns| unsafe { maddubs(turns) }))
    }

    pub(super) fn float() -> Option<(&'static str, Loop)> {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the CPU has the feature.
            return Some(("vfmadd zmm", |turns| unsafe { fma512(turns) }));
        }
        // SAFETY: the CPU has the features.
        (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"))
            .then_some(("vfmadd ymm", |turns| unsafe { fma256(turns) }))
    }

    /// # Safety
    /// The CPU has these features.
    #[target_feature(enable = "avx512f,avx512vnni")]
    unsafe fn dpbusd(turns: u64) -> u64 {
        let (x, y) = (
            black_box(_mm512_set1_epi8(3)),
            black_box(_mm512_set1_epi8(5)),
        );
        let mut sums = [_mm512_setzero_si512(); SUMS];
        for _ in 0..turns {
            for sum in &mut sums {
                *sum = _mm512_dpbusd_epi32(*sum, x, y);
            }
        }
        black_box(sums);
        SUMS as u64 * 64 * 2
    }

    /// # Safety
    /// The CPU has this feature.
    #[target_feature(enable = "avx2")]
    unsafe fn maddubs(turns: u64) -> u64 {
        const SUMS: usize = 6;
        let y: [__m256i; SUMS] = black_box([_mm256_set1_epi8(5); SUMS]);
        let ones = _mm256_set1_epi16(1);
        let mut x = _mm256_set1_epi8(3);
        let mut sums = [_mm256_setzero_si256(); SUMS];
        for _ in 0..turns {
            // Otherwise the products are the same in every turn, and computed once.
            x = black_box(x);
            for (sum, y) in sums.iter_mut().zip(y) {
                let products = _mm256_madd_epi16(_mm256_maddubs_epi16(x, y), ones);
                *sum = _mm256_add_epi32(*sum, products);
            }
        }
        black_box(sums);
        SUMS as u64 * 32 * 2
    }

    /// # Safety
    /// The CPU has this feature.
    #[target_feature(enable = "avx512f")]
    unsafe fn fma512(turns: u64) -> u64 {
        let (x, y) = (
            black_box(_mm512_set1_ps(0.5)),
            black_box(_mm512_set1_ps(0.25)),
        );
        let mut sums = [_mm512_setzero_ps(); SUMS];
        for _ in 0..turns {
            for sum in &mut sums {
                *sum = _mm512_fmadd_ps(*sum, x, y);
            }
        }
        black_box(sums);
        SUMS as u64 * 16 * 2
    }

    /// # Safety
    /// The CPU has these features.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn fma256(turns: u64) -> u64 {
        let (x, y) = (
            black_box(_mm256_set1_ps(0.5)),
            black_box(_mm256_set1_ps(0.25)),
        );
        let mut sums = [_mm256_setzero_ps(); SUMS];
        for _ in 0..turns {
            for sum in &mut sums {
                *sum = _mm256_fmadd_ps(*sum, x, y);
            }
        }
        black_box(sums);
        SUMS as u64 * 8 * 2
    }
}
