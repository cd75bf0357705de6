//! The formats of a file: detects them, checks files, and opens them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use datafusion::dataframe::DataFrame;
use datafusion::error::DataFusionError;
use datafusion::execution::context::SessionContext;
use datafusion::prelude::{JsonReadOptions, ParquetReadOptions};
use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::csv_table::{csv_schema, csv_table};
use super::json_values::{check_values, has_floats};
use super::types::{DeclaredTypes, with_declared};
use super::{json_scan, pandas};
use galeras_sql::session::check_parquet;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display)]
#[serde(rename_all = "lowercase")]
pub(super) enum FileFormat {
    /// Apache Parquet.
    Parquet,
    /// One JSON object per line.
    #[strum(to_string = "JSON lines")]
    Jsonl,
    /// Comma-separated values with a header line.
    #[strum(to_string = "CSV")]
    Csv,
    /// A JSON list of objects, or an object of columns as pandas writes it.
    #[strum(to_string = "JSON")]
    Json,
}

impl FileFormat {
    pub(super) fn of_suffix(name: &str) -> Option<Self> {
        // Drops the query of an address; in a file name these characters are ordinary.
        let address = name.starts_with("http://") || name.starts_with("https://");
        let name = name.split(['?', '#']).next().filter(|_| address).unwrap_or(name);
        match Path::new(name).extension()?.to_str()?.to_lowercase().as_str() {
            "parquet" | "pq" => Some(Self::Parquet),
            "jsonl" | "ndjson" => Some(Self::Jsonl),
            "csv" => Some(Self::Csv),
            "json" => Some(Self::Json),
            _ => None,
        }
    }
}

/// Finds problems that the readers below ignore or crash on: a list that does not end, or has text
/// after it, an object with two equal keys, values nested too deep, and impossible metadata in
/// Parquet.
pub(super) fn check_whole(file: &Path, format: FileFormat) -> Result<(), String> {
    match format {
        FileFormat::Json => {
            // Rows in a list, or columns in an object.
            json_scan::scan(buffered(file)?, 2)?;
            if pandas::is_object(file) {
                return Ok(());
            }
            let rows: Vec<BTreeMap<String, IgnoredAny>> = serde_json::from_reader(buffered(file)?)
                .map_err(|e| format!("not a JSON list: {e}"))?;
            if rows.is_empty() { Err("the list is empty".into()) } else { Ok(()) }
        }
        // Inferring the schema reads the whole file anyway.
        FileFormat::Csv => Ok(()),
        FileFormat::Jsonl => json_scan::scan(buffered(file)?, 1),
        FileFormat::Parquet => check_parquet(file),
    }
}

fn buffered(file: &Path) -> Result<BufReader<File>, String> {
    Ok(BufReader::with_capacity(1 << 16, File::open(file).map_err(|e| e.to_string())?))
}

/// The file with its types: declared ones, and others inferred from all of it.
///
/// # Errors
/// The problem with the file.
pub(super) async fn open(
    session: &SessionContext,
    file: &Path,
    format: FileFormat,
    declared: &DeclaredTypes,
) -> Result<DataFrame, DataFusionError> {
    let path = file.to_string_lossy();
    let path = path.as_ref();
    // A fetched file has no suffix; its format is already known.
    let suffix = file.extension().map(|e| format!(".{}", e.to_string_lossy())).unwrap_or_default();
    match format {
        FileFormat::Parquet => {
            let options = ParquetReadOptions { file_extension: &suffix, ..Default::default() };
            session.read_parquet(path, options).await
        }
        FileFormat::Csv => {
            let schema = csv_schema(file, declared).map_err(DataFusionError::Execution)?;
            session.read_table(csv_table(file, schema)?)
        }
        FileFormat::Json if pandas::is_object(file) => {
            session.read_batch(pandas::read(file, declared).map_err(DataFusionError::Execution)?)
        }
        FileFormat::Jsonl | FileFormat::Json => {
            let options = JsonReadOptions {
                file_extension: &suffix,
                schema_infer_max_records: usize::MAX,
                newline_delimited: format == FileFormat::Jsonl,
                ..Default::default()
            };
            let lines = format == FileFormat::Jsonl;
            let check = || {
                let values = buffered(file).and_then(|file| check_values(file, lines, declared));
                values.map_err(DataFusionError::Execution)
            };
            let inferred = match session.read_json(path, options.clone()).await {
                Ok(inferred) => inferred,
                // The reader reports the problem, but with line numbers of its current batch.
                Err(error) => return check().and(Err(error)),
            };
            let schema = inferred.schema().as_arrow();
            if declared.is_empty() {
                if has_floats(schema) {
                    check()?;
                }
                return Ok(inferred);
            }
            check()?;
            let schema = with_declared(schema, declared);
            session.read_json(path, JsonReadOptions { schema: Some(&schema), ..options }).await
        }
    }
}
