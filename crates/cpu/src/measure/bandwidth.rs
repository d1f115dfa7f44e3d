//! How fast memory is read.

use super::shortest;
use std::hint::black_box;

/// Bytes read by all threads together: far more than the caches hold.
const BYTES: usize = 256 << 20;
/// Numbers that are added up side by side, so that no addition waits for another.
const LANES: usize = 64;

/// Bytes per second that `threads` threads read from memory together, each from its own part.
pub fn read_bandwidth(threads: usize) -> f64 {
    let threads = threads.max(1);
    let words = (BYTES / threads / size_of::<u64>()).next_multiple_of(LANES);
    let time = shortest(
        threads,
        // Written, so that the pages are real and not all the same one.
        || vec![1u64; words],
        |part| {
            black_box(sum(black_box(part)));
        },
    );
    (words * size_of::<u64>() * threads) as f64 / time.as_secs_f64()
}

fn sum(part: &[u64]) -> u64 {
    let mut sums = [0u64; LANES];
    for chunk in part.chunks_exact(LANES) {
        for (sum, x) in sums.iter_mut().zip(chunk) {
            *sum = sum.wrapping_add(*x);
        }
    }
    sums.iter().fold(0, |a, b| a.wrapping_add(*b))
}
