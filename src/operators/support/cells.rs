//! Small tables written row by row, with the columns of a port as the table's one definition.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanBuilder, Float64Builder, Int64Builder, RecordBatch, StringBuilder,
};
use arrow::datatypes::{DataType, FieldRef};

use crate::operator::{StepError, TableSchema, describe};

/// A column of a port.
pub(in crate::operators) struct Column {
    pub(in crate::operators) name: &'static str,
    pub(in crate::operators) data_type: DataType,
    pub(in crate::operators) nullable: bool,
    pub(in crate::operators) about: &'static str,
    pub(in crate::operators) unit: Option<&'static str>,
}

/// The schema of a table with these columns.
pub(in crate::operators) fn schema(columns: &[Column]) -> TableSchema {
    let fields: Vec<FieldRef> = columns
        .iter()
        .map(|c| describe(c.name, c.data_type.clone(), c.nullable, c.about, c.unit))
        .collect();
    TableSchema::default().with(&fields)
}

/// A value of a small table.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::operators) enum Cell {
    Null,
    Text(String),
    /// Rounded to twelve significant digits when it is written.
    Number(f64),
    Count(i64),
    Flag(bool),
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_string())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<usize> for Cell {
    fn from(count: usize) -> Self {
        Self::Count(i64::try_from(count).unwrap_or(i64::MAX))
    }
}

impl From<bool> for Cell {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// The table of `rows`, whose cells are in the order of `columns`.
pub(in crate::operators) fn batch(
    columns: &[Column],
    rows: &[Vec<Cell>],
) -> Result<RecordBatch, StepError> {
    if let Some(row) = rows.iter().find(|row| row.len() != columns.len()) {
        let message = format!("a defect: {} cells for {} columns", row.len(), columns.len());
        return Err(StepError::new(message));
    }
    let arrays = columns
        .iter()
        .enumerate()
        .map(|(at, column)| array(column, rows.iter().map(|row| &row[at])))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(RecordBatch::try_new(schema(columns).schema, arrays)?)
}

fn array<'a>(
    column: &Column,
    cells: impl Iterator<Item = &'a Cell>,
) -> Result<ArrayRef, StepError> {
    let wrong = |cell: &Cell| {
        StepError::new(format!("a defect: the column `{}` holds {cell:?}", column.name))
    };
    macro_rules! build {
        ($builder:ty, $pattern:pat => $value:expr) => {{
            let mut builder = <$builder>::new();
            for cell in cells {
                match cell {
                    Cell::Null => builder.append_null(),
                    $pattern => builder.append_value($value),
                    other => return Err(wrong(other)),
                }
            }
            Arc::new(builder.finish()) as ArrayRef
        }};
    }
    Ok(match column.data_type {
        DataType::Float64 => build!(Float64Builder, Cell::Number(x) => rounded(*x)),
        DataType::Int64 => build!(Int64Builder, Cell::Count(n) => *n),
        DataType::Boolean => build!(BooleanBuilder, Cell::Flag(b) => *b),
        _ => build!(StringBuilder, Cell::Text(t) => t),
    })
}

/// A number to twelve significant digits. The last digits of a decomposition depend on the
/// processor; what a table holds, and its digest, should not.
fn rounded(number: f64) -> f64 {
    if number == 0.0 || !number.is_finite() {
        return if number == 0.0 { 0.0 } else { number };
    }
    format!("{number:.11e}").parse().unwrap_or(number)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_twelve_digits_and_zero_has_no_sign() {
        assert_eq!(rounded(111.058_843_653_780_29), 111.058_843_654);
        assert_eq!(rounded(1.959_129_915_175_365e-129), 1.959_129_915_18e-129);
        assert!(rounded(-0.0).is_sign_positive());
        assert_eq!(rounded(f64::INFINITY), f64::INFINITY);
        assert_eq!(rounded(f64::MIN_POSITIVE), 2.225_073_858_51e-308);
    }

    #[test]
    fn a_cell_of_another_type_is_a_defect() {
        let columns = [Column {
            name: "n",
            data_type: DataType::Int64,
            nullable: true,
            about: "a count",
            unit: None,
        }];
        assert!(batch(&columns, &[vec![Cell::Null], vec![Cell::Count(3)]]).is_ok());
        assert!(batch(&columns, &[vec![Cell::from("three")]]).is_err());
        assert!(batch(&columns, &[vec![]]).is_err());
    }
}
