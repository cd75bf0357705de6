//! Extracts the code from the answer of a chat model.
//!
//! # Blocks
//! Fenced code blocks follow CommonMark 0.31, section 4.5: a line of at least three backticks or
//! tildes, then any info string (without backticks after backticks), opens a block; a line of at
//! least as many of the same character and nothing else closes it; an open block ends with the
//! answer, as it does when the answer was cut at `max_tokens`. The indentation of the opening fence
//! is removed from the lines of its block. A fence may be indented by three more columns than the
//! surrounding text; in a list item, that is the column of the item's text. Two rules are not
//! followed: block quotes are not searched, and the end of an item does not end its block.
//!
//! A fence within a string of the code closes the block if it is as long as the opening one and
//! indented by less than four columns. Fences in docstrings are usually indented further. A model
//! can avoid this with a longer opening fence.
//!
//! # Choice
//! The first block marked `python`, `py` or `python3`; else the first one with a `def `; else the
//! first one. A blank block is only taken if all are blank. Without a fence the whole answer is
//! code. Prompts of doctests, and code within a line between single backticks, are left unchanged.
//!
//! # Reasoning
//! Text between `<think>` and `</think>`, including its fences, is not part of the answer; without
//! an end tag it runs to the end of the answer. An end tag alone drops everything before it: some
//! chat templates put `<think>` into the prompt. Both tags count only at the beginning of a line
//! and outside of blocks, since code may be about such tags.

use std::borrow::Cow;
use std::ops::Range;

const THINK: &str = "<think>";
const END_THINK: &str = "</think>";

const BLANKS: [char; 2] = [' ', '\t'];

/// The code in `answer`, without its fences; it ends with the line feed before the closing one.
/// Borrowed unless lines were dedented, or parts joined.
///
/// Takes time linear in the answer.
pub(super) fn code(answer: &str) -> Cow<'_, str> {
    let mut best: Option<(u8, Block)> = None;
    let mut kept: Vec<Range<usize>> = Vec::new();
    let mut open: Option<Open> = None;
    // The column of the innermost list item's text.
    let mut margin = 0;
    let mut kept_from = 0;
    let mut at = 0;
    let mut end = 0;
    while at < answer.len() {
        // The rest of a line after a tag is read as a line with a known end.
        if at >= end {
            end = line_end(answer, at);
        }
        let line = &answer[at..end];
        let start = at;
        at = end;
        if let Some(block) = &open {
            if block.is_closed_by(line) {
                choose(&mut best, answer, block, start);
                open = None;
            }
            continue;
        }
        let text = line.trim_start_matches(BLANKS);
        let tag = start + (line.len() - text.len());
        if text.starts_with(THINK) {
            kept.push(kept_from..tag);
            let rest = tag + THINK.len();
            at = answer[rest..]
                .find(END_THINK)
                .map_or(answer.len(), |offset| rest + offset + END_THINK.len());
            kept_from = at;
            margin = 0;
        } else if text.starts_with(END_THINK) {
            kept.clear();
            best = None;
            at = tag + END_THINK.len();
            kept_from = at;
            margin = 0;
        } else if !text.trim_start().is_empty() {
            let indent = columns(line);
            if let Some(fence) = Fence::opening(text)
                && indent <= margin + 3
            {
                margin = margin.min(indent);
                open = Some(Open { fence, indent, margin, from: end });
            } else {
                margin = list_item(text)
                    .filter(|_| indent <= margin + 3)
                    .map_or_else(|| margin.min(indent), |width| indent + width);
            }
        }
    }
    if let Some(block) = &open {
        choose(&mut best, answer, block, answer.len());
    }
    match best {
        Some((_, block)) => block.text(answer),
        None => join(answer, kept, kept_from),
    }
}

/// The rest of an answer outside the fences.
fn join(answer: &str, kept: Vec<Range<usize>>, kept_from: usize) -> Cow<'_, str> {
    let mut parts = kept
        .into_iter()
        .chain(std::iter::once(kept_from..answer.len()))
        .filter_map(|part| answer.get(part))
        .filter(|part| !part.is_empty());
    let first = parts.next().unwrap_or_default();
    match parts.next() {
        None => Cow::Borrowed(first),
        Some(second) => Cow::Owned([first, second].into_iter().chain(parts).collect()),
    }
}

