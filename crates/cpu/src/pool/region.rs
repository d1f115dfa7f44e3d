//! The protocol by which workers take chunks and steps follow each other.
//!
//! One word says everything that a worker must know before it may touch a job: `(epoch, chunks not yet taken)`. A step is opened by storing the
//! word with the next epoch; a chunk is taken by a compare-exchange that lowers the count. Hence:
//!
//! - A worker that took a chunk of epoch E knows that E's step is open and stays so: a step ends only when the last of its chunks is
//!   reported in `pending`, and this one is not. So the job is alive, and `job`, `step` and `count` do not change.
//! - A worker that looked at the word and was then put to sleep by the system fails its compare-exchange, since epochs are never used
//!   twice (2^38 of them: half a year at 20,000 steps a second, and then only an exact coincidence during one such sleep would matter). It
//!   has touched nothing of the job until then. Nobody waits for it.
//! - Whoever brings `pending` to zero is alone in owning the region: it opens the next step, or closes the run.
//!
//! Visibility: reports are acquire-release operations on `pending`, so the one that reaches zero sees what all chunks wrote; it then stores the
//! word with release order, and compare-exchanges (which continue that release sequence) acquire it. The caller acquires the word that
//! closes the run, so that it may end the job's life.

use super::{
    Job,
    sync::{AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering, UnsafeCell},
    wait::{self, Waiting},
};
use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

const COUNT_BITS: u32 = 24;
pub(super) const MAX_CHUNKS: usize = (1 << COUNT_BITS) - 1;
/// No job is running.
const IDLE: u64 = 1 << COUNT_BITS;
/// The pool is being dropped.
const SHUT: u64 = 1 << (COUNT_BITS + 1);
const EPOCH: u64 = 1 << (COUNT_BITS + 2);

/// The number of chunks not yet taken, in a word.
fn untaken(word: u64) -> usize {
    (word & MAX_CHUNKS as u64) as usize
}

/// What a run came to.
pub(super) enum Outcome {
    Complete,
    Panicked(Box<dyn Any + Send>),
}

/// A value on cache lines of its own: neighbours would slow each other down (two lines, since they are fetched in pairs).
#[repr(align(128))]
struct Apart<T>(T);

type JobPointer = Option<*const (dyn Job + 'static)>;

/// State shared by all workers.
pub(super) struct Region {
    /// Epoch, flags, chunks not yet taken.
    word: Apart<AtomicU64>,
    /// Chunks of the open step not yet reported.
    pending: Apart<AtomicUsize>,
    /// Of the running job. Written by the owner of the region only.
    job: Apart<UnsafeCell<JobPointer>>,
    steps: AtomicUsize,
    step: AtomicUsize,
    count: AtomicUsize,
    /// A chunk panicked: the rest is left out.
    failed: AtomicBool,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    waiting: Apart<Waiting>,
}

// SAFETY: the job pointer is the only part that is not Send and Sync by itself. It is read only by a worker that took a chunk, while
// the caller of the run keeps the job alive; `Job` is Sync. See the module's text.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl std::fmt::Debug for Region {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Region").finish_non_exhaustive()
    }
}

impl Region {
    pub(super) fn new() -> Self {
        Self {
            word: Apart(AtomicU64::new(IDLE)),
            pending: Apart(AtomicUsize::new(0)),
            job: Apart(UnsafeCell::new(None)),
            steps: AtomicUsize::new(0),
            step: AtomicUsize::new(0),
            count: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
            panic: Mutex::new(None),
            waiting: Apart(Waiting::new()),
        }
    }

