//! Output files: tables in their file formats, written only if their content has changed, and never
//! over a file from elsewhere unless the user agrees.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Seek as _, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::error::RunError;
use super::input::{blobs, open};
use super::key::{StepManifests, artifact, input_digest};
use super::lost_rows::{lost_rows, tell_lost_rows};
use super::output_place::{FileDigests, FileOrigin, place};
use crate::plan::{
    CheckKind, OutputFormat, PictureFormat, Plan, PlannedOutput, TableRef, cell_suffix,
};
use galeras_base::digest::{Digest, table_digest};
use galeras_base::scratch::{WholeFile, make_folder};
use galeras_display::{TableFormat, TableWriter, write_paper_table};
use galeras_operator::event::{EventSink, RunEvent, RunStatus};
use galeras_operator::table_digest::TableHasher;
use galeras_operator::{Reads, StepError, is_virtual};
use galeras_sql::session::{copy_with_metadata, key_values, session, sorted_by_key};
use galeras_store::{OutputOrigin, OutputRecord, PortArtifact, Store, timestamp};
use galeras_workflow::quote;

/// The version of the file formats. Increase it when the same table gives other bytes.
const OUTPUT_FORMAT: u32 = 3;

/// The options for output files.
#[derive(Clone, Debug)]
pub struct OutputOptions {
    /// The folder in which their paths start.
    pub folder: PathBuf,
    /// Replace files that the workflow did not write.
    pub overwrite: bool,
    /// Any output may have no rows, as with `rows: { min: 0 }`.
    pub allow_empty: bool,
    /// The digests of files that were read before the run.
    pub digests: Arc<FileDigests>,
}

/// An output file with the right content.
struct WrittenOutput {
    path: PathBuf,
    rows: u64,
    /// False if the file was already right.
    written: bool,
    /// The reason why its origin could not be recorded.
    unrecorded: Option<String>,
}

/// The file that a key gives.
#[derive(Serialize, Deserialize)]
struct RememberedFile {
    file: Digest,
    table: Digest,
    /// Its number of rows, if it differs from the table's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rows: Option<u64>,
}

pub(super) struct OutputWriter<'a> {
    pub(super) plan: &'a Plan,
    pub(super) store: &'a Store,
    pub(super) options: &'a OutputOptions,
    pub(super) run: &'a str,
    pub(super) done: &'a StepManifests,
}

