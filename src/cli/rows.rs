//! Writes rows to a terminal, a file or a pipe, in the chosen format. Works batch by batch, except
//! for tables for people, whose columns are as wide as their widest cell.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ipc::writer::StreamWriter;
use clap::{Args, ValueEnum};
use datafusion::dataframe::DataFrame;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use parquet::arrow::ArrowWriter;
use parquet::errors::ParquetError;

use super::context::{Exit, Failure, cannot_write, check_suffix, fail, failed, print};
use super::screen::{self, has_failed};
use galeras_base::scratch::WholeFile;
use galeras_display::{TableFormat, TableStyle, TableWriter, write_table};
use galeras_operator::plain_message;

/// How rows are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum RowFormat {
    /// A table for people, cropped to the terminal.
    #[default]
    Table,
    /// One JSON object per line.
    Json,
    /// Comma-separated values; lists and structs are JSON in their cells.
    Csv,
    /// A Parquet file.
    Parquet,
    /// An Arrow IPC stream, as `pyarrow.ipc.open_stream` and `polars.read_ipc_stream` read it.
    Arrow,
}

/// The destination and format of rows.
#[derive(Args)]
pub(super) struct OutArgs {
    /// How the rows are written (default: as the suffix of the file, else as a table).
    #[arg(long, value_enum)]
    pub(super) format: Option<RowFormat>,
    /// A file to write to: .csv, .jsonl, .parquet, .arrow or .txt.
    #[arg(short, long, value_name = "PATH")]
    pub(super) output: Option<PathBuf>,
}

/// `--rows all`.
pub(super) const ALL_ROWS: usize = usize::MAX;

/// Reads the value of `--rows`.
pub(super) fn row_limit(text: &str) -> Result<usize, String> {
    let wrong = |_| "give a number of rows, or `all`".to_string();
    if text == "all" { Ok(ALL_ROWS) } else { text.parse().map_err(wrong) }
}

/// The suffixes of files, with their formats.
const SUFFIXES: &[(&str, RowFormat)] = &[
    ("csv", RowFormat::Csv),
    ("jsonl", RowFormat::Json),
    ("json", RowFormat::Json),
    ("parquet", RowFormat::Parquet),
    ("arrow", RowFormat::Arrow),
    ("txt", RowFormat::Table),
];

impl OutArgs {
    /// The given format, or else that of the file's suffix.
    pub(super) fn format(&self) -> RowFormat {
        let suffix = self.output.as_ref().and_then(|path| path.extension());
        let of_suffix = |suffix: &OsStr| {
            let known = SUFFIXES.iter().find(|(known, _)| suffix == *known);
            known.map(|(_, format)| *format)
        };
        self.format.or_else(|| suffix.and_then(of_suffix)).unwrap_or_default()
    }

    /// Refuses to print a binary format on a terminal, or to write a file whose suffix is of another
    /// format, before anything is computed.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if let Some(path) = &self.output {
            // Any text may be .txt.
            let fits = |(suffix, format): &(&'static str, RowFormat)| {
                (*suffix == "txt" || self.format.is_none_or(|given| given == *format))
                    .then_some(*suffix)
            };
            check_suffix(path, &SUFFIXES.iter().filter_map(fits).collect::<Vec<_>>())?;
        }
        let name = match self.format() {
            RowFormat::Parquet => "a Parquet file",
            RowFormat::Arrow => "an Arrow stream",
            RowFormat::Table | RowFormat::Json | RowFormat::Csv => return Ok(()),
        };
        if self.output.is_some() || !screen::stdout_is_terminal() {
            return Ok(());
        }
        let message = format!("{name} is not for a terminal; add -o PATH, or pipe it to a program");
        Err(fail(message, Exit::Invalid))
    }
}

/// The rows of tables with the same columns, one table after the other.
pub(super) struct TableRows {
    pub(super) schema: SchemaRef,
    tables: VecDeque<DataFrame>,
    current: Option<SendableRecordBatchStream>,
    left: Option<usize>,
}

impl TableRows {
    /// The rows of at least one table, at most `limit` of them.
    pub(super) fn new(tables: Vec<DataFrame>, limit: Option<usize>) -> Self {
        let schema = match tables.first() {
            Some(df) => Arc::new(df.schema().as_arrow().clone()),
            None => Arc::new(arrow::datatypes::Schema::empty()),
        };
        Self { schema, tables: tables.into(), current: None, left: limit }
    }

    /// The next rows; a table is only opened when needed.
    pub(super) async fn next(&mut self) -> Result<Option<RecordBatch>, DataFusionError> {
        loop {
            if self.left == Some(0) {
                return Ok(None);
            }
            if self.current.is_none() {
                let Some(mut table) = self.tables.pop_front() else { return Ok(None) };
                if let Some(left) = self.left {
                    table = table.limit(0, Some(left))?;
                }
                self.current = Some(table.execute_stream().await?);
            }
            let Some(stream) = &mut self.current else { return Ok(None) };
            match stream.next().await {
                None => self.current = None,
                Some(batch) => {
                    let batch = batch?;
                    if let Some(left) = &mut self.left {
                        *left = left.saturating_sub(batch.num_rows());
                    }
                    return Ok(Some(batch));
                }
            }
        }
    }
}

