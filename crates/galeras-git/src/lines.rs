//! Which lines differ between two versions of a text, as `git diff` shows it.
//!
//! Myers' algorithm with the placement of hunks by indentation, Git's defaults. Lines end with
//! `\n` and are numbered from 1.

use std::ops::Range;

use gix_imara_diff::{Algorithm, Diff, InternedInput, sources::byte_lines};

/// Lines that were replaced: `before` went, `after` came. Either may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hunk {
    pub(super) before: Range<u32>,
    pub(super) after: Range<u32>,
}

/// The hunks that turn `before` into `after`, in order.
pub(super) fn hunks(before: &str, after: &str) -> Vec<Hunk> {
    let input = InternedInput::new(byte_lines(before.as_bytes()), byte_lines(after.as_bytes()));
    let mut diff = Diff::compute(Algorithm::Myers, &input);
    diff.postprocess_lines(&input);
    // Lines are counted from 1 here and from 0 there.
    let from_one = |range: Range<u32>| range.start + 1..range.end + 1;
    diff.hunks()
        .map(|hunk| Hunk { before: from_one(hunk.before), after: from_one(hunk.after) })
        .collect()
}

/// How many of the lines `first..=last` lie in the ranges, which are in order.
pub(super) fn overlap(ranges: impl Iterator<Item = Range<u32>>, first: u32, last: u32) -> u32 {
    ranges.map(|range| range.end.min(last + 1).saturating_sub(range.start.max(first))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn overlaps_count_lines_on_both_ends() {
        let ranges = || [2..4, 6..6, 8..10].into_iter();
        assert_eq!(overlap(ranges(), 1, 1), 0);
        assert_eq!(overlap(ranges(), 3, 8), 2);
        assert_eq!(overlap(ranges(), 1, 20), 4);
    }
}
