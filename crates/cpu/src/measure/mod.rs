//! What the machine can do at best: the figures that kernels are judged by.
//!
//! Every measurement runs a few short rounds on the given number of threads and takes the best, since other programs only make it slower.

mod bandwidth;
mod peak;

pub use bandwidth::read_bandwidth;
pub use peak::{Peak, float_peak, integer_peak};

use std::{
    sync::Barrier,
    thread,
    time::{Duration, Instant},
};

/// Rounds of which the best counts.
const ROUNDS: usize = 5;

/// Shortest time in which `threads` threads did `work(thread)` together, from the moment when all were ready.
fn shortest<T: Send>(
    threads: usize,
    prepare: impl Fn() -> T + Sync,
    work: impl Fn(&mut T) + Sync,
) -> Duration {
    let threads = threads.max(1);
    let barrier = Barrier::new(threads);
    let (barrier, prepare, work) = (&barrier, &prepare, &work);
    let times: Vec<Vec<Duration>> = thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(move || {
                    let mut state = prepare();
                    let round = |_| {
                        barrier.wait();
                        let start = Instant::now();
                        work(&mut state);
                        start.elapsed()
                    };
                    (0..ROUNDS).map(round).collect::<Vec<_>>()
                })
            })
            .collect();
        handles.into_iter().filter_map(|h| h.join().ok()).collect()
    });
    let round = |i: usize| times.iter().filter_map(|t| t.get(i)).max().copied();
    (0..ROUNDS).filter_map(round).min().unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measurements_are_positive_and_name_their_instruction() {
        assert!(read_bandwidth(2) > 0.0);
        for peak in [integer_peak(1), float_peak(2)] {
            assert!(peak.per_second.is_finite() && peak.per_second > 0.0);
            assert!(!peak.instruction.is_empty());
        }
    }

    #[test]
    fn the_slowest_thread_of_a_round_counts() {
        let time = shortest(2, || (), |()| thread::sleep(Duration::from_millis(1)));
        assert!(time >= Duration::from_millis(1) && time < Duration::MAX);
    }
}
