//! Which pages a batch writes: no position of a page twice, since rows are stored at the same time.

use puna_graph::{PAGE_POSITIONS, PageId, Run};
use std::ops::Range;

/// Tiles of one run up to which comparing all pairs is cheaper than sorting.
const FEW: usize = 32;

/// A page that a batch would write as two different pages of one sequence, or at a position that another run writes too.
///
/// Runs that continue the same sequence may share a page, at different positions. Tables hold all pages of the runs' positions.
pub(super) fn written_twice(runs: &[Run<'_>], group: usize) -> Option<PageId> {
    if let [run] = runs {
        let pages = &run.pages[group][tiles(run)];
        if pages.len() <= FEW {
            let again = |(i, page): &(usize, &PageId)| pages[..*i].contains(page);
            return pages.iter().enumerate().find(again).map(|(_, page)| *page);
        }
    }
    let mut written = Vec::new();
    for run in runs {
        let positions = positions(run);
        for tile in tiles(run) {
            let start = positions.start.max(tile * PAGE_POSITIONS);
            let end = positions.end.min((tile + 1) * PAGE_POSITIONS);
            written.push((run.pages[group][tile], start, end));
        }
    }
    written.sort_unstable();
    let clash = written.windows(2).find(|pair| {
        let ((a, a_start, a_end), (b, b_start, _)) = (pair[0], pair[1]);
        a == b && (a_start / PAGE_POSITIONS != b_start / PAGE_POSITIONS || a_end > b_start)
    });
    clash.map(|pair| pair[0].0)
}

fn positions(run: &Run<'_>) -> Range<usize> {
    let first = run.first_position as usize;
    first..first + run.rows.len()
}

/// The pages of a sequence that a run writes.
fn tiles(run: &Run<'_>) -> Range<usize> {
    let positions = positions(run);
    positions.start / PAGE_POSITIONS..positions.end.div_ceil(PAGE_POSITIONS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs by (first position, rows, pages).
    fn clash(runs: &[(u32, usize, &[u32])]) -> Option<u32> {
        let tables: Vec<[Vec<PageId>; 1]> = runs
            .iter()
            .map(|(_, _, pages)| [pages.iter().copied().map(PageId).collect()])
            .collect();
        let mut next = 0;
        let runs: Vec<Run<'_>> = runs
            .iter()
            .zip(&tables)
            .map(|((first_position, rows, _), pages)| {
                next += rows;
                Run {
                    rows: next - rows..next,
                    first_position: *first_position,
                    pages,
                }
            })
            .collect();
        written_twice(&runs, 0).map(|page| page.0)
    }

    #[test]
    fn a_page_that_is_written_twice_is_found() {
        let many: Vec<u32> = (0..100).collect();
        let mut twice = many.clone();
        twice[99] = 3;
        for (name, runs, found) in [
            ("one run", &[(0, 130, &[4, 2, 0][..])][..], None),
            (
                "a table with a page twice",
                &[(0, 130, &[4, 2, 4])],
                Some(4),
            ),
            ("a long run", &[(0, 6400, &many)], None),
            (
                "a long run with a page twice",
                &[(0, 6400, &twice)],
                Some(3),
            ),
            ("only read twice", &[(128, 1, &[4, 4, 2])], None),
            ("two sequences", &[(5, 1, &[0]), (5, 1, &[1])], None),
            ("the same position", &[(5, 1, &[1]), (5, 1, &[1])], Some(1)),
            (
                "a common prefix",
                &[(64, 1, &[0, 1]), (64, 1, &[0, 2])],
                None,
            ),
            (
                "a continued sequence",
                &[(0, 5, &[1]), (5, 70, &[1, 2])],
                None,
            ),
            ("an overlap", &[(0, 6, &[1]), (5, 70, &[1, 2])], Some(1)),
            ("out of order", &[(5, 70, &[1, 2]), (0, 6, &[1])], Some(1)),
            ("other tiles", &[(0, 5, &[1]), (70, 2, &[0, 1])], Some(1)),
        ] {
            assert_eq!(clash(runs), found, "{name}");
        }
    }
}
