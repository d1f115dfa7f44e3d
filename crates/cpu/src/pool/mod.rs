//! The thread pool: a whole plan is one entry, its steps follow each other without leaving it.
//!
//! A [`Job`] is a list of steps, and a step a number of chunks. The threads are made once; the caller of [`Pool::run`] is worker 0 and
//! works like the others. Workers take chunks one by one, so that a core that another program takes slows a step by that core's share and not
//! by a time slice. Whoever finishes the last chunk of a step opens the next one: nobody waits for a thread that holds no chunk, and a
//! step of a single chunk is run at once by the worker that opens it, without telling anybody.
//!
//! Waiting spins for some tens of microseconds, then parks. The protocol is in [`region`], waiting in [`wait`].

#![allow(
    unexpected_cfgs,
    reason = "`loom` is a cfg of the model checker's tests"
)]

mod region;
mod sync;
mod wait;

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(loom)))]
mod tests;

use region::{Outcome, Region};
use std::panic;
use sync::{Arc, INSIDE, JoinHandle, Mutex, spawn};

/// Work that a [`Pool`] does: steps one after the other, the chunks of a step in any order on any worker.
pub trait Job: Sync {
    /// Number of steps.
    fn steps(&self) -> usize;

    /// Number of chunks of a step, at most [`MAX_CHUNKS`]; zero skips the step.
    ///
    /// Asked once, when all earlier steps are done.
    fn chunks(&self, step: usize) -> usize;

    /// Does one chunk. All chunks of earlier steps are done, and what they wrote is visible. Of two chunks that run at the same time,
    /// `worker` (less than [`Pool::threads`]) differs, so that it may index scratch memory.
    fn execute(&self, step: usize, chunk: usize, worker: usize);
}

/// The most chunks that a step may have.
pub const MAX_CHUNKS: usize = region::MAX_CHUNKS;

/// Threads that run [`Job`]s. Dropping it ends and joins them.
///
/// One job runs at a time: calls from several threads queue up (except with one thread, where each caller runs its own job).
#[derive(Debug)]
pub struct Pool {
    threads: usize,
    /// `None` with one thread.
    team: Option<Team>,
}

#[derive(Debug)]
struct Team {
    region: Arc<Region>,
    /// Held while a job runs.
    running: Mutex<()>,
    helpers: Vec<JoinHandle<()>>,
}

/// Marks the thread as inside a job while it lives.
struct Inside;

impl Inside {
    fn enter() -> Self {
        let nested = INSIDE.with(|inside| inside.replace(true));
        assert!(!nested, "a chunk of a pool's job entered a pool");
        Self
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.with(|inside| inside.set(false));
    }
}

impl Pool {
    /// A pool of `threads` workers, the caller included: `threads - 1` threads are started (none for 0 or 1).
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn new(threads: usize) -> std::io::Result<Self> {
        let threads = threads.max(1);
        if threads == 1 {
            return Ok(Self {
                threads,
                team: None,
            });
        }
        // From here on, dropping the team (also by an early return) ends the helpers started so far.
        let mut team = Team {
            region: Arc::new(Region::new()),
            running: Mutex::new(()),
            helpers: Vec::with_capacity(threads - 1),
        };
        for worker in 1..threads {
            let region = Arc::clone(&team.region);
            let body = move || {
                let _inside = Inside::enter();
                region.help(worker);
            };
            team.helpers.push(spawn(worker, body)?);
        }
        Ok(Self {
            threads,
            team: Some(team),
        })
    }

    /// Number of workers, the caller of [`Self::run`] included.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Runs all steps of the job and returns when the last one is complete.
    ///
    /// # Panics
    /// With the first panic of the job (what was not begun then is left out; the pool stays usable), and when called from inside a job
    /// of any pool: regions do not nest.
    pub fn run(&self, job: &dyn Job) {
        let inside = Inside::enter();
        let outcome = match &self.team {
            None => {
                run_alone(job);
                Outcome::Complete
            }
            Some(team) => {
                let running = wait::lock(&team.running);
                let outcome = team.region.lead(job);
                drop(running);
                outcome
            }
        };
        drop(inside);
        if let Outcome::Panicked(payload) = outcome {
            panic::resume_unwind(payload);
        }
    }

    /// Runs `body(chunk, worker)` for `chunks` chunks: a job of one step.
    ///
    /// # Panics
    /// As [`Self::run`].
    pub fn run_chunks(&self, chunks: usize, body: impl Fn(usize, usize) + Sync) {
        self.run(&OneStep { chunks, body });
    }
}

/// A job of one step.
struct OneStep<F> {
    chunks: usize,
    body: F,
}

impl<F: Fn(usize, usize) + Sync> Job for OneStep<F> {
    fn steps(&self) -> usize {
        1
    }
    fn chunks(&self, _step: usize) -> usize {
        self.chunks
    }
    fn execute(&self, _step: usize, chunk: usize, worker: usize) {
        (self.body)(chunk, worker);
    }
}

/// The job on this thread only.
fn run_alone(job: &dyn Job) {
    for step in 0..job.steps() {
        for chunk in 0..job.chunks(step) {
            job.execute(step, chunk, 0);
        }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.region.shut_down();
        for helper in self.helpers.drain(..) {
            // A helper catches the panics of jobs; there is nothing to report.
            let _ = helper.join();
        }
    }
}
