//! Which lines differ between two versions of a text, as `git diff` shows it.
//!
//! Myers' algorithm with the placement of hunks by indentation, Git's defaults. Lines end with
//! `\n` and are numbered from 1.
//!
//! Most versions begin and end alike, so that only the lines between, with some around them, are
//! compared (`narrow`); the result is that of a comparison of all lines (`whole`):
//!
//! - The algorithm leaves out the common beginning and end before it searches. It then asks how
//!   often a line occurs in the two whole texts, and for no other line than those it searches among.
//!   If none of these is on both sides there is nothing to find, and it does not matter.
//! - A hunk is moved line by line while the line that it leaves is equal to the one that it takes in.
//!   It does not move across a line that is not found again among those on its way. And what it looks
//!   at to find its place ends with the first line that is not blank, or after [`AROUND`] lines.

use std::ops::Range;

use galeras_python::Ends;
use gix_imara_diff::sources::byte_lines;
use gix_imara_diff::{Algorithm, Diff, IndentHeuristic, IndentLevel, InternedInput, Token};
use hashbrown::HashMap;

/// Lines that were replaced: `before` went, `after` came. Either may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hunk {
    pub(super) before: Range<u32>,
    pub(super) after: Range<u32>,
}

/// Lines around a place that decide on how good it is for the end of a hunk, at most.
const AROUND: usize = 22;
/// Lines of the common beginning and end that are read.
const HEAD_LINES: usize = 24;
const TAIL_LINES: usize = 24 + AROUND;

/// The hunks that turn the first of two texts into the second, in order.
pub(super) fn hunks(ends: &Ends<'_>) -> Vec<Hunk> {
    let [before, after] = ends.texts().map(str::as_bytes);
    if before == after {
        return Vec::new();
    }
    narrow(ends).unwrap_or_else(|| whole(before, after))
}

/// The hunks by a comparison of all lines.
fn whole(before: &[u8], after: &[u8]) -> Vec<Hunk> {
    let input = InternedInput::new(byte_lines(before), byte_lines(after));
    let mut diff = Diff::compute(Algorithm::Myers, &input);
    diff.postprocess_lines(&input);
    shown(&diff, 0)
}

/// The hunks by the lines that differ and those around them; `None` if these do not decide.
fn narrow(ends: &Ends<'_>) -> Option<Vec<Hunk>> {
    let [before, after] = ends.texts().map(str::as_bytes);
    let between = |text: &[u8]| ends.head()..text.len() - ends.tail();
    let (head, tail) = (&before[..ends.head()], &before[before.len() - ends.tail()..]);
    let (far_head, near_head) = head.split_at(last_lines(head, HEAD_LINES));
    let (near_tail, far_tail) = tail.split_at(first_lines(tail, TAIL_LINES));

    let mut lines = Lines::default();
    let near_head = lines.add(near_head);
    let removed = lines.add(&before[between(before)]);
    let added = lines.add(&after[between(after)]);
    let near_tail = lines.add(near_tail);
    let looked_at = near_tail.len().saturating_sub(AROUND);
    if !(far_head.is_empty() || lines.any_once(&near_head))
        || !(far_tail.is_empty() || lines.any_once(&near_tail[..looked_at]))
    {
        return None;
    }

    let (mut start, mut end) = (Vec::new(), Vec::new());
    let mut left_out = 0;
    if lines.on_both_sides(&removed, &added) {
        start = lines.known(far_head);
        end = lines.known(far_tail);
    } else {
        left_out = newlines(far_head);
    }
    let tokens = |between: &[Token]| [&start[..], &near_head, between, &near_tail, &end].concat();
    let (before, after) = (tokens(&removed), tokens(&added));
    let mut diff = Diff::default();
    diff.compute_with(Algorithm::Myers, &before, &after, lines.unknown().0 + 1);
    diff.postprocess_with(&before, &after, IndentHeuristic::new(|token| lines.indent(token)));
    Some(shown(&diff, left_out))
}

/// The hunks of a diff of texts without their first lines.
fn shown(diff: &Diff, left_out: u32) -> Vec<Hunk> {
    // Lines are counted from 1 here and from 0 there.
    let first = left_out + 1;
    let shown = |range: Range<u32>| range.start + first..range.end + first;
    diff.hunks().map(|hunk| Hunk { before: shown(hunk.before), after: shown(hunk.after) }).collect()
}

/// Lines as numbers: equal ones have the same.
#[derive(Default)]
struct Lines<'a> {
    tokens: HashMap<&'a [u8], Token>,
    lines: Vec<&'a [u8]>,
    /// How often each was added.
    counts: Vec<u32>,
}

impl<'a> Lines<'a> {
    fn add(&mut self, text: &'a [u8]) -> Vec<Token> {
        let add = |line| {
            let next = self.unknown();
            let token = *self.tokens.entry(line).or_insert(next);
            match self.counts.get_mut(token.0 as usize) {
                Some(count) => *count += 1,
                None => {
                    self.lines.push(line);
                    self.counts.push(1);
                }
            }
            token
        };
        byte_lines(text).map(add).collect()
    }

