//! How fast memory is read.

use super::rounds;
use crate::memory::Block;
use puna_graph::BackendError;
use std::hint::black_box;

/// Bytes that a thread reads in one round, at most: a few milliseconds, so that some rounds pass without being interrupted.
const SLICE: usize = 24 << 20;
/// Bytes of a slice are a multiple of this, so that every stream has whole lines.
const UNIT: usize = 64 << 10;
/// Rounds of each pattern.
const ROUNDS: usize = 16;
/// Words of a cache line.
const LINE: usize = 8;

/// A way to read: from one place, or from several at the same time as matrix kernels do, asking for bytes that far ahead or leaving that
/// to the hardware. Which is best differs between machines.
#[derive(Clone, Copy)]
struct Pattern {
    name: &'static str,
    streams: usize,
    /// Bytes from what is read to what is asked for; 0 for nothing.
    ahead: usize,
}

const PATTERNS: [Pattern; 6] = [
    Pattern::new("1 stream", 1, 0),
    Pattern::new("4 streams", 4, 0),
    Pattern::new("1 stream, prefetch 1 KiB", 1, 1 << 10),
    Pattern::new("1 stream, prefetch 2 KiB", 1, 2 << 10),
    Pattern::new("4 streams, prefetch 2 KiB", 4, 2 << 10),
    Pattern::new("8 streams, prefetch 4 KiB", 8, 4 << 10),
];

impl Pattern {
    const fn new(name: &'static str, streams: usize, ahead: usize) -> Self {
        Self {
            name,
            streams,
            ahead,
        }
    }

    fn read(self, words: &[u64]) -> u64 {
        match (self.streams, self.ahead) {
            (4, 0) => sum::<4, false>(words, 0),
            (4, ahead) => sum::<4, true>(words, ahead),
            (8, ahead) => sum::<8, true>(words, ahead),
            (_, 0) => sum::<1, false>(words, 0),
            (_, ahead) => sum::<1, true>(words, ahead),
        }
    }
}

/// Speed of reading.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bandwidth {
    /// Bytes per second of all threads together in the best round of the best pattern.
    pub per_second: f64,
    /// The median round of that pattern. Far below the best where other programs take their share of the cores or of the memory.
    pub median: f64,
    /// The best pattern.
    pub pattern: &'static str,
    /// Bytes that were read in turn.
    pub bytes: usize,
}

/// How fast `threads` threads read together, each from its own part of `bytes` bytes on large pages. Memory is measured only if that is
/// more than the last cache holds.
///
/// # Errors
/// The memory cannot be had.
pub fn read_bandwidth(threads: usize, bytes: usize) -> Result<Bandwidth, BackendError> {
    let threads = threads.max(1);
    let units = (bytes / threads).div_ceil(UNIT).max(1);
    let wanted = units.saturating_mul(UNIT);
    let slice = wanted.min(SLICE);
    let slices = wanted / slice;
    let part = slices * slice;
    let all = threads.saturating_mul(part);
    let block = Block::zeroed("measuring memory", all)?;
    on_large_pages(&block);
    let read = |part: &mut &[u64], round: usize| {
        let at = round % slices * (slice / 8);
        let slice = &part[at..at + slice / 8];
        black_box(PATTERNS[round % PATTERNS.len()].read(black_box(slice)));
    };
    let touch = |thread: usize| {
        #[allow(
            clippy::cast_ptr_alignment,
            reason = "a block is aligned to a cache line, and parts are whole units"
        )]
        let start = block.pointer(thread * part).cast::<u64>();
        // SAFETY: this part of the block is this thread's alone, aligned, and zeroed.
        let words = unsafe { std::slice::from_raw_parts_mut(start, part / 8) };
        // Written, so that the pages are real and not all the same one.
        words.fill(1);
        &*words
    };
    let times = rounds(threads, ROUNDS * PATTERNS.len(), touch, read);
    let speed = |seconds: f64| (threads * slice) as f64 / seconds;
    let results = PATTERNS.iter().enumerate().map(|(i, pattern)| {
        let of = times.iter().skip(i).step_by(PATTERNS.len());
        let mut seconds: Vec<_> = of.map(std::time::Duration::as_secs_f64).collect();
        seconds.sort_by(f64::total_cmp);
        Bandwidth {
            per_second: speed(seconds[0]),
            median: speed(seconds[seconds.len() / 2]),
            pattern: pattern.name,
            bytes: all,
        }
    });
    let best = results.max_by(|a, b| a.per_second.total_cmp(&b.per_second));
    best.ok_or_else(|| BackendError::Internal {
        message: "no way to read was measured".to_owned(),
    })
}

/// Asks the system for large pages: with small ones, looking up addresses would be measured too.
fn on_large_pages(block: &Block) {
    #[cfg(target_os = "linux")]
    // SAFETY: the block's own memory, whose contents this does not change. If it is refused, pages stay small.
    let _ = unsafe { libc::madvise(block.pointer(0).cast(), block.len(), libc::MADV_HUGEPAGE) };
    #[cfg(not(target_os = "linux"))]
    let _ = block;
}

/// Adds up, from `STREAMS` places at the same time.
fn sum<const STREAMS: usize, const PREFETCH: bool>(words: &[u64], ahead: usize) -> u64 {
    let mut sums = [[0u64; 2 * LINE]; STREAMS];
    let part = words.len() / STREAMS;
    let parts: [&[u64]; STREAMS] = std::array::from_fn(|s| &words[s * part..(s + 1) * part]);
    for at in (0..part).step_by(2 * LINE) {
        for (sums, part) in sums.iter_mut().zip(parts) {
            let Some(lines) = part.get(at..at + 2 * LINE) else {
                continue;
            };
            if PREFETCH {
                prefetch(lines.as_ptr().wrapping_byte_add(ahead));
                prefetch(lines[LINE..].as_ptr().wrapping_byte_add(ahead));
            }
            for (sum, x) in sums.iter_mut().zip(lines) {
                *sum = sum.wrapping_add(*x);
            }
        }
    }
    sums.iter().flatten().fold(0, |sum, x| sum.wrapping_add(*x))
}

/// Asks for a line in the second-level cache.
#[inline(always)]
#[allow(clippy::inline_always, reason = "a call would cost more than the read")]
fn prefetch(at: *const u64) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a prefetch reads nothing and may be given any address.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_reads_every_word_once() {
        let words: Vec<u64> = (0..4 * SLICE as u64 / 1024).collect();
        let expected: u64 = words.iter().sum();
        for pattern in PATTERNS {
            assert_eq!(pattern.read(&words), expected, "{}", pattern.name);
        }
    }

    #[test]
    fn the_best_round_is_not_slower_than_the_median_and_all_of_the_memory_is_read() {
        for (threads, bytes, expected) in [
            (2, 5 * SLICE, 4 * SLICE),
            (3, 300_000, 6 * UNIT),
            (2, 0, 2 * UNIT),
        ] {
            let read = read_bandwidth(threads, bytes).unwrap();
            assert!(read.per_second.is_finite() && read.median > 0.0);
            assert!(read.per_second >= read.median);
            assert_eq!(read.bytes, expected);
        }
        assert!(read_bandwidth(1, usize::MAX / 2).is_err());
    }
}
