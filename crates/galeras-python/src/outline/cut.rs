//! Finds where a Python file can be cut into pieces.
//!
//! A byte scan that knows only strings, comments, brackets and indents. Its mistakes, as about
//! quotes within f-strings, cost only time, because a piece must also parse alone (`piece`). The
//! exceptions are [`LogicalLines::clear`] and the rules for the first bytes of a piece, on which `outline`
//! relies.

use std::ops::Range;

use crate::scan::{find_newline, string_end};

/// Statements that are not definitions are joined up to this many bytes. Tests are small, so they
/// cut at every statement.
const RUN: usize = if cfg!(test) { 1 } else { 512 };

/// Shorter classes are not split.
const MIN_CLASS: usize = if cfg!(test) { 1 } else { 768 };

#[derive(Debug, Default)]
pub(super) struct Cuts {
    /// Cover the text without gaps.
    pub(super) spans: Vec<Span>,
    /// Starts of class members; see [`Span::members`].
    pub(super) members: Vec<usize>,
}

#[derive(Debug)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
    /// The range of [`Cuts::members`] for a class to be split; else empty.
    pub(super) members: Range<usize>,
}

impl Cuts {
    /// The pieces of a text.
    pub(super) fn of(text: &[u8]) -> Self {
        let mut cutter = Cutter::default();
        let mut lines = LogicalLines { text, code: 0 };
        let mut at = 0;
        while at < text.len() {
            let (width, plain, first) = indent(text, at);
            at = match text.get(first) {
                None => text.len(),
                Some(b'\n') => first + 1,
                Some(b'#') => line_end(text, first),
                Some(_) => {
                    cutter.statement(&lines, at, first, if plain { Some(width) } else { None });
                    lines.skip(first)
                }
            };
        }
        cutter.close(text.len());
        cutter.cuts
    }
}

#[derive(Default)]
struct Cutter {
    cuts: Cuts,
    /// The start of the open span, and if it has a statement yet.
    start: usize,
    begun: bool,
    /// The open span starts with a definition: it ends at the next statement.
    heavy: bool,
    /// The line before is a decorator.
    decorated: bool,
    /// The open span is a class, possibly with decorators.
    class: Option<OpenClass>,
}

struct OpenClass {
    /// Length of `Cuts::members` before this class's members.
    before: usize,
    width: Option<usize>,
    heavy: bool,
}

impl Cutter {
    /// Adds the statement, or part of one, whose line starts at `line` and whose first byte is
    /// `first`. `width` is the indent as the parser counts it, if it is plain.
    fn statement(
        &mut self,
        lines: &LogicalLines<'_>,
        line: usize,
        first: usize,
        width: Option<usize>,
    ) {
        let word = word(lines.text, first);
        let heavy = matches!(word, b"def" | b"class" | b"async" | b"@");
        let decorated = std::mem::replace(&mut self.decorated, false);
        let begun = std::mem::replace(&mut self.begun, true);
        if width == Some(0) {
            self.decorated = word == b"@";
            let due = heavy || self.heavy || line - self.start >= RUN;
            if begun && !decorated && due && starts_statement(word) && lines.clear(line) {
                self.close(line);
                (self.start, self.heavy) = (line, heavy);
            } else if !begun {
                self.heavy = heavy;
            } else {
                // The class continues in a way that is not understood.
                self.drop_class();
            }
            if word == b"class" && self.heavy {
                let before = self.cuts.members.len();
                self.class = Some(OpenClass { before, width: None, heavy: false });
            }
            return;
        }
        let Some(class) = &mut self.class else { return };
        match (width, class.width) {
            (None, _) => self.drop_class(),
            (Some(_), _) if lines.text.get(first) == Some(&b'\\') => self.drop_class(),
            (Some(here), None) => {
                let starts = starts_statement(word) || matches!(word, b"\"" | b"'");
                if starts && lines.clear(line) {
                    class.width = Some(here);
                    class.heavy = heavy;
                    self.cuts.members.push(line);
                    self.decorated = word == b"@";
                } else {
                    self.drop_class();
                }
            }
            (Some(here), Some(width)) if here < width => self.drop_class(),
            (Some(here), Some(width)) if here == width => {
                let top = self.cuts.members.get(class.before).copied().unwrap_or(line);
                if lines.text.get(line..first) != lines.text.get(top..top + first - line) {
                    // Of the same width, but other blanks and tabs.
                    return self.drop_class();
                }
                let last = self.cuts.members.last().copied().unwrap_or(0);
                self.decorated = word == b"@";
                if !decorated
                    && (heavy || class.heavy || line - last >= RUN)
                    && starts_statement(word)
                    && lines.clear(line)
                {
                    class.heavy = heavy;
                    self.cuts.members.push(line);
                }
            }
            _ => {}
        }
    }

