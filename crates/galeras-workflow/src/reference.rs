//! Parses references to steps, the grammar of `from`:
//!
//! ```text
//! reference = name [ "[" ( "*" | key "=" value { "," key "=" value } ) "]" ] [ "." name ]
//! ```
//!
//! The plan checks that the step, its cells and its ports exist.

use std::sync::Arc;

use super::diagnostic::{Diagnostic, quote};
use super::expr::{Namespace, collect_refs, has_expression, is_name};
use super::node::Node;
use super::reader::WorkflowReader;
use super::source::{Source, Span};
use super::spec::{Cells, Reference, StepRef};
use crate::code::Code;

const SHAPES: &str = "a reference is `step`, `step.port`, `step[*]` or `step[key=value].port`";

impl WorkflowReader<'_> {
    /// Reads the reference in a string node, which may contain expressions.
    pub(super) fn reference_in(&mut self, node: &Node) -> Reference {
        if !node.as_str().is_some_and(has_expression) {
            return match parse_reference(node, self.source) {
                Ok(reference) => Reference::Fixed(reference),
                Err(problem) => {
                    self.push(*problem);
                    Reference::Invalid(node.span)
                }
            };
        }
        let before = self.diagnostics.len();
        let used = collect_refs(node, self.source, self.diagnostics);
        for cell in used.iter().filter(|used| used.namespace == Namespace::Matrix) {
            let message = format!("{} is not allowed in a reference", quote(&cell.to_string()));
            let help = "only params can: which steps a step reads is the same for all of its cells";
            self.fail(Code::BadExpression, message, cell.span, help);
        }
        match self.diagnostics.len() == before {
            true => Reference::Open(node.clone()),
            false => Reference::Invalid(node.span),
        }
    }
}

/// Parses a reference of its own text, as on a command line. The error is the mistake, at its place
/// in `text`.
pub fn parse_step_ref(text: &str) -> Result<StepRef, Box<Diagnostic>> {
    let source = Source::new("the name of a table", text);
    let node = Node::from_json(&serde_json::Value::from(text), Span::new(0, text.len()));
    parse_reference(&node, &source)
}

/// Parses the reference in a string node, whose expressions have values. The error is the mistake,
/// at its place.
pub fn parse_reference(node: &Node, source: &Arc<Source>) -> Result<StepRef, Box<Diagnostic>> {
    let text = node.as_str().unwrap_or("");
    let part = |start: usize, end: usize| node.part_span(source.text(), start, end);
    let fail = |message: &str, start: usize, end: usize| {
        let problem = Diagnostic::error(Code::BadReference, message, source, part(start, end));
        Box::new(problem.with_help(SHAPES))
    };

    let step_end = text.find(['[', '.']).unwrap_or(text.len());
    let (step, rest) = text.split_at(step_end);
    if step.is_empty() {
        return Err(fail("the reference names no step", 0, text.len()));
    }
    if !is_name(step) {
        return Err(fail(&format!("{} is not the name of a step", quote(step)), 0, step_end));
    }

    let (cells, after) = match rest.strip_prefix('[').map(|inner| inner.split_once(']')) {
        None => (Cells::Plain, step_end),
        Some(None) => return Err(fail("`[` is never closed", step_end, text.len())),
        Some(Some((inner, _))) => {
            let end = step_end + inner.len() + 2;
            (cells(inner).map_err(|message| fail(&message, step_end, end))?, end)
        }
    };

    let rest = &text[after..];
    let (port, port_span) = match rest.strip_prefix('.') {
        None if rest.is_empty() => (None, None),
        None => {
            let message = format!("{} is not allowed after the cells", quote(rest));
            return Err(fail(&message, after, text.len()));
        }
        Some(port) if is_name(port) => (Some(port.to_owned()), Some(part(after + 1, text.len()))),
        Some(port) => {
            let message = match port.split_once('[') {
                Some(_) => "the cells come before the port: `step[key=value].port`".to_owned(),
                None if port.is_empty() => "the name of a port is missing after the dot".to_owned(),
                None => format!("{} is not the name of a port", quote(port)),
            };
            return Err(fail(&message, after, text.len()));
        }
    };
    let (step, step_span) = (step.to_owned(), part(0, step_end));
    Ok(StepRef { step, port, cells, span: node.span, step_span, port_span })
}

fn cells(inner: &str) -> Result<Cells, String> {
    if inner.trim() == "*" {
        return Ok(Cells::All);
    }
    let mut keys: Vec<(String, String)> = Vec::new();
    for pair in inner.split(',') {
        let (key, value) = pair.split_once('=').unwrap_or_default();
        let (key, value) = (key.trim(), value.trim());
        if !is_name(key) || value.is_empty() {
            return Err(format!("{} is not of the form `key=value`", quote(pair.trim())));
        }
        if keys.iter().any(|(k, _)| k == key) {
            return Err(format!("{} is selected twice", quote(key)));
        }
        if keys.len() == 100 {
            return Err("too many keys are selected".to_owned());
        }
        keys.push((key.to_owned(), value.to_owned()));
    }
    Ok(Cells::Select(keys))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Diagnostics;
    use crate::load::load;
    use crate::source::Span;

    fn read(text: &str) -> Result<StepRef, String> {
        let yaml = format!("é: \"{text}\"\n");
        let source = Source::new("f", yaml);
        let node = load(&source, &mut Diagnostics::new()).unwrap();
        parse_reference(node.get("é").unwrap(), &source).map_err(|d| {
            let span = Span::new(d.span.start, d.span.end());
            format!("{} @ {}", d.message, source.slice(span))
        })
    }

    #[test]
    fn every_form_reads_and_writes_the_same() {
        for text in ["a", "a.rejects", "a[*]", "a[model=x]", "a-b[model=org/x:1,seed=1].rejects"] {
            assert_eq!(read(text).unwrap().to_string(), text);
        }
        let r = read("a[ model = x ].p").unwrap();
        assert_eq!(r.cells, Cells::Select(vec![("model".into(), "x".into())]));
        assert_eq!(r.port_span.unwrap().end - r.port_span.unwrap().start, 1);
    }

    #[test]
    fn mistakes_are_located() {
        for (text, mistake) in [
            ("a.b[*]", "the cells come before the port: `step[key=value].port` @ .b[*]"),
            ("a[x", "`[` is never closed @ [x"),
            ("a[x]", "`x` is not of the form `key=value` @ [x]"),
            ("a[x=1,x=2]", "`x` is selected twice @ [x=1,x=2]"),
            ("a b", "`a b` is not the name of a step @ a b"),
            ("a[*]x", "`x` is not allowed after the cells @ x"),
            ("", "the reference names no step @ "),
            ("a.", "the name of a port is missing after the dot @ ."),
        ] {
            assert_eq!(read(text).unwrap_err(), mistake);
        }
    }
}
