//! Zeroed, page-aligned memory that costs nothing until it is touched.

use puna_graph::BackendError;
use std::{
    alloc::{Layout, alloc_zeroed, dealloc},
    ptr::NonNull,
};

/// Alignment: a large page where the block is that big, so that the system can use those.
const LARGE_PAGE: usize = 1 << 21;
const SMALL: usize = 64;

/// What a block without memory points at: slices of no elements must be aligned too.
#[repr(align(64))]
struct Line;

/// A block of memory shared by the workers of a pool.
#[derive(Debug)]
pub(crate) struct Block {
    start: NonNull<u8>,
    layout: Option<Layout>,
}

// SAFETY: a block is plain memory; who reads and writes what is settled by its users.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    /// No memory.
    pub(crate) const fn empty() -> Self {
        Self {
            start: NonNull::<Line>::dangling().cast(),
            layout: None,
        }
    }

    /// `bytes` zeros.
    pub(crate) fn zeroed(what: &'static str, bytes: usize) -> Result<Self, BackendError> {
        if bytes == 0 {
            return Ok(Self::empty());
        }
        let fail = || BackendError::Memory { what, bytes };
        let align = if bytes >= LARGE_PAGE {
            LARGE_PAGE
        } else {
            SMALL
        };
        let layout = Layout::from_size_align(bytes, align).map_err(|_| fail())?;
        // SAFETY: the layout is not empty.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(fail)?;
        Ok(Self {
            start,
            layout: Some(layout),
        })
    }

    /// Its size in bytes.
    pub(crate) fn len(&self) -> usize {
        self.layout.map_or(0, |l| l.size())
    }

    /// Byte `offset`, which may be the end.
    pub(crate) fn pointer(&self, offset: usize) -> *mut u8 {
        assert!(offset <= self.len(), "outside of the block");
        // SAFETY: inside of the allocation, or one past its end.
        unsafe { self.start.as_ptr().add(offset) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if let Some(layout) = self.layout {
            // SAFETY: allocated with this layout.
            unsafe { dealloc(self.start.as_ptr(), layout) }
        }
    }
}