    fn drop_class(&mut self) {
        if let Some(class) = self.class.take() {
            self.cuts.members.truncate(class.before);
        }
    }

    fn close(&mut self, end: usize) {
        let all = self.cuts.members.len();
        let before = self.class.as_ref().map_or(all, |class| class.before);
        if end - self.start < MIN_CLASS || all - before < 2 {
            self.drop_class();
        }
        self.class = None;
        let members = before..self.cuts.members.len().max(before);
        if end > self.start {
            self.cuts.spans.push(Span { start: self.start, end, members });
        }
    }
}

/// The lines of a text; strings and brackets belong to one line.
struct LogicalLines<'a> {
    text: &'a [u8],
    /// After the last byte of skipped code; the end of the line or its comment.
    code: usize,
}

impl LogicalLines<'_> {
    /// True if the code before `line` is certainly complete there.
    fn clear(&self, line: usize) -> bool {
        let before = self.text.get(..line).unwrap_or_default();
        // A backslash joins lines, even inside other tokens.
        let joined = before.ends_with(b"\\\n") || before.ends_with(b"\\\r\n");
        let code = before.get(..self.code.min(line)).unwrap_or_default();
        let end = code.len() + line_end(before, code.len()).saturating_sub(code.len());
        let whole = before.get(..end).unwrap_or_default();
        before.last() == Some(&b'\n') && !joined && complete(code) && complete(whole)
    }

    /// The start of the line after the one that contains `at`.
    fn skip(&mut self, mut at: usize) -> usize {
        let text = self.text;
        let mut depth = 0_usize;
        loop {
            // Bytes with a meaning outside strings.
            let marks = |byte: &u8| {
                matches!(byte, b'\n' | b'#' | b'"' | b'\'' | b'(' | b')' | b'[' | b']')
                    || matches!(byte, b'{' | b'}' | b'\\')
            };
            let Some(plain) = text[at..].iter().position(marks) else {
                self.code = text.len();
                return text.len();
            };
            at += plain;
            let byte = text[at];
            match byte {
                b'\n' => {
                    if depth == 0 {
                        self.code = at;
                        return at + 1;
                    }
                    at += 1;
                }
                b'#' => {
                    let end = line_end(text, at);
                    if depth == 0 {
                        self.code = at;
                        return end;
                    }
                    at = end;
                }
                b'"' | b'\'' => at = string_end(text, at).unwrap_or_else(|end| end),
                b'(' | b'[' | b'{' => (depth, at) = (depth + 1, at + 1),
                b'\\' => at = escaped(text, at),
                _ => (depth, at) = (depth.saturating_sub(1), at + 1),
            }
        }
    }
}

/// True if code with this end is not an unfinished list. Unusual bytes may be white space.
fn complete(code: &[u8]) -> bool {
    let last = code.iter().rev().find(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0x0c));
    last.is_none_or(|last| last.is_ascii_graphic() && !matches!(last, b',' | b'\\'))
}

/// True if `word` can start a statement after another one.
fn starts_statement(word: &[u8]) -> bool {
    let letter = word.first().is_some_and(|&b| b.is_ascii_alphabetic() || matches!(b, b'_' | b'@'));
    letter && !matches!(word, b"else" | b"elif" | b"except" | b"finally")
}

fn word(text: &[u8], at: usize) -> &[u8] {
    let rest = text.get(at..).unwrap_or_default();
    let letters = rest.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    rest.get(..letters.max(1)).unwrap_or_default()
}

/// The indent at `at` as the parser counts it, if it is blanks and tabs only, and its end.
fn indent(text: &[u8], at: usize) -> (usize, bool, usize) {
    let (mut width, mut plain, mut end) = (0, true, at);
    while let Some(&byte) = text.get(end) {
        match byte {
            b' ' => width += 1,
            b'\t' => width += 8,
            b'\r' | 0x0c => (width, plain) = (0, false),
            _ => break,
        }
        end += 1;
    }
    (width, plain, end)
}

fn line_end(text: &[u8], at: usize) -> usize {
    text.len().min(find_newline(text, at.min(text.len())) + 1)
}

/// After the backslash at `at` and the character that it escapes.
fn escaped(text: &[u8], at: usize) -> usize {
    let crlf = text.get(at + 1..at + 3) == Some(b"\r\n");
    (at + if crlf { 3 } else { 2 }).min(text.len())
}
