//! The formats of a file: what tells them apart, what is wrong with a file, how it is opened.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use arrow::datatypes::Schema;
use datafusion::dataframe::DataFrame;
use datafusion::execution::context::SessionContext;
use datafusion::prelude::{CsvReadOptions, JsonReadOptions, ParquetReadOptions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pandas;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum FileFormat {
    /// Apache Parquet.
    Parquet,
    /// One JSON object per line.
    Jsonl,
    /// Comma-separated values with a header line.
    Csv,
    /// A JSON list of objects, or an object of columns as pandas writes it.
    Json,
}

impl FileFormat {
    pub(super) fn of_suffix(name: &str) -> Option<Self> {
        let name = name.split(['?', '#']).next().unwrap_or(name);
        match Path::new(name).extension()?.to_str()?.to_lowercase().as_str() {
            "parquet" | "pq" => Some(Self::Parquet),
            "jsonl" | "ndjson" => Some(Self::Jsonl),
            "csv" => Some(Self::Csv),
            "json" => Some(Self::Json),
            _ => None,
        }
    }
}

/// Finds what the readers below pass over: a list that does not end, or does not end the
/// file, and a quote that is never closed.
pub(super) fn check_whole(file: &Path, format: FileFormat) -> Result<(), String> {
    let open = || std::fs::File::open(file).map_err(|e| e.to_string());
    match format {
        FileFormat::Json if pandas::is_object(file) => pandas::read(file).map(drop),
        FileFormat::Json => {
            let reader = std::io::BufReader::new(open()?);
            let rows: Vec<IgnoredRow> =
                serde_json::from_reader(reader).map_err(|e| format!("not a JSON list: {e}"))?;
            if rows.is_empty() { Err("the list is empty".into()) } else { Ok(()) }
        }
        FileFormat::Csv => {
            let mut reader = std::io::BufReader::new(open()?);
            let mut buffer = vec![0; 1 << 16];
            let (mut quotes, mut bytes) = (0usize, 0usize);
            loop {
                let n = reader.read(&mut buffer).map_err(|e| e.to_string())?;
                if n == 0 {
                    break;
                }
                bytes += n;
                quotes += buffer[..n].iter().filter(|b| **b == b'"').count();
            }
            match (bytes, quotes % 2) {
                (0, _) => Err("the file is empty".into()),
                (_, 1) => Err("a quoted value is never closed".into()),
                _ => check_header(open()?),
            }
        }
        FileFormat::Jsonl | FileFormat::Parquet => Ok(()),
    }
}

/// Two columns of one name would be merged into one.
fn check_header(file: std::fs::File) -> Result<(), String> {
    use std::io::BufRead as _;
    let mut header = String::new();
    let read = std::io::BufReader::new(file).take(1 << 20).read_line(&mut header);
    read.map_err(|e| e.to_string())?;
    // Quoted names may contain commas; the reader then finds what is wrong with the rows.
    if header.contains('"') {
        return Ok(());
    }
    let names: Vec<&str> = header.trim().split(',').collect();
    let twice = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name));
    match twice {
        Some((_, name)) => Err(format!("two columns are called `{name}`")),
        _ => Ok(()),
    }
}

/// A JSON object whose values do not matter.
type IgnoredRow = BTreeMap<String, serde::de::IgnoredAny>;

/// The schema of a file of comma-separated values, inferred from all of it. (DataFusion infers it
/// from pieces that end at line feeds, also at those within quotes.)
fn csv_schema(file: &Path) -> Result<Schema, datafusion::error::DataFusionError> {
    let reader = std::io::BufReader::new(std::fs::File::open(file)?);
    let format = arrow::csv::reader::Format::default().with_header(true);
    Ok(format.infer_schema(reader, None)?.0)
}

/// Opens the file with its schema inferred from all of it.
pub(super) async fn open(
    session: &SessionContext,
    file: &Path,
    format: FileFormat,
) -> Result<DataFrame, datafusion::error::DataFusionError> {
    let path = file.to_string_lossy();
    let path = path.as_ref();
    // A fetched file has no suffix; the format is known by now.
    let suffix = file.extension().map(|e| format!(".{}", e.to_string_lossy())).unwrap_or_default();
    match format {
        FileFormat::Parquet => {
            let options = ParquetReadOptions { file_extension: &suffix, ..Default::default() };
            session.read_parquet(path, options).await
        }
        FileFormat::Csv => {
            let schema = csv_schema(file)?;
            let options = CsvReadOptions {
                schema: Some(&schema),
                file_extension: &suffix,
                newlines_in_values: true,
                ..Default::default()
            };
            session.read_csv(path, options).await
        }
        FileFormat::Json if pandas::is_object(file) => {
            let failed = datafusion::error::DataFusionError::Execution;
            session.read_batch(pandas::read(file).map_err(failed)?)
        }
        FileFormat::Jsonl | FileFormat::Json => {
            let options = JsonReadOptions {
                file_extension: &suffix,
                schema_infer_max_records: usize::MAX,
                newline_delimited: format == FileFormat::Jsonl,
                ..Default::default()
            };
            session.read_json(path, options).await
        }
    }
}
