//! Speed of the quantized panels on one core, beside what the machine can do: `cargo bench -p puna-cpu --bench linear [type] [set]`.
//!
//! Columns: GB/s of weights at one token from memory, then GOP/s (two per weight and token) for growing token counts.

#![allow(
    clippy::format_push_string,
    clippy::wildcard_imports,
    reason = "a benchmark prints lines"
)]

use puna_cpu::kernels::Set;
use puna_cpu::kernels::linear::{Activations, MOST_ROWS, Panel, PanelFn, panel_fn};
use puna_quant::{ActivationBuffer, ActivationKind, ActivationRow, ElementType, Q8Row};

const TYPES: [ElementType; 13] = [
    ElementType::Q4_K,
    ElementType::Q6_K,
    ElementType::Q5_0,
    ElementType::Q8_0,
    ElementType::Q4_1,
    ElementType::Q4_0,
    ElementType::Q5_1,
    ElementType::IQ4_NL,
    ElementType::MXFP4,
    ElementType::Q2_K,
    ElementType::Q3_K,
    ElementType::Q5_K,
    ElementType::IQ4_XS,
];
const TOKENS: [usize; 7] = [1, 2, 4, 8, 16, 64, 512];
const COLS: usize = 1536;
/// Larger than the caches that one core may fill.
const MATRIX_BYTES: usize = 192 << 20;

/// The first `tokens` rows of quantized activations.
fn first<'a>(row: &Q8Row<'a>, tokens: usize) -> Activations<'a> {
    let n = tokens * COLS;
    Activations::Q8 {
        parts: Q8Row {
            quants: &row.quants[..n],
            scales: &row.scales[..n / 32],
            sums: &row.sums[..n / 32],
            offsets: &row.offsets[..n / 32],
            halves: &row.halves[..n / 16],
        },
        tokens,
        cols: COLS,
    }
}

/// Seconds that this thread has run: other processes on the core do not count.
fn now() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes one value.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Smallest time of `runs`, in seconds.
fn best(runs: usize, mut f: impl FnMut()) -> f64 {
    (0..runs)
        .map(|_| {
            let start = now();
            f();
            now() - start
        })
        .fold(f64::INFINITY, f64::min)
}

/// Best bytes per second over pieces of a pass through memory.
fn fastest(bytes: &[u8], piece: usize, mut f: impl FnMut(&[u8])) -> f64 {
    let piece = piece.min(bytes.len());
    (0..2)
        .flat_map(|_| bytes.chunks_exact(piece))
        .map(|piece| piece.len() as f64 / best(1, || f(piece)))
        .fold(0.0, f64::max)
}

/// All panels of a matrix.
fn multiply(
    kernel: PanelFn,
    matrix: &[u8],
    row_bytes: usize,
    x: &Activations<'_>,
    out: &mut [f32],
) {
    for at in (0..matrix.len()).step_by(row_bytes * MOST_ROWS) {
        let panel = Panel {
            bytes: &matrix[at..],
            row_bytes,
            rows: MOST_ROWS,
            cols: COLS,
        };
        // SAFETY: `main` only offers sets that the CPU has.
        unsafe { kernel(&panel, x, out) };
    }
}

