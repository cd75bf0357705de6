//! Texts and places in them: [`Source`], [`Span`], [`SourceSpan`], [`Position`].

use std::sync::Arc;

/// A range of bytes in a source text; `start <= end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// The range `start..end`; empty if `end` is before `start`.
    pub fn new(start: usize, end: usize) -> Self {
        Self { start, end: end.max(start) }
    }
}

/// A place in a text by line and column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1. A byte order mark takes no column.
    pub column: usize,
}

/// A text with its name in messages.
#[derive(Debug)]
pub struct Source {
    path: String,
    text: Arc<str>,
    line_starts: Vec<usize>,
}

pub(super) const BOM: char = '\u{feff}';

impl Source {
    /// Creates a source; `path` is only displayed.
    pub fn new(path: impl Into<String>, text: impl Into<Arc<str>>) -> Arc<Self> {
        let text = text.into();
        let first = if text.starts_with(BOM) { BOM.len_utf8() } else { 0 };
        let mut line_starts = vec![first];
        // The last empty "line" also counts: a missing value may be reported there.
        line_starts.extend(text.match_indices('\n').map(|(at, _)| at + 1));
        Arc::new(Self { path: path.into(), text, line_starts })
    }

    /// The display name.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The whole text, with a byte order mark.
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// Line and column of a byte offset. An offset past the end is the end; one inside a character
    /// is that character.
    pub fn position(&self, offset: usize) -> Position {
        let offset = self.text.floor_char_boundary(offset);
        let line = self.line_starts.partition_point(|&s| s <= offset).max(1);
        let start = self.line_starts.get(line - 1).copied().unwrap_or(0);
        let before = self.text.get(start..offset).unwrap_or("");
        Position { line, column: before.chars().count() + 1 }
    }

    /// The bytes of a line (from 1) without its line break, or `None` past the last line.
    pub fn line_span(&self, line: usize) -> Option<Span> {
        let start = *self.line_starts.get(line.checked_sub(1)?)?;
        let next = self.line_starts.get(line).copied();
        let text = self.text.get(start..next.unwrap_or(self.text.len()))?;
        Some(Span::new(start, start + text.trim_end_matches(['\n', '\r']).len()))
    }

    /// The text of a span; empty if the span is not inside the text.
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.start..span.end).unwrap_or("")
    }

    /// The byte offset of the `n`-th character, or the length of the text.
    pub(super) fn byte_of_char(&self, n: usize) -> usize {
        self.text.char_indices().nth(n).map_or(self.text.len(), |(i, _)| i)
    }
}

/// A range of bytes together with its text.
#[derive(Debug, Clone)]
pub struct SourceSpan {
    /// The text.
    pub source: Arc<Source>,
    /// First byte.
    pub start: usize,
    /// Length in bytes; 0 marks a place between characters.
    pub len: usize,
}

impl SourceSpan {
    /// Binds a span to its text, cut to the text and extended to whole characters.
    pub fn new(source: &Arc<Source>, span: Span) -> Self {
        let text = source.text();
        let (start, end) = (text.floor_char_boundary(span.start), span.end.max(span.start));
        let end = text.ceil_char_boundary(end);
        Self { source: Arc::clone(source), start, len: end - start }
    }

    /// One past the last byte.
    pub fn end(&self) -> usize {
        self.start + self.len
    }

    pub(super) fn key(&self) -> (&str, usize, usize) {
        (self.source.path(), self.start, self.len)
    }
}

impl PartialEq for SourceSpan {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for SourceSpan {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters_and_ignore_the_byte_order_mark() {
        let s = Source::new("f", "\u{feff}é: 1\r\nb: ü x\n");
        let at = |needle: &str| s.position(s.text().find(needle).unwrap());
        assert_eq!(at("é"), Position { line: 1, column: 1 });
        assert_eq!(at("1"), Position { line: 1, column: 4 });
        assert_eq!(at("x"), Position { line: 2, column: 6 });
        assert_eq!(s.position(9999), Position { line: 3, column: 1 });
        assert_eq!(s.slice(s.line_span(1).unwrap()), "é: 1");
        assert_eq!(s.line_span(4), None);
    }

    #[test]
    fn a_span_has_whole_characters() {
        let source = Arc::new(Source::new("f", "aé: 1"));
        let bound = |start, end| {
            let span = SourceSpan::new(&source, Span { start, end });
            (span.start, span.end())
        };
        assert_eq!([bound(1, 2), bound(2, 3), bound(2, 2)], [(1, 3); 3]);
        assert_eq!([bound(0, 1), bound(1, 1)], [(0, 1), (1, 1)]);
        assert_eq!([bound(4, 99), bound(99, 99)], [(4, 6), (6, 6)]);
    }
}
