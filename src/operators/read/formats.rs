//! The formats of a file: what tells them apart, what is wrong with a file, how it is opened.

use std::collections::{BTreeMap, HashSet};
use std::io::Read as _;
use std::path::Path;

use arrow::datatypes::Schema;
use datafusion::dataframe::DataFrame;
use datafusion::execution::context::SessionContext;
use datafusion::prelude::{CsvReadOptions, JsonReadOptions, ParquetReadOptions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{json_scan, pandas};
use crate::session::{MAX_COLUMNS, check_parquet, check_rows, too_many_columns, two_columns};

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

impl std::fmt::Display for FileFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Parquet => "Parquet",
            Self::Jsonl => "JSON lines",
            Self::Csv => "CSV",
            Self::Json => "JSON",
        })
    }
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

/// Finds what the readers below pass over or fall over: a list that does not end, or does not
/// end the file, a quote that is never closed, two columns of one name, too many columns, values
/// nested too deep, and Parquet that says what cannot be.
pub(super) fn check_whole(file: &Path, format: FileFormat) -> Result<(), String> {
    let open = || std::fs::File::open(file).map_err(|e| e.to_string());
    let buffered = || Ok::<_, String>(std::io::BufReader::with_capacity(1 << 16, open()?));
    match format {
        FileFormat::Json => {
            // Rows in a list, or columns in an object.
            json_scan::scan(buffered()?, 2)?;
            if pandas::is_object(file) {
                return pandas::read(file).map(drop);
            }
            let rows: Vec<IgnoredRow> = serde_json::from_reader(buffered()?)
                .map_err(|e| format!("not a JSON list: {e}"))?;
            if rows.is_empty() { Err("the list is empty".into()) } else { Ok(()) }
        }
        FileFormat::Csv => {
            let mut reader = open()?;
            let mut buffer = vec![0; 1 << 16];
            let (mut quotes, mut empty) = (0_u64, true);
            loop {
                let n = reader.read(&mut buffer).map_err(|e| e.to_string())?;
                if n == 0 {
                    break;
                }
                empty = false;
                quotes += buffer[..n].iter().filter(|b| **b == b'"').count() as u64;
            }
            match (empty, quotes % 2) {
                (true, _) => Err("the file is empty".into()),
                (_, 1) => Err("a quoted value is never closed".into()),
                _ => check_header(open()?),
            }
        }
        FileFormat::Jsonl => json_scan::scan(buffered()?, 1),
        FileFormat::Parquet => check_parquet(file),
    }
}

/// Finds, before the rows of a file are read, what [`check_whole`] would need too long for.
pub(super) fn check_before_rows(file: &Path, format: FileFormat) -> Result<(), String> {
    match format {
        FileFormat::Parquet => check_rows(file),
        FileFormat::Csv | FileFormat::Jsonl | FileFormat::Json => Ok(()),
    }
}

/// The most bytes of the line with the names of columns.
const MAX_HEADER_BYTES: u64 = 64 << 20;

/// Two columns of one name would be merged into one.
fn check_header(file: std::fs::File) -> Result<(), String> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(file.take(MAX_HEADER_BYTES));
    let mut header = csv::ByteRecord::new();
    reader.read_byte_record(&mut header).map_err(|e| e.to_string())?;
    if header.len() > MAX_COLUMNS {
        return Err(too_many_columns(header.len()));
    }
    let mut names = HashSet::new();
    match header.iter().find(|name| !names.insert(*name)) {
        Some(twice) => Err(two_columns(&String::from_utf8_lossy(twice))),
        None => Ok(()),
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