    /// The number of a line that was not added, whichever it is.
    fn unknown(&self) -> Token {
        // No text has so many lines.
        Token(self.lines.len() as u32)
    }

    /// The numbers of lines that need not have been added.
    fn known(&self, text: &[u8]) -> Vec<Token> {
        let unknown = self.unknown();
        byte_lines(text).map(|line| self.tokens.get(line).copied().unwrap_or(unknown)).collect()
    }

    /// Returns true if one of the lines is not blank and was added once.
    fn any_once(&self, tokens: &[Token]) -> bool {
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0x0c);
        tokens.iter().map(|token| token.0 as usize).any(|at| {
            self.counts.get(at) == Some(&1)
                && self.lines.get(at).is_some_and(|line| !line.iter().all(blank))
        })
    }

    fn on_both_sides(&self, removed: &[Token], added: &[Token]) -> bool {
        let mut found = vec![false; self.lines.len()];
        removed.iter().for_each(|token| found[token.0 as usize] = true);
        added.iter().any(|token| found[token.0 as usize])
    }

    fn indent(&self, token: Token) -> IndentLevel {
        let line = self.lines.get(token.0 as usize).copied().unwrap_or_default();
        IndentLevel::for_ascii_line(line.iter().copied(), 8)
    }
}

/// Where the last so many lines begin.
fn last_lines(text: &[u8], count: usize) -> usize {
    let mut starts = (0..text.len()).rev().filter(|at| *at == 0 || text[at - 1] == b'\n');
    starts.nth(count.saturating_sub(1)).unwrap_or(0)
}

/// Where the first so many lines end.
fn first_lines(text: &[u8], count: usize) -> usize {
    byte_lines(text).take(count).map(<[u8]>::len).sum()
}

fn newlines(text: &[u8]) -> u32 {
    // Sums of bytes compile to vectors.
    let ends = |part: &[u8]| part.iter().map(|byte| u8::from(*byte == b'\n')).sum::<u8>();
    text.chunks(192).map(|part| u32::from(ends(part))).sum()
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

    fn hunks(before: &str, after: &str) -> Vec<Hunk> {
        super::hunks(&Ends::of(before, after))
    }

    /// Few different lines, so that many are equal.
    fn text(lines: std::ops::Range<usize>) -> impl Strategy<Value = String> {
        let line = prop_oneof![
            6 => "[a-d]{1,2}",
            3 => "( |  |    |\t)[a-c]",
            3 => "[ \t]{0,2}",
            1 => "[0-9]{4}",
        ];
        proptest::collection::vec(line, lines).prop_map(|lines| {
            lines
                .into_iter()
                .map(|line| {
                    line + "
"
                })
                .collect()
        })
    }

    /// A text of few blocks that come again.
    fn repeated() -> impl Strategy<Value = String> {
        (text(0..5), text(0..5), proptest::collection::vec(any::<bool>(), 0..24)).prop_map(
            |(one, other, which)| {
                which.iter().map(|is| if *is { &*one } else { &*other }).collect()
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn hunks_are_those_of_all_lines(
            (head, tail) in prop_oneof![
                (text(0..70), text(0..120)),
                (repeated(), repeated()),
            ],
            (one, other) in prop_oneof![
                (text(0..8), text(0..8)),
                (repeated(), repeated()),
            ],
            end in any::<bool>(),
        ) {
            let [one, other] = [one, other].map(|between| {
                let text = [&*head, &*between, &*tail].concat();
                if end { text.trim_end().to_string() } else { text }
            });
            let all = if one == other { vec![] } else { whole(one.as_bytes(), other.as_bytes()) };
            prop_assert_eq!(hunks(&one, &other), all);
        }
    }

    #[test]
    fn most_versions_are_compared_where_they_differ() {
        let lines = |range: std::ops::Range<u32>| -> String {
            range.map(|n| format!("    line {n}\n\n")).collect()
        };
        let (one, other) = (lines(0..300), lines(0..140) + "new\n" + &lines(140..300));
        let found = narrow(&Ends::of(&one, &other));
        assert_eq!(found, Some(vec![Hunk { before: 281..281, after: 281..282 }]));
        let other = lines(0..100) + "new\n" + &lines(100..200) + "new\n" + &lines(200..300);
        assert_eq!(narrow(&Ends::of(&one, &other)).unwrap().len(), 2);
    }

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
        let ranges = [2..4, 6..6, 8..10];
        assert_eq!(overlap(&ranges, 1, 1), 0);
        assert_eq!(overlap(&ranges, 3, 8), 2);
        assert_eq!(overlap(&ranges, 1, 20), 4);
        assert_eq!(overlap(&[], 1, 20), 0);
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
