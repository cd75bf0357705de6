//! Turns a node tree into a [`Workflow`]: the entry point, the top level of the file, and `report`.
//!
//! Every mistake is reported and skipped; reading never fails.

use std::sync::Arc;

use strum::VariantNames as _;

use super::diagnostic::{Diagnostics, quote};
use super::expr::has_expression;
use super::load::load;
use super::node::{Node, Value};
use super::read_steps::{OUTPUT_PATH_HELP, Unindented, output_path_problem};
use super::reader::WorkflowReader;
use super::source::Source;
use super::spec::{
    BudgetSpec, KnownPart, RemoteSpec, ReportPart, ReportSection, ReportSpec, StepSpec, Text,
    Workflow,
};
use crate::code::Code;

/// The only format version so far.
const FORMAT: i64 = 1;

/// The section of a report has exactly one of these keys.
pub(super) const REPORT_PARTS: [&str; 5] = ["text", "findings", "figure", "table", "rows"];

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
        let wanted = "a mapping that begins with `galeras: 1`";
        let keys = "galeras name description remote prereg budget params steps outputs report";
        let keys: Vec<&str> = keys.split(' ').collect();
        self.mapping(&node, ("a workflow", wanted), &keys)?;
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
                Some(Unindented::Step) => {
                    Some(StepSpec { name, span: value.span, ..StepSpec::default() })
                }
                Some(Unindented::Key) => None,
            });
        let help = "add `steps:` with at least one step";
        self.required(&node, ("a workflow", "steps"), node.head(), help);
        if let Some((key, value)) = node.entry("steps")
            && value.as_map().is_some_and(<[_]>::is_empty)
        {
            self.fail(Code::MissingKey, "a workflow needs at least one step", key.span, "");
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
        if node.as_map().is_none() {
            let url = self.text(node, "`remote`")?;
            return Some(RemoteSpec { url, allowed_signers: None });
        }
        self.known_keys(node, "`remote`", &["url", "allowed_signers"]);
        let help = "add `url:`, a folder or the URL of a store";
        self.required(node, ("`remote`", "url"), node.head(), help);
        let url = self.optional_text(node, "url");
        let allowed_signers = self.optional_text(node, "allowed_signers");
        url.map(|url| RemoteSpec { url, allowed_signers })
    }

    fn format(&mut self, node: &Node) {
        let help = "add `galeras: 1`, the version of the format";
        let value = self.required(node, ("a workflow", "galeras"), node.head(), help);
        let Some(value) = value else { return };
        match value.value {
            Value::Int(FORMAT) => {}
            Value::Int(other) => {
                let message = format!("format version {other} is not known");
                self.fail(Code::WrongValue, message, value.span, "this Galeras reads `galeras: 1`");
            }
            _ => self.wrong_type(value, "`galeras`", "the format version `1`"),
        }
    }

    fn budget(&mut self, key: &Node, node: &Node) -> Option<BudgetSpec> {
        let wanted = "a mapping such as `{ max_usd: 5, max_requests: 10000 }`";
        let entries = self.mapping(node, ("`budget`", wanted), &["max_usd", "max_requests"])?;
        let max_usd = self.limit(node, "max_usd", "a number of US dollars, 0 or more");
        let max_requests = self.limit(node, "max_requests", "a whole number, 0 or more");
        if entries.is_empty() {
            let help = "add `max_usd` or `max_requests`";
            self.fail(Code::WrongValue, "`budget` limits nothing", node.span, help);
        }
        Some(BudgetSpec { max_usd, max_requests, span: key.span })
    }

    fn limit(&mut self, node: &Node, key: &str, wanted: &str) -> Option<Node> {
        let value = node.get(key)?;
        if value.as_str().is_some_and(has_expression) {
            self.check_expressions(value);
        } else if budget_limit_problem(key, value) {
            self.wrong_type(value, &format!("`{key}`"), wanted);
            return None;
        }
        Some(value.clone())
    }

    fn report(&mut self, node: &Node) -> Option<ReportSpec> {
        let wanted = "a mapping such as `{ path: report.html }`";
        self.mapping(node, ("`report`", wanted), &["path", "title", "sections"])?;
        let path = node.get("path").and_then(|value| self.report_path(value));
        let title = self.optional_fixed_text(node, "title");
        let sections = node.get("sections").and_then(|value| {
            let entries = self.list(value, ("`sections`", "a list"), 0)?;
            Some(entries.iter().filter_map(|entry| self.section(entry)).collect())
        });
        Some(ReportSpec { path, title, sections })
    }

    fn report_path(&mut self, node: &Node) -> Option<Text> {
        let path = self.fixed_text(node, "the path of a report")?;
        let problem = output_path_problem(&path.value)
            .or_else(|| (!path.value.ends_with(".html")).then(|| "a report is HTML".to_string()));
        let Some(message) = problem else { return Some(path) };
        let help = match path.value.ends_with(".html") {
            true => OUTPUT_PATH_HELP,
            false => "its path ends in .html: `path: report.html`",
        };
        self.fail(Code::BadPath, message, node.span, help);
        None
    }

    fn section(&mut self, node: &Node) -> Option<ReportSection> {
        if node.as_str().is_some() {
            return self.known_section(node);
        }
        let what = "a section of a report";
        let wanted = format!(
            "a mapping with one of {}, or one of the words {}",
            REPORT_PARTS.join(", "),
            KnownPart::VARIANTS.join(", ")
        );
        let known = [&REPORT_PARTS[..], &["heading", "caption", "columns", "limit"]].concat();
        let entries = self.mapping(node, (what, &wanted), &known)?;
        let is_part =
            |(key, _): &&(Node, Node)| key.as_str().is_some_and(|k| REPORT_PARTS.contains(&k));
        let parts: Vec<&(Node, Node)> = entries.iter().filter(is_part).collect();
        let [(key, value)] = parts.as_slice() else {
            let message = match parts.is_empty() {
                true => "the section of a report shows nothing",
                false => "a section of a report shows one thing",
            };
            let help = format!("it has one of the keys {}", REPORT_PARTS.join(", "));
            self.fail(Code::ConflictingKeys, message, node.span, &help);
            return None;
        };
        let part = self.part(key.as_str()?, value)?;
        Some(ReportSection {
            heading: self.optional_fixed_text(node, "heading"),
            caption: self.optional_fixed_text(node, "caption"),
            columns: self.section_columns(node),
            limit: self.section_limit(node),
            part,
            span: node.span,
        })
    }

    fn known_section(&mut self, node: &Node) -> Option<ReportSection> {
        let word = self.fixed_text(node, "a section of a report")?;
        let Ok(part) = word.value.parse::<KnownPart>() else {
            let message = format!("a report has no section {}", quote(&word.value));
            let problem = self.error(Code::WrongValue, message, node.span);
            self.push(problem.with_suggestion(&word.value, KnownPart::VARIANTS.iter().copied()));
            return None;
        };
        Some(ReportSection {
            part: ReportPart::Known(part),
            heading: None,
            caption: None,
            columns: Vec::new(),
            limit: None,
            span: node.span,
        })
    }

    fn part(&mut self, key: &str, value: &Node) -> Option<ReportPart> {
        if key == "text" {
            return self.fixed_text(value, "`text`").map(ReportPart::Text);
        }
        Some(ReportPart::Table(key.parse().ok()?, self.reference(value)?))
    }

    /// The columns under the key `columns`.
    pub(super) fn section_columns(&mut self, node: &Node) -> Vec<Text> {
        let names = node
            .get("columns")
            .and_then(|value| self.list(value, ("`columns`", "a list of columns"), 0));
        let names = names.unwrap_or_default().iter();
        names.filter_map(|name| self.fixed_text(name, "the name of a column")).collect()
    }

    fn section_limit(&mut self, node: &Node) -> Option<usize> {
        let value = node.get("limit")?;
        match value.value {
            Value::Int(n) if n > 0 => usize::try_from(n).ok(),
            _ => {
                self.wrong_type(value, "`limit`", "a whole number, 1 or more");
                None
            }
        }
    }
}

/// True if the value of a key of `budget` is wrong. Expressions must be substituted.
pub fn budget_limit_problem(key: &str, value: &Node) -> bool {
    match (key, &value.value) {
        (_, Value::Int(n)) => *n < 0,
        ("max_usd", Value::Float(x)) => !x.is_finite() || *x < 0.0,
        _ => true,
    }
}
