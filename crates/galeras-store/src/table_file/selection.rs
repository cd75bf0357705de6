//! Ranges of rows as row groups and what to skip and read of them.

use std::ops::Range;

use parquet::arrow::arrow_reader::{RowSelection, RowSelector};

/// The row groups that hold rows of these ranges, which are in order and apart, and what to skip and
/// what to read of them. Groups without such a row are not looked at: each of their columns would be
/// gone through page by page.
pub fn row_selection(groups: &[Range<u64>], ranges: &[Range<u64>]) -> (Vec<usize>, RowSelection) {
    let count = |rows: u64| usize::try_from(rows).unwrap_or(usize::MAX);
    let mut chosen = Vec::new();
    let mut selectors: Vec<RowSelector> = Vec::new();
    let mut left = ranges.iter().filter(|range| !range.is_empty()).cloned().peekable();
    for (at, group) in groups.iter().enumerate() {
        let mut next = group.start;
        while let Some(range) = left.peek_mut().filter(|range| range.start < group.end) {
            let end = range.end.min(group.end);
            selectors.push(RowSelector::skip(count(range.start - next)));
            selectors.push(RowSelector::select(count(end - range.start)));
            next = end;
            if range.end > group.end {
                range.start = group.end;
                break;
            }
            left.next();
        }
        if next > group.start {
            chosen.push(at);
            selectors.push(RowSelector::skip(count(group.end - next)));
        }
    }
    // Selectors of no rows are dropped, and neighbours of one kind joined.
    (chosen, selectors.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::single_range_in_vec_init)]
    fn ranges_are_cut_at_the_ends_of_row_groups() {
        let groups = [0..10, 10..20, 20..30, 30..35];
        let selectors = |ranges: &[Range<u64>]| {
            let (chosen, selection) = row_selection(&groups, ranges);
            let all = selection.iter().map(|one| (one.skip, one.row_count)).collect::<Vec<_>>();
            (chosen, all)
        };
        assert_eq!(selectors(&[]), (vec![], vec![]));
        assert_eq!(selectors(&[5..5]), (vec![], vec![]));
        assert_eq!(
            selectors(&[3..4, 8..12, 32..35]),
            (
                vec![0, 1, 3],
                vec![(true, 3), (false, 1), (true, 4), (false, 4), (true, 10), (false, 3)]
            )
        );
        assert_eq!(selectors(&[0..35]), (vec![0, 1, 2, 3], vec![(false, 35)]));
        assert_eq!(selectors(&[10..20]), (vec![1], vec![(false, 10)]));
    }
}
