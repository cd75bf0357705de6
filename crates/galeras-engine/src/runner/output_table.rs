//! Writes the table of an output in its file format, with its origin.

use std::io::{BufWriter, Write};
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use super::error::RunError;
use super::input::open;
use super::key::{StepManifests, artifact};
use crate::plan::{OutputFormat, PictureFormat, Plan, PlannedOutput, TableRef, cell_suffix};
use galeras_base::digest::{Digest, table_digest};
use galeras_display::{TableFormat, TableWriter};
use galeras_operator::table_digest::TableHasher;
use galeras_operator::{StepError, is_virtual};
use galeras_sql::session::{copy_with_metadata, key_values, session, sorted_by_key};
use galeras_store::{OutputOrigin, PortArtifact, Store};

pub(super) fn origin(plan: &Plan, output: &PlannedOutput, table: Digest) -> OutputOrigin {
    let tables = &output.input.tables;
    let name = |table: &TableRef| {
        let name = &plan.steps[table.step].name;
        let cell = cell_suffix(&table.cell);
        match name.strip_suffix(&cell).filter(|_| output.input.united && !cell.is_empty()) {
            Some(step) => format!("{step}[*]"),
            None => name.clone(),
        }
    };
    let mut steps: Vec<String> = tables.iter().map(name).collect();
    steps.dedup();
    OutputOrigin {
        workflow: plan.name.clone(),
        file: plan.file_name(),
        step: steps.join(", "),
        port: tables.first().map_or_else(String::new, |table| table.port.to_string()),
        table,
        version: env!("CARGO_PKG_VERSION").to_string(),
    }
}

/// The stored table of an output, if it needs no more columns: no united cells, no columns that are
/// filled in on reading.
fn stored_as_it_is<'a>(
    plan: &Plan,
    output: &PlannedOutput,
    done: &'a StepManifests,
) -> Option<&'a PortArtifact> {
    let [table] = output.input.tables.as_slice() else { return None };
    let port = plan.steps[table.step].port(table.port)?;
    let filled = port.table.schema.fields().iter().any(|field| is_virtual(field));
    if output.input.united || filled || output.shape.is_some() {
        None
    } else {
        artifact(done, table.step, table.port)
    }
}

/// The content of an output file.
pub struct ExportedTable {
    /// Its origin.
    pub origin: OutputOrigin,
    /// Its number of rows, if it differs from the table's.
    pub rows: Option<u64>,
}

/// Writes the rows of the output in key order, and returns their origin.
///
/// # Errors
/// If the table cannot be read, does not have the rows that the format needs, or the file fails.
pub async fn export_table(
    plan: &Plan,
    output: &PlannedOutput,
    store: &Store,
    done: &StepManifests,
    file: impl Write + Send,
) -> Result<ExportedTable, RunError> {
    let stored = stored_as_it_is(plan, output, done);
    if let (OutputFormat::Parquet, Some(stored)) = (&output.format, stored) {
        let missing = || StepError::new("its stored table is missing");
        let blob = store.open_blob(&stored.blob).await?.ok_or_else(missing)?;
        let origin = origin(plan, output, stored.digest);
        let mut out = BufWriter::new(file);
        copy_with_metadata(&blob, &mut out, &origin.to_pairs())?;
        out.flush()?;
        return Ok(ExportedTable { origin, rows: None });
    }
    let session = session(1);
    let df = open(&session, store, plan, &output.input, done)?;
    let df = match output.shape {
        None => sorted_by_key(df, &output.input.schema.key)?,
        Some(shape) => shape.apply(&session, df).await?,
    };
    let schema: SchemaRef = Arc::new(df.schema().as_arrow().clone());
    let mut rows = OutputRows {
        hasher: stored.is_none().then(|| TableHasher::new(&schema)),
        count: 0,
        stream: df.execute_stream().await?,
    };
    let origin = |rows: OutputRows| {
        let count = output.shape.map(|_| rows.count);
        let computed = rows.hasher.map(|hasher| {
            let (columns, rows) = hasher.finish();
            table_digest(&columns, rows)
        });
        let table = computed.or(stored.map(|stored| stored.digest));
        let missing = || StepError::new("its table has no digest");
        let origin = origin(plan, output, table.ok_or_else(missing)?);
        Ok::<_, RunError>(ExportedTable { origin, rows: count })
    };
    let mut out = BufWriter::new(file);
    let exported = match &output.format {
        OutputFormat::Text { column } => {
            let text = rows.only_text(schema.index_of(column)?).await?;
            out.write_all(text.as_bytes())?;
            origin(rows)?
        }
        OutputFormat::Picture { column, format } => {
            let svg = rows.only_text(schema.index_of(column)?).await?;
            let picture = match format {
                PictureFormat::Svg => Ok(galeras_figures::embed(&svg).into_bytes()),
                PictureFormat::Png => galeras_figures::png(&svg, DOTS_PER_INCH),
                PictureFormat::Pdf => galeras_figures::pdf(&svg),
            };
            out.write_all(&picture.map_err(|error| RunError::Rows(error.to_string()))?)?;
            origin(rows)?
        }
        OutputFormat::Parquet => {
            let level = ZstdLevel::try_new(1).unwrap_or_default();
            let properties = WriterProperties::builder()
                .set_compression(Compression::ZSTD(level))
                .set_created_by("galeras".to_string())
                .build();
            let mut writer = ArrowWriter::try_new(&mut out, schema, Some(properties))?;
            while let Some(batch) = rows.next().await? {
                writer.write(&batch)?;
            }
            let exported = origin(rows)?;
            for pair in key_values(&exported.origin.to_pairs()) {
                writer.append_key_value_metadata(pair);
            }
            writer.close()?;
            exported
        }
        OutputFormat::Jsonl | OutputFormat::Json | OutputFormat::Csv => {
            let format = match &output.format {
                OutputFormat::Csv => TableFormat::Csv,
                OutputFormat::Json => TableFormat::JsonArray,
                _ => TableFormat::Json,
            };
            let mut writer = TableWriter::new(&mut out, schema, format)?;
            while let Some(batch) = rows.next().await? {
                writer.write(&batch)?;
            }
            writer.finish()?;
            origin(rows)?
        }
    };
    out.flush()?;
    Ok(exported)
}

/// The rows of an output, hashed while they pass unless the digest is known.
struct OutputRows {
    stream: SendableRecordBatchStream,
    hasher: Option<TableHasher>,
    count: u64,
}

/// The resolution of pixel figures that journals ask for.
const DOTS_PER_INCH: f64 = 300.0;

impl OutputRows {
    /// The text in this column of a table with one row.
    async fn only_text(&mut self, at: usize) -> Result<String, RunError> {
        let (mut texts, mut only) = (0, String::new());
        while let Some(batch) = self.next().await? {
            for text in batch.column(at).as_string::<i32>().iter().flatten() {
                texts += 1;
                only = text.to_string();
            }
        }
        if texts != 1 {
            let message = format!("it is the text of one row, but the table has {texts} texts");
            return Err(RunError::Rows(message));
        }
        Ok(only)
    }

    async fn next(&mut self) -> Result<Option<RecordBatch>, RunError> {
        let Some(batch) = self.stream.next().await.transpose()? else { return Ok(None) };
        if let Some(hasher) = &mut self.hasher {
            hasher.update(&batch).map_err(|error| StepError::new(error.to_string()))?;
        }
        self.count += batch.num_rows() as u64;
        Ok(Some(batch))
    }
}
