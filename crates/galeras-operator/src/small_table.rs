//! Small tables that are written row by row, from typed rows.
//!
//! A table is declared once, by the list of columns of its row type: each column has its name, its
//! description and the function that reads its value off a row. The type of that function decides
//! the column's data type and whether it may be null, so that none of these can disagree.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanBuilder, Float64Builder, Int64Builder, RecordBatch, StringBuilder,
};
use arrow::datatypes::{DataType, FieldRef};

use crate::{StepError, TableSchema, describe};

/// A row of a table.
pub trait TableRow: Sized + 'static {
    /// The columns of the table, in their order.
    const COLUMNS: &'static [TableColumn<Self>];
}

/// A column of a table whose rows are of type `Row`.
pub struct TableColumn<Row> {
    name: &'static str,
    about: &'static str,
    unit: Option<&'static str>,
    value: CellValue<Row>,
}

/// How the value of a column is read off a row.
enum CellValue<Row> {
    Text(fn(&Row) -> &str),
    OptionalText(fn(&Row) -> Option<&str>),
    OptionalNumber(fn(&Row) -> Option<f64>),
    Count(fn(&Row) -> usize),
    OptionalCount(fn(&Row) -> Option<usize>),
    Flag(fn(&Row) -> bool),
}

/// A column of texts.
pub const fn text<Row>(
    name: &'static str,
    about: &'static str,
    value: fn(&Row) -> &str,
) -> TableColumn<Row> {
    TableColumn { name, about, unit: None, value: CellValue::Text(value) }
}

/// A column of texts that may be null.
pub const fn optional_text<Row>(
    name: &'static str,
    about: &'static str,
    value: fn(&Row) -> Option<&str>,
) -> TableColumn<Row> {
    TableColumn { name, about, unit: None, value: CellValue::OptionalText(value) }
}

/// A column of numbers that may be null. They are rounded to twelve significant digits.
pub const fn number<Row>(
    name: &'static str,
    about: &'static str,
    value: fn(&Row) -> Option<f64>,
) -> TableColumn<Row> {
    TableColumn { name, about, unit: None, value: CellValue::OptionalNumber(value) }
}

/// A column of counts of `unit`.
pub const fn count_of<Row>(
    name: &'static str,
    about: &'static str,
    unit: &'static str,
    value: fn(&Row) -> usize,
) -> TableColumn<Row> {
    TableColumn { name, about, unit: Some(unit), value: CellValue::Count(value) }
}

/// A column of counts that may be null.
pub const fn optional_count<Row>(
    name: &'static str,
    about: &'static str,
    unit: Option<&'static str>,
    value: fn(&Row) -> Option<usize>,
) -> TableColumn<Row> {
    TableColumn { name, about, unit, value: CellValue::OptionalCount(value) }
}

/// A column of true and false.
pub const fn flag<Row>(
    name: &'static str,
    about: &'static str,
    value: fn(&Row) -> bool,
) -> TableColumn<Row> {
    TableColumn { name, about, unit: None, value: CellValue::Flag(value) }
}

impl<Row> TableColumn<Row> {
    /// The name of the column.
    pub fn name(&self) -> &'static str {
        self.name
    }

    fn field(&self) -> FieldRef {
        let (data_type, nullable) = match self.value {
            CellValue::Text(_) => (DataType::Utf8, false),
            CellValue::OptionalText(_) => (DataType::Utf8, true),
            CellValue::OptionalNumber(_) => (DataType::Float64, true),
            CellValue::Count(_) => (DataType::Int64, false),
            CellValue::OptionalCount(_) => (DataType::Int64, true),
            CellValue::Flag(_) => (DataType::Boolean, false),
        };
        describe(self.name, data_type, nullable, self.about, self.unit)
    }

    fn array(&self, rows: &[Row]) -> ArrayRef {
        match self.value {
            CellValue::Text(value) => texts(rows.iter().map(|row| Some(value(row)))),
            CellValue::OptionalText(value) => texts(rows.iter().map(value)),
            CellValue::OptionalNumber(value) => {
                let mut builder = Float64Builder::with_capacity(rows.len());
                rows.iter().for_each(|row| builder.append_option(value(row).map(rounded)));
                Arc::new(builder.finish())
            }
            CellValue::Count(value) => counts(rows.iter().map(|row| Some(value(row)))),
            CellValue::OptionalCount(value) => counts(rows.iter().map(value)),
            CellValue::Flag(value) => {
                let mut builder = BooleanBuilder::with_capacity(rows.len());
                rows.iter().for_each(|row| builder.append_value(value(row)));
                Arc::new(builder.finish())
            }
        }
    }
}

