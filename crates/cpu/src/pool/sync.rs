//! What the pool synchronizes with: the standard library, or `loom`'s model of it under `--cfg loom`.

#[cfg(not(loom))]
pub(super) use std::{
    sync::{
        Arc, Condvar, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence},
    },
    thread::JoinHandle,
};

#[cfg(loom)]
pub(super) use loom::{
    sync::{
        Arc, Condvar, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence},
    },
    thread::JoinHandle,
};

/// A cell whose reads and writes the protocol keeps apart.
#[cfg(not(loom))]
pub(super) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T: Copy> UnsafeCell<T> {
    pub(super) fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }
    /// # Safety
    /// No other thread writes at the same time.
    pub(super) unsafe fn read(&self) -> T {
        // SAFETY: the caller's.
        unsafe { *self.0.get() }
    }
    /// # Safety
    /// No other thread reads or writes at the same time.
    pub(super) unsafe fn write(&self, value: T) {
        // SAFETY: the caller's.
        unsafe { *self.0.get() = value };
    }
}

/// `loom` reports accesses that are not kept apart.
#[cfg(loom)]
pub(super) struct UnsafeCell<T>(loom::cell::UnsafeCell<T>);

#[cfg(loom)]
impl<T: Copy> UnsafeCell<T> {
    pub(super) fn new(value: T) -> Self {
        Self(loom::cell::UnsafeCell::new(value))
    }
    /// # Safety
    /// Nobody writes meanwhile.
    pub(super) unsafe fn read(&self) -> T {
        // SAFETY: the caller's, checked by loom.
        self.0.with(|p| unsafe { *p })
    }
    /// # Safety
    /// Nobody reads or writes meanwhile.
    pub(super) unsafe fn write(&self, value: T) {
        // SAFETY: the caller's, checked by loom.
        self.0.with_mut(|p| unsafe { *p = value });
    }
}

/// Starts a named helper thread.
#[cfg(not(loom))]
pub(super) fn spawn(
    index: usize,
    body: impl FnOnce() + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new()
        .name(format!("puna-{index}"))
        .spawn(body)
}

#[cfg(loom)]
pub(super) fn spawn(
    _index: usize,
    body: impl FnOnce() + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    Ok(loom::thread::spawn(body))
}

#[cfg(not(loom))]
std::thread_local! {
    /// This thread is inside a job.
    pub(super) static INSIDE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

#[cfg(loom)]
loom::thread_local! {
    pub(super) static INSIDE: std::cell::Cell<bool> = std::cell::Cell::new(false);
}
