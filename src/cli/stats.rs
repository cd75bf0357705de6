//! `show --stats`: statistics of a table's columns.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::Schema;
use datafusion::error::DataFusionError;
use serde_json::{Map, Value, json};

use super::context::{Exit, Failure, fail, failed};
use super::rows::{OutArgs, RowFormat, TableRows, write_rows, write_text};
use galeras_base::terminal_escape::escape_json;
use galeras_display::{ColumnSummary, TableStyle, TableSummary, count, number};
use galeras_operator::plain_message;
use galeras_sql::session::session;
use galeras_study::report::{one_value, text_of};

const NUMBERS: &[&str] = &["rows", "nulls", "distinct", "min", "q1", "median", "q3", "max", "mean"];

/// Reads the rows once and writes statistics of their columns.
pub(super) async fn show_stats(mut rows: TableRows, out: &OutArgs) -> Result<Exit, Failure> {
    if matches!(out.format, RowFormat::Parquet | RowFormat::Arrow) {
        return Err(fail("--stats is written as a table, json or csv", Exit::Invalid));
    }
    let broken = |error: DataFusionError| failed(plain_message(&error));
    let mut summary = TableSummary::new(&rows.schema);
    while let Some(batch) = rows.next().await.map_err(broken)? {
        summary.add(&batch).map_err(|error| broken(error.into()))?;
    }
    let columns = summary.finish();
    if out.format == RowFormat::Json {
        let line = |column| format!("{}\n", escape_json(as_json(column).to_string()));
        return write_text(&columns.iter().map(line).collect::<String>(), out);
    }
    let table = as_table(&columns, out.format == RowFormat::Table).map_err(failed)?;
    let table = session(1).read_batch(table).map_err(broken)?;
    let style = TableStyle { numeric: NUMBERS, ..TableStyle::default() };
    write_rows(TableRows::new(vec![table], None), out, style).await
}

/// A column's summary as an object; numbers are numbers, points in time are texts.
fn as_json(column: &ColumnSummary) -> Value {
    let mut out = Map::new();
    let mut put = |name: &str, value: Value| out.insert(name.to_string(), value);
    put("column", json!(column.name));
    put("type", json!(column.data_type));
    put("rows", json!(column.rows));
    put("nulls", json!(column.nulls));
    put("distinct", json!(column.distinct.map(|d| d.values)));
    put("distinct_exact", json!(column.distinct.map(|d| d.exact)));
    put("of", json!(column.measured.word()));
    let extremes = column.extremes.as_ref();
    put("min", extremes.map_or(Value::Null, |(least, _)| one_value(least)));
    for (at, name) in ["q1", "median", "q3"].into_iter().enumerate() {
        put(name, json!(column.quartiles.map(|q| q.values[at])));
    }
    put("max", extremes.map_or(Value::Null, |(_, most)| one_value(most)));
    put("mean", json!(column.mean));
    put("quartiles_exact", json!(column.quartiles.map(|q| q.exact)));
    Value::Object(out)
}

/// The summaries as a table of texts; for people, numbers are short and estimates have a `~`.
fn as_table(
    columns: &[ColumnSummary],
    people: bool,
) -> Result<RecordBatch, arrow::error::ArrowError> {
    let shown = |value: f64| if people { number(value) } else { value.to_string() };
    let whole = |n: u64| if people { count(n) } else { n.to_string() };
    let about = |exact: bool| if people && !exact { "~" } else { "" };
    let quartile = |at: usize| {
        move |c: &ColumnSummary| {
            c.quartiles.map(|q| format!("{}{}", about(q.exact), shown(q.values[at])))
        }
    };
    let extreme = |array: &ArrayRef| {
        let text = text_of(array);
        match text.parse::<f64>() {
            Ok(value) if people && array.data_type().is_floating() => number(value),
            _ => text,
        }
    };
    let cells = |name: &str| -> Vec<Option<String>> {
        columns
            .iter()
            .map(|c| match name {
                "column" => Some(c.name.clone()),
                "type" => Some(c.data_type.clone()),
                "rows" => Some(whole(c.rows)),
                "nulls" => Some(whole(c.nulls)),
                "distinct" => c.distinct.map(|d| format!("{}{}", about(d.exact), whole(d.values))),
                "of" => Some(c.measured.word().to_string()),
                "min" => c.extremes.as_ref().map(|(least, _)| extreme(least)),
                "q1" => quartile(0)(c),
                "median" => quartile(1)(c),
                "q3" => quartile(2)(c),
                "max" => c.extremes.as_ref().map(|(_, most)| extreme(most)),
                _ => c.mean.map(shown),
            })
            .map(|cell| if people { Some(cell.unwrap_or_default()) } else { cell })
            .collect()
    };
    let names = [
        "column", "type", "rows", "nulls", "distinct", "of", "min", "q1", "median", "q3", "max",
        "mean",
    ];
    // On a terminal, the number of rows is left out, as it is the same in every line.
    let names = names.into_iter().filter(|name| !people || *name != "rows");
    let arrays: Vec<(&str, ArrayRef)> =
        names.map(|name| (name, Arc::new(StringArray::from(cells(name))) as ArrayRef)).collect();
    let fields: Vec<_> = arrays
        .iter()
        .map(|(name, array)| arrow::datatypes::Field::new(*name, array.data_type().clone(), true))
        .collect();
    let arrays = arrays.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}
