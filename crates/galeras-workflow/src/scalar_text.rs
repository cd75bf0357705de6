//! Finds the bytes of a part of a scalar in the file: through quotes, escapes, folded lines and the
//! indentation of block scalars.
//!
//! The YAML library returns the place of a scalar, but not of its parts. So the scalar's text is
//! read again along with its value; where they do not agree, the place is unknown.

use std::ops::Range;

use super::source::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    Plain,
    Single,
    Double,
    /// `|` or `>`, with the indentation of its lines in bytes.
    Block {
        indent: usize,
    },
}

/// The bytes of the file `text` that spell `value[range]` of the scalar at `place`; `None` if
/// unknown.
pub(super) fn part_of(
    text: &str,
    place: Span,
    value: &str,
    quoted: bool,
    range: Range<usize>,
) -> Option<Span> {
    let raw = text.get(place.start..place.end)?;
    value.get(range.clone())?;
    if raw.starts_with('*') {
        return None;
    }
    let style = style(text, place, quoted, raw);
    let (start, end) = Walk { raw, value, style, at: (0, 0) }.find(range)?;
    Some(Span::new(place.start + start, place.start + end))
}

fn style(text: &str, place: Span, quoted: bool, raw: &str) -> Style {
    if quoted && raw.starts_with('"') {
        return Style::Double;
    }
    if quoted {
        return Style::Single;
    }
    let before = &text[..place.start];
    let line = before.rfind('\n').map_or(0, |at| at + 1);
    let indent = before.len() - line;
    let blank = before[line..].bytes().all(|b| b == b' ');
    // The header of a block scalar ends the last non-blank line above.
    let header = before[..line].lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("");
    let header = header.split_once(" #").map_or(header, |(code, _)| code).trim_end();
    let header = header.trim_end_matches(|c: char| matches!(c, '+' | '-') || c.is_ascii_digit());
    match blank && header.ends_with(['|', '>']) {
        true => Style::Block { indent },
        false => Style::Plain,
    }
}

/// Reads a scalar's text and its value in parallel.
struct Walk<'a> {
    raw: &'a str,
    value: &'a str,
    style: Style,
    /// The position in the text and in the value.
    at: (usize, usize),
}

impl Walk<'_> {
    /// The bytes of the text that spell this range of the value.
    fn find(mut self, range: Range<usize>) -> Option<(usize, usize)> {
        match self.style {
            Style::Single | Style::Double => self.at.0 = 1,
            // The scalar's place begins at its first non-blank character.
            Style::Block { .. } => {
                self.at.1 = self.value.len() - self.value.trim_start_matches('\n').len();
            }
            Style::Plain => {}
        }
        let mut start = (range.start <= self.at.1).then_some(self.at.0);
        let mut end = start.filter(|_| range.end <= self.at.1);
        while end.is_none() && self.at.1 < self.value.len() {
            let from = self.at;
            self.step()?;
            if start.is_none() && self.at.1 > range.start {
                start = Some(from.0);
            }
            if start.is_some() && self.at.1 >= range.end && (self.at.1 > from.1) {
                end = Some(self.at.0);
            }
        }
        // At the very end: just after the last character.
        let last = self.at.0.min(self.raw.len());
        let start = start.or((range.start == self.value.len()).then_some(last))?;
        match range.is_empty() {
            true => Some((start, start)),
            false => Some((start, end?)),
        }
    }

    fn step(&mut self) -> Option<()> {
        let raw = self.raw.get(self.at.0..)?;
        let c = raw.chars().next()?;
        if matches!(c, ' ' | '\t' | '\r' | '\n') {
            let gap = raw.len() - raw.trim_start_matches([' ', '\t', '\r', '\n']).len();
            let breaks = raw[..gap].matches('\n').count();
            if breaks > 0 {
                return self.line_break(&raw[..gap], breaks);
            }
        }
        match (self.style, c) {
            (Style::Double, '\\') => self.escape(raw),
            (Style::Single, '\'') if raw.starts_with("''") => self.pass(2, '\''),
            _ => self.pass(c.len_utf8(), c),
        }
    }

    /// Passes these bytes of the text, which spell one character.
    fn pass(&mut self, bytes: usize, c: char) -> Option<()> {
        self.value.get(self.at.1..)?.strip_prefix(c)?;
        self.at = (self.at.0 + bytes, self.at.1 + c.len_utf8());
        Some(())
    }

    /// Passes the end of a line, empty lines after it, and the indentation of the next one.
    fn line_break(&mut self, gap: &str, breaks: usize) -> Option<()> {
        let value = self.value.get(self.at.1..)?;
        let after = match self.style {
            Style::Block { indent } => {
                // Blanks before the break belong to a block's text, and so do those after the
                // indentation.
                if !gap.starts_with(['\n', '\r']) {
                    let c = gap.chars().next()?;
                    return self.pass(c.len_utf8(), c);
                }
                let last = gap.rfind('\n')? + 1;
                last + (gap.len() - last).min(indent)
            }
            _ => gap.len(),
        };
        let kept = value.len() - value.trim_start_matches('\n').len();
        let passed = match kept {
            0 if value.starts_with(' ') => 1,
            0 => return None,
            _ => kept.min(breaks),
        };
        self.at = (self.at.0 + after, self.at.1 + passed);
        Some(())
    }

    fn escape(&mut self, raw: &str) -> Option<()> {
        let mark = raw.get(1..)?.chars().next()?;
        if matches!(mark, '\n' | '\r') {
            // A continued line: no part of it is in the value.
            let rest = raw.get(1..)?;
            let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
            self.at.0 += 1 + blank;
            return Some(());
        }
        let digits = match mark {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => 0,
        };
        let c = self.value.get(self.at.1..)?.chars().next()?;
        if digits > 0 {
            let code = u32::from_str_radix(raw.get(2..2 + digits)?, 16).ok()?;
            (char::from_u32(code) == Some(c)).then_some(())?;
        }
        self.pass(1 + mark.len_utf8() + digits, c)
    }
}
