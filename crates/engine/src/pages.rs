//! Who holds which page: reference counts and free lists. Memory itself is the backend's.

use puna_graph::PageId;

/// The pages of one layer group.
#[derive(Clone, Debug)]
pub(crate) struct PagePool {
    references: Vec<u32>,
    free: Vec<PageId>,
}

impl PagePool {
    /// `count` free pages.
    pub(crate) fn new(count: usize) -> Self {
        Self {
            references: vec![0; count],
            // Low numbers first, so that memory is touched from its beginning.
            free: (0..count as u32).rev().map(PageId).collect(),
        }
    }

    /// Pages in all.
    pub(crate) fn total(&self) -> usize {
        self.references.len()
    }

    /// Pages that nobody holds.
    pub(crate) fn free(&self) -> usize {
        self.free.len()
    }

    /// Pages that somebody holds.
    pub(crate) fn used(&self) -> usize {
        self.total() - self.free()
    }

    /// A free page, held once.
    pub(crate) fn take(&mut self) -> Option<PageId> {
        let page = self.free.pop()?;
        self.references[page.0 as usize] = 1;
        Some(page)
    }

    /// Holds a page once more.
    pub(crate) fn share(&mut self, page: PageId) {
        if page != PageId::NONE {
            self.references[page.0 as usize] += 1;
        }
    }

    /// How many hold the page.
    pub(crate) fn holders(&self, page: PageId) -> u32 {
        match page {
            PageId::NONE => 0,
            page => self.references[page.0 as usize],
        }
    }

    /// Whether somebody else holds the page too.
    pub(crate) fn is_shared(&self, page: PageId) -> bool {
        self.holders(page) > 1
    }

    /// Gives up one hold; the page is free when it was the last.
    pub(crate) fn release(&mut self, page: PageId) {
        if page == PageId::NONE {
            return;
        }
        let references = &mut self.references[page.0 as usize];
        debug_assert!(*references > 0, "a free page is released");
        *references -= 1;
        if *references == 0 {
            self.free.push(page);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_free_again_when_its_last_holder_lets_go() {
        let mut pool = PagePool::new(2);
        let (a, b) = (pool.take().unwrap(), pool.take().unwrap());
        assert_ne!(a, b);
        assert!(pool.take().is_none());
        pool.share(a);
        pool.release(a);
        assert_eq!(pool.free(), 0);
        assert!(!pool.is_shared(a));
        pool.release(a);
        assert_eq!(pool.take(), Some(a));
        pool.release(PageId::NONE);
        assert_eq!(pool.free(), 0);
    }
}
