//! Mistakes in a workflow: [`Diagnostic`] and the collector [`Diagnostics`], for all layers that
//! check a workflow.
//!
//! The module that detects a mistake words it; `crate::code` explains it.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::code::Code;
use galeras_base::terminal_escape::is_hidden;

use super::source::{Source, SourceSpan, Span};

/// The severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Nothing may run.
    Error,
    /// The run continues.
    Warning,
}

impl Severity {
    /// `error` or `warning`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// One mistake, with its place and, if known, a fix.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a diagnostic does nothing until it is pushed"]
pub struct Diagnostic {
    /// The kind of mistake.
    pub code: Code,
    /// An error stops the run.
    pub severity: Severity,
    /// One sentence, lower case, without the place.
    pub message: String,
    /// The place.
    pub span: SourceSpan,
    /// A few words shown under the caret.
    pub label: Option<String>,
    /// Other places that belong to it ("first defined here").
    pub related: Vec<(SourceSpan, String)>,
    /// Advice for a fix.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error at `span` of `source`.
    pub fn error(code: Code, message: impl Into<String>, source: &Arc<Source>, span: Span) -> Self {
        Self {
            code,
            severity: Severity::Error,
            message: message.into(),
            span: SourceSpan::new(source, span),
            label: None,
            related: Vec::new(),
            help: None,
        }
    }

    /// A warning at `span` of `source`.
    pub fn warning(
        code: Code,
        message: impl Into<String>,
        source: &Arc<Source>,
        span: Span,
    ) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, message, source, span) }
    }

    /// Adds the words under the caret.
    pub fn with_label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Adds advice.
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds "did you mean" advice if there is a suggestion, or else lists the known names.
    pub fn with_suggestion<'a>(
        self,
        given: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        match super::suggest::did_you_mean(given, known.iter().copied()) {
            Some(name) => self.with_help(format!("did you mean {}?", quote(name))),
            None if known.is_empty() => self,
            None => {
                let shown: Vec<String> = known.iter().take(25).map(|k| quote(k)).collect();
                let more = if known.len() > shown.len() { ", …" } else { "" };
                self.with_help(format!("known here: {}{more}", shown.join(", ")))
            }
        }
    }

    /// Adds another place.
    pub fn with_related(
        mut self,
        source: &Arc<Source>,
        span: Span,
        note: impl Into<String>,
    ) -> Self {
        self.related.push((SourceSpan::new(source, span), note.into()));
        self
    }
}

/// Quotes a user's text for a message: in backticks, control characters escaped, and cut after 60
/// characters, so that no input can flood or manipulate a terminal.
pub fn quote(text: &str) -> String {
    let mut out = String::from("`");
    for (i, c) in text.chars().enumerate() {
        if i == 60 {
            out.push('…');
            break;
        }
        if is_hidden(c) {
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out.push('`');
    out
}

/// Upper bound of kept diagnostics; others are only counted.
const MAX_KEPT: usize = 1000;

/// Collects all mistakes, so that they can be reported together.
#[derive(Debug, Clone, Default)]
pub struct Diagnostics {
    items: Vec<Diagnostic>,
    errors: usize,
    dropped: usize,
}

impl Diagnostics {
    /// An empty collection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a diagnostic. After a thousand they are only counted, see [`Diagnostics::dropped`].
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if diagnostic.severity == Severity::Error {
            self.errors += 1;
        }
        if self.is_full() {
            self.dropped += 1;
        } else {
            self.items.push(diagnostic);
        }
    }

    /// True if further diagnostics are only counted, so that there is no need to word them.
    pub fn is_full(&self) -> bool {
        self.items.len() >= MAX_KEPT
    }

    /// Counts an error that a full collection would not keep.
    pub fn drop_error(&mut self) {
        self.errors += 1;
        self.dropped += 1;
    }

    /// Makes the errors of this code warnings with another message and help.
    pub fn warn_instead(&mut self, code: Code, message: &str, help: &str) {
        let error = |d: &&mut Diagnostic| d.code == code && d.severity == Severity::Error;
        for item in self.items.iter_mut().filter(error) {
            self.errors -= 1;
            item.severity = Severity::Warning;
            item.message = message.to_string();
            item.help = Some(help.to_string());
        }
    }

    /// Adds the diagnostics of another collection.
    pub fn extend(&mut self, other: Diagnostics) {
        self.dropped += other.dropped;
        // Keeps the other collection's count of dropped errors.
        let kept = other.items.iter().filter(|d| d.severity == Severity::Error).count();
        self.errors += other.errors.saturating_sub(kept);
        other.items.into_iter().for_each(|item| self.push(item));
    }

    /// True if there is an error.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// True if there are no diagnostics.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The number of kept diagnostics.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// The number of dropped diagnostics.
    pub fn dropped(&self) -> usize {
        self.dropped
    }

    /// The diagnostics in their current order.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.items.iter()
    }

    /// The kept diagnostics as a slice, for `render`.
    pub fn as_slice(&self) -> &[Diagnostic] {
        &self.items
    }

    /// Sorts by file and position and removes duplicates.
    pub fn sort(&mut self) {
        fn key(d: &Diagnostic) -> ((&str, usize, usize), Severity, &str, &str) {
            (d.span.key(), d.severity, d.code.name(), &d.message)
        }
        self.items.sort_by(|a, b| key(a).cmp(&key(b)));
        let same = |a: &Diagnostic, b: &Diagnostic| {
            a.span == b.span && a.code == b.code && a.message == b.message
        };
        self.items.dedup_by(|a, b| same(a, b));
    }

    /// The sorted, distinct diagnostics.
    pub fn into_sorted(mut self) -> Vec<Diagnostic> {
        self.sort();
        self.items
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorting_orders_by_place_and_drops_repetitions() {
        let s = Source::new("f", "abcdef");
        let mut all = Diagnostics::new();
        for start in [4, 1, 4] {
            all.push(Diagnostic::warning(Code::UnknownKey, "x", &s, Span::new(start, start + 1)));
        }
        assert!(!all.has_errors());
        let starts: Vec<usize> = all.into_sorted().iter().map(|d| d.span.start).collect();
        assert_eq!(starts, [1, 4]);
    }

    #[test]
    fn a_flood_is_counted_and_not_kept() {
        let s = Source::new("f", "a");
        let mut all = Diagnostics::new();
        for i in 0..1500 {
            all.push(Diagnostic::error(Code::UnknownKey, format!("{i}"), &s, Span::default()));
        }
        assert_eq!((all.len(), all.dropped(), all.has_errors()), (1000, 500, true));
    }

    #[test]
    fn quoted_text_is_short_and_cannot_steer_a_terminal() {
        assert_eq!(quote("a\u{1b}[31m"), "`a\\u{1b}[31m`");
        assert!(quote(&"x".repeat(1_000_000)).len() < 70);
    }
}
