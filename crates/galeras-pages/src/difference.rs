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
    if old == new {
        return (gone, come);
    }
    let (old_lines, new_lines) = (lines(old), lines(new));
    if old_lines.len() > LARGEST || new_lines.len() > LARGEST {
        return (whole(old), whole(new));
    }
    let (old_texts, new_texts) = (texts(old, &old_lines), texts(new, &new_lines));
    for op in capture_diff_slices(Algorithm::Myers, &old_texts, &new_texts) {
        if let DiffOp::Equal { .. } = op {
            continue;
        }
        let old_part = span(&old_lines, op.old_range());
        let new_part = span(&new_lines, op.new_range());
        changed_words(old, old_part, new, new_part, &mut gone, &mut come);
    }
    (joined(gone, old), joined(come, new))
}

fn changed_words(
    old: &str,
    old_part: Range<usize>,
    new: &str,
    new_part: Range<usize>,
    gone: &mut Vec<Range<usize>>,
    come: &mut Vec<Range<usize>>,
) {
    let old_words = pieces(old, old_part.clone());
    let new_words = pieces(new, new_part.clone());
    if old_words.len() > LARGEST || new_words.len() > LARGEST {
        gone.push(old_part);
        come.push(new_part);
        return;
    }
    let (old_texts, new_texts) = (texts(old, &old_words), texts(new, &new_words));
    for op in capture_diff_slices(Algorithm::Myers, &old_texts, &new_texts) {
        if let DiffOp::Equal { .. } = op {
            continue;
        }
        gone.push(span(&old_words, op.old_range()));
        come.push(span(&new_words, op.new_range()));
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

fn whole(text: &str) -> Vec<Range<usize>> {
    if text.is_empty() { Vec::new() } else { std::iter::once(0..text.len()).collect() }
}

fn texts<'a>(text: &'a str, ranges: &[Range<usize>]) -> Vec<&'a str> {
    ranges.iter().map(|range| &text[range.clone()]).collect()
}

fn span(ranges: &[Range<usize>], of: Range<usize>) -> Range<usize> {
    match ranges.get(of.clone()) {
        Some([first, .., last]) => first.start..last.end,
        Some([only]) => only.clone(),
        _ => 0..0,
    }
}

fn lines(text: &str) -> Vec<Range<usize>> {
    let mut start = 0;
    text.split_inclusive('\n')
        .map(|line| {
            start += line.len();
            start - line.len()..start
        })
        .collect()
}

/// Words of letters, digits and underscores; runs of white space of one kind; other characters one
/// by one.
fn pieces(text: &str, part: Range<usize>) -> Vec<Range<usize>> {
    #[derive(PartialEq, Clone, Copy)]
    enum Kind {
        Word,
        Space,
        Other,
    }
    let kind = |c: char| match c {
        c if c.is_alphanumeric() || c == '_' => Kind::Word,
        ' ' | '\t' => Kind::Space,
        _ => Kind::Other,
    };
    let mut out: Vec<Range<usize>> = Vec::new();
    let mut last = Kind::Other;
    for (at, c) in text[part.clone()].char_indices() {
        let (start, end) = (part.start + at, part.start + at + c.len_utf8());
        let this = kind(c);
        match out.last_mut() {
            Some(range) if this == last && this != Kind::Other => range.end = end,
            _ => out.push(start..end),
        }
        last = this;
    }
    out
}
