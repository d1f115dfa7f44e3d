//! What the core can do at most, and how things are timed.
#![allow(dead_code, reason = "each benchmark uses its part")]

use puna_cpu::kernels::Set;
use std::hint::black_box;
use std::time::Instant;

/// Memory in whole cache lines.
pub(crate) struct Lines(Vec<Line>);

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

impl Lines {
    pub(crate) fn new(bytes: usize) -> Self {
        Self(vec![Line([0; 64]); bytes.div_ceil(64)])
    }
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: lines are plain bytes without padding.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() * 64) }
    }
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), self.0.len() * 64) }
    }
}

/// Median time of a call in seconds of this thread: at least five calls, for about a third of a second. On a shared machine the time that others
/// take does not count.
pub(crate) fn median(mut f: impl FnMut()) -> f64 {
    f();
    let mut times = Vec::new();
    let all = Instant::now();
    while times.len() < 5 || (all.elapsed().as_secs_f64() < 0.3 && times.len() < 1001) {
        let start = thread_seconds();
        f();
        times.push(thread_seconds() - start);
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Seconds that this thread has run.
#[cfg(unix)]
fn thread_seconds() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes the given structure.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Seconds that have passed.
#[cfg(not(unix))]
fn thread_seconds() -> f64 {
    use std::sync::LazyLock;
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_secs_f64()
}

/// The set named by the first argument that names one, or the best that the CPU has.
pub(crate) fn chosen_set() -> Set {
    let named = std::env::args().find_map(|a| match a.as_str() {
        "portable" => Some(Set::Portable),
        "portable_fma" => Some(Set::PortableFma),
        "avx2" => Some(Set::Avx2),
        "avx512" => Some(Set::Avx512),
        _ => None,
    });
    named.unwrap_or({
        #[cfg(target_arch = "x86_64")]
        {
            use puna_cpu::kernels::simd::{avx2::Avx2, avx512::Avx512};
            if Avx512::new().is_some() {
                Set::Avx512
            } else if Avx2::new().is_some() {
                Set::Avx2
            } else {
                Set::Portable
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        Set::Portable
    })
}

/// FLOP/s of nothing but fused multiply-adds in registers.
pub(crate) fn fma_peak(set: Set) -> f64 {
    let rounds = 2_000_000u64;
    #[cfg(target_arch = "x86_64")]
    let seconds = match set {
        // SAFETY: the set was detected.
        Set::Avx512 => median(|| unsafe { fma_avx512(black_box(rounds)) }) / 2.0,
        // SAFETY: the set was detected.
        Set::Avx2 | Set::PortableFma => median(|| unsafe { fma_avx2(black_box(rounds)) }),
        _ => f64::INFINITY,
    };
    #[cfg(not(target_arch = "x86_64"))]
    let seconds = f64::INFINITY;
    rounds as f64 * 12.0 * 8.0 * 2.0 / seconds
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn fma_avx512(rounds: u64) {
    use std::arch::x86_64::{_mm512_fmadd_ps, _mm512_set1_ps};
    let mut acc = [_mm512_set1_ps(0.5); 12];
    let x = _mm512_set1_ps(black_box(0.5));
    for _ in 0..rounds {
        for a in &mut acc {
            *a = _mm512_fmadd_ps(*a, x, x);
        }
    }
    black_box(acc);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn fma_avx2(rounds: u64) {
    use std::arch::x86_64::{_mm256_fmadd_ps, _mm256_set1_ps};
    let mut acc = [_mm256_set1_ps(0.5); 12];
    let x = _mm256_set1_ps(black_box(0.5));
    for _ in 0..rounds {
        for a in &mut acc {
            *a = _mm256_fmadd_ps(*a, x, x);
        }
    }
    black_box(acc);
}

/// Bytes/s of reading 256 MB in order.
pub(crate) fn read_peak() -> f64 {
    let lines = Lines::new(256 << 20);
    let bytes = lines.bytes();
    #[cfg(target_arch = "x86_64")]
    let seconds = median(|| {
        if is_x86_feature_detected!("avx2") {
            // SAFETY: just detected.
            unsafe { read_avx2(bytes) }
        } else {
            read(bytes);
        }
    });
    #[cfg(not(target_arch = "x86_64"))]
    let seconds = median(|| read(bytes));
    bytes.len() as f64 / seconds
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn read_avx2(bytes: &[u8]) {
    use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
    for part in bytes.chunks(4096) {
        for line in part.chunks_exact(64) {
            let ahead = line.as_ptr().wrapping_add(16384);
            _mm_prefetch::<_MM_HINT_T1>(ahead.cast());
        }
        read(part);
    }
}

#[expect(
    clippy::inline_always,
    reason = "to be compiled for the caller's instruction set"
)]
#[inline(always)]
fn read(bytes: &[u8]) {
    let mut sums = [0u64; 32];
    for chunk in bytes.as_chunks::<8>().0.as_chunks::<32>().0 {
        for (s, w) in sums.iter_mut().zip(chunk) {
            *s = s.wrapping_add(u64::from_ne_bytes(*w));
        }
    }
    black_box(sums);
}
