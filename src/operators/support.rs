//! What several operators share: reject columns, hidden columns, checks of columns and patterns;
//! threads (`threads`), tokenizer models (`models`).

pub(super) mod models;
pub(super) mod threads;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::dataframe::DataFrame;
use datafusion::logical_expr::{Expr, lit};
use globset::{Glob, GlobSet, GlobSetBuilder};

use crate::id::ROW_DIGEST;
use crate::operator::{ArgError, BindContext, StepError, TableSchema, describe, virtual_step};
use crate::session::column;

/// The columns that a `rejects` port adds: `step` (filled in when the table is read), `rule`
/// and `reason`.
pub(super) fn reject_columns() -> Vec<FieldRef> {
    vec![
        virtual_step(),
        describe("rule", DataType::Utf8, false, "the rule that rejected the row", None),
        describe("reason", DataType::Utf8, false, "why it was rejected", None),
    ]
}

/// The table of an operator's `rejects` port: the input with [`reject_columns`].
pub(super) fn reject_table(input: &TableSchema) -> TableSchema {
    input.with(&reject_columns())
}

/// `rows` restricted to the hidden columns and `produced` ones.
pub(super) fn keep_hidden(rows: DataFrame, produced: Vec<Expr>) -> Result<DataFrame, StepError> {
    let mut columns = vec![column(ROW_DIGEST)];
    columns.extend(produced);
    Ok(rows.select(columns)?)
}

/// The columns of `table` that are stored, as expressions, except those for which `produced`
/// has one; those are replaced in place, the others come after.
pub(super) fn project(
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
pub(super) fn in_key_order(
    rows: DataFrame,
    key: &[String],
    mut columns: Vec<Expr>,
) -> Result<DataFrame, StepError> {
    let name = |at: usize| format!("__key{at}");
    columns.extend(key.iter().enumerate().map(|(at, key)| column(key).alias(name(at))));
    let order = (0..key.len()).map(|at| column(&name(at)).sort(true, true)).collect();
    Ok(rows.select(columns)?.sort(order)?)
}

/// The reject columns filled in, for [`project`].
pub(super) fn reject_values(rule: Expr, reason: Expr) -> Vec<(&'static str, Expr)> {
    vec![("rule", rule), ("reason", reason)]
}

/// The glob patterns of an argument that is a list.
pub(super) fn glob_set(argument: &str, patterns: &[String]) -> Result<GlobSet, ArgError> {
    let bad = |path: String| {
        move |error: globset::Error| ArgError::new(path, "bad-pattern", error.to_string())
    };
    let mut set = GlobSetBuilder::new();
    for (at, pattern) in patterns.iter().enumerate() {
        set.add(Glob::new(pattern).map_err(bad(format!("{argument}[{at}]")))?);
    }
    set.build().map_err(bad(argument.to_string()))
}

/// A text column that is never null.
pub(super) fn text_field(name: &str, about: &str) -> FieldRef {
    describe(name, DataType::Utf8, false, about, None)
}

/// A literal text.
pub(super) fn text(value: &str) -> Expr {
    lit(value)
}

/// Checks that the input has `name`, with a type that `fits`; otherwise says so at `path`.
pub(super) fn require_column(
    cx: &BindContext,
    path: &str,
    name: &str,
    wanted: &str,
    fits: impl Fn(&DataType) -> bool,
    errors: &mut Vec<ArgError>,
) {
    let input = cx.input();
    match input.field(name) {
        None => errors.push(ArgError::unknown_column(path, name, input.names())),
        Some(field) if !fits(field.data_type()) => errors.push(ArgError::new(
            path,
            "wrong-type",
            format!(
                "column `{name}` has type {}, but {wanted} is needed",
                crate::digest::type_name(field.data_type())
            ),
        )),
        Some(_) => {}
    }
}

/// Whether values of the type are numbers, or true and false.
pub(super) fn is_number(data_type: &DataType) -> bool {
    data_type.is_numeric() || *data_type == DataType::Boolean
}

/// Whether the type is text.
pub(super) fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}
