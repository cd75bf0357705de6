//! Reads `assert`: the data tests of a step. The plan checks columns and SQL.

use strum::VariantNames as _;

use super::diagnostic::{Diagnostic, quote};
use super::expr::has_expression;
use super::node::Node;
use super::reader::{WorkflowReader, describe};
use super::spec::{Assert, AssertKind, AssertSeverity, Text};
use crate::code::Code;

const OPTIONS: [&str; 2] = ["severity", "port"];

impl WorkflowReader<'_> {
    pub(super) fn asserts(&mut self, node: &Node) -> Vec<Assert> {
        let Some(items) = node.as_seq() else {
            self.wrong_type(node, "`assert`", "a list such as `[{ unique: [id] }]`");
            return Vec::new();
        };
        items.iter().filter_map(|item| self.assert(item)).collect()
    }

    fn assert(&mut self, node: &Node) -> Option<Assert> {
        let Some(entries) = node.as_map() else {
            self.wrong_type(node, "an assertion", "a mapping such as `unique: [id]`");
            return None;
        };
        let known: Vec<&str> = AssertKind::VARIANTS.iter().copied().chain(OPTIONS).collect();
        self.known_keys(node, "an assertion", &known);
        let severity = node
            .get("severity")
            .map_or(AssertSeverity::Error, |n| self.severity(n).unwrap_or_default());
        let port = match node.get("port") {
            Some(value) => self.fixed_text(value, "`port`"),
            None => None,
        };

        let is_kind = |key: &Node| AssertKind::VARIANTS.contains(&key.as_str().unwrap_or(""));
        let mut kinds = entries.iter().filter(|(key, _)| is_kind(key));
        let Some((first, value)) = kinds.next() else {
            let is_option = |key: &Node| OPTIONS.contains(&key.as_str().unwrap_or(""));
            // An unknown key has been reported; it is probably the missing one.
            if entries.iter().all(|(key, _)| is_option(key)) {
                let message = "an assertion needs something to check";
                let problem = Diagnostic::error(Code::MissingKey, message, self.source, node.span);
                self.push(problem.with_suggestion("", AssertKind::VARIANTS.iter().copied()));
            }
            return None;
        };
        for (other, _) in kinds.filter(|(key, _)| key.as_str() != first.as_str()) {
            let message = "an assertion checks one thing";
            let problem =
                Diagnostic::error(Code::ConflictingKeys, message, self.source, other.span);
            self.push(
                problem
                    .with_related(self.source, first.span, "the first check")
                    .with_help("write one list entry per check"),
            );
        }
        let kind = match first.as_str().unwrap_or("") {
            "unique" => AssertKind::Unique(self.columns(value, "`unique`")?),
            "not_null" => AssertKind::NotNull(self.columns(value, "`not_null`")?),
            "accepted_values" => self.accepted_values(value)?,
            "expr" => self.condition(value)?,
            _ => self.rows(value)?,
        };
        Some(Assert { kind, severity, port, span: node.span })
    }

    fn severity(&mut self, node: &Node) -> Option<AssertSeverity> {
        let text = self.text(node, "`severity`")?;
        match text.value.as_str() {
            "error" => Some(AssertSeverity::Error),
            "warn" => Some(AssertSeverity::Warn),
            other => {
                let message = format!("there is no severity {}", quote(other));
                let problem = Diagnostic::error(Code::WrongValue, message, self.source, node.span);
                self.push(match other {
                    "warning" => problem.with_help("did you mean `warn`?"),
                    _ => problem.with_suggestion(other, ["error", "warn"]),
                });
                None
            }
        }
    }

    fn columns(&mut self, node: &Node, what: &str) -> Option<Vec<Text>> {
        let Some(items) = node.as_seq().filter(|items| !items.is_empty()) else {
            let message = format!("{what} must be a list of columns, not {}", describe(node));
            let problem = Diagnostic::error(Code::WrongType, message, self.source, node.span);
            self.push(match node.as_str().filter(|s| s.len() < 100) {
                Some(column) => problem.with_help(format!("write `[{column}]`")),
                None => problem,
            });
            return None;
        };
        let mut columns = Vec::with_capacity(items.len());
        for item in items {
            columns.push(self.fixed_text(item, "a column")?);
        }
        Some(columns)
    }

    fn accepted_values(&mut self, node: &Node) -> Option<AssertKind> {
        if node.as_map().is_none() {
            let wanted = "a mapping such as `{ column: language, values: [python] }`";
            self.wrong_type(node, "`accepted_values`", wanted);
            return None;
        }
        self.known_keys(node, "`accepted_values`", &["column", "values"]);
        let column = match node.get("column") {
            Some(value) => self.fixed_text(value, "`column`"),
            None => {
                self.missing("`accepted_values`", "column", node, "add `column: name`");
                None
            }
        };
        let values = match node.get("values") {
            Some(value) => self.values(value),
            None => {
                self.missing("`accepted_values`", "values", node, "add `values: [a, b]`");
                None
            }
        };
        Some(AssertKind::AcceptedValues { column: column?, values: values? })
    }

    fn values(&mut self, node: &Node) -> Option<Vec<Node>> {
        let Some(items) = node.as_seq().filter(|items| !items.is_empty()) else {
            self.wrong_type(node, "`values`", "a list of at least one value");
            return None;
        };
        for item in items {
            if item.as_seq().is_some() || item.as_map().is_some() {
                self.wrong_type(item, "an accepted value", "a scalar");
                return None;
            }
            self.check_expressions(item);
        }
        Some(items.to_vec())
    }

    fn condition(&mut self, node: &Node) -> Option<AssertKind> {
        let text = self.text(node, "`expr`")?;
        if text.value.trim().is_empty() {
            let message = "`expr` is empty";
            self.push(Diagnostic::error(Code::WrongValue, message, self.source, node.span));
            return None;
        }
        self.check_expressions(node);
        Some(AssertKind::Expr(node.clone()))
    }

    fn rows(&mut self, node: &Node) -> Option<AssertKind> {
        if node.as_map().is_none() {
            self.wrong_type(node, "`rows`", "a mapping with `min` or `max`");
            return None;
        }
        self.known_keys(node, "`rows`", &["min", "max"]);
        let (min, max) = (node.get("min"), node.get("max"));
        if min.is_none() && max.is_none() {
            if node.as_map().is_some_and(<[_]>::is_empty) {
                self.missing("`rows`", "min", node, "write `rows: { min: 1 }`");
            }
            return None;
        }
        for (value, key) in [(min, "`min`"), (max, "`max`")] {
            let Some(value) = value else { continue };
            if value.as_str().is_some_and(has_expression) {
                self.check_expressions(value);
            } else if value.as_i64().is_none_or(|n| n < 0) {
                self.wrong_type(value, key, "a number of rows");
                return None;
            }
        }
        if let (Some(low), Some(high)) = (min, max)
            && let (Some(a), Some(b)) = (low.as_i64(), high.as_i64())
            && a > b
        {
            let message = "`rows` has a `min` above its `max`";
            let problem = Diagnostic::error(Code::WrongValue, message, self.source, low.span);
            self.push(problem.with_related(self.source, high.span, "the `max`"));
        }
        Some(AssertKind::Rows { min: min.cloned(), max: max.cloned() })
    }
}
