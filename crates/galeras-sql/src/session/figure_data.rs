//! Columns of rows as figures take them: numbers and texts.

use arrow::array::{ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Float64Type};
use datafusion::dataframe::DataFrame;
use futures::StreamExt;
use galeras_figures::{Column, Data, Values};

use galeras_operator::{StepError, column_description, column_unit};

/// A column that is drawn.
#[derive(Clone, Debug)]
pub struct FigureColumn {
    /// Its name.
    pub name: String,
    /// True if numbers are needed, and not only distinct values.
    pub number: bool,
    /// The unit of its numbers.
    pub unit: Option<String>,
    /// The values.
    pub description: Option<String>,
}

impl FigureColumn {
    /// The column of a field.
    pub fn of(field: &Field, number: bool) -> Self {
        Self {
            name: field.name().clone(),
            number,
            unit: column_unit(field).map(str::to_string),
            description: column_description(field).map(str::to_string),
        }
    }
}

/// The rows, whose first columns are these, as a figure takes them, in their order.
///
/// # Errors
/// If the rows cannot be computed, or two columns have one name.
pub async fn figure_data(rows: DataFrame, columns: &[FigureColumn]) -> Result<Data, StepError> {
    let mut values: Vec<Option<Values>> = vec![None; columns.len()];
    let mut stream = rows.execute_stream().await?;
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        for (at, column) in columns.iter().enumerate() {
            append(&mut values[at], batch.column(at), column.number)?;
        }
    }
    let columns = columns.iter().zip(values).map(|(column, values)| Column {
        name: column.name.clone(),
        values: values.unwrap_or_else(|| match column.number {
            true => Values::Numbers(Vec::new()),
            false => Values::Texts(Vec::new()),
        }),
        unit: column.unit.clone(),
        description: column.description.clone(),
    });
    Data::new(columns.collect()).map_err(|error| StepError::refused(error.to_string()))
}

/// Adds the values of an array to those of a column. Numbers stay numbers where a category would
/// do: they have an order.
fn append(values: &mut Option<Values>, array: &ArrayRef, number: bool) -> Result<(), StepError> {
    if number || array.data_type().is_numeric() {
        let numbers = cast(array, &DataType::Float64)?;
        let numbers = numbers.as_primitive::<Float64Type>();
        if let Values::Numbers(known) = values.get_or_insert_with(|| Values::Numbers(Vec::new())) {
            known.extend(numbers.iter());
        }
    } else {
        let texts = cast(array, &DataType::Utf8)?;
        let texts = texts.as_string::<i32>();
        if let Values::Texts(known) = values.get_or_insert_with(|| Values::Texts(Vec::new())) {
            known.extend(texts.iter().map(|text| text.map(str::to_string)));
        }
    }
    Ok(())
}
