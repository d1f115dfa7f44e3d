//! What the machine can do at best: the figures that kernels are judged by.
//!
//! Every measurement runs many short rounds on the given number of threads and takes the best: other programs only make it slower, and a
//! round of a few milliseconds has a chance to pass between them.

mod bandwidth;
mod peak;

pub use bandwidth::{Bandwidth, read_bandwidth};
pub use peak::{Peak, float_peak, integer_peak};

use std::{
    hint,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Turns of a waiting loop before others are let in.
const SPINS: usize = 2000;

/// Where threads wait for each other awake. Asleep they would wake up on one core, and work one after the other on a busy machine.
struct StartLine {
    threads: usize,
    arrived: AtomicUsize,
}

impl StartLine {
    /// Returns when all threads have come here `round + 1` times.
    fn wait(&self, round: usize) {
        self.arrived.fetch_add(1, Ordering::AcqRel);
        let all = (round + 1) * self.threads;
        let mut spins = 0;
        while self.arrived.load(Ordering::Acquire) < all {
            spins += 1;
            if spins % SPINS == 0 {
                thread::yield_now();
            } else {
                hint::spin_loop();
            }
        }
    }
}

/// Gives the calling thread a core of its own among those that the process may use, if there are enough for all threads. Else the system
/// may leave two of them on one core of a busy machine, where they never run at the same time.
fn take_own_core(number: usize, threads: usize) {
    #[cfg(target_os = "linux")]
    // SAFETY: the sets are plain bits, for which zeros are a value; they are as large as is said, and indices are less than their bits.
    unsafe {
        let mut allowed: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of_val(&allowed), &raw mut allowed) != 0 {
            return;
        }
        let cores = 0..8 * size_of_val(&allowed);
        let usable: Vec<_> = cores.filter(|i| libc::CPU_ISSET(*i, &allowed)).collect();
        if let Some(core) = usable.get(number).filter(|_| threads <= usable.len()) {
            let mut own: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(*core, &mut own);
            // If it is refused, the thread stays where it is.
            libc::sched_setaffinity(0, size_of_val(&own), &raw const own);
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (number, threads);
}

/// Times in which `threads` threads did `work(state, round)` together, for each round, from the moment when the first began to the moment
/// when the last was ready. A thread's state is made by `prepare(thread)`. In the first half of the rounds the system places the threads, in
/// the second each has a core of its own: on a quiet machine the former may be better, on a busy one the latter.
fn rounds<T>(
    threads: usize,
    rounds: usize,
    prepare: impl Fn(usize) -> T + Sync,
    work: impl Fn(&mut T, usize) + Sync,
) -> Vec<Duration> {
    let threads = threads.max(1);
    let line = StartLine {
        threads,
        arrived: AtomicUsize::new(0),
    };
    let (line, prepare, work) = (&line, &prepare, &work);
    let times: Vec<Vec<[Instant; 2]>> = thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|number| {
                scope.spawn(move || {
                    let mut state = prepare(number);
                    let round = |round| {
                        if round == rounds / 2 {
                            take_own_core(number, threads);
                        }
                        line.wait(round);
                        let start = Instant::now();
                        work(&mut state, round);
                        [start, Instant::now()]
                    };
                    (0..rounds).map(round).collect::<Vec<_>>()
                })
            })
            .collect();
        handles.into_iter().filter_map(|h| h.join().ok()).collect()
    });
    let time = |round: usize| {
        let of = |end: usize| times.iter().filter_map(move |t| Some(t.get(round)?[end]));
        of(1).max().zip(of(0).min()).map(|(end, start)| end - start)
    };
    (0..rounds).filter_map(time).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_are_positive_and_name_their_instruction() {
        for peak in [integer_peak(1), float_peak(2)] {
            assert!(peak.per_second.is_finite() && peak.per_second > 0.0);
            assert!(!peak.instruction.is_empty());
        }
    }

    #[test]
    fn a_round_lasts_until_the_slowest_thread_is_ready() {
        let times = rounds(
            2,
            3,
            |thread| thread as u64,
            |thread, round| thread::sleep(Duration::from_millis(*thread * round as u64)),
        );
        assert_eq!(times.len(), 3);
        assert!(times[2] >= Duration::from_millis(2));
    }
}
