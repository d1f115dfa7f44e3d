//! The pool on real threads: more of them than cores, disturbed in every way that a test can.

use super::{Job, MAX_CHUNKS, Pool};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

/// Counts what is done, and checks the order of the steps and that no worker is in two places.
struct Counted<F> {
    chunks: Vec<usize>,
    done: Vec<Vec<AtomicUsize>>,
    complete: Vec<AtomicUsize>,
    busy: Vec<AtomicBool>,
    runs: AtomicUsize,
    body: F,
}

impl<F: Fn(usize, usize) + Sync> Counted<F> {
    fn new(chunks: Vec<usize>, threads: usize, body: F) -> Self {
        Self {
            done: chunks
                .iter()
                .map(|&n| (0..n).map(|_| AtomicUsize::new(0)).collect())
                .collect(),
            complete: chunks.iter().map(|_| AtomicUsize::new(0)).collect(),
            busy: (0..threads).map(|_| AtomicBool::new(false)).collect(),
            runs: AtomicUsize::new(0),
            chunks,
            body,
        }
    }
    fn run(&self, pool: &Pool) {
        self.runs.fetch_add(1, Ordering::Relaxed);
        pool.run(self);
    }
    fn check(&self, times: usize) {
        for (step, chunks) in self.done.iter().enumerate() {
            for (chunk, n) in chunks.iter().enumerate() {
                assert_eq!(
                    n.load(Ordering::Relaxed),
                    times,
                    "step {step} chunk {chunk} of {:?}",
                    self.chunks
                );
            }
        }
    }
}

impl<F: Fn(usize, usize) + Sync> Job for Counted<F> {
    fn steps(&self) -> usize {
        self.chunks.len()
    }
    fn chunks(&self, step: usize) -> usize {
        self.chunks[step]
    }
    fn execute(&self, step: usize, chunk: usize, worker: usize) {
        assert!(
            !self.busy[worker].swap(true, Ordering::Relaxed),
            "worker {worker} is twice"
        );
        for earlier in 0..step {
            // Relaxed: the pool alone makes it visible.
            let complete = self.complete[earlier].load(Ordering::Relaxed);
            let runs = self.runs.load(Ordering::Relaxed);
            assert_eq!(
                complete,
                runs * self.chunks[earlier],
                "step {earlier} is not over"
            );
        }
        (self.body)(step, chunk);
        self.done[step][chunk].fetch_add(1, Ordering::Relaxed);
        self.complete[step].fetch_add(1, Ordering::Relaxed);
        self.busy[worker].store(false, Ordering::Relaxed);
    }
}

/// A small generator, so that tests do the same work each time.
fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[test]
fn every_chunk_is_done_once_in_the_order_of_the_steps() {
    let shapes: [&[usize]; 9] = [
        &[],
        &[0],
        &[1],
        &[0, 0, 3, 0, 1, 0],
        &[1, 1, 1, 1],
        &[2, 2, 2],
        &[17, 1, 64, 3, 1, 1, 100],
        &[1, 1000, 1],
        &[5, 4, 3, 2, 1, 0],
    ];
    for threads in 0..=4 {
        let pool = Pool::new(threads).unwrap();
        assert_eq!(pool.threads(), threads.max(1));
        for shape in shapes {
            let job = Counted::new(shape.to_vec(), pool.threads(), |_, _| {});
            for times in 1..=20 {
                job.run(&pool);
                job.check(times);
            }
        }
    }
}

#[test]
fn random_delays_inside_and_between_runs_lose_nothing() {
    for threads in 2..=4 {
        let pool = Pool::new(threads).unwrap();
        for round in 0..60u64 {
            let chunks = (0..12)
                .map(|step| (mix(round * 100 + step) % 7) as usize)
                .collect();
            let job = Counted::new(chunks, threads, |step, chunk| {
                let r = mix(round << 32 | (step as u64) << 16 | chunk as u64);
                match r % 16 {
                    0 => std::thread::sleep(Duration::from_micros(r % 400)),
                    1 => std::thread::yield_now(),
                    2 => (0..r % 2000).for_each(|_| std::hint::spin_loop()),
                    _ => {}
                }
            });
            job.run(&pool);
            job.check(1);
            if round % 8 == 0 {
                std::thread::sleep(Duration::from_micros(200));
            }
        }
    }
}

