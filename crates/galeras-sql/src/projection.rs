//! The columns that a step selects: those it has to keep, those it replaces, the key's order.

use datafusion::dataframe::DataFrame;
use datafusion::logical_expr::{Expr, lit};

use crate::session::column;
use galeras_base::id::ROW_DIGEST;
use galeras_operator::{StepError, TableSchema};

/// `rows` restricted to the hidden columns and `produced` ones.
pub fn keep_hidden(rows: DataFrame, produced: Vec<Expr>) -> Result<DataFrame, StepError> {
    let mut columns = vec![column(ROW_DIGEST)];
    columns.extend(produced);
    Ok(rows.select(columns)?)
}

/// The columns of `table` that are stored, as expressions, except those for which `produced`
/// has one; those are replaced in place, the others come after.
pub fn project(
    rows: DataFrame,
    table: &TableSchema,
    mut produced: Vec<(&str, Expr)>,
) -> Result<DataFrame, StepError> {
    let mut columns = Vec::with_capacity(table.schema.fields().len());
    for field in table.stored().fields() {
        let place = produced.iter().position(|(name, _)| name == field.name());
        columns.push(match place {
            Some(at) => produced.swap_remove(at).1.alias(field.name()),
            None => column(field.name()),
        });
    }
    Ok(rows.select(columns)?)
}

/// `columns` of `rows` in the order of `key`, whose columns come after them. The sort comes last:
/// above a sort, functions would be computed in parallel and their rows put together in any order.
pub fn in_key_order(
    rows: DataFrame,
    key: &[String],
    mut columns: Vec<Expr>,
) -> Result<DataFrame, StepError> {
    let name = |at: usize| format!("__key{at}");
    columns.extend(key.iter().enumerate().map(|(at, key)| column(key).alias(name(at))));
    let order = (0..key.len()).map(|at| column(&name(at)).sort(true, true)).collect();
    Ok(rows.select(columns)?.sort(order)?)
}

/// A literal text.
pub fn text(value: &str) -> Expr {
    lit(value)
}
