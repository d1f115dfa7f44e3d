//! What one run of a plan works on.

use std::ops::Range;

/// A page of a layer group's cache memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PageId(pub u32);

impl PageId {
    /// Stands in page tables for a page that was given back because nothing looks so far back.
    pub const NONE: Self = Self(u32::MAX);
}

/// Rows of a batch that are consecutive positions of one sequence.
#[derive(Clone, Debug)]
pub struct Run<'a> {
    /// Rows of the batch.
    pub rows: Range<usize>,
    /// Position of the first row.
    pub first_position: u32,
    /// For each layer group the pages of the sequence: entry `i` holds positions `64 i .. 64 (i + 1)`.
    pub pages: &'a [Vec<PageId>],
}

/// Tokens to compute, from any number of sequences.
#[derive(Clone, Debug)]
pub struct Batch<'a> {
    /// Token ids, one per row.
    pub tokens: &'a [u32],
    /// The rows by sequence, covering all rows in order. A sequence appears at most once, or in ascending positions.
    pub runs: &'a [Run<'a>],
    /// Rows whose output is wanted, ascending.
    pub outputs: &'a [u32],
}
