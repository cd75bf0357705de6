//! Reads `assert`: the data tests of a step. The plan checks columns and SQL.

use strum::VariantNames as _;

use super::diagnostic::quote;
use super::expr::has_expression;
use super::node::Node;
use super::reader::{WorkflowReader, describe};
use super::spec::{Assert, AssertKind, AssertSeverity, Text};
use crate::code::Code;

const OPTIONS: [&str; 2] = ["severity", "port"];

impl WorkflowReader<'_> {
    pub(super) fn asserts(&mut self, node: &Node) -> Vec<Assert> {
        let items = self.list(node, ("`assert`", "a list such as `[{ unique: [id] }]`"), 0);
        items.unwrap_or_default().iter().filter_map(|item| self.assert(item)).collect()
    }

    fn assert(&mut self, node: &Node) -> Option<Assert> {
        let known = [AssertKind::VARIANTS, &OPTIONS].concat();
        let wanted = "a mapping such as `unique: [id]`";
        let entries = self.mapping(node, ("an assertion", wanted), &known)?;
        let severity = node.get("severity").and_then(|n| self.severity(n)).unwrap_or_default();
        let port = self.optional_fixed_text(node, "port");

        let is_kind = |key: &Node| AssertKind::VARIANTS.contains(&key.as_str().unwrap_or(""));
        let mut kinds = entries.iter().filter(|(key, _)| is_kind(key));
        let Some((first, value)) = kinds.next() else {
            let is_option = |key: &Node| OPTIONS.contains(&key.as_str().unwrap_or(""));
            // An unknown key has been reported; it is probably the missing one.
            if entries.iter().all(|(key, _)| is_option(key)) {
                let message = "an assertion needs something to check";
                let problem = self.error(Code::MissingKey, message, node.span);
                self.push(problem.with_suggestion("", AssertKind::VARIANTS.iter().copied()));
            }
            return None;
        };
        for (other, _) in kinds.filter(|(key, _)| key.as_str() != first.as_str()) {
            let message = "an assertion checks one thing";
            let problem = self.error(Code::ConflictingKeys, message, other.span);
            let problem = problem.with_related(self.source, first.span, "the first check");
            self.push(problem.with_help("write one list entry per check"));
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
                let problem = self.error(Code::WrongValue, message, node.span);
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
            let problem = self.error(Code::WrongType, message, node.span);
            self.push(match node.as_str().filter(|s| s.len() < 100) {
                Some(column) => problem.with_help(format!("write `[{column}]`")),
                None => problem,
            });
            return None;
        };
        items.iter().map(|item| self.fixed_text(item, "a column")).collect()
    }

    fn accepted_values(&mut self, node: &Node) -> Option<AssertKind> {
        let what = "`accepted_values`";
        let wanted = "a mapping such as `{ column: language, values: [python] }`";
        self.mapping(node, (what, wanted), &["column", "values"])?;
        let column = self.required(node, (what, "column"), node.head(), "add `column: name`");
        let column = column.and_then(|value| self.fixed_text(value, "`column`"));
        let values = self.required(node, (what, "values"), node.head(), "add `values: [a, b]`");
        let values = values.and_then(|value| self.values(value));
        Some(AssertKind::AcceptedValues { column: column?, values: values? })
    }

    fn values(&mut self, node: &Node) -> Option<Vec<Node>> {
        let items = self.list(node, ("`values`", "a list of at least one value"), 1)?;
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
            self.fail(Code::WrongValue, message, node.span, "");
            return None;
        }
        self.check_expressions(node);
        Some(AssertKind::Expr(node.clone()))
    }

    fn rows(&mut self, node: &Node) -> Option<AssertKind> {
        let wanted = "a mapping with `min` or `max`";
        let entries = self.mapping(node, ("`rows`", wanted), &["min", "max"])?;
        if entries.is_empty() {
            self.required(node, ("`rows`", "min"), node.span, "write `rows: { min: 1 }`");
        }
        let (min, max) = (node.get("min"), node.get("max"));
        if min.is_none() && max.is_none() {
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
            let problem = self.error(Code::WrongValue, message, low.span);
            self.push(problem.with_related(self.source, high.span, "the `max`"));
        }
        Some(AssertKind::Rows { min: min.cloned(), max: max.cloned() })
    }
}
