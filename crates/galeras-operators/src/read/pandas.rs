//! Reads JSON as written by `pandas.DataFrame.to_json`: an object of columns, each an object of
//! values by the row's label.

use std::collections::BTreeSet;
use std::io::{BufRead as _, Read as _};
use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::json::ReaderBuilder;
use arrow::json::reader::infer_json_schema;
use serde_json::{Map, Value};

use super::formats::buffered;
use super::json_values::{check_values, has_floats};
use super::types::{DeclaredTypes, with_declared};

const INDEX: &str = "index";

/// The most bytes of a file. About three copies are in memory, since columns are turned into rows.
const MAX_BYTES: u64 = 512 << 20;

/// The most values of a file, including those within lists and objects. Each takes some 200 bytes
/// until its row is written.
const MAX_VALUES: u64 = 5_000_000;

/// The most bytes of names in the rows: each row repeats all names.
const MAX_NAME_BYTES: usize = 1 << 30;

/// The advice for a file that is too large.
const ROWS: &str = "write it by rows: `to_json(lines=True, orient=\"records\")`";

/// The JSON file is an object rather than a list.
pub(super) fn is_object(file: &Path) -> bool {
    let Ok(text) = buffered(file) else { return false };
    let mut bytes = text.bytes().map_while(Result::ok);
    bytes.find(|byte| !byte.is_ascii_whitespace()) == Some(b'{')
}

/// Reads the file: its columns, and `index` with the row labels if no column has that name. Rows
/// keep the order of the first column.
pub(super) fn read(file: &Path, declared: &DeclaredTypes) -> Result<RecordBatch, String> {
    check_size(file, MAX_BYTES, MAX_VALUES)?;
    let columns: Map<String, Value> = serde_json::from_reader(buffered(file)?)
        .map_err(|e| format!("not a JSON list, nor an object of columns: {e}"))?;
    let (lines, rows) = lines(columns)?;
    let (schema, _) = infer_json_schema(lines.as_slice(), None).map_err(|e| e.to_string())?;
    let check = || {
        // Each of these lines is a row of the file.
        check_values(lines.as_slice(), true, declared).map_err(|why| {
            why.replacen("line ", "row ", 1).replacen("and on line ", "and on row ", 1)
        })
    };
    if has_floats(&schema) || !declared.is_empty() {
        check()?;
    }
    let schema = Arc::new(with_declared(&schema, declared, &BTreeSet::new()));
    let mut batches = ReaderBuilder::new(Arc::clone(&schema))
        .with_batch_size(rows)
        .build(lines.as_slice())
        .map_err(|e| e.to_string())?;
    match batches.next() {
        Some(Ok(batch)) => Ok(batch),
        Some(Err(error)) => check().and(Err(error.to_string())),
        None => Ok(RecordBatch::new_empty(schema)),
    }
}

/// Estimates the memory before reading.
fn check_size(file: &Path, max_bytes: u64, max_values: u64) -> Result<(), String> {
    let mut reader = buffered(file)?;
    let (mut bytes, mut values, mut text, mut escaped) = (0_u64, 0_u64, false, false);
    loop {
        let piece = reader.fill_buf().map_err(|e| e.to_string())?;
        if piece.is_empty() {
            return Ok(());
        }
        for byte in piece {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if text => escaped = true,
                b'"' => text = !text,
                // Each value except the first of a list or an object follows a comma.
                b',' | b'[' | b'{' if !text => values += 1,
                _ => {}
            }
        }
        let read = piece.len();
        reader.consume(read);
        bytes += read as u64;
        if bytes > max_bytes {
            let most = max_bytes >> 20;
            return Err(format!("an object of columns has more than {most} MiB; {ROWS}"));
        }
        if values > max_values {
            return Err(format!("an object of columns has more than {max_values} values; {ROWS}"));
        }
    }
}

/// The rows as JSON lines, and their number.
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
    let names = values.iter().fold(0_usize, |sum, (name, _)| sum.saturating_add(name.len()));
    if names.saturating_mul(labels.len()) > MAX_NAME_BYTES {
        return Err(format!("the names of the columns are too long for so many rows; {ROWS}"));
    }
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
    fn what_would_fill_the_memory_is_refused_before_it_is_there() {
        let file = tempfile::NamedTempFile::new().unwrap();
        // Two objects, three more values in lists and objects; texts do not count.
        std::fs::write(file.path(), r#"{"a": {"0": [1, 2], "1": ",,[{\",,"}}"#).unwrap();
        assert_eq!(check_size(file.path(), 100, 5), Ok(()));
        let error = check_size(file.path(), 100, 4).unwrap_err();
        assert!(error.starts_with("an object of columns has more than 4 values; write"), "{error}");
        let error = check_size(file.path(), 10, 5).unwrap_err();
        assert!(error.contains("more than 0 MiB"), "{error}");
        // 300 kB that would become 1.1 GB.
        let rows: Vec<String> = (0..4_000).map(|row| format!("\"{row}\":1")).collect();
        let error = read_text(&format!("{{\"{}\":{{{}}}}}", "n".repeat(270_000), rows.join(",")));
        assert!(error.unwrap_err().starts_with("the names of the columns are too long"));
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
            (
                r#"{"a": {"0": 1, "1": "x"}}"#,
                "row 2: the column `a` is a text, and on row 1 it is a number",
            ),
        ] {
            let error = read_text(text).unwrap_err();
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
