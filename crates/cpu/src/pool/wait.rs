//! Waiting for the region's word to change: spin briefly, then park.

use super::sync::{AtomicU64, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, fence};
use std::sync::PoisonError;

/// How long a worker spins before it parks. Longer than the end of a step takes when nobody is disturbed, far shorter than a time slice.
#[cfg(not(loom))]
const SPIN: std::time::Duration = std::time::Duration::from_micros(40);

/// Locks; what the pool's locks protect is never left half changed, so that poisoning means nothing.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The parked workers.
#[derive(Debug)]
pub(super) struct Waiting {
    /// `sleepers.helpers + sleepers.caller`, readable without the lock.
    parked: AtomicUsize,
    sleepers: Mutex<Sleepers>,
    helpers: Condvar,
    caller: Condvar,
}

#[derive(Debug)]
struct Sleepers {
    /// Helpers that are parked and not called yet.
    helpers: usize,
    /// Helpers that are called and have not left yet.
    called: usize,
    /// The caller is parked and not called yet.
    caller: bool,
}

impl Waiting {
    pub(super) fn new() -> Self {
        Self {
            parked: AtomicUsize::new(0),
            sleepers: Mutex::new(Sleepers {
                helpers: 0,
                called: 0,
                caller: false,
            }),
            helpers: Condvar::new(),
            caller: Condvar::new(),
        }
    }

    /// Waits until `word` is not `seen`. It may go on sleeping when it is, as long as the others make do without it.
    pub(super) fn wait_as_helper(&self, word: &AtomicU64, seen: u64) {
        if spin(word, seen) {
            return;
        }
        let mut sleepers = lock(&self.sleepers);
        sleepers.helpers += 1;
        self.count(&sleepers);
        while sleepers.called == 0 && word.load(Ordering::Relaxed) == seen {
            sleepers = self
                .helpers
                .wait(sleepers)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if sleepers.called > 0 {
            sleepers.called -= 1;
        } else {
            sleepers.helpers -= 1;
            self.count(&sleepers);
        }
    }

    /// As [`Self::wait_as_helper`]; the caller is always called when the run is over.
    pub(super) fn wait_as_caller(&self, word: &AtomicU64, seen: u64) {
        if spin(word, seen) {
            return;
        }
        let mut sleepers = lock(&self.sleepers);
        sleepers.caller = true;
        self.count(&sleepers);
        while sleepers.caller && word.load(Ordering::Relaxed) == seen {
            sleepers = self
                .caller
                .wait(sleepers)
                .unwrap_or_else(PoisonError::into_inner);
        }
        sleepers.caller = false;
        self.count(&sleepers);
    }

    /// Publishes the number of parked workers; the lock is held.
    ///
    /// The fence pairs with the one in [`Self::wake`]: either the waker sees the new number, or the sleeper sees the new word and does
    /// not park. A waker that sees it waits for the lock, which the sleeper gives back by parking.
    fn count(&self, sleepers: &Sleepers) {
        let parked = sleepers.helpers + usize::from(sleepers.caller);
        self.parked.store(parked, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// After a change of the word: calls up to `helpers` parked helpers, and the caller if `caller` says so and it is parked.
    pub(super) fn wake(&self, helpers: usize, caller: bool) {
        fence(Ordering::SeqCst);
        if self.parked.load(Ordering::Relaxed) == 0 || (helpers == 0 && !caller) {
            return;
        }
        let mut sleepers = lock(&self.sleepers);
        let call_caller = caller && sleepers.caller;
        let call_helpers = helpers.min(sleepers.helpers);
        sleepers.caller &= !call_caller;
        sleepers.helpers -= call_helpers;
        sleepers.called += call_helpers;
        self.count(&sleepers);
        let all = sleepers.helpers == 0;
        drop(sleepers);
        if call_caller {
            self.caller.notify_one();
        }
        if all && call_helpers > 1 {
            self.helpers.notify_all();
        } else {
            for _ in 0..call_helpers {
                self.helpers.notify_one();
            }
        }
    }
}

/// Spins until the word changes (true) or the time is up.
#[cfg(not(loom))]
fn spin(word: &AtomicU64, seen: u64) -> bool {
    let start = std::time::Instant::now();
    loop {
        for _ in 0..16 {
            if word.load(Ordering::Relaxed) != seen {
                return true;
            }
            std::hint::spin_loop();
        }
        if start.elapsed() > SPIN {
            return false;
        }
    }
}

/// In the model, spinning adds nothing to parking.
#[cfg(loom)]
fn spin(word: &AtomicU64, seen: u64) -> bool {
    word.load(Ordering::Relaxed) != seen
}
