//! JSON as `pandas.DataFrame.to_json` writes it: an object of columns, each an object of values by
//! the row's label.

use std::fs::File;
use std::io::{BufReader, Read as _};
use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::json::ReaderBuilder;
use arrow::json::reader::infer_json_schema;
use serde_json::{Map, Value};

use super::declared::{DeclaredTypes, with_declared};
use super::json_values::{check_reader, has_floats};

/// The column with the labels of rows.
const INDEX: &str = "index";

/// Whether the JSON file is an object rather than a list.
pub(super) fn is_object(file: &Path) -> bool {
    let Ok(file) = File::open(file) else { return false };
    let mut bytes = BufReader::new(file).bytes().map_while(Result::ok);
    bytes.find(|byte| !byte.is_ascii_whitespace()) == Some(b'{')
}

/// Reads the file: its columns, and `index` with the labels of rows if no column has that name.
/// Rows keep the order of the first column.
pub(super) fn read(file: &Path, declared: &DeclaredTypes) -> Result<RecordBatch, String> {
    let reader = BufReader::new(File::open(file).map_err(|e| e.to_string())?);
    let columns: Map<String, Value> = serde_json::from_reader(reader)
        .map_err(|e| format!("not a JSON list, nor an object of columns: {e}"))?;
    let (lines, rows) = lines(columns)?;
    let (schema, _) = infer_json_schema(lines.as_slice(), None).map_err(|e| e.to_string())?;
    if has_floats(&schema) || !declared.is_empty() {
        // A line of these is a row of the file.
        check_reader(lines.as_slice(), true, declared)
            .map_err(|why| why.replacen("line ", "row ", 1))?;
    }
    let schema = Arc::new(with_declared(&schema, declared));
    let mut batches = ReaderBuilder::new(Arc::clone(&schema))
        .with_batch_size(rows)
        .build(lines.as_slice())
        .map_err(|e| e.to_string())?;
    match batches.next() {
        Some(batch) => batch.map_err(|e| e.to_string()),
        None => Ok(RecordBatch::new_empty(schema)),
    }
}

/// The rows as JSON lines, and how many there are.
fn lines(columns: Map<String, Value>) -> Result<(Vec<u8>, usize), String> {
    let mut values: Vec<(String, Map<String, Value>)> = Vec::with_capacity(columns.len());
    for (name, column) in columns {
        let Value::Object(column) = column else {
            return Err(format!(
                "not a JSON list, nor an object of columns: `{name}` holds no values by row"
            ));
        };
        values.push((name, column));
    }
    let Some((first, labels)) = values.first() else {
        return Err("the object has no columns".into());
    };
    if labels.is_empty() {
        return Err(format!("the column `{first}` is empty"));
    }
    if let Some((other, _)) = values.iter().find(|(_, column)| column.len() != labels.len()) {
        return Err(format!("the columns `{first}` and `{other}` have different rows"));
    }
    let labels: Vec<String> = labels.keys().cloned().collect();
    let whole = labels.iter().all(|label| label.parse::<i64>().is_ok());
    let indexed = !values.iter().any(|(name, _)| name == INDEX);
    let (mut lines, rows) = (Vec::new(), labels.len());
    for label in labels {
        let mut row = Map::new();
        if indexed {
            let number = label.parse::<i64>().ok().filter(|_| whole).map(Value::from);
            row.insert(INDEX.into(), number.unwrap_or_else(|| Value::from(label.clone())));
        }
        for (name, column) in &mut values {
            let value = column.get_mut(&label).map(Value::take);
            let missing = || format!("the column `{name}` has no row `{label}`");
            row.insert(name.clone(), value.ok_or_else(missing)?);
        }
        serde_json::to_writer(&mut lines, &row).map_err(|e| e.to_string())?;
        lines.push(b'\n');
    }
    Ok((lines, rows))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<RecordBatch, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        read(file.path(), &DeclaredTypes::new())
    }

    #[test]
    fn columns_become_rows_in_their_order() {
        let batch =
            read_text(r#"{"y": {"10": 1.5, "2": null}, "arm": {"2": "b", "10": "a"}}"#).unwrap();
        let names: Vec<_> = batch.schema().fields().iter().map(|f| f.name().clone()).collect();
        assert_eq!(names, ["index", "y", "arm"]);
        let shown = arrow::util::pretty::pretty_format_batches(&[batch]).unwrap().to_string();
        assert!(shown.contains("| 10    | 1.5 | a   |\n| 2     |     | b   |"), "{shown}");
    }

    #[test]
    fn an_object_that_is_not_a_table_is_refused_with_a_reason() {
        for (text, message) in [
            ("{}", "no columns"),
            (r#"{"a": 1}"#, "`a` holds no values"),
            (r#"{"a": {}}"#, "`a` is empty"),
            (r#"{"a": {"0": 1}, "b": {"0": 1, "1": 2}}"#, "different rows"),
            (r#"{"a": {"0": 1}, "b": {"1": 1}}"#, "no row `0`"),
            (r#"{"a": {"0": 1}"#, "not a JSON list"),
        ] {
            let error = read_text(text).unwrap_err();
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
