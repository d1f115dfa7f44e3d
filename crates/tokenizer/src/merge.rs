//! The merge loop that `SentencePiece` and byte-level BPE share: of all neighbours that may merge, the best pair merges first, the
//! leftmost among equals, until none is left.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A part of a word that is one token, or may become part of one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Symbol {
    /// Token id, or whatever number the rules use.
    pub(crate) id: u32,
    /// First byte in the word.
    pub(crate) start: u32,
    /// Byte after the last.
    pub(crate) end: u32,
}

/// A merge that could be done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    /// Smaller merges first; `u32::MAX` means no merge.
    pub(crate) order: u32,
    /// Id of the merged symbol.
    pub(crate) id: u32,
}

impl Candidate {
    pub(crate) const NONE: Candidate = Candidate {
        order: u32::MAX,
        id: 0,
    };
}

/// Which neighbours may merge.
pub(crate) trait Rules {
    /// The merge of two neighbours, or [`Candidate::NONE`].
    fn candidate(&self, left: Symbol, right: Symbol) -> Candidate;
}

/// Longest word (in symbols) that is merged by scanning for the best pair; longer ones use a heap.
const SHORT: usize = 32;
/// End of the chain of symbols.
const NIL: u32 = u32::MAX;

/// Memory for merging, reused from word to word.
#[derive(Default)]
pub(crate) struct Merger {
    /// The candidate of each symbol with the next.
    candidates: Vec<Candidate>,
    /// Before and after each symbol that is still there.
    links: Vec<(u32, u32)>,
    /// `order << 32 | position`; may hold candidates that are gone.
    heap: BinaryHeap<Reverse<u64>>,
}

impl Merger {
    /// Merges the symbols of one word as far as the rules allow.
    pub(crate) fn merge(&mut self, rules: &impl Rules, symbols: &mut Vec<Symbol>) {
        if symbols.len() <= SHORT {
            self.merge_short(rules, symbols);
        } else {
            self.merge_long(rules, symbols);
        }
    }

    fn fill_candidates(&mut self, rules: &impl Rules, symbols: &[Symbol]) {
        self.candidates.clear();
        self.candidates
            .extend(symbols.windows(2).map(|pair| match *pair {
                [left, right] => rules.candidate(left, right),
                _ => Candidate::NONE,
            }));
        self.candidates.push(Candidate::NONE);
    }

    /// Quadratic, but without a heap.
    fn merge_short(&mut self, rules: &impl Rules, symbols: &mut Vec<Symbol>) {
        self.fill_candidates(rules, symbols);
        loop {
            let best = self
                .candidates
                .iter()
                .enumerate()
                .min_by_key(|(_, c)| c.order);
            let Some((at, &best)) = best.filter(|(_, c)| c.order != u32::MAX) else {
                return;
            };
            let after = at + 1;
            if after >= symbols.len() {
                return;
            }
            let right = symbols.remove(after);
            self.candidates.remove(after);
            if let Some(left) = symbols.get_mut(at) {
                left.id = best.id;
                left.end = right.end;
            }
            for position in [at.checked_sub(1), Some(at)].into_iter().flatten() {
                let (left, right) = (symbols.get(position), symbols.get(position + 1));
                if let Some(slot) = self.candidates.get_mut(position) {
                    *slot = match (left, right) {
                        (Some(&left), Some(&right)) => rules.candidate(left, right),
                        _ => Candidate::NONE,
                    };
                }
            }
        }
    }

    /// n log n, for words of any length (fewer than 2^32 symbols).
    fn merge_long(&mut self, rules: &impl Rules, symbols: &mut Vec<Symbol>) {
        self.fill_candidates(rules, symbols);
        let len = symbols.len() as u32;
        self.links.clear();
        self.links.extend((0..len).map(|i| {
            let next = if i + 1 < len { i + 1 } else { NIL };
            (i.checked_sub(1).unwrap_or(NIL), next)
        }));
        let mut queue = std::mem::take(&mut self.heap).into_vec();
        queue.clear();
        queue.extend(
            self.candidates
                .iter()
                .zip(0..len)
                .filter_map(|(c, at)| entry(*c, at)),
        );
        self.heap = BinaryHeap::from(queue);
        while let Some(Reverse(popped)) = self.heap.pop() {
            let (order, at) = ((popped >> 32) as u32, popped as u32);
            // An entry is stale when its pair has changed or is gone.
            let current = self
                .candidates
                .get(at as usize)
                .copied()
                .unwrap_or(Candidate::NONE);
            if current.order == order {
                self.merge_at(rules, symbols, at, current.id);
            }
        }
        let mut at = 0;
        let mut kept = 0;
        while let Some(&symbol) = symbols.get(at as usize) {
            if let Some(slot) = symbols.get_mut(kept) {
                *slot = symbol;
            }
            kept += 1;
            at = self.links.get(at as usize).map_or(NIL, |&(_, next)| next);
            if at == NIL {
                break;
            }
        }
        symbols.truncate(kept);
    }

    fn merge_at(&mut self, rules: &impl Rules, symbols: &mut [Symbol], at: u32, id: u32) {
        let Some(&(before, gone)) = self.links.get(at as usize) else {
            return;
        };
        let Some(&right) = symbols.get(gone as usize) else {
            return;
        };
        let after = self.links.get(gone as usize).map_or(NIL, |&(_, next)| next);
        if let Some(left) = symbols.get_mut(at as usize) {
            left.id = id;
            left.end = right.end;
        }
        if let Some(candidate) = self.candidates.get_mut(gone as usize) {
            *candidate = Candidate::NONE;
        }
        if let Some(link) = self.links.get_mut(at as usize) {
            link.1 = after;
        }
        if let Some(link) = self.links.get_mut(after as usize) {
            link.0 = at;
        }
        for (left, right) in [(before, at), (at, after)] {
            self.update(rules, symbols, left, right);
        }
    }

    /// Finds the candidate of two symbols that have become neighbours.
    fn update(&mut self, rules: &impl Rules, symbols: &[Symbol], left: u32, right: u32) {
        let Some(slot) = self.candidates.get_mut(left as usize) else {
            return;
        };
        *slot = match (symbols.get(left as usize), symbols.get(right as usize)) {
            (Some(&left), Some(&right)) => rules.candidate(left, right),
            _ => Candidate::NONE,
        };
        self.heap.extend(entry(*slot, left));
    }
}

fn entry(candidate: Candidate, at: u32) -> Option<Reverse<u64>> {
    (candidate.order != u32::MAX)
        .then_some(Reverse(u64::from(candidate.order) << 32 | u64::from(at)))
}
