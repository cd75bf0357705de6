//! Reads `report`: the page of a study.

use std::str::FromStr as _;

use strum::VariantNames as _;

use super::diagnostic::{Diagnostic, quote};
use super::node::{Node, Value};
use super::read_steps::{OUTPUT_PATH_HELP, output_path_problem};
use super::reader::WorkflowReader;
use super::spec::{KnownPart, Reference, ReportPart, ReportSection, ReportSpec, Text};
use crate::code::Code;

const KEYS: [&str; 3] = ["path", "title", "sections"];
/// A section has exactly one of these keys.
const PARTS: [&str; 5] = ["text", "findings", "figure", "table", "rows"];
const OPTIONS: [&str; 4] = ["heading", "caption", "columns", "limit"];

impl WorkflowReader<'_> {
    pub(super) fn report(&mut self, node: &Node) -> Option<ReportSpec> {
        if node.as_map().is_none() {
            self.wrong_type(node, "`report`", "a mapping such as `{ path: report.html }`");
            return None;
        }
        self.known_keys(node, "`report`", &KEYS);
        let path = node.get("path").and_then(|value| self.report_path(value));
        let title = node.get("title").and_then(|value| self.fixed_text(value, "`title`"));
        let sections = node.get("sections").and_then(|value| match value.as_seq() {
            Some(entries) => Some(entries.iter().filter_map(|entry| self.section(entry)).collect()),
            None => {
                self.wrong_type(value, "`sections`", "a list");
                None
            }
        });
        Some(ReportSpec { path, title, sections })
    }

    fn report_path(&mut self, node: &Node) -> Option<Text> {
        let path = self.fixed_text(node, "the path of a report")?;
        let problem = output_path_problem(&path.value)
            .or_else(|| (!path.value.ends_with(".html")).then(|| "a report is HTML".to_string()));
        let Some(message) = problem else { return Some(path) };
        let problem = Diagnostic::error(Code::BadPath, message, self.source, node.span);
        self.push(match path.value.ends_with(".html") {
            true => problem.with_help(OUTPUT_PATH_HELP),
            false => problem.with_help("its path ends in .html: `path: report.html`"),
        });
        None
    }

    fn section(&mut self, node: &Node) -> Option<ReportSection> {
        if node.as_str().is_some() {
            return self.known_section(node);
        }
        let Some(entries) = node.as_map() else {
            let wanted = format!(
                "a mapping with one of {}, or one of the words {}",
                PARTS.join(", "),
                KnownPart::VARIANTS.join(", ")
            );
            self.wrong_type(node, "a section of a report", &wanted);
            return None;
        };
        let known: Vec<&str> = PARTS.into_iter().chain(OPTIONS).collect();
        self.known_keys(node, "a section of a report", &known);
        let parts: Vec<&(Node, Node)> = entries
            .iter()
            .filter(|(key, _)| key.as_str().is_some_and(|key| PARTS.contains(&key)))
            .collect();
        let [(key, value)] = parts.as_slice() else {
            let message = match parts.is_empty() {
                true => "the section of a report shows nothing",
                false => "a section of a report shows one thing",
            };
            let problem = Diagnostic::error(Code::ConflictingKeys, message, self.source, node.span);
            self.push(problem.with_help(format!("it has one of the keys {}", PARTS.join(", "))));
            return None;
        };
        let part = self.part(key.as_str()?, value)?;
        let heading = self.option_text(node, "heading");
        let caption = self.option_text(node, "caption");
        Some(ReportSection {
            heading,
            caption,
            columns: self.section_columns(node),
            limit: self.section_limit(node),
            part,
            span: node.span,
        })
    }

    fn known_section(&mut self, node: &Node) -> Option<ReportSection> {
        let word = self.fixed_text(node, "a section of a report")?;
        let Ok(part) = KnownPart::from_str(&word.value) else {
            let message = format!("a report has no section {}", quote(&word.value));
            let problem = Diagnostic::error(Code::WrongValue, message, self.source, node.span);
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
        let from = self.reference(value)?;
        if matches!(from, Reference::Invalid(_)) {
            return None;
        }
        Some(match key {
            "findings" => ReportPart::Findings(from),
            "figure" => ReportPart::Figure(from),
            "table" => ReportPart::Table(from),
            _ => ReportPart::Rows(from),
        })
    }

    fn option_text(&mut self, node: &Node, key: &str) -> Option<Text> {
        let value = node.get(key)?;
        self.fixed_text(value, &format!("`{key}`"))
    }

    fn section_columns(&mut self, node: &Node) -> Vec<Text> {
        let Some(value) = node.get("columns") else { return Vec::new() };
        let Some(names) = value.as_seq() else {
            self.wrong_type(value, "`columns`", "a list of columns");
            return Vec::new();
        };
        names.iter().filter_map(|name| self.fixed_text(name, "the name of a column")).collect()
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