#[test]
fn many_short_runs_leave_no_helper_behind() {
    let pool = Pool::new(3).unwrap();
    for run in 0..20_000usize {
        // The job dies at the end of each turn: a late helper would touch freed memory.
        let job = Box::new(Counted::new(vec![run % 4, 3], 3, |_, _| {}));
        job.run(&pool);
        job.check(1);
    }
}

#[test]
fn a_panic_reaches_the_caller_and_the_pool_stays_usable() {
    for threads in 1..=4 {
        let pool = Pool::new(threads).unwrap();
        for bad in 0..6 {
            let job = Counted::new(vec![2, 1, 9, 4], threads, |step, chunk| {
                assert!(step != 2 || chunk != bad, "chunk {bad} fails");
            });
            let caught = catch_unwind(AssertUnwindSafe(|| job.run(&pool))).unwrap_err();
            let text = caught.downcast_ref::<String>().unwrap();
            assert_eq!(*text, format!("chunk {bad} fails"));
            assert_eq!(job.complete[0].load(Ordering::Relaxed), 2);
            assert_eq!(job.complete[3].load(Ordering::Relaxed), 0);
            let good = Counted::new(vec![3, 5], threads, |_, _| {});
            good.run(&pool);
            good.check(1);
        }
    }
}

#[test]
fn a_step_with_too_many_chunks_is_a_panic_and_not_a_wrong_answer() {
    let pool = Pool::new(2).unwrap();
    let ran = AtomicBool::new(false);
    let run = || pool.run_chunks(MAX_CHUNKS + 1, |_, _| ran.store(true, Ordering::Relaxed));
    catch_unwind(AssertUnwindSafe(run)).unwrap_err();
    assert!(!ran.load(Ordering::Relaxed));
}

#[test]
fn a_job_that_enters_a_pool_is_refused() {
    for threads in 1..=3 {
        let (pool, other) = (Pool::new(threads).unwrap(), Pool::new(2).unwrap());
        for inner in [&pool, &other] {
            let nested = || pool.run_chunks(4, |_, _| inner.run_chunks(2, |_, _| {}));
            catch_unwind(AssertUnwindSafe(nested)).unwrap_err();
        }
        pool.run_chunks(4, |_, _| {});
    }
}

/// Takes hold of something in its first step and gives it back in its last.
struct Holder<'a> {
    me: usize,
    held_by: &'a AtomicUsize,
}

impl Job for Holder<'_> {
    fn steps(&self) -> usize {
        3
    }
    fn chunks(&self, step: usize) -> usize {
        [1, 5, 1][step]
    }
    fn execute(&self, step: usize, _chunk: usize, _worker: usize) {
        match step {
            0 => assert_eq!(self.held_by.swap(self.me, Ordering::Relaxed), 0),
            1 => assert_eq!(self.held_by.load(Ordering::Relaxed), self.me),
            _ => assert_eq!(self.held_by.swap(0, Ordering::Relaxed), self.me),
        }
    }
}

#[test]
fn callers_on_several_threads_take_turns() {
    let pool = Pool::new(3).unwrap();
    let held_by = &AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for me in 1..=3 {
            let pool = &pool;
            scope.spawn(move || {
                for _ in 0..500 {
                    pool.run(&Holder { me, held_by });
                }
            });
        }
    });
}

#[test]
fn dropping_the_pool_joins_its_threads() {
    for pause in [0, 1000] {
        let pool = Pool::new(4).unwrap();
        let region = Arc::clone(&pool.team.as_ref().unwrap().region);
        pool.run_chunks(8, |_, _| {});
        std::thread::sleep(Duration::from_micros(pause)); // spinning, and parked
        drop(pool);
        assert_eq!(Arc::strong_count(&region), 1);
    }
}
