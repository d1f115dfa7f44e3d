//! Zeroed, aligned memory that costs nothing until it is touched.

use puna_graph::BackendError;
use std::{
    alloc::{Layout, alloc_zeroed, dealloc},
    ptr::NonNull,
};

/// Alignment: a large page where the block is that big, so that the system can use those.
const LARGE_PAGE: usize = 1 << 21;
const SMALL: usize = 64;
/// What is asked of the allocator. It hands out fresh pages of the system as they are for this alignment, and would write zeros over the
/// whole block for a larger one; so blocks are aligned here, inside of a slightly larger allocation.
const ASKED: usize = 16;

/// What a block without memory points at: slices of no elements must be aligned too.
#[repr(align(64))]
struct Line;

/// A block of memory shared by the workers of a pool.
#[derive(Debug)]
pub(crate) struct Block {
    start: NonNull<u8>,
    len: usize,
    allocation: Option<(NonNull<u8>, Layout)>,
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
            len: 0,
            allocation: None,
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
        let size = bytes.checked_add(align).ok_or_else(fail)?;
        let layout = Layout::from_size_align(size, ASKED).map_err(|_| fail())?;
        // SAFETY: the layout is not empty.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(fail)?;
        let skip = base.addr().get().next_multiple_of(align) - base.addr().get();
        Ok(Self {
            // SAFETY: `skip` is less than `align`, so `bytes` bytes follow inside of the allocation.
            start: unsafe { base.add(skip) },
            len: bytes,
            allocation: Some((base, layout)),
        })
    }

    /// Its size in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Byte `offset`, which may be the end.
    pub(crate) fn pointer(&self, offset: usize) -> *mut u8 {
        assert!(offset <= self.len, "outside of the block");
        // SAFETY: inside of the allocation, or one past its end.
        unsafe { self.start.as_ptr().add(offset) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if let Some((base, layout)) = self.allocation {
            // SAFETY: allocated with this layout.
            unsafe { dealloc(base.as_ptr(), layout) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_zeroed_and_aligned_and_impossible_sizes_are_errors() {
        for bytes in [1, 63, 64, 4096, LARGE_PAGE, LARGE_PAGE + 1] {
            let block = Block::zeroed("test", bytes).unwrap();
            let align = if bytes < LARGE_PAGE {
                SMALL
            } else {
                LARGE_PAGE
            };
            assert_eq!(block.pointer(0) as usize % align, 0);
            // SAFETY: the whole block, which is zeroed.
            let all = unsafe { std::slice::from_raw_parts(block.pointer(0), bytes) };
            assert!(all.iter().all(|b| *b == 0));
        }
        assert!(Block::zeroed("test", usize::MAX).is_err());
        assert!(Block::zeroed("test", usize::MAX - LARGE_PAGE).is_err());
        assert_eq!(Block::zeroed("test", 0).unwrap().len(), 0);
    }
}