    /// Runs a job as worker 0. One call at a time, or the answer is nonsense: the pool's lock sees to that.
    pub(super) fn lead(&self, job: &dyn Job) -> Outcome {
        let steps = match catch_unwind(AssertUnwindSafe(|| job.steps())) {
            Ok(steps) => steps,
            Err(payload) => return Outcome::Panicked(payload),
        };
        // SAFETY: only the lifetime is changed; the pointer is used while this call lasts.
        let pointer: *const (dyn Job + 'static) =
            unsafe { std::mem::transmute(std::ptr::from_ref(job)) };
        // SAFETY: the region is idle, so this thread owns it.
        unsafe { self.job.0.write(Some(pointer)) };
        self.steps.store(steps, Ordering::Relaxed);
        self.failed.store(false, Ordering::Relaxed);
        self.open_from(job, 0, 0);
        loop {
            let word = self.word.0.load(Ordering::Acquire);
            if word & IDLE != 0 {
                break;
            }
            if !self.take_and_run(word, 0) {
                self.waiting.0.wait_as_caller(&self.word.0, word);
            }
        }
        if self.failed.load(Ordering::Relaxed)
            && let Some(payload) = wait::lock(&self.panic).take()
        {
            return Outcome::Panicked(payload);
        }
        Outcome::Complete
    }

    /// The life of a helper: takes chunks until the pool shuts down.
    pub(super) fn help(&self, worker: usize) {
        loop {
            let word = self.word.0.load(Ordering::Acquire);
            if word & SHUT != 0 {
                break;
            }
            if !self.take_and_run(word, worker) {
                self.waiting.0.wait_as_helper(&self.word.0, word);
            }
        }
    }

    /// Ends the helpers. No run may be under way.
    pub(super) fn shut_down(&self) {
        self.word.0.fetch_or(SHUT, Ordering::Release);
        self.waiting.0.wake(usize::MAX, false);
    }

    /// Takes a chunk of the step that `word` describes and does it. False when the step has none left.
    fn take_and_run(&self, word: u64, worker: usize) -> bool {
        if untaken(word) == 0 {
            return false;
        }
        let taken =
            self.word
                .0
                .compare_exchange_weak(word, word - 1, Ordering::Acquire, Ordering::Relaxed);
        if taken.is_err() {
            return true; // the word has changed: look again
        }
        let step = self.step.load(Ordering::Relaxed);
        let chunk = self.count.load(Ordering::Relaxed) - untaken(word);
        // SAFETY: the chunk is taken and not reported, so `job` does not change and the job is alive.
        let job: &dyn Job = unsafe { &*self.job.0.read().expect("a job is running") };
        self.execute(job, step, chunk, worker);
        if self.pending.0.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.open_from(job, step + 1, worker);
        }
        true
    }

    /// Does a chunk, or leaves it out after a panic.
    fn execute(&self, job: &dyn Job, step: usize, chunk: usize, worker: usize) {
        if !self.failed.load(Ordering::Relaxed) {
            self.guard((), || job.execute(step, chunk, worker));
        }
    }

    /// Calls into the job; a panic is kept for the caller, and gives `default`.
    fn guard<T>(&self, default: T, call: impl FnOnce() -> T) -> T {
        catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|payload| {
            self.failed.store(true, Ordering::Relaxed);
            wait::lock(&self.panic).get_or_insert(payload);
            default
        })
    }

    /// Opens the first step from `step` on that has more than one chunk, having run the ones before it, or closes the run. The caller
    /// owns the region.
    fn open_from(&self, job: &dyn Job, mut step: usize, worker: usize) {
        let steps = self.steps.load(Ordering::Relaxed);
        while step < steps && !self.failed.load(Ordering::Relaxed) {
            let count = self.guard(0, || {
                let count = job.chunks(step);
                assert!(
                    count <= MAX_CHUNKS,
                    "step {step} has {count} chunks, at most {MAX_CHUNKS} are possible"
                );
                count
            });
            match count {
                0 => {}
                1 => self.execute(job, step, 0, worker),
                _ => {
                    self.step.store(step, Ordering::Relaxed);
                    self.count.store(count, Ordering::Relaxed);
                    self.pending.0.store(count, Ordering::Relaxed);
                    self.publish(count as u64);
                    self.waiting.0.wake(count - 1, worker != 0);
                    return;
                }
            }
            step += 1;
        }
        self.publish(IDLE);
        self.waiting.0.wake(0, worker != 0);
    }

    /// Stores the word with the next epoch. The caller owns the region, so nobody else changes the word.
    fn publish(&self, low: u64) {
        let epoch = self.word.0.load(Ordering::Relaxed) & !(EPOCH - 1);
        self.word
            .0
            .store(epoch.wrapping_add(EPOCH) | low, Ordering::Release);
    }
}
