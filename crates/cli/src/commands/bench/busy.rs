//! Threads that keep cores busy while something is measured, as another program would.

use puna::cpu::MAX_THREADS;
use std::{
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// A number of busy threads.
pub(super) fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 1..=MAX_THREADS) => Ok(count),
        _ => Err(format!("expected a number of threads, 1 to {MAX_THREADS}")),
    }
}

/// Until the system has found cores for the threads.
const SETTLING: Duration = Duration::from_millis(30);

/// Busy threads, until this is dropped.
pub(super) struct Busy {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Busy {
    pub(super) fn start(count: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = (0..count)
            .map(|_| {
                let stop = Arc::clone(&stop);
                thread::spawn(move || compute_until(&stop))
            })
            .collect();
        if count > 0 {
            thread::sleep(SETTLING);
        }
        Self { stop, threads }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It has nothing to say.
            let _ = thread.join();
        }
    }
}

/// Arithmetic in registers: it takes the core, and leaves memory alone.
fn compute_until(stop: &AtomicBool) {
    let mut x = 1u64;
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..1000 {
            x = black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
    }
}
