//! Turns a node tree into a [`Workflow`]: the entry point, and the top level of the file.
//!
//! Every mistake is reported and skipped; reading never fails.

use std::sync::Arc;

use super::diagnostic::{Diagnostic, Diagnostics};
use super::load::load;
use super::node::{Node, Value};
use super::read_steps::Unindented;
use super::reader::WorkflowReader;
use super::source::Source;
use super::spec::{RemoteSpec, StepSpec, Text, Workflow};
use crate::code::Code;

/// The only format version so far.
const FORMAT: i64 = 1;

/// Reads a workflow file and reports all mistakes, sorted by place. There is a workflow whenever
/// the text is a YAML mapping, even if parts of it are wrong, so that later layers can find further
/// mistakes; nothing may run if there are errors.
pub fn parse(path_display: &str, text: &str) -> (Option<Workflow>, Diagnostics) {
    parse_source(&Source::new(path_display, text))
}

/// As [`parse`], for a text that is already a [`Source`].
pub fn parse_source(source: &Arc<Source>) -> (Option<Workflow>, Diagnostics) {
    let mut diagnostics = Diagnostics::new();
    let workflow = load(source, &mut diagnostics).and_then(|node| {
        let mut reader = WorkflowReader { source, diagnostics: &mut diagnostics };
        reader.workflow(node)
    });
    diagnostics.sort();
    (workflow, diagnostics)
}

impl WorkflowReader<'_> {
    fn workflow(&mut self, node: Node) -> Option<Workflow> {
        const KEYS: [&str; 10] = [
            "galeras",
            "name",
            "description",
            "remote",
            "prereg",
            "budget",
            "params",
            "steps",
            "outputs",
            "report",
        ];
        if node.as_map().is_none() {
            self.wrong_type(&node, "a workflow", "a mapping that begins with `galeras: 1`");
            return None;
        }
        self.known_keys(&node, "a workflow", &KEYS);
        self.format(&node);
        let name = self.optional_text(&node, "name");
        let description = self.optional_text(&node, "description");
        let remote = node.get("remote").and_then(|value| self.remote(value));
        let prereg = node.get("prereg").map(|value| self.prereg(value)).unwrap_or_default();
        let budget = node.entry("budget").and_then(|(key, value)| self.budget(key, value));
        let params = self.entries(&node, "params", |r, name, value| r.param(name, value));
        let unindented = node.get("steps").map(|steps| self.unindented(steps)).unwrap_or_default();
        let steps =
            self.entries(&node, "steps", |r, name, value| match unindented.get(&name.span) {
                None => Some(r.step(name, value)),
                Some(Unindented::Step) => Some(StepSpec::empty(name, value.span)),
                Some(Unindented::Key) => None,
            });
        if let Some((key, value)) = node.entry("steps") {
            if value.as_map().is_some_and(<[_]>::is_empty) {
                let message = "a workflow needs at least one step";
                self.push(Diagnostic::error(Code::MissingKey, message, self.source, key.span));
            }
        } else {
            let help = "add `steps:` with at least one step";
            self.missing("a workflow", "steps", &node, help);
        }
        let outputs = self.entries(&node, "outputs", |r, name, value| r.output(name, value));
        let report = node.get("report").and_then(|value| self.report(value));
        Some(Workflow {
            source: Arc::clone(self.source),
            format: 1,
            name,
            description,
            remote,
            prereg,
            budget,
            params,
            steps,
            outputs,
            report,
            node,
        })
    }

    fn prereg(&mut self, value: &Node) -> Vec<Text> {
        const WHAT: &str = "a step under `prereg`";
        match value.as_seq() {
            Some(items) => items.iter().filter_map(|item| self.fixed_text(item, WHAT)).collect(),
            None if value.as_str().is_some() => self.fixed_text(value, WHAT).into_iter().collect(),
            None => {
                self.wrong_type(value, "`prereg`", "the name of a step, or a list of names");
                Vec::new()
            }
        }
    }

    /// The remote store: its location, or a mapping with more.
    fn remote(&mut self, node: &Node) -> Option<RemoteSpec> {
        const KEYS: [&str; 2] = ["url", "allowed_signers"];
        if node.as_map().is_none() {
            let url = self.text(node, "`remote`")?;
            return Some(RemoteSpec { url, allowed_signers: None });
        }
        self.known_keys(node, "`remote`", &KEYS);
        if node.get("url").is_none() {
            self.missing("`remote`", "url", node, "add `url:`, a folder or the URL of a store");
        }
        let url = self.optional_text(node, "url");
        let allowed_signers = self.optional_text(node, "allowed_signers");
        url.map(|url| RemoteSpec { url, allowed_signers })
    }

    fn format(&mut self, node: &Node) {
        let Some((_, value)) = node.entry("galeras") else {
            self.missing(
                "a workflow",
                "galeras",
                node,
                "add `galeras: 1`, the version of the format",
            );
            return;
        };
        match value.value {
            Value::Int(FORMAT) => {}
            Value::Int(other) => {
                let message = format!("format version {other} is not known");
                let problem = Diagnostic::error(Code::WrongValue, message, self.source, value.span);
                self.push(problem.with_help("this Galeras reads `galeras: 1`"));
            }
            _ => self.wrong_type(value, "`galeras`", "the format version `1`"),
        }
    }
}
