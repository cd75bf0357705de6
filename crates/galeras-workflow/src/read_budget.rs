//! Reads `budget`: the spending limits of a workflow.

use super::diagnostic::Diagnostic;
use super::expr::has_expression;
use super::node::{Node, Value};
use super::reader::WorkflowReader;
use super::spec::BudgetSpec;
use crate::code::Code;

const KEYS: [&str; 2] = ["max_usd", "max_requests"];

impl WorkflowReader<'_> {
    pub(super) fn budget(&mut self, key: &Node, node: &Node) -> Option<BudgetSpec> {
        let wanted = "a mapping such as `{ max_usd: 5, max_requests: 10000 }`";
        if node.as_map().is_none() {
            self.wrong_type(node, "`budget`", wanted);
            return None;
        }
        self.known_keys(node, "`budget`", &KEYS);
        let max_usd = self.limit(node, "max_usd", "a number of US dollars, 0 or more");
        let max_requests = self.limit(node, "max_requests", "a whole number, 0 or more");
        if node.as_map().is_some_and(<[_]>::is_empty) {
            let message = "`budget` limits nothing";
            let problem = Diagnostic::error(Code::WrongValue, message, self.source, node.span);
            self.push(problem.with_help("add `max_usd` or `max_requests`"));
        }
        Some(BudgetSpec { max_usd, max_requests, span: key.span })
    }

    fn limit(&mut self, node: &Node, key: &str, wanted: &str) -> Option<Node> {
        let value = node.get(key)?;
        if value.as_str().is_some_and(has_expression) {
            self.check_expressions(value);
            return Some(value.clone());
        }
        if budget_limit_problem(key, value) {
            self.wrong_type(value, &format!("`{key}`"), wanted);
            return None;
        }
        Some(value.clone())
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