fn texts<'a>(values: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
    let mut builder = StringBuilder::new();
    values.for_each(|value| builder.append_option(value));
    Arc::new(builder.finish())
}

fn counts(values: impl Iterator<Item = Option<usize>>) -> ArrayRef {
    let mut builder = Int64Builder::new();
    let integer = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    values.for_each(|value| builder.append_option(value.map(integer)));
    Arc::new(builder.finish())
}

/// The schema of a table of such rows.
pub fn table_schema<Row: TableRow>() -> TableSchema {
    let fields: Vec<FieldRef> = Row::COLUMNS.iter().map(TableColumn::field).collect();
    TableSchema::default().with(&fields)
}

/// The table of `rows`.
pub fn record_batch<Row: TableRow>(rows: &[Row]) -> Result<RecordBatch, StepError> {
    let arrays = Row::COLUMNS.iter().map(|column| column.array(rows)).collect();
    Ok(RecordBatch::try_new(table_schema::<Row>().schema, arrays)?)
}

/// A number to twelve significant digits. The last digits of a decomposition depend on the
/// processor; a table and its digest should not.
pub fn rounded(number: f64) -> f64 {
    if number == 0.0 || !number.is_finite() {
        return if number == 0.0 { 0.0 } else { number };
    }
    format!("{number:.11e}").parse().unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, AsArray};
    use arrow::datatypes::{Float64Type, Int64Type};

    use super::*;

    struct Measured {
        name: &'static str,
        value: Option<f64>,
        n: usize,
    }

    impl TableRow for Measured {
        const COLUMNS: &'static [TableColumn<Self>] = &[
            text("name", "what was measured", |row| row.name),
            number("value", "how much it is", |row| row.value),
            count_of("n", "how often", "times", |row| row.n),
        ];
    }

    #[test]
    fn numbers_have_twelve_digits_and_zero_has_no_sign() {
        assert_eq!(rounded(111.058_843_653_780_29), 111.058_843_654);
        assert_eq!(rounded(1.959_129_915_175_365e-129), 1.959_129_915_18e-129);
        assert!(rounded(-0.0).is_sign_positive());
        assert_eq!(rounded(f64::INFINITY), f64::INFINITY);
        assert_eq!(rounded(f64::MIN_POSITIVE), 2.225_073_858_51e-308);
    }

    #[test]
    fn columns_hold_the_fields_that_they_are_declared_with() {
        let rows = [
            Measured { name: "size", value: None, n: 3 },
            Measured { name: "age", value: Some(-0.0), n: 4 },
        ];
        let batch = record_batch(&rows).unwrap();
        assert_eq!(batch.column(0).as_string::<i32>().value(1), "age");
        let values = batch.column(1).as_primitive::<Float64Type>();
        assert!(values.is_null(0) && values.value(1).is_sign_positive());
        assert_eq!(batch.column(2).as_primitive::<Int64Type>().values(), &[3, 4]);
        let schema = batch.schema();
        let nullable: Vec<bool> = schema.fields().iter().map(|field| field.is_nullable()).collect();
        assert_eq!(nullable, [false, true, false]);
    }

    #[test]
    fn a_table_without_rows_has_its_columns() {
        let batch = record_batch::<Measured>(&[]).unwrap();
        assert_eq!((batch.num_rows(), batch.num_columns()), (0, 3));
    }
}
