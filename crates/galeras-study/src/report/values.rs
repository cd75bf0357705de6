//! Rows of stored tables as JSON values, and tables for the page.

use std::io;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field};
use datafusion::dataframe::DataFrame;
use galeras_pages::model::{TableBlock, TableColumn};
use serde_json::{Map, Value};

use crate::Surveyed;
use galeras_display::{TableFormat, TableWriter};
use galeras_engine::plan::Input;
use galeras_engine::runner::RunError;
use galeras_operator::table_digest::type_name;
use galeras_operator::{column_description, column_unit};
use galeras_sql::session::{column, session, sorted_by_key};

pub(crate) type JsonRow = Map<String, Value>;

/// The table of an input in the order of its key.
pub(super) fn table(surveyed: &Surveyed, input: &Input) -> Result<DataFrame, RunError> {
    let df = surveyed.open(&session(1), input)?;
    Ok(sorted_by_key(df, &input.schema.key)?)
}

pub(super) async fn rows(df: DataFrame) -> Result<Vec<JsonRow>, RunError> {
    let batches = df.collect().await?;
    let mut all = Vec::new();
    for batch in &batches {
        all.extend(rows_of(batch)?);
    }
    Ok(all)
}

/// The rows of a batch as JSON.
pub(crate) fn rows_of(batch: &RecordBatch) -> io::Result<Vec<JsonRow>> {
    let mut writer = TableWriter::new(Vec::new(), batch.schema(), TableFormat::Json)?;
    writer.write(batch)?;
    let lines = writer.finish()?;
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| Ok(serde_json::from_slice(line)?)).collect()
}

pub(super) fn value<'a>(row: &'a JsonRow, name: &str) -> &'a Value {
    row.get(name).unwrap_or(&Value::Null)
}

/// The text of a column in a row; numbers are written as texts.
pub(super) fn text(row: &JsonRow, name: &str) -> String {
    match value(row, name) {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

pub(super) fn number(row: &JsonRow, name: &str) -> Option<f64> {
    value(row, name).as_f64()
}

/// The heading of a column.
pub fn described(field: &Field) -> TableColumn {
    TableColumn {
        name: field.name().clone(),
        data_type: data_type(field),
        unit: column_unit(field).unwrap_or_default().to_string(),
        description: column_description(field).unwrap_or_default().to_string(),
        ..TableColumn::default()
    }
}

/// The type of a column as workflows write it: `utf8!` has no nulls.
pub(super) fn data_type(field: &Field) -> String {
    let mark = if field.is_nullable() { "" } else { "!" };
    format!("{}{mark}", type_name(field.data_type()))
}

/// The first rows of a table, with these columns or every column that is not binary. The caption
/// explains its intervals.
pub(super) async fn block(
    surveyed: &Surveyed,
    name: &str,
    input: &Input,
    columns: &[String],
    limit: usize,
) -> Result<TableBlock, RunError> {
    let mut df = table(surveyed, input)?;
    let schema = df.schema().as_arrow().clone();
    let chosen: Vec<&Field> = match columns {
        [] => {
            let shown = |field: &&std::sync::Arc<Field>| !is_binary(field.data_type());
            schema.fields().iter().filter(shown).map(AsRef::as_ref).collect()
        }
        names => names.iter().filter_map(|name| schema.field_with_name(name).ok()).collect(),
    };
    let exprs: Vec<_> = chosen.iter().map(|field| column(field.name())).collect();
    df = df.select(exprs).and_then(|df| df.limit(0, Some(limit)))?;
    // The input's schema describes its columns.
    let about = |field: &&Field| match input.schema.field(field.name()) {
        Some(known) => described(known),
        None => described(field),
    };
    let head: Vec<TableColumn> = chosen.iter().map(about).collect();
    let first = input.tables.first().filter(|_| head.iter().any(|column| column.name == "ci_low"));
    let intervals =
        first.and_then(|table| surveyed.plan.steps[table.step].step.intervals(table.port));
    Ok(TableBlock {
        choice: order_words(input),
        caption: intervals.unwrap_or_default(),
        ..table_block(name, head, &rows(df).await?, surveyed.rows(input))
    })
}

/// A table with these rows of `total`.
pub(super) fn table_block(
    name: &str,
    columns: Vec<TableColumn>,
    rows: &[JsonRow],
    total: Option<u64>,
) -> TableBlock {
    let cells =
        |row: &JsonRow| columns.iter().map(|column| value(row, &column.name).clone()).collect();
    TableBlock {
        rows: rows.iter().map(cells).collect(),
        columns,
        total: total.filter(|total| *total > rows.len() as u64),
        source: name.to_string(),
        file_name: file_name(name),
        ..TableBlock::default()
    }
}

/// Describes the choice of the first rows.
pub(super) fn order_words(input: &Input) -> String {
    match input.schema.key.as_slice() {
        [] => "the first as stored".to_string(),
        key => format!("the first by {}", key.join(", ")),
    }
}

fn is_binary(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::FixedSizeBinary(_))
}

/// A valid file name for this name.
pub(super) fn file_name(name: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' };
    name.chars().map(plain).collect::<String>().trim_matches('_').to_string()
}
