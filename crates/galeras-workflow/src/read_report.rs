//! Reads `report`: the page of a study.

use std::str::FromStr as _;

use strum::VariantNames as _;

use super::diagnostic::quote;
use super::node::{Node, Value};
use super::read_steps::{OUTPUT_PATH_HELP, output_path_problem};
use super::reader::WorkflowReader;
use super::spec::{KnownPart, ReportPart, ReportSection, ReportSpec, Text};
use crate::code::Code;

/// A section has exactly one of these keys.
pub(super) const PARTS: [&str; 5] = ["text", "findings", "figure", "table", "rows"];

impl WorkflowReader<'_> {
    pub(super) fn report(&mut self, node: &Node) -> Option<ReportSpec> {
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
            PARTS.join(", "),
            KnownPart::VARIANTS.join(", ")
        );
        let known = [&PARTS[..], &["heading", "caption", "columns", "limit"]].concat();
        let entries = self.mapping(node, (what, &wanted), &known)?;
        let is_part = |(key, _): &&(Node, Node)| key.as_str().is_some_and(|k| PARTS.contains(&k));
        let parts: Vec<&(Node, Node)> = entries.iter().filter(is_part).collect();
        let [(key, value)] = parts.as_slice() else {
            let message = match parts.is_empty() {
                true => "the section of a report shows nothing",
                false => "a section of a report shows one thing",
            };
            let help = format!("it has one of the keys {}", PARTS.join(", "));
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
        let Ok(part) = KnownPart::from_str(&word.value) else {
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
        let from = self.reference(value)?;
        Some(match key {
            "findings" => ReportPart::Findings(from),
            "figure" => ReportPart::Figure(from),
            "table" => ReportPart::Table(from),
            _ => ReportPart::Rows(from),
        })
    }

    fn section_columns(&mut self, node: &Node) -> Vec<Text> {
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
