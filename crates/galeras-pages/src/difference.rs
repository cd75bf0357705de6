//! The difference of two texts, word by word: the fewest words (Myers 1986) to delete from one and
//! insert into the other.

use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// The most lines, and the most words of lines that differ, that are compared. The rest counts as
/// different, because the time of a comparison grows with the product.
const LARGEST: usize = 3_000;

/// The ranges of bytes of `old` that `new` lacks, and those of `new` that `old` lacks. In order and
/// apart.
pub(crate) fn words(old: &str, new: &str) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
    let (mut gone, mut come) = (Vec::new(), Vec::new());
    if old != new {
        compare((old, &lines(old)), (new, &lines(new)), |old_part, new_part| {
            let (old_words, new_words) = (pieces(old, old_part), pieces(new, new_part));
            compare((old, &old_words), (new, &new_words), |old_part, new_part| {
                gone.push(old_part);
                come.push(new_part);
            });
        });
    }
    (joined(gone, old), joined(come, new))
}

/// Calls `differs` with the parts of two texts that differ, each of some of these ranges.
fn compare(
    (old, old_ranges): (&str, &[Range<usize>]),
    (new, new_ranges): (&str, &[Range<usize>]),
    mut differs: impl FnMut(Range<usize>, Range<usize>),
) {
    let (old_count, new_count) = (old_ranges.len(), new_ranges.len());
    if old_count > LARGEST || new_count > LARGEST {
        differs(span(old_ranges, 0..old_count), span(new_ranges, 0..new_count));
        return;
    }
    let old_texts: Vec<&str> = old_ranges.iter().map(|range| &old[range.clone()]).collect();
    let new_texts: Vec<&str> = new_ranges.iter().map(|range| &new[range.clone()]).collect();
    for op in capture_diff_slices(Algorithm::Myers, &old_texts, &new_texts) {
        if !matches!(op, DiffOp::Equal { .. }) {
            differs(span(old_ranges, op.old_range()), span(new_ranges, op.new_range()));
        }
    }
}

/// Ranges in order, without empty ones; those with nothing but spaces between them on one line are
/// one, so that a changed phrase reads as such.
fn joined(ranges: Vec<Range<usize>>, text: &str) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    for range in ranges.into_iter().filter(|range| !range.is_empty()) {
        match out.last_mut() {
            Some(last) if text[last.end..range.start].chars().all(|c| c == ' ') => {
                last.end = range.end;
            }
            _ => out.push(range),
        }
    }
    out
}

fn span(ranges: &[Range<usize>], of: Range<usize>) -> Range<usize> {
    match &ranges[of] {
        [first, .., last] => first.start..last.end,
        [only] => only.clone(),
        [] => 0..0,
    }
}

fn lines(text: &str) -> Vec<Range<usize>> {
    let mut start = 0;
    let line = |line: &str| {
        start += line.len();
        start - line.len()..start
    };
    text.split_inclusive('\n').map(line).collect()
}

/// Words of letters, digits and underscores; runs of white space of one kind; other characters one
/// by one.
fn pieces(text: &str, part: Range<usize>) -> Vec<Range<usize>> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let is_space = |c: char| c == ' ' || c == '\t';
    let mut out: Vec<Range<usize>> = Vec::new();
    let mut last = '\n';
    for (at, c) in text[part.clone()].char_indices() {
        let (start, end) = (part.start + at, part.start + at + c.len_utf8());
        match out.last_mut() {
            Some(range) if is_word(last) && is_word(c) || is_space(last) && is_space(c) => {
                range.end = end;
            }
            _ => out.push(start..end),
        }
        last = c;
    }
    out
}
