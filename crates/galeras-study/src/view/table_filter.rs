//! The filter of a table page: a column, an operator and a value become a condition. Values are
//! literals; user input is never parsed as SQL.

use arrow::datatypes::{DataType, Schema};
use datafusion::logical_expr::{Expr, cast, lit};

use galeras_sql::session::{column, contains_ascii};

/// The operators: their names in addresses and their labels on pages.
pub(super) const OPERATORS: [(&str, &str); 8] = [
    ("contains", "contains"),
    ("eq", "="),
    ("ne", "≠"),
    ("lt", "<"),
    ("le", "≤"),
    ("ge", "≥"),
    ("gt", ">"),
    ("null", "is absent"),
];

/// The condition of a filter; `None` without one. The error is for people.
///
/// # Errors
/// If the filter does not exist or does not apply to the column.
pub fn condition(
    schema: &Schema,
    name: &str,
    operator: &str,
    value: &str,
) -> Result<Option<Expr>, String> {
    if name.is_empty() {
        return Ok(anywhere(schema, value));
    }
    let Ok(field) = schema.field_with_name(name) else {
        return Err(format!("The table has no column `{name}`."));
    };
    let this = column(name);
    if operator == "null" {
        return Ok(Some(this.is_null()));
    }
    if value.is_empty() {
        return Ok(None);
    }
    let data_type = field.data_type();
    if data_type.is_nested() {
        return Err(format!("{name} holds lists or structs; filter it with `galeras sql`."));
    }
    if operator == "contains" {
        return Ok(Some(contains(this, data_type, value)));
    }
    let (left, right) = match data_type {
        t if t.is_integer() => match value.trim().parse::<i64>() {
            Ok(number) => (cast(this, DataType::Int64), lit(number)),
            Err(_) => (cast(this, DataType::Float64), lit(number(name, value)?)),
        },
        t if t.is_numeric() => (cast(this, DataType::Float64), lit(number(name, value)?)),
        DataType::Boolean => match value.trim().to_lowercase().as_str() {
            "true" | "yes" | "1" => (this, lit(true)),
            "false" | "no" | "0" => (this, lit(false)),
            _ => return Err(format!("{name} is true or false.")),
        },
        DataType::Utf8 => (this, lit(value)),
        _ => (cast(this, DataType::Utf8), lit(value)),
    };
    Ok(Some(match operator {
        "eq" => left.eq(right),
        // A null differs from any value: a filter for "not `x`" includes it.
        "ne" => left.clone().not_eq(right).or(left.is_null()),
        "lt" => left.lt(right),
        "le" => left.lt_eq(right),
        "ge" => left.gt_eq(right),
        "gt" => left.gt(right),
        other => return Err(format!("There is no operator {other}.")),
    }))
}

fn number(name: &str, value: &str) -> Result<f64, String> {
    let number = value.trim().parse::<f64>().ok().filter(|number| !number.is_nan());
    number.ok_or_else(|| format!("{name} holds numbers, and “{value}” is not one."))
}

fn contains(this: Expr, data_type: &DataType, value: &str) -> Expr {
    let text = if *data_type == DataType::Utf8 { this } else { cast(this, DataType::Utf8) };
    if value.is_ascii() { contains_ascii(text, value) } else { text.ilike(lit(pattern(value))) }
}

/// The pattern of texts that contain this one, with wildcards escaped.
fn pattern(value: &str) -> String {
    let special = |c: char| matches!(c, '\\' | '%' | '_').then_some('\\');
    let plain: String = value.chars().flat_map(|c| special(c).into_iter().chain([c])).collect();
    format!("%{plain}%")
}

/// Rows with the text in any column of texts.
fn anywhere(schema: &Schema, value: &str) -> Option<Expr> {
    if value.is_empty() {
        return None;
    }
    let texts = schema.fields().iter().filter(|field| *field.data_type() == DataType::Utf8);
    let found = texts.map(|field| contains(column(field.name()), field.data_type(), value));
    Some(found.reduce(Expr::or).unwrap_or_else(|| lit(false)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};

    use super::*;
    use galeras_sql::session::session;

    async fn rows(name: &str, operator: &str, value: &str) -> Result<usize, String> {
        let columns: [(&str, ArrayRef); 3] = [
            ("n", Arc::new(Int64Array::from(vec![Some(1), Some(2), None]))),
            ("x", Arc::new(Float64Array::from(vec![0.5, 1.5, 2.5]))),
            ("t", Arc::new(StringArray::from(vec![Some("50% Off"), Some("a_b"), None]))),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let found = condition(&batch.schema(), name, operator, value)?;
        let df = session(1).read_batch(batch).unwrap();
        let df = match found {
            Some(found) => df.filter(found).unwrap(),
            None => df,
        };
        Ok(df.count().await.unwrap())
    }

    #[tokio::test]
    async fn values_are_literals_of_the_type_of_their_column() {
        for (name, operator, value, count) in [
            ("n", "eq", "2", 1),
            ("n", "ne", "2", 2),
            ("n", "lt", "1.5", 1),
            ("n", "null", "", 1),
            ("n", "contains", "1", 1),
            ("x", "ge", "1.5", 2),
            ("x", "le", " 1.5 ", 2),
            ("t", "contains", "50% o", 1),
            ("t", "contains", "é", 0),
            ("t", "contains", "%", 1),
            ("t", "contains", "_", 1),
            ("t", "eq", "a_b", 1),
            ("t", "contains", "' OR 1=1 --", 0),
            ("t", "eq", "", 3),
            ("", "contains", "off", 1),
            ("", "contains", "", 3),
        ] {
            assert_eq!(rows(name, operator, value).await, Ok(count), "{name} {operator} {value}");
        }
        for (name, operator, value) in [("n", "eq", "two"), ("no", "eq", "1"), ("t", "like", "x")] {
            rows(name, operator, value).await.unwrap_err();
        }
    }
}