impl OutputWriter<'_> {
    /// Writes every output whose tables exist and have enough rows, and reports lost rows.
    pub(super) async fn write_all(&self, events: &dyn EventSink) -> RunStatus {
        let mut status = RunStatus::Ok;
        let warn = |message: String| {
            tracing::warn!("{message}");
            events.send(RunEvent::Warning { step: None, message });
        };
        let there = |table: &TableRef| self.done.get(table.step).is_some_and(Option::is_some);
        let lost = lost_rows(self.plan, self.done, self.options.allow_empty);
        let is_lost = |output: &PlannedOutput| {
            let mut empty = lost.iter().flat_map(|(_, outputs)| outputs);
            empty.any(|empty| empty.name == output.name)
        };
        for output in self.plan.outputs.iter().filter(|o| o.input.tables.iter().all(there)) {
            let wrong_size = self.wrong_size(output);
            if wrong_size.is_some() || is_lost(output) {
                // As with a failed test of a step, the file of an earlier run stays.
                status = status.worse(RunStatus::AssertFailed);
                if let Some((step, message)) = wrong_size.filter(|_| !is_lost(output)) {
                    let severity = "error".to_string();
                    events.send(RunEvent::Assertion { step, severity, message });
                }
                continue;
            }
            match self.write(output).await {
                Ok(file) => {
                    events.send(RunEvent::Output {
                        output: output.name.clone(),
                        path: file.path.display().to_string(),
                        rows: file.rows,
                        written: file.written,
                    });
                    if let Some(why) = file.unrecorded {
                        let unknown = "where the file comes from is not recorded";
                        warn(format!("output {}: {unknown}: {why}", output.name));
                    }
                }
                Err(error) => {
                    warn(format!("output {}: {}", output.name, error.explained()));
                    // A folder that may not be written to is a mistake of the command.
                    let disk = error.blames_disk();
                    let failed = if disk { RunStatus::CacheFailed } else { RunStatus::Failed };
                    status = status.worse(failed);
                }
            }
        }
        tell_lost_rows(self.plan, self.store, self.done, &lost, events).await;
        status
    }

    /// The step and the message, if the output's table has too few or too many rows.
    fn wrong_size(&self, output: &PlannedOutput) -> Option<(String, String)> {
        let PlannedOutput { min_rows: min, max_rows: max, .. } = *output;
        let tables = output.input.tables.iter();
        let stored = tables.filter_map(|table| artifact(self.done, table.step, table.port));
        let rows: u64 = stored.map(|artifact| artifact.rows).sum();
        if min.is_none_or(|min| rows >= min) && max.is_none_or(|max| rows <= max) {
            return None;
        }
        let step = &self.plan.steps[output.input.tables.first()?.step];
        let (name, test) = (quote(&output.name), CheckKind::Rows { min, max });
        Some((step.name.clone(), format!("output {name}: {test}: {rows} rows")))
    }

    /// Ensures that the file of `output` has the right content.
    async fn write(&self, output: &PlannedOutput) -> Result<WrittenOutput, RunError> {
        let path = self.options.folder.join(&output.path);
        let tables = output.input.tables.iter();
        let stored = tables.filter_map(|table| artifact(self.done, table.step, table.port));
        let of_table = stored.map(|artifact| artifact.rows).sum();
        let done = |rows: Option<u64>, written, unrecorded| {
            let rows = rows.unwrap_or(of_table);
            Ok(WrittenOutput { path: path.clone(), rows, written, unrecorded })
        };
        let key = self.key(output)?;
        let there = self.options.digests.of(&path).ok();
        if let (Some(content), Some(known)) = (there, self.remembered(&key).await)
            && known.file == content
        {
            let origin = origin(self.plan, output, known.table);
            return done(known.rows, false, self.claim(output, &path, content, origin).await);
        }
        let folder = path.parent().unwrap_or(&self.options.folder);
        let failed = |e: io::Error| -> RunError {
            let error = StepError::new(format!("cannot write {}: {e}", path.display())).because(e);
            error.help("choose another folder with --out").into()
        };
        make_folder(folder).map_err(failed)?;
        let whole = WholeFile::create_in(folder).map_err(failed)?;
        let ExportedTable { origin, rows } =
            export_table(self.plan, output, self.store, self.done, whole.file()).await?;
        let content = hash(whole.path()).map_err(failed)?;
        let known = RememberedFile { file: content, table: origin.table, rows };
        if self.options.digests.of(&path).is_ok_and(|there| there == content) {
            self.remember(&key, output, &known).await;
            return done(rows, false, self.claim(output, &path, content, origin).await);
        }
        let occupant = FileOrigin::of(&path, self.store, &self.options.digests).await?;
        if let Some(objection) = occupant.objection(&origin).filter(|_| !self.options.overwrite) {
            if output.format == OutputFormat::Parquet && occupant.has_table(&origin.table) {
                return done(rows, false, None);
            }
            return Err(RunError::Occupied(format!("{}, {objection}", shown(&path))));
        }
        // The new file keeps the permissions of the old one. A link is replaced, never followed.
        if let Ok(replaced) = fs::symlink_metadata(&path)
            && replaced.is_file()
        {
            let rights = Permissions::from_mode(replaced.permissions().mode() & 0o777);
            whole.file().set_permissions(rights).map_err(failed)?;
        }
        // Recorded before the rename: a killed run must not leave a file of unknown origin.
        let unrecorded = self.record(output, &path, content, origin.clone()).await;
        if matches!(occupant, FileOrigin::Missing) && !self.options.overwrite {
            match whole.finish_new(&path) {
                // Another run has just written it, so check again who owns it.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    return Box::pin(self.write(output)).await;
                }
                finished => finished.map_err(failed)?,
            }
        } else {
            whole.finish(&path).map_err(failed)?;
        }
        self.remember(&key, output, &known).await;
        done(rows, true, unrecorded)
    }

    /// True if the file already has its content, according to the stored results.
    pub(super) async fn is_right(
        &self,
        output: &PlannedOutput,
        occupant: &FileOrigin,
    ) -> Result<bool, RunError> {
        let Some(content) = occupant.content() else { return Ok(false) };
        if self.remembered(&self.key(output)?).await.is_some_and(|known| known.file == content) {
            return Ok(true);
        }
        // Unnamed, so that a killed process leaves nothing.
        let mut file = tempfile::tempfile()?;
        let ExportedTable { origin, .. } =
            export_table(self.plan, output, self.store, self.done, &file).await?;
        let same_table = || occupant.has_table(&origin.table);
        file.rewind()?;
        Ok(Digest::of_reader(&file)? == content
            || output.format == OutputFormat::Parquet && same_table())
    }

    /// The digest of everything that determines the file's bytes.
    fn key(&self, output: &PlannedOutput) -> Result<Digest, StepError> {
        let missing = || StepError::new(format!("output {} has no table", output.name));
        let table = input_digest(self.plan, &output.input, &Reads::All, self.done);
        let table = table.ok_or_else(missing)?;
        let suffix = output.path.extension().unwrap_or_default().to_string_lossy().into_owned();
        let mut key = json!({"output": table, "format": suffix, "version": OUTPUT_FORMAT});
        if let Some(shape) = output.shape {
            key["shape"] = json!(shape.name());
        }
        match &output.format {
            OutputFormat::Text { column } | OutputFormat::Picture { column, .. } => {
                key["column"] = json!(column);
            }
            // The origin is in the file. Another version alone is no reason to write it again.
            OutputFormat::Parquet => {
                let OutputOrigin { workflow, file, step, port, .. } =
                    origin(self.plan, output, table);
                key["origin"] = json!([workflow, file, step, port]);
            }
            OutputFormat::Paper(paper) => key["paper"] = json!(format!("{paper:?}")),
            OutputFormat::Jsonl | OutputFormat::Json | OutputFormat::Csv => {}
        }
        Ok(Digest::of_json(&key))
    }

    async fn remembered(&self, key: &Digest) -> Option<RememberedFile> {
        serde_json::from_value(self.store.check_result(key).await?).ok()
    }

    async fn remember(&self, key: &Digest, output: &PlannedOutput, file: &RememberedFile) {
        // It can be recomputed at any time.
        let reads = blobs(&output.input, self.done);
        let _ = self.store.put_check_result(key, &json!(file), reads).await;
    }

    /// Records the origin of a correct file, if it is unknown.
    async fn claim(
        &self,
        output: &PlannedOutput,
        path: &Path,
        content: Digest,
        origin: OutputOrigin,
    ) -> Option<String> {
        match self.store.outputs_of(&content).await {
            Ok(records) if records.is_empty() => self.record(output, path, content, origin).await,
            Ok(_) | Err(_) => None,
        }
    }

    /// Records the origin of a file; returns the reason if that fails.
    async fn record(
        &self,
        output: &PlannedOutput,
        path: &Path,
        content: Digest,
        origin: OutputOrigin,
    ) -> Option<String> {
        let record = OutputRecord {
            content,
            origin,
            path: output.path.display().to_string(),
            place: place(path),
            run: self.run.to_string(),
            written: timestamp(),
        };
        self.store.put_output(&record).await.err().map(|error| error.to_string())
    }
}

fn hash(path: &Path) -> io::Result<Digest> {
    Digest::of_reader(File::open(path)?)
}

pub(super) fn shown(path: &Path) -> String {
    quote(&path.strip_prefix(".").unwrap_or(path).display().to_string())
}

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
        OutputFormat::Paper(paper) => {
            let mut batches = Vec::new();
            while let Some(batch) = rows.next().await? {
                batches.push(batch);
            }
            let written = write_paper_table(&mut out, &batches, &schema, paper);
            written.map_err(|error| match error.kind() {
                io::ErrorKind::InvalidData => RunError::Rows(error.to_string()),
                _ => error.into(),
            })?;
            origin(rows)?
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