fn read(bytes: &[u8]) -> u64 {
    let (words, _) = bytes.as_chunks::<64>();
    let mut sums = [0u64; 8];
    for line in words {
        for (sum, word) in sums.iter_mut().zip(line.as_chunks::<8>().0) {
            *sum = sum.wrapping_add(u64::from_le_bytes(*word));
        }
    }
    sums.iter().fold(0, |a, b| a ^ b)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vnni")]
fn vnni(rounds: usize) -> i32 {
    use std::arch::x86_64::*;
    let mut acc = [_mm512_setzero_si512(); 16];
    let w = _mm512_set1_epi32(std::hint::black_box(0x0102_0304));
    for _ in 0..rounds {
        for acc in &mut acc {
            *acc = _mm512_dpbusd_epi32(*acc, w, w);
        }
    }
    acc.iter()
        .map(|a| _mm512_reduce_add_epi32(*a))
        .fold(0, i32::wrapping_add)
}

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .collect();
    let mut matrix = vec![0u8; MATRIX_BYTES];
    // SAFETY: advice about memory that is ours.
    unsafe {
        libc::madvise(
            matrix.as_mut_ptr().cast(),
            MATRIX_BYTES,
            libc::MADV_HUGEPAGE,
        );
    }
    for (i, byte) in matrix.iter_mut().enumerate() {
        *byte = (i.wrapping_mul(0x9e37_79b9) >> 13) as u8 & 0x3f;
    }
    let mut sets = vec![Set::Portable];
    #[cfg(target_arch = "x86_64")]
    {
        use puna_cpu::kernels::simd;
        if simd::avx2::Avx2::new().is_some() {
            sets.push(Set::Avx2);
        }
        if simd::avx512::Avx512::new().is_some() {
            sets.push(Set::Avx512);
            // SAFETY: the CPU has it.
            let time = best(50, || unsafe {
                std::hint::black_box(vnni(100_000));
            });
            println!("vpdpbusd: {:.0} GOP/s", 1.6e6 * 128.0 / time / 1e9);
        }
    }
    sets.reverse();
    for set in sets {
        for ty in TYPES {
            let wanted = |a: &String| {
                let (ty, set) = (format!("{ty:?}"), format!("{set:?}"));
                a.eq_ignore_ascii_case(&ty) || a.eq_ignore_ascii_case(&set)
            };
            if (arguments.is_empty() && set == Set::Portable)
                || arguments.iter().filter(|a| wanted(a)).count() < arguments.len()
            {
                continue;
            }
            line(set, ty, &matrix);
        }
    }
}

fn line(set: Set, ty: ElementType, matrix: &[u8]) {
    let (Some(kernel), Some(row_bytes)) = (panel_fn(set, ty), ty.row_bytes(COLS)) else {
        return;
    };
    // Powers of two around those of real models: subnormal products would be slow.
    let mut scaled;
    let matrix = if ty == ElementType::MXFP4 {
        scaled = matrix.to_vec();
        for block in scaled.chunks_exact_mut(ty.block_bytes()) {
            block[0] = 120;
        }
        &scaled
    } else {
        matrix
    };
    let x: Vec<f32> = (0..512 * COLS)
        .map(|i| ((i * 7919 % 1009) as f32 - 504.0) / 100.0)
        .collect();
    let input = ActivationBuffer::new(ActivationKind::Q8, &x).expect("whole blocks");
    let ActivationRow::Q8(input) = input.row() else {
        return;
    };
    let mut out = vec![0.0; 512 * MOST_ROWS];
    let panel_bytes = row_bytes * MOST_ROWS;
    // Long enough for prefetches to count, short enough to fit between disturbances.
    let piece = (8 << 20) / panel_bytes * panel_bytes;
    let plain = fastest(matrix, piece, |piece| {
        std::hint::black_box(read(piece));
    });
    let mut line = format!("{set:?} {ty:?}:");
    for tokens in TOKENS {
        let x = first(&input, tokens);
        // From memory up to 16 tokens, then from the second cache.
        let speed = if tokens <= 16 {
            fastest(
                matrix,
                piece / tokens.min(4) / panel_bytes * panel_bytes,
                |piece| {
                    multiply(kernel, piece, row_bytes, &x, &mut out);
                },
            )
        } else {
            let near = &matrix[..panel_bytes * (1024 / tokens).min(16)];
            near.len() as f64 / best(40, || multiply(kernel, near, row_bytes, &x, &mut out))
        };
        if tokens == 1 {
            let near = &matrix[..(1 << 19) / panel_bytes * panel_bytes];
            let time = best(200, || multiply(kernel, near, row_bytes, &x, &mut out));
            line += &format!(
                " {:.1} GB/s (read {:.1}, cached {:.1}); GOP/s",
                speed / 1e9,
                plain / 1e9,
                near.len() as f64 / time / 1e9
            );
        }
        let weights = speed / row_bytes as f64 * COLS as f64;
        line += &format!(" {tokens}: {:.0}", 2.0 * weights * tokens as f64 / 1e9);
    }
    println!("{line}");
}