/// The position after the line that begins at `start`.
fn line_end(text: &str, start: usize) -> usize {
    text[start..].find('\n').map_or(text.len(), |offset| start + offset + 1)
}

/// The width of the leading spaces and tabs of `line`; a tab goes to the next multiple of four.
fn columns(line: &str) -> usize {
    let blanks = line.bytes().take_while(|byte| matches!(byte, b' ' | b'\t'));
    blanks.fold(0, |column, byte| if byte == b'\t' { column / 4 * 4 + 4 } else { column + 1 })
}

/// The column where the item's text starts, if `text` begins a list item.
fn list_item(text: &str) -> Option<usize> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let mark = match (digits, text.as_bytes().get(digits)?) {
        (0, b'-' | b'*' | b'+') => 1,
        (1..=9, b'.' | b')') => digits + 1,
        _ => return None,
    };
    match columns(&text[mark..]) {
        // The rest of the line is blank, or begins with a code block.
        0 if text[mark..].trim().is_empty() => Some(mark + 1),
        0 => None,
        blanks if blanks > 4 => Some(mark + 1),
        blanks => Some(mark + blanks),
    }
}

/// The beginning of a block.
struct Fence {
    byte: u8,
    len: usize,
    is_python: bool,
}

impl Fence {
    /// Reads `text`, a line without its indentation.
    fn opening(text: &str) -> Option<Self> {
        let byte = *text.as_bytes().first().filter(|byte| matches!(byte, b'`' | b'~'))?;
        let len = run(text, byte);
        let info = &text[len..];
        if len < 3 || (byte == b'`' && info.contains('`')) {
            return None;
        }
        let info = info.trim_start_matches([' ', '\t', '{', '.']);
        let end = info.find(|c: char| c.is_whitespace() || ",:;{}()[]=".contains(c));
        let language = &info[..end.unwrap_or(info.len())];
        let is_python =
            ["python", "py", "python3"].iter().any(|name| name.eq_ignore_ascii_case(language));
        Some(Self { byte, len, is_python })
    }
}

fn run(text: &str, byte: u8) -> usize {
    text.bytes().take_while(|&other| other == byte).count()
}

/// An unclosed block.
struct Open {
    fence: Fence,
    indent: usize,
    /// The indentation of the surrounding list.
    margin: usize,
    from: usize,
}

impl Open {
    fn is_closed_by(&self, line: &str) -> bool {
        let text = line.trim_start_matches(BLANKS);
        let len = run(text, self.fence.byte);
        len >= self.fence.len
            && text[len..].trim_start_matches([' ', '\t', '\r', '\n']).is_empty()
            && columns(line) <= self.margin + 3
    }
}

struct Block {
    range: Range<usize>,
    indent: usize,
}

impl Block {
    fn text<'a>(&self, answer: &'a str) -> Cow<'a, str> {
        let text = &answer[self.range.clone()];
        if self.indent == 0 || text.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut moved = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            let mut column = 0;
            let mut bytes = 0;
            for byte in line.bytes() {
                column = match byte {
                    b' ' if column < self.indent => column + 1,
                    b'\t' if column < self.indent => column / 4 * 4 + 4,
                    _ => break,
                };
                bytes += 1;
            }
            // A tab may be wider than the removed indentation.
            moved.extend(std::iter::repeat_n(' ', column.saturating_sub(self.indent)));
            moved.push_str(&line[bytes..]);
        }
        Cow::Owned(moved)
    }
}

/// Replaces the best block, with its rank, by one that ends at `to` and has a higher rank.
fn choose(best: &mut Option<(u8, Block)>, answer: &str, open: &Open, to: usize) {
    let text = &answer[open.from..to];
    let rank = match text {
        _ if text.trim_start().is_empty() => 0,
        _ if open.fence.is_python => 3,
        _ if has_def(text) => 2,
        _ => 1,
    };
    if best.as_ref().is_none_or(|(known, _)| rank > *known) {
        *best = Some((rank, Block { range: open.from..to, indent: open.indent }));
    }
}

/// `text` seems to have the keyword `def`, judging by the characters around it.
fn has_def(text: &str) -> bool {
    text.match_indices("def ")
        .any(|(at, _)| !text[..at].ends_with(|c: char| c == '_' || c.is_alphanumeric()))
}

#[cfg(test)]
mod tests;
