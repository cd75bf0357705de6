//! Computes calls that several rules share once per row.
//!
//! Rules are checked within a CASE, and the optimiser does not extract calls from it: without this,
//! each mention of a `python_` function would parse a method again.

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::dataframe::DataFrame;
use datafusion::logical_expr::Expr;

use super::BoundRule;
use galeras_operator::StepError;
use galeras_sql::session::column;

/// The prefix of functions that parse a method.
const EXPENSIVE: &str = "python_";

/// The rows with a hidden column per distinct call of an expensive function, and the rules with
/// these columns instead of the calls.
pub(super) fn share_calls(
    mut rows: DataFrame,
    rules: &[BoundRule],
) -> Result<(DataFrame, Vec<BoundRule>), StepError> {
    let mut calls: Vec<Expr> = Vec::new();
    let mut shared = Vec::with_capacity(rules.len());
    for rule in rules {
        let mut rule = rule.clone();
        let replaced = rule.checked.expr.transform_down(|expr| {
            let expensive = matches!(&expr, Expr::ScalarFunction(call)
                if call.func.name().starts_with(EXPENSIVE));
            if !expensive {
                return Ok(Transformed::no(expr));
            }
            let at = calls.iter().position(|known| *known == expr).unwrap_or(calls.len());
            if at == calls.len() {
                calls.push(expr);
            }
            Ok(Transformed::yes(column(&name(at))))
        })?;
        rule.checked.expr = replaced.data;
        shared.push(rule);
    }
    for (at, call) in calls.into_iter().enumerate() {
        rows = rows.with_column(&name(at), call)?;
    }
    Ok((rows, shared))
}

fn name(at: usize) -> String {
    format!("__call_{at}")
}
