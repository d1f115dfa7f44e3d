//! A sequence of tokens and the pages that hold its cache.

use crate::{EngineError, pages::PagePool};
use puna_graph::{PAGE_POSITIONS, PageId, Reach};
use puna_tokenizer::TokenId;

/// Names a sequence of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SeqId(pub(crate) u32);

/// Tokens computed so far, and for each layer group the page of every 64 positions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sequence {
    pub tokens: Vec<TokenId>,
    pub tables: Vec<Vec<PageId>>,
}

/// A page that must be copied before it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageCopy {
    pub group: usize,
    pub from: PageId,
    pub to: PageId,
}

impl Sequence {
    pub(crate) fn new(groups: usize) -> Self {
        Self {
            tokens: Vec::new(),
            tables: vec![Vec::new(); groups],
        }
    }

    /// Pages for positions up to `end`, the one that is written next being ours alone; returns what has to be copied.
    pub(crate) fn prepare(
        &mut self,
        end: usize,
        pools: &mut [PagePool],
    ) -> Result<Vec<PageCopy>, EngineError> {
        let first = self.tokens.len() / PAGE_POSITIONS;
        let tiles = end.div_ceil(PAGE_POSITIONS);
        for (table, pool) in self.tables.iter().zip(pools.iter()) {
            let shared = table.get(first).is_some_and(|p| pool.is_shared(*p));
            let needed = tiles.saturating_sub(table.len()) + usize::from(shared);
            if needed > pool.free() {
                return Err(EngineError::CacheFull {
                    used: pool.total() - pool.free(),
                    total: pool.total(),
                });
            }
        }
        let mut copies = Vec::new();
        for (group, (table, pool)) in self.tables.iter_mut().zip(pools).enumerate() {
            if let Some(page) = table.get_mut(first)
                && pool.is_shared(*page)
                && let Some(own) = pool.take()
            {
                copies.push(PageCopy {
                    group,
                    from: *page,
                    to: own,
                });
                pool.release(*page);
                *page = own;
            }
            while table.len() < tiles {
                table.extend(pool.take());
            }
        }
        Ok(copies)
    }

    /// Gives back pages that no later position can see.
    pub(crate) fn release_passed(&mut self, reaches: &[Reach], pools: &mut [PagePool]) {
        for ((table, pool), reach) in self.tables.iter_mut().zip(pools).zip(reaches) {
            let Reach::Window(window) = reach else {
                continue;
            };
            // The next token sees itself and `window - 1` before it.
            let visible = (self.tokens.len() + 1).saturating_sub(*window as usize);
            for page in table.iter_mut().take(visible / PAGE_POSITIONS) {
                pool.release(std::mem::replace(page, PageId::NONE));
            }
        }
    }

    /// Forgets the positions from `len` on.
    pub(crate) fn truncate(
        &mut self,
        len: usize,
        reaches: &[Reach],
        pools: &mut [PagePool],
    ) -> Result<(), EngineError> {
        if len >= self.tokens.len() {
            return Ok(());
        }
        for (table, reach) in self.tables.iter().zip(reaches) {
            let Reach::Window(window) = reach else {
                continue;
            };
            let visible = (len + 1).saturating_sub(*window as usize);
            let needed = visible / PAGE_POSITIONS..len.div_ceil(PAGE_POSITIONS);
            if table[needed].contains(&PageId::NONE) {
                return Err(EngineError::WindowPassed { position: len });
            }
        }
        for (table, pool) in self.tables.iter_mut().zip(pools) {
            for page in table.drain(len.div_ceil(PAGE_POSITIONS).min(table.len())..) {
                pool.release(page);
            }
        }
        self.tokens.truncate(len);
        Ok(())
    }

    /// Gives back everything.
    pub(crate) fn clear(&mut self, pools: &mut [PagePool]) {
        for (table, pool) in self.tables.iter_mut().zip(pools) {
            for page in table.drain(..) {
                pool.release(page);
            }
        }
        self.tokens.clear();
    }

    /// A copy that shares all pages.
    pub(crate) fn fork(&self, pools: &mut [PagePool]) -> Self {
        for (table, pool) in self.tables.iter().zip(pools) {
            for page in table {
                pool.share(*page);
            }
        }
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pools() -> Vec<PagePool> {
        vec![PagePool::new(6), PagePool::new(6)]
    }

    fn advance(sequence: &mut Sequence, n: usize, pools: &mut [PagePool]) -> Vec<PageCopy> {
        let copies = sequence.prepare(sequence.tokens.len() + n, pools).unwrap();
        sequence.tokens.extend(vec![TokenId(0); n]);
        copies
    }

    #[test]
    fn a_fork_shares_pages_and_copies_only_the_one_it_writes() {
        let mut pools = pools();
        let mut a = Sequence::new(2);
        assert!(advance(&mut a, 100, &mut pools).is_empty());
        let mut b = a.fork(&mut pools);
        assert_eq!(pools[0].free(), 4);
        let copies = advance(&mut b, 1, &mut pools);
        assert_eq!(copies.len(), 2);
        assert_eq!(copies[0].from, a.tables[0][1]);
        assert_eq!(a.tables[0][0], b.tables[0][0]);
        assert_ne!(a.tables[0][1], b.tables[0][1]);
        assert!(
            advance(&mut a, 1, &mut pools).is_empty(),
            "the other one is alone again"
        );
        a.clear(&mut pools);
        b.clear(&mut pools);
        assert_eq!(pools[0].free(), 6);
    }

    #[test]
    fn a_full_cache_is_refused_and_changes_nothing() {
        let mut pools = pools();
        let mut a = Sequence::new(2);
        advance(&mut a, 300, &mut pools);
        let error = a.prepare(6 * PAGE_POSITIONS + 1, &mut pools).unwrap_err();
        assert!(matches!(
            error,
            EngineError::CacheFull { used: 5, total: 6 }
        ));
        assert_eq!(pools[0].free(), 1);
    }

    #[test]
    fn pages_behind_a_sliding_window_are_given_back_and_cannot_be_returned_to() {
        let mut pools = pools();
        let reaches = [Reach::Full, Reach::Window(100)];
        let mut a = Sequence::new(2);
        advance(&mut a, 300, &mut pools);
        a.release_passed(&reaches, &mut pools);
        // Position 300 sees 201 to 300: tiles 0 to 2 have passed.
        assert_eq!(
            a.tables[1].iter().filter(|p| **p == PageId::NONE).count(),
            3
        );
        assert_eq!((pools[0].free(), pools[1].free()), (1, 4));
        assert!(matches!(
            a.truncate(200, &reaches, &mut pools),
            Err(EngineError::WindowPassed { position: 200 })
        ));
        a.truncate(295, &reaches, &mut pools).unwrap();
        assert_eq!(a.tokens.len(), 295);
        a.clear(&mut pools);
        assert_eq!((pools[0].free(), pools[1].free()), (6, 6));
    }
}
