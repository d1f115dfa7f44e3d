//! A sequence of tokens and the pages that hold its cache.

use crate::{EngineError, pages::PagePool};
use puna_graph::{PAGE_POSITIONS, PageId, Reach};
use puna_tokenizer::TokenId;
use std::collections::BTreeMap;

/// Names a sequence of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SeqId(pub(crate) u64);

/// Tokens computed so far, and for each layer group the page of every 64 positions.
///
/// Between runs a table has exactly the pages that the tokens need; only [`Sequence::prepare`] lets it grow, and who calls that either
/// adds the tokens or calls [`Sequence::trim`].
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

    /// Pages of each table that are written when the sequence grows to `end` and that exist already.
    fn written(&self, end: usize) -> std::ops::Range<usize> {
        self.tokens.len() / PAGE_POSITIONS..end.div_ceil(PAGE_POSITIONS)
    }

    /// Pages for positions up to `end`, those that will be written being ours alone; returns what has to be copied.
    ///
    /// # Errors
    /// [`EngineError::CacheFull`]; nothing has changed.
    pub(crate) fn prepare(
        &mut self,
        end: usize,
        pools: &mut [PagePool],
    ) -> Result<Vec<PageCopy>, EngineError> {
        check_room(&std::iter::once((&*self, end)), pools)?;
        let written = self.written(end);
        let mut copies = Vec::new();
        for (group, (table, pool)) in self.tables.iter_mut().zip(pools).enumerate() {
            let existing = written.start.min(table.len())..written.end.min(table.len());
            for page in &mut table[existing] {
                if !pool.is_shared(*page) {
                    continue;
                }
                let own = pool.take().ok_or_else(|| full(pool))?;
                copies.push(PageCopy {
                    group,
                    from: *page,
                    to: own,
                });
                pool.release(*page);
                *page = own;
            }
            while table.len() < written.end {
                table.push(pool.take().ok_or_else(|| full(pool))?);
            }
        }
        Ok(copies)
    }

    /// Gives back pages beyond those that the tokens need, which a run that failed has left.
    pub(crate) fn trim(&mut self, pools: &mut [PagePool]) {
        let needed = self.tokens.len().div_ceil(PAGE_POSITIONS);
        for (table, pool) in self.tables.iter_mut().zip(pools) {
            for page in table.drain(needed.min(table.len())..) {
                pool.release(page);
            }
        }
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
        self.tokens.truncate(len);
        self.trim(pools);
        Ok(())
    }

    /// Gives back everything.
    pub(crate) fn clear(&mut self, pools: &mut [PagePool]) {
        self.tokens.clear();
        self.trim(pools);
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

/// Whether all of these sequences can grow to these lengths together: new pages, and copies of shared ones that are written. What
/// sliding windows give back on the way is not counted.
///
/// # Errors
/// [`EngineError::CacheFull`].
pub(crate) fn check_room<'a>(
    growths: &(impl Iterator<Item = (&'a Sequence, usize)> + Clone),
    pools: &[PagePool],
) -> Result<(), EngineError> {
    for (group, pool) in pools.iter().enumerate() {
        let mut needed = 0;
        // Of holders that all write, the last one need not copy.
        let mut left: BTreeMap<PageId, u32> = BTreeMap::new();
        for (sequence, end) in growths.clone() {
            let (table, written) = (&sequence.tables[group], sequence.written(end));
            needed += written.end.saturating_sub(table.len());
            let existing = written.start.min(table.len())..written.end.min(table.len());
            for page in table[existing].iter().filter(|p| pool.is_shared(**p)) {
                let holders = left.entry(*page).or_insert_with(|| pool.holders(*page));
                if *holders > 1 {
                    *holders -= 1;
                    needed += 1;
                }
            }
        }
        if needed > pool.free() {
            return Err(full(pool));
        }
    }
    Ok(())
}

fn full(pool: &PagePool) -> EngineError {
    EngineError::CacheFull {
        used: pool.used(),
        total: pool.total(),
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
    fn pages_that_a_failed_run_has_left_are_copied_before_they_are_written_or_given_back() {
        let mut pools = pools();
        let mut a = Sequence::new(2);
        a.prepare(100, &mut pools).unwrap();
        let mut b = a.fork(&mut pools);
        let copies = b.prepare(100, &mut pools).unwrap();
        assert_eq!(copies.len(), 4, "two pages of two groups");
        assert!(a.tables[0].iter().all(|page| !b.tables[0].contains(page)));
        a.trim(&mut pools);
        b.trim(&mut pools);
        assert_eq!((pools[0].free(), pools[1].free()), (6, 6));
    }

    #[test]
    fn room_is_counted_for_all_sequences_together() {
        let mut pools = pools();
        let mut a = Sequence::new(2);
        advance(&mut a, 100, &mut pools);
        let b = a.fork(&mut pools);
        // Two pages are held; two writers of a shared one need one copy.
        for (a_end, b_end, fits) in [(192, 256, true), (193, 256, false)] {
            let room = check_room(&[(&a, a_end), (&b, b_end)].into_iter(), &pools);
            assert_eq!(room.is_ok(), fits, "{a_end}, {b_end}");
        }
        // One writer of a shared page needs its copy.
        for (end, fits) in [(320, true), (321, false)] {
            let room = check_room(&std::iter::once((&a, end)), &pools);
            assert_eq!(room.is_ok(), fits, "{end}");
        }
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
