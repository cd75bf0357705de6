//! Shared by the readers of all parts of a workflow: the text, the diagnostics, and reading names,
//! texts and mappings.

use std::sync::Arc;

use super::diagnostic::{Diagnostic, Diagnostics, quote};
use super::expr::{collect_refs, has_expression, is_name, no_expression_here};
use super::node::{Node, Value};
use super::source::{Source, Span};
use super::spec::Text;
use crate::code::Code;

pub(super) struct WorkflowReader<'a> {
    pub(super) source: &'a Arc<Source>,
    pub(super) diagnostics: &'a mut Diagnostics,
}

impl WorkflowReader<'_> {
    pub(super) fn entries<T>(
        &mut self,
        node: &Node,
        key: &str,
        mut read: impl FnMut(&mut Self, Text, &Node) -> Option<T>,
    ) -> Vec<T> {
        let Some(value) = node.get(key) else { return Vec::new() };
        let Some(entries) = value.as_map() else {
            if value.as_seq().is_some() {
                let message = format!("`{key}` must be a mapping from names, not a list");
                let span = self.visible(value.span);
                let help = "write `name:` for each entry, in place of the dash";
                self.fail(Code::WrongType, message, span, help);
            } else {
                self.wrong_type(value, &format!("`{key}`"), "a mapping from names");
            }
            return Vec::new();
        };
        let entry = |(name, value): &(Node, Node)| {
            let name = self.name(name)?;
            read(self, name, value)
        };
        entries.iter().filter_map(entry).collect()
    }

    pub(super) fn push(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// An error in this file.
    pub(super) fn error(&self, code: Code, message: impl Into<String>, span: Span) -> Diagnostic {
        Diagnostic::error(code, message, self.source, span)
    }

    /// Reports an error with a help, which may be empty.
    pub(super) fn fail(&mut self, code: Code, message: impl Into<String>, span: Span, help: &str) {
        let problem = self.error(code, message, span);
        self.push(if help.is_empty() { problem } else { problem.with_help(help) });
    }

    /// The entries of a mapping with only these keys; reports other values and keys.
    pub(super) fn mapping<'n>(
        &mut self,
        node: &'n Node,
        (what, wanted): (&str, &str),
        keys: &[&str],
    ) -> Option<&'n [(Node, Node)]> {
        if node.as_map().is_none() {
            self.wrong_type(node, what, wanted);
        }
        self.known_keys(node, what, keys);
        node.as_map()
    }

    /// The entries of a list of at least `least` entries; reports other values.
    pub(super) fn list<'n>(
        &mut self,
        node: &'n Node,
        (what, wanted): (&str, &str),
        least: usize,
    ) -> Option<&'n [Node]> {
        let items = node.as_seq().filter(|items| items.len() >= least);
        if items.is_none() {
            self.wrong_type(node, what, wanted);
        }
        items
    }

    /// The value of a key; reports its absence at `span`.
    pub(super) fn required<'n>(
        &mut self,
        node: &'n Node,
        (what, key): (&str, &str),
        span: Span,
        help: &str,
    ) -> Option<&'n Node> {
        let value = node.get(key);
        if value.is_none() {
            let message = format!("{what} needs the key {}", quote(key));
            self.fail(Code::MissingKey, message, span, help);
        }
        value
    }

    /// Reports that `node`, described by `what`, should have been `wanted`.
    pub(super) fn wrong_type(&mut self, node: &Node, what: &str, wanted: &str) {
        let message = format!("{what} must be {wanted}, not {}", describe(node));
        let span = self.visible(node.span);
        self.fail(Code::WrongType, message, span, "");
    }

    /// An absent value has an empty place after the colon; a caret can mark it.
    fn visible(&self, span: Span) -> Span {
        // Underline only the first line of a block collection.
        let first = self.source.slice(span).lines().next().unwrap_or("");
        Span::new(span.start, span.start + first.len())
    }

    pub(super) fn known_keys(&mut self, node: &Node, what: &str, known: &[&str]) {
        for (key, _) in node.as_map().unwrap_or_default() {
            let Some(name) = key.as_str() else { continue };
            if known.contains(&name) {
                continue;
            }
            let message = format!("{what} has no key {}", quote(name));
            let problem = self.error(Code::UnknownKey, message, key.span);
            // Keys that are already set were not meant.
            let free = known.iter().copied().filter(|k| node.get(k).is_none());
            self.push(problem.with_suggestion(name, free));
        }
    }

    /// The text of a key that is a name. A bad name is reported and kept.
    pub(super) fn name(&mut self, key: &Node) -> Option<Text> {
        let value = key.as_str()?.to_owned();
        if has_expression(&value) {
            self.push(no_expression_here("a name", self.source, key.span));
        } else if !is_name(&value) {
            let message = format!("{} is not a valid name", quote(&value));
            let help = "names begin with a letter or `_`, followed by letters, digits, `_` and `-`";
            self.fail(Code::BadName, message, key.span, help);
        }
        Some(Text { value, span: key.span })
    }

    /// A string value; any other is reported.
    pub(super) fn text(&mut self, node: &Node, what: &str) -> Option<Text> {
        let text = node.as_str().map(|value| Text { value: value.to_owned(), span: node.span });
        if text.is_none() {
            self.wrong_type(node, what, "a string");
        }
        text
    }

    /// A string value without expressions.
    pub(super) fn fixed_text(&mut self, node: &Node, what: &str) -> Option<Text> {
        let text = self.text(node, what)?;
        if has_expression(&text.value) {
            self.push(no_expression_here(what, self.source, node.span));
            return None;
        }
        if text.value.trim().is_empty() {
            let message = format!("{what} is empty");
            self.fail(Code::WrongValue, message, node.span, "");
            return None;
        }
        Some(text)
    }

    pub(super) fn optional_text(&mut self, node: &Node, key: &str) -> Option<Text> {
        let value = node.get(key)?;
        self.text(value, &format!("`{key}`"))
    }

    /// The string under a key, without expressions.
    pub(super) fn optional_fixed_text(&mut self, node: &Node, key: &str) -> Option<Text> {
        let value = node.get(key)?;
        self.fixed_text(value, &format!("`{key}`"))
    }

    /// Parses the expressions in a tree; the plan resolves the references.
    pub(super) fn check_expressions(&mut self, node: &Node) {
        collect_refs(node, self.source, self.diagnostics);
    }
}

/// A value in the words of a message: short scalars are shown, others only named.
pub(super) fn describe(node: &Node) -> String {
    match &node.value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(b) => format!("the boolean `{b}`"),
        Value::Int(i) => format!("the integer `{i}`"),
        Value::Float(x) => format!("the number `{x}`"),
        Value::String(s) => format!("the string {}", quote(s)),
        Value::Seq(_) => "a list".to_owned(),
        Value::Map(_) => "a mapping".to_owned(),
    }
}
