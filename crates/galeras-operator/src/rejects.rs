//! The columns and values of a `rejects` port.

use arrow::datatypes::{DataType, FieldRef};
use datafusion::logical_expr::Expr;

use crate::{TableSchema, describe, virtual_step};

/// The columns that a `rejects` port adds: `step` (filled in when the table is read), `rule`
/// and `reason`.
pub fn reject_columns() -> Vec<FieldRef> {
    vec![
        virtual_step(),
        describe("rule", DataType::Utf8, false, "the rule that rejected the row", None),
        describe("reason", DataType::Utf8, false, "why it was rejected", None),
    ]
}

/// The table of an operator's `rejects` port: the input with [`reject_columns`].
pub fn reject_table(input: &TableSchema) -> TableSchema {
    input.with(&reject_columns())
}

/// The reject columns filled in, for `project` of `galeras-sql`.
pub fn reject_values(rule: Expr, reason: Expr) -> Vec<(&'static str, Expr)> {
    vec![("rule", rule), ("reason", reason)]
}
