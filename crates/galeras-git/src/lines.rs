//! The lines that differ between two versions of a text, as `git diff` shows them.
//!
//! Myers' algorithm with the placement of hunks by indentation, Git's defaults. Lines end with
//! `\n` and are numbered from 1.

use std::ops::Range;

use gix_imara_diff::sources::byte_lines;
use gix_imara_diff::{Algorithm, Diff, InternedInput};

/// Lines that were replaced: `before` went, `after` came. Either may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hunk {
    pub(super) before: Range<u32>,
    pub(super) after: Range<u32>,
}

/// The hunks that turn the first of two texts into the second, in order.
pub(super) fn hunks(before: &str, after: &str) -> Vec<Hunk> {
    if before == after {
        return Vec::new();
    }
    let input = InternedInput::new(byte_lines(before.as_bytes()), byte_lines(after.as_bytes()));
    let mut diff = Diff::compute(Algorithm::Myers, &input);
    diff.postprocess_lines(&input);
    // Lines are counted from 1 here and from 0 there.
    let from_one = |range: Range<u32>| range.start + 1..range.end + 1;
    let hunk = |hunk: gix_imara_diff::Hunk| Hunk {
        before: from_one(hunk.before),
        after: from_one(hunk.after),
    };
    diff.hunks().map(hunk).collect()
}

/// How many of the lines `first..=last` lie in the ranges, which are in order and do not overlap.
pub(super) fn overlap(ranges: &[Range<u32>], first: u32, last: u32) -> u32 {
    let before = ranges.partition_point(|range| range.end <= first);
    let (_, rest) = ranges.split_at(before);
    let touched = rest.iter().take_while(|range| range.start <= last);
    touched.map(|range| range.end.min(last + 1).saturating_sub(range.start.max(first))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hunks_are_placed_by_indentation_as_git_does() {
        let before = "def a():\n    return 1\n\n\ndef c():\n    return 3\n";
        let after =
            "def a():\n    return 1\n\n\ndef b():\n    return 2\n\n\ndef c():\n    return 3\n";
        assert_eq!(hunks(before, after), [Hunk { before: 5..5, after: 5..9 }]);
        assert_eq!(hunks("a\nb\n", "a\n"), [Hunk { before: 2..3, after: 2..2 }]);
        assert_eq!(hunks("a", "a\n"), [Hunk { before: 1..2, after: 1..2 }]);
        assert!(hunks("", "").is_empty());
    }

    #[test]
    fn not_every_range_is_looked_at_for_every_method() {
        // Every second line; each with each would be billions.
        let ranges: Vec<Range<u32>> = (1..=100_000).map(|n| 2 * n..2 * n + 1).collect();
        let touched: u32 = (1..=200_000).map(|line| overlap(&ranges, line, line)).sum();
        assert_eq!(touched, 100_000);
    }

    proptest! {
        #[test]
        fn overlaps_are_those_of_a_look_at_all_ranges(
            // Lines between ranges and in them; none of either is an insertion at an edge.
            steps in proptest::collection::vec((0..4u32, 0..4u32), 0..12),
            first in 1..40u32,
            lines in 0..12u32,
        ) {
            let mut end = 1;
            let ranges: Vec<Range<u32>> = steps
                .into_iter()
                .map(|(between, within)| {
                    let start = end + between;
                    end = start + within;
                    start..end
                })
                .collect();
            let last = first + lines;
            let is_in = |line: &u32| ranges.iter().any(|range| range.contains(line));
            let wanted = (first..=last).filter(is_in).count();
            prop_assert_eq!(overlap(&ranges, first, last) as usize, wanted, "{:?}", ranges);
        }
    }
}
