//! Formats diagnostics: [`render`] for terminals, [`to_json`] for `--format json`.
//!
//! The renderer gets only the lines around a place, shortened if they are very long, so the output
//! stays small for any file.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use miette::{
    GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError, MietteSpanContents,
    SourceCode, SpanContents,
};
use serde_json::{Value, json};

use super::diagnostic::{Diagnostic, Severity};
use super::source::{Source, SourceSpan};
use galeras_base::terminal_escape::{escape, escape_lines, is_hidden};
use galeras_net::{UrlSecret, secret_in};

/// Longer lines, in characters, are shown in part.
const MAX_LINE_CHARS: usize = 2_000;
/// Shown characters of a long line before and after the place.
const CROP: (usize, usize) = (60, 120);
const CONTEXT: usize = 1;
/// Related places at most this many lines apart share the main excerpt; others get a separate one
/// after it, so that the main place always comes first.
const NEAR: usize = 2 * CONTEXT + 1;

/// Renders diagnostics in order, each with file, line, column, code, the line with a caret, and
/// help. `width` is that of the terminal in columns.
pub fn render(diagnostics: &[Diagnostic], color: bool, width: usize) -> String {
    let theme = if color { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let handler = GraphicalReportHandler::new_themed(theme)
        .with_links(false)
        .with_width(width.max(40))
        .with_context_lines(CONTEXT);
    let mut out = String::new();
    for diagnostic in diagnostics {
        if !out.is_empty() {
            out.push('\n');
        }
        let report = Report::new(diagnostic);
        // Writing to a String fails only if the renderer itself fails; then fall back to plain
        // text.
        if handler.render_report(&mut out, &report).is_err() {
            out.push_str(&plain(diagnostic));
        }
    }
    out
}

/// The diagnostic as `file:line:column: severity[code]: message`, on one line.
pub fn plain(diagnostic: &Diagnostic) -> String {
    let at = diagnostic.span.source.position(diagnostic.span.start);
    format!(
        "{}:{}:{}: {}[{}]: {}\n",
        escape(diagnostic.span.source.path()),
        at.line,
        at.column,
        diagnostic.severity.as_str(),
        diagnostic.code,
        escape(&diagnostic.message)
    )
}

/// The diagnostic as an object with `code`, `severity`, `message`, `file`, `line`, `column`,
/// `end_line`, `end_column` (just past the last character), `help` and `related`. Lines and columns
/// count from 1, columns in characters.
pub fn to_json(diagnostic: &Diagnostic) -> Value {
    let located = |mut object: Value, span: &SourceSpan| {
        let position = |at| span.source.position(at);
        let (start, end) = (position(span.start), position(span.end()));
        object["file"] = span.source.path().into();
        object["line"] = start.line.into();
        object["column"] = start.column.into();
        object["end_line"] = end.line.into();
        object["end_column"] = end.column.into();
        object
    };
    let related = diagnostic.related.iter();
    let related: Vec<Value> =
        related.map(|(span, note)| located(json!({ "message": note }), span)).collect();
    let object = json!({
        "code": diagnostic.code.name(),
        "severity": diagnostic.severity.as_str(),
        "message": diagnostic.message,
    });
    let mut object = located(object, &diagnostic.span);
    object["help"] = json!(diagnostic.help);
    object["related"] = related.into();
    object
}

/// A line of a file that is safe to show: control characters, and users and passwords of URLs, are
/// replaced byte for byte, so that offsets stay the same.
fn shown_line(line: &str) -> String {
    let secrets = credentials(line);
    let mut out = String::with_capacity(line.len());
    for (at, c) in line.char_indices() {
        if secrets.iter().any(|secret| secret.contains(&at)) {
            out.extend(std::iter::repeat_n('*', c.len_utf8()));
        } else if c != '\t' && is_hidden(c) {
            out.extend(std::iter::repeat_n('?', c.len_utf8()));
        } else {
            out.push(c);
        }
    }
    out
}

/// The secrets of URLs in a line: users and passwords, between `://` and `@` (but not the user of
/// an ssh address), and queries with a token.
fn credentials(line: &str) -> Vec<Range<usize>> {
    let quoted = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`');
    let ends = |c: char| quoted(c) || matches!(c, '/' | '?' | '#');
    let found = line.match_indices("://").filter_map(|(scheme, mark)| {
        let start = scheme + mark.len();
        let rest = &line[start..];
        let authority = &rest[..rest.find(ends).unwrap_or(rest.len())];
        let user = &authority[..authority.rfind('@')?];
        let from = if line[..scheme].ends_with("ssh") { user.find(':')? + 1 } else { 0 };
        Some(start + from..start + user.len())
    });
    let queries = line.match_indices("://").filter_map(|(mark, _)| {
        let scheme = line[..mark].trim_end_matches(|c: char| c.is_ascii_alphanumeric()).len();
        let end = line[mark..].find(quoted).map_or(line.len(), |length| mark + length);
        let query = mark + line[mark..end].find('?')? + 1;
        matches!(secret_in(&line[scheme..end]), Some(UrlSecret::Query(_))).then_some(query..end)
    });
    let mut ranges: Vec<Range<usize>> = found.collect();
    ranges.extend(queries);
    ranges
}

/// A diagnostic in the form that miette renders.
#[derive(Debug)]
struct Report {
    code: Option<&'static str>,
    message: String,
    severity: miette::Severity,
    help: Option<String>,
    excerpt: Excerpt,
    labels: Vec<LabeledSpan>,
    /// Places in other files or far away, each with a separate excerpt.
    related: Vec<Report>,
}

impl Report {
    fn new(d: &Diagnostic) -> Self {
        let main_line = d.span.source.position(d.span.start).line;
        let (near, far): (Vec<_>, Vec<_>) = d.related.iter().partition(|(span, _)| {
            Arc::ptr_eq(&span.source, &d.span.source)
                && span.source.position(span.start).line.abs_diff(main_line) <= NEAR
        });
        let mut places = vec![&d.span];
        places.extend(near.iter().map(|(span, _)| span));
        let excerpt = Excerpt::new(&d.span.source, &places);
        let mut labels = vec![excerpt.label(&d.span, d.label.as_deref(), true)];
        labels.extend(near.iter().map(|(span, note)| excerpt.label(span, Some(note), false)));
        Self {
            code: Some(d.code.name()),
            message: escape_lines(&d.message).into_owned(),
            severity: match d.severity {
                Severity::Error => miette::Severity::Error,
                Severity::Warning => miette::Severity::Warning,
            },
            help: d.help.as_deref().map(|help| escape_lines(help).into_owned()),
            excerpt,
            labels,
            related: far.iter().map(|(s, note)| Self::place(s, note)).collect(),
        }
    }

    fn place(span: &SourceSpan, note: &str) -> Self {
        let excerpt = Excerpt::new(&span.source, &[span]);
        Self {
            code: None,
            message: escape_lines(note).into_owned(),
            severity: miette::Severity::Advice,
            help: None,
            labels: vec![excerpt.label(span, None, true)],
            excerpt,
            related: Vec::new(),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Report {}

impl miette::Diagnostic for Report {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.code?))
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(self.severity)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.help.as_deref()?))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.excerpt)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(self.labels.iter().cloned()))
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn miette::Diagnostic> + 'a>> {
        if self.related.is_empty() {
            return None;
        }
        Some(Box::new(self.related.iter().map(|r| r as &dyn miette::Diagnostic)))
    }
}

/// The lines around some places, and the mapping of their bytes to the source.
#[derive(Debug)]
struct Excerpt {
    source: Arc<Source>,
    text: String,
    first_line: usize,
    /// Per line: start in the source, end in the source, start in the excerpt.
    pieces: Vec<(usize, usize, usize)>,
}

impl Excerpt {
    fn new(source: &Arc<Source>, places: &[&SourceSpan]) -> Self {
        let lines = places.iter().map(|p| source.position(p.start).line);
        let first = lines.clone().min().unwrap_or(1);
        let last = lines.max().unwrap_or(1) + CONTEXT;
        let first_line = first.saturating_sub(CONTEXT).max(1);
        let (text, pieces) = (String::new(), Vec::new());
        let mut out = Self { source: Arc::clone(source), text, first_line, pieces };
        for line in first_line..=last {
            let Some(span) = source.line_span(line) else { break };
            if line > first_line {
                out.text.push('\n');
            }
            let inside = |p: &&&SourceSpan| p.start >= span.start && p.start <= span.end;
            let focus = places.iter().find(inside).map_or(span.start, |p| p.start);
            out.push_line(span.start, source.slice(span), focus - span.start);
        }
        out
    }

    fn push_line(&mut self, start: usize, line: &str, focus: usize) {
        // Byte length first: it is free, and most lines are short.
        if line.len() <= MAX_LINE_CHARS || line.chars().count() <= MAX_LINE_CHARS {
            self.pieces.push((start, start + line.len(), self.text.len()));
            self.text.push_str(&shown_line(line));
            return;
        }
        let (head, tail) = line.split_at_checked(focus).unwrap_or((line, ""));
        let from = head.char_indices().rev().take(CROP.0).last().map_or(head.len(), |(i, _)| i);
        let to = tail.char_indices().nth(CROP.1);
        let to = head.len() + to.map_or(tail.len(), |(i, _)| i);
        if from > 0 {
            self.text.push('…');
        }
        self.pieces.push((start + from, start + to, self.text.len()));
        // Mask the whole line: a part of it may begin within a URL.
        let masked = shown_line(line);
        self.text.push_str(masked.get(from..to).unwrap_or(""));
        if to < line.len() {
            self.text.push('…');
        }
    }

    /// The label of a place, cut to the visible part of its first line.
    fn label(&self, span: &SourceSpan, note: Option<&str>, primary: bool) -> LabeledSpan {
        let piece = self.pieces.iter().rev().find(|p| p.0 <= span.start);
        let (from, to, at) = piece.copied().unwrap_or((span.start, span.start, 0));
        let start = span.start.min(to);
        let end = span.end().clamp(start, to);
        let shown = (at + start - from, end - start);
        let note = note.map(|note| escape_lines(note).into_owned());
        if primary {
            LabeledSpan::new_primary_with_span(note, shown)
        } else {
            LabeledSpan::new_with_span(note, shown)
        }
    }

    fn original(&self, offset: usize) -> usize {
        let piece = self.pieces.iter().rev().find(|p| p.2 <= offset);
        piece.map_or(0, |(from, to, at)| (from + offset - at).min(*to))
    }
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        span: &miette::SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let inner = self.text.as_str().read_span(span, before, after)?;
        // Lines and columns are those of the file, and columns are characters.
        let at = self.source.position(self.original(inner.span().offset()));
        Ok(Box::new(MietteSpanContents::new_named(
            escape(self.source.path()),
            inner.data(),
            *inner.span(),
            inner.line() + self.first_line - 1,
            at.column - 1,
            inner.line_count(),
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::Code;
    use crate::source::Span;

    fn at(text: &str, needle: &str) -> Diagnostic {
        let source = Source::new("flow.yaml", text);
        let start = text.find(needle).unwrap();
        let span = Span::new(start, start + needle.len());
        Diagnostic::error(Code::UnknownKey, "unknown key `tresh`", &source, span)
            .with_label("not known here")
            .with_help("did you mean `threshold`?")
    }

    #[test]
    fn a_report_shows_place_code_caret_and_help() {
        let text = render(&[at("a: 1\né: {tresh: 2}\nb: 3\n", "tresh")], false, 80);
        insta::assert_snapshot!(text, @r"
        unknown-key

          × unknown key `tresh`
           ╭─[flow.yaml:2:5]
         1 │ a: 1
         2 │ é: {tresh: 2}
           ·     ──┬──
           ·       ╰── not known here
         3 │ b: 3
           ╰────
          help: did you mean `threshold`?
        ");
    }

    #[test]
    fn near_and_far_places_are_shown() {
        let mut d = at(&format!("a: 1\nb: 2\n{}tresh: 1\n", "# x\n".repeat(50)), "tresh");
        let source = d.span.source.clone();
        d = d.with_related(&source, Span::new(5, 6), "first here");
        let far = render(&[d], false, 80);
        assert!(far.contains("flow.yaml:53:1"), "{far}");
        assert!(far.contains("flow.yaml:2:1"), "{far}");
        assert!(far.contains("first here"), "{far}");
    }

    #[test]
    fn a_giant_line_is_cropped_around_the_place() {
        let long = format!("a: {}tresh{}\nb: 1\n", "é".repeat(500_000), "y".repeat(500_000));
        let text = render(&[at(&long, "tresh")], false, 80);
        assert!(text.len() < 3_000, "{}", text.len());
        assert!(text.contains("flow.yaml:1:500004"), "{text}");
        assert!(text.contains("tresh"), "{text}");
    }

    #[test]
    fn neither_the_name_of_a_file_nor_a_note_can_steer_a_terminal() {
        let source = Source::new("a\u{1b}[2J\u{202e}.yaml", "a: \u{9b}1\u{1b}[31m\r\n");
        let span = Span::new(0, 1);
        let bad = "x\u{1b}]0;\u{7}\u{2066}";
        let d = Diagnostic::error(Code::UnknownKey, bad, &source, span)
            .with_label(bad)
            .with_help(bad)
            .with_related(&source, span, bad);
        for text in [render(std::slice::from_ref(&d), false, 80), plain(&d)] {
            assert!(!text.contains(|c: char| is_hidden(c) && c != '\n'), "{text:?}");
            assert!(text.contains("a\\u{1b}[2J\\u{202e}.yaml:1:1"), "{text}");
        }
    }

    #[test]
    fn a_password_in_the_line_is_masked() {
        let line = |text: &str| shown_line(text);
        assert_eq!(line("url: http://me:hünter2@host/v1"), "url: http://***********@host/v1");
        assert_eq!(line("['https://tok@a', 'x://b/c@d']"), "['https://***@a', 'x://b/c@d']");
        assert_eq!(line("ssh://git@host/x, ssh://git:pw@h"), "ssh://git@host/x, ssh://git:**@h");
        assert_eq!(line("'http://h/x?a=1&token=b' # c"), "'http://h/x?***********' # c");
        assert_eq!(line("u: http://h/x?page=2"), "u: http://h/x?page=2");
        let long = format!("a: {} http://me:hunter2@tresh/{}\n", "x".repeat(2000), "y".repeat(99));
        let text = render(&[at(&long, "tresh")], false, 80);
        assert!(text.contains("tresh") && !text.contains("hunter2"), "{text}");
    }

    #[test]
    fn an_empty_source_and_a_place_at_the_end_render() {
        for text in ["", "a: 1\n", "a: 1"] {
            let source = Source::new("f", text);
            let end = Span::new(text.len(), text.len() + 9);
            let d = Diagnostic::warning(Code::EmptyFile, "nothing", &source, end);
            assert!(render(&[d], true, 80).contains("nothing"));
        }
    }

    #[test]
    fn json_has_one_based_character_columns() {
        let json = to_json(&at("a: 1\né: {tresh: 2}\n", "tresh"));
        assert_eq!(json["line"], 2);
        assert_eq!(json["column"], 5);
        assert_eq!(json["end_column"], 10);
        assert_eq!(json["help"], "did you mean `threshold`?");
    }
}
