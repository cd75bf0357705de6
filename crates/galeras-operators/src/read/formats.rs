//! The formats of a file: detects them, checks files, and opens them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::sync::Arc;

use datafusion::common::exec_datafusion_err;
use datafusion::dataframe::DataFrame;
use datafusion::error::DataFusionError;
use datafusion::execution::context::SessionContext;
use datafusion::object_store::ObjectStoreExt as _;
use datafusion::object_store::memory::InMemory;
use datafusion::object_store::path::Path as ObjectPath;
use datafusion::prelude::{JsonReadOptions, ParquetReadOptions};
use futures::TryStreamExt as _;
use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use url::Url;

use super::csv_rows::CsvDialect;
use super::csv_table::{csv_schema, csv_table};
use super::json_values::{check_values, has_floats};
use super::types::{Declared, DeclaredTypes, with_declared};
use super::{json_scan, pandas};
use galeras_base::digest::Digest;
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
        let name = Path::new(name);
        let suffix = name.extension()?.to_str()?.to_lowercase();
        if matches!(suffix.as_str(), "gz" | "zst") {
            let inner = Self::of_suffix(name.file_stem()?.to_str()?);
            return inner.filter(|inner| *inner != Self::Parquet);
        }
        match suffix.as_str() {
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

/// The bytes of a file in which its format shows.
const START_BYTES: usize = 4096;

/// Finds text files of another format than the one they are read as, most of which would be a table
/// of one strange column. `has_delimiter` if the user named the delimiter.
pub(super) fn check_start(
    file: &Path,
    format: FileFormat,
    has_delimiter: bool,
) -> Result<(), String> {
    if format == FileFormat::Parquet {
        return Ok(());
    }
    let mut reader = buffered(file)?;
    let start = reader.fill_buf().map_err(|e| e.to_string())?;
    let start = &start[..start.len().min(START_BYTES)];
    if start.starts_with(b"PK\x03\x04") {
        return Err("it is a zip archive, such as an Excel file: save its table as CSV".into());
    }
    if start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff") {
        return Err("it is UTF-16: save it as UTF-8".into());
    }
    let text = String::from_utf8_lossy(start);
    let text = text.trim_start();
    let begins = |tag: &str| text.get(..tag.len()).is_some_and(|t| t.eq_ignore_ascii_case(tag));
    if begins("<!doctype") || begins("<html") {
        return Err("it is a web page: fetch the file that the page shows (on GitHub, Raw)".into());
    }
    if format == FileFormat::Jsonl && text.starts_with('[') {
        return Err("it is a JSON list, not one object per line: add `format: json`".into());
    }
    let mut lines = text.lines();
    let (header, row) = (lines.next().unwrap_or_default(), lines.next());
    let separates = |sign: &char| {
        let count = |line: &str| line.matches(*sign).count();
        count(header) > 0 && row.is_none_or(|row| count(row) == count(header))
    };
    let other = [';', '\t', '|'].into_iter().find(separates);
    match other.filter(|_| format == FileFormat::Csv && !has_delimiter) {
        Some(sign) if !header.contains([',', '"']) => {
            let sign = sign.escape_default();
            Err(format!(
                "its header has no comma: add `delimiter: \"{sign}\"`, or `delimiter: \",\"` if it is \
                 one column"
            ))
        }
        _ => Ok(()),
    }
}

/// The mark that Windows programs write before text.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The text of a file, after its byte order mark if it has one.
pub(super) fn buffered(file: &Path) -> Result<BufReader<File>, String> {
    text(file).map(|(reader, _)| reader).map_err(|e| e.to_string())
}

/// The text of a file, and true if it had a byte order mark.
fn text(file: &Path) -> std::io::Result<(BufReader<File>, bool)> {
    let mut reader = BufReader::with_capacity(1 << 16, File::open(file)?);
    let marked = reader.fill_buf()?.starts_with(BYTE_ORDER_MARK);
    if marked {
        reader.consume(BYTE_ORDER_MARK.len());
    }
    Ok((reader, marked))
}

/// The address at which DataFusion finds the file and no other: it takes a path as a pattern. The
/// readers of JSON do not know the byte order mark, so a text with one is in memory without it.
async fn address(session: &SessionContext, file: &Path) -> Result<String, DataFusionError> {
    let file = file.canonicalize()?;
    let url = Url::from_file_path(&file)
        .map_err(|()| exec_datafusion_err!("its path cannot be written as an address"))?;
    let (mut reader, marked) = text(&file)?;
    if !marked {
        return Ok(url.into());
    }
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest)?;
    let (store, name) = (InMemory::new(), "text");
    store.put(&ObjectPath::from(name), rest.into()).await?;
    let base = format!("memory://{}", Digest::of(url.as_str().as_bytes()));
    let base = Url::parse(&base).map_err(|error| exec_datafusion_err!("{error}"))?;
    session.register_object_store(&base, Arc::new(store));
    Ok(format!("{base}/{name}"))
}

/// Reads a JSON file to its end, since its types are inferred from values of any kind: a column of
/// numbers and texts is taken for texts.
///
/// # Errors
/// The problem with the file, with its line.
pub(super) async fn check_readable(
    rows: &DataFrame,
    file: &Path,
    format: FileFormat,
    declared: &DeclaredTypes,
) -> Result<(), String> {
    let lines = match format {
        FileFormat::Jsonl => true,
        FileFormat::Json if !pandas::is_object(file) => false,
        _ => return Ok(()),
    };
    let read = async {
        let mut batches = rows.clone().execute_stream().await?;
        while batches.try_next().await?.is_some() {}
        Ok::<(), DataFusionError>(())
    };
    match read.await {
        Ok(()) => Ok(()),
        Err(error) => buffered(file)
            .and_then(|file| check_values(file, lines, declared))
            .and(Err(galeras_operator::plain_message(&error))),
    }
}

/// The file with its types: declared ones, and others inferred from all of it. `optional` columns of
/// JSON that it does not have are null.
///
/// # Errors
/// The problem with the file.
pub(super) async fn open(
    session: &SessionContext,
    file: &Path,
    format: FileFormat,
    dialect: &CsvDialect,
    declared: &Declared,
) -> Result<DataFrame, DataFusionError> {
    let Declared { types: declared, optional, .. } = declared;
    match format {
        FileFormat::Parquet => {
            // The format is known, whatever the suffix.
            let options = ParquetReadOptions { file_extension: "", ..Default::default() };
            session.read_parquet(address(session, file).await?, options).await
        }
        FileFormat::Csv => {
            let schema = csv_schema(file, dialect, declared).map_err(DataFusionError::Execution)?;
            session.read_table(csv_table(file, dialect, schema)?)
        }
        FileFormat::Json if pandas::is_object(file) => {
            session.read_batch(pandas::read(file, declared).map_err(DataFusionError::Execution)?)
        }
        FileFormat::Jsonl | FileFormat::Json => {
            let path = address(session, file).await?;
            let options = JsonReadOptions {
                file_extension: "",
                schema_infer_max_records: usize::MAX,
                newline_delimited: format == FileFormat::Jsonl,
                ..Default::default()
            };
            let lines = format == FileFormat::Jsonl;
            let check = || {
                let values = buffered(file).and_then(|file| check_values(file, lines, declared));
                values.map_err(DataFusionError::Execution)
            };
            let inferred = match session.read_json(&path, options.clone()).await {
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
            let schema = with_declared(schema, declared, optional);
            session.read_json(&path, JsonReadOptions { schema: Some(&schema), ..options }).await
        }
    }
}
