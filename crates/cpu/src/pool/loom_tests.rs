//! All interleavings of small runs: `RUSTFLAGS="--cfg loom" cargo test -p puna-cpu --release --lib pool`.

use super::{Job, Pool};
use loom::sync::atomic::{AtomicUsize, Ordering};

/// Each chunk adds to a counter that is not synchronized by itself; the next step and the caller must see the sum.
struct Sums {
    chunks: Vec<usize>,
    cells: Vec<Vec<loom::cell::UnsafeCell<usize>>>,
    ran: AtomicUsize,
}

// SAFETY: loom checks every access.
unsafe impl Sync for Sums {}

impl Sums {
    fn new(chunks: &[usize]) -> Self {
        Self {
            chunks: chunks.to_vec(),
            cells: chunks
                .iter()
                .map(|&n| (0..n).map(|_| loom::cell::UnsafeCell::new(0)).collect())
                .collect(),
            ran: AtomicUsize::new(0),
        }
    }
}

impl Job for Sums {
    fn steps(&self) -> usize {
        self.chunks.len()
    }
    fn chunks(&self, step: usize) -> usize {
        self.chunks[step]
    }
    fn execute(&self, step: usize, chunk: usize, _worker: usize) {
        for cells in &self.cells[..step] {
            for cell in cells {
                // SAFETY: earlier steps are done.
                cell.with(|p| assert_eq!(unsafe { *p }, 1));
            }
        }
        // SAFETY: the chunk is ours.
        self.cells[step][chunk].with_mut(|p| unsafe { *p += 1 });
        self.ran.fetch_add(1, Ordering::Relaxed);
    }
}

/// `bound`: preemptions to try at most; three find every known ordering bug, two are what three workers can afford.
fn check(threads: usize, bound: usize, runs: &'static [&'static [usize]]) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(bound);
    model.check(move || {
        let pool = Pool::new(threads).unwrap();
        for shape in runs {
            let job = Sums::new(shape);
            pool.run(&job);
            for cells in &job.cells {
                for cell in cells {
                    // SAFETY: the run is over.
                    cell.with(|p| assert_eq!(unsafe { *p }, 1));
                }
            }
        }
    });
}

#[test]
fn two_workers_share_a_step() {
    check(2, 3, &[&[2]]);
}

#[test]
fn two_workers_follow_steps() {
    check(2, 3, &[&[2, 1, 2]]);
}

#[test]
fn a_late_helper_does_not_touch_a_finished_run() {
    check(2, 3, &[&[2], &[2]]);
}

#[test]
fn three_workers_share_a_step() {
    check(3, 2, &[&[2]]);
}