enum RowsError {
    /// They could not be read or computed.
    Rows(DataFusionError),
    /// They could not be written.
    Write(io::Error),
}

impl From<DataFusionError> for RowsError {
    fn from(error: DataFusionError) -> Self {
        Self::Rows(error)
    }
}

impl From<io::Error> for RowsError {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

impl From<ParquetError> for RowsError {
    fn from(error: ParquetError) -> Self {
        Self::Write(io::Error::other(error))
    }
}

impl From<ArrowError> for RowsError {
    fn from(error: ArrowError) -> Self {
        match error {
            ArrowError::IoError(_, source) => Self::Write(source),
            other => Self::Write(io::Error::other(other)),
        }
    }
}

/// Writes the rows to their destination; the exit reports success or failure.
pub(super) async fn write_rows(
    rows: TableRows,
    out: &OutArgs,
    style: TableStyle,
) -> Result<Exit, Failure> {
    let written = match &out.output {
        Some(path) => to_file(rows, path, out.format(), style).await,
        None => to_stdout(rows, out.format(), style).await,
    };
    exit_of(written, out)
}

/// The same for an existing text.
pub(super) fn write_text(text: &str, out: &OutArgs) -> Result<Exit, Failure> {
    match &out.output {
        None => print(text),
        Some(path) => exit_of(text_to_file(text, path).map_err(RowsError::Write), out),
    }
}

fn exit_of(written: Result<(), RowsError>, out: &OutArgs) -> Result<Exit, Failure> {
    match written {
        Ok(()) => Ok(Exit::Done),
        Err(RowsError::Rows(error)) => Err(failed(plain_message(&error))),
        Err(RowsError::Write(e)) if e.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Done),
        // The rows caused the error, not the destination.
        Err(RowsError::Write(e)) if e.kind() == io::ErrorKind::InvalidData => Err(failed(e)),
        Err(RowsError::Write(e)) => match &out.output {
            Some(path) => Err(cannot_write(path)(e)),
            // Reported when the program ends, unless the reader has gone away.
            None if has_failed() => Ok(Exit::Done),
            None => Err(fail(format!("cannot write standard output: {e}"), Exit::Disk)),
        },
    }
}

async fn to_stdout(
    rows: TableRows,
    format: RowFormat,
    mut style: TableStyle,
) -> Result<(), RowsError> {
    let stdout: Box<dyn Write + Send> = match format {
        RowFormat::Table => Box::new(screen::stdout()),
        // Data for programs is not escaped, except on a terminal.
        _ => screen::data_stdout(),
    };
    style.width = Some(screen::stdout_width().unwrap_or(80));
    let mut out = BufWriter::new(stdout);
    write(rows, &mut out, format, &style).await?;
    out.flush()?;
    Ok(())
}

/// Writes a file that replaces the one at `path` when it is complete. Devices and pipes, such as
/// `/dev/stdout`, are written directly.
async fn to_file(
    rows: TableRows,
    path: &Path,
    format: RowFormat,
    style: TableStyle,
) -> Result<(), RowsError> {
    if std::fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        let file = File::options().write(true).open(path)?;
        return to_open_file(rows, &file, format, &style).await;
    }
    // Keeps a link.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let whole = WholeFile::beside(&path)?;
    to_open_file(rows, whole.file(), format, &style).await?;
    whole.finish(&path)?;
    Ok(())
}

fn text_to_file(text: &str, path: &Path) -> io::Result<()> {
    if std::fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        let mut file = File::options().write(true).open(path)?;
        return file.write_all(text.as_bytes());
    }
    let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    WholeFile::write(&path, text.as_bytes())
}

async fn to_open_file(
    rows: TableRows,
    file: &File,
    format: RowFormat,
    style: &TableStyle,
) -> Result<(), RowsError> {
    let mut out = BufWriter::new(file);
    write(rows, &mut out, format, style).await?;
    out.flush()?;
    Ok(())
}

async fn write(
    mut rows: TableRows,
    out: &mut (impl Write + Send),
    format: RowFormat,
    style: &TableStyle,
) -> Result<(), RowsError> {
    let schema = Arc::clone(&rows.schema);
    match format {
        RowFormat::Table => {
            let mut batches = Vec::new();
            while let Some(batch) = rows.next().await? {
                batches.push(batch);
            }
            write_table(out, &batches, &schema, style)?;
        }
        RowFormat::Json | RowFormat::Csv => {
            let format =
                if format == RowFormat::Csv { TableFormat::Csv } else { TableFormat::Json };
            let mut writer = TableWriter::new(out, schema, format)?;
            while let Some(batch) = rows.next().await? {
                writer.write(&batch)?;
            }
            writer.finish()?;
        }
        RowFormat::Parquet => {
            let mut writer = ArrowWriter::try_new(out, schema, None)?;
            while let Some(batch) = rows.next().await? {
                writer.write(&batch)?;
            }
            writer.close()?;
        }
        RowFormat::Arrow => {
            let mut writer = StreamWriter::try_new(out, &schema)?;
            while let Some(batch) = rows.next().await? {
                writer.write(&batch)?;
            }
            writer.finish()?;
        }
    }
    Ok(())
}
