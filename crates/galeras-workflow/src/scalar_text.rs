//! Finds the bytes of a part of a scalar in the file: through quotes, escapes, folded lines and the
//! indentation of block scalars, and through expressions, which are longer or shorter than their
//! values.
//!
//! The YAML library returns the place of a scalar, but not of its parts. So the scalar's text is
//! read again along with its value; where they do not agree, the place is unknown.

use std::ops::Range;

use super::expr::{CLOSE, OPEN};
use super::node::Node;
use super::source::{Source, Span};

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
        if range.is_empty() { Some((start, start)) } else { Some((start, end?)) }
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

/// The place of `value[range]`, where `value` is the value of `node` with its expressions replaced.
/// A place within the value of an expression is that of the expression.
pub fn word_span(node: &Node, source: &Source, value: &str, range: Range<usize>) -> Option<Span> {
    let range = before_substitution(node.as_str()?, value, range)?;
    node.part(source.text(), range)
}

/// The range of the written text from which `range` of the value comes.
fn before_substitution(written: &str, value: &str, range: Range<usize>) -> Option<Range<usize>> {
    if written == value {
        return Some(range);
    }
    // Texts between expressions are in both; between them are values here and expressions there. An
    // empty text at the end is at the end.
    let mut pairs: Vec<(Range<usize>, Range<usize>)> = Vec::new();
    let (mut at, mut here) = (0, 0);
    loop {
        let open = written.get(at..)?.find(OPEN).map(|offset| at + offset);
        let literal = written.get(at..open.unwrap_or(written.len()))?;
        let found = match open {
            None => value.len().checked_sub(literal.len()).filter(|from| *from >= here)?,
            Some(_) if at == 0 => 0,
            Some(_) => here + value.get(here..)?.find(literal)?,
        };
        if !value.get(found..)?.starts_with(literal) {
            return None;
        }
        if at > 0 {
            let expression = written.get(..at)?.rfind(OPEN)?..at;
            pairs.push((here..found, expression));
        }
        here = found + literal.len();
        pairs.push((found..here, at..at + literal.len()));
        let Some(open) = open else { break };
        at = open + written.get(open..)?.find(CLOSE)? + CLOSE.len();
    }
    let is_text = |(in_value, in_file): &(Range<usize>, Range<usize>)| {
        written.get(in_file.clone()) == value.get(in_value.clone())
    };
    let place = |at: usize, end: bool| {
        let holds = |in_value: &Range<usize>| match end {
            true => in_value.start < at && at <= in_value.end,
            false => in_value.start <= at && at < in_value.end,
        };
        let pair = pairs.iter().find(|pair| holds(&pair.0));
        let pair = pair.or_else(|| pairs.iter().find(|p| (p.0.start..=p.0.end).contains(&at)))?;
        Some(match (is_text(pair), end) {
            (true, _) => pair.1.start + (at - pair.0.start),
            (false, true) => pair.1.end,
            (false, false) => pair.1.start,
        })
    };
    let start = place(range.start, false)?;
    let end = if range.is_empty() { start } else { place(range.end, true)? };
    (start <= end).then_some(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Diagnostics, load};

    /// The marked text of the file for `word` in the value under `q`, or after its expressions.
    fn marked(yaml: &str, values: &[(&str, &str)], word: &str) -> Option<(usize, String)> {
        let source = Source::new("f", yaml);
        let node = load(&source, &mut Diagnostics::new()).unwrap();
        let node = node.get("q").unwrap();
        let mut value = node.as_str().unwrap().to_owned();
        for (expression, text) in values {
            value = value.replace(expression, text);
        }
        let at = value.find(word).unwrap();
        let span = word_span(node, &source, &value, at..at + word.len())?;
        Some((source.position(span.start).line, source.slice(span).to_owned()))
    }

    #[test]
    fn a_word_is_found_however_the_text_is_written() {
        for yaml in [
            "q: SELECT x FROM y\n",
            "q: 'SELECT ''a'' FROM y'\n",
            "q: \"SELECT \\\"a\\\" \\u00e9\\t FROM y\"\n",
            "q: |\n  SELECT a,\n\n    b\n  FROM y\n",
            "q: |-\n    SELECT a\n      , b\n    FROM y",
            "q: >\n  SELECT a,\n  b\n\n  FROM y\n",
            "q: >-\n  SELECT a,\n  b  \n  FROM y\n",
            "q: | # a comment\n\n\n  SELECT a  \n  FROM y\n",
            "q: SELECT a\n  , b\n  FROM y\n",
            "q:\n  SELECT a\n\n  FROM y\n",
            "q: \"SELECT a\\\n  , b\n   FROM y\"\n",
            "q: 'SELECT a\n\n  FROM y'\n",
            "q: |\r\n  SELECT a\r\n  FROM y\r\n",
            "q: |\n  é ü\n  FROM y\n",
        ] {
            let line = yaml[..yaml.find("FROM").unwrap()].lines().count().max(1);
            assert_eq!(marked(yaml, &[], "FROM"), Some((line, "FROM".to_owned())), "{yaml:?}");
        }
    }

    #[test]
    fn substituted_values_shift_nothing() {
        let yaml =
            "q: |\n  SELECT ${{ params.a }} AS x\n  WHERE y = ${{ params.b }}\n  GRUOP BY z\n";
        let values = [("${{ params.a }}", "'AS x'"), ("${{ params.b }}", "12345")];
        assert_eq!(marked(yaml, &values, "GRUOP"), Some((4, "GRUOP".into())));
        assert_eq!(marked(yaml, &values, "SELECT"), Some((2, "SELECT".into())));
        assert_eq!(marked(yaml, &values, "12345"), Some((3, "${{ params.b }}".into())));
    }

    #[test]
    fn what_cannot_be_told_is_not_guessed() {
        assert_eq!(marked("a: &a SELECT x\nq: *a\n", &[], "x"), None);
    }

    #[test]
    fn equal_words_and_places_between_characters_are_told_apart() {
        let block = "q: |\n  a AND\n  a AND b\n";
        for (yaml, part, place) in [
            (block, 8..11, Span::new(17, 20)),
            ("q: 'a b'\n", 3..3, Span::new(7, 7)),
            ("q: 'a b'\n", 0..0, Span::new(4, 4)),
        ] {
            let source = Source::new("f", yaml);
            let node = load(&source, &mut Diagnostics::new()).unwrap();
            assert_eq!(node.get("q").unwrap().part(yaml, part), Some(place), "{yaml:?}");
        }
        assert_eq!(&block[17..20], "AND");
    }
}
