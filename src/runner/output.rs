//! Output files: written when their content is another, left alone when it is right.

use std::fs::{File, Permissions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::SchemaRef;
use futures::StreamExt;
use parquet::arrow::ArrowWriter;
use serde_json::{Value, json};

use super::error::RunError;
use super::input::{blobs, open};
use super::key::{StepManifests, artifact, input_digest};
use crate::digest::Digest;
use crate::operator::{Reads, StepError, is_virtual};
use crate::plan::{OutputFormat, Plan, PlannedOutput, TableRef};
use crate::report::{TableFormat, TableWriter};
use crate::scratch::WholeFile;
use crate::session::{column, session};
use crate::store::Store;

/// The version of how tables become files. Increase it whenever the same table gives other bytes.
const OUTPUT_FORMAT: u32 = 1;

/// An output file that has the content it should have.
pub(super) struct WrittenOutput {
    pub(super) path: PathBuf,
    pub(super) rows: u64,
    /// False if the file was already right.
    pub(super) written: bool,
}

/// Makes sure that the file of `output` below `folder` has the content it should have.
pub(super) async fn write(
    plan: &Plan,
    output: &PlannedOutput,
    folder: &Path,
    store: &Store,
    done: &StepManifests,
) -> Result<WrittenOutput, RunError> {
    let missing = || StepError::new(format!("output {} has no table", output.name));
    let digest = input_digest(plan, &output.input, &Reads::All, done).ok_or_else(missing)?;
    let rows = output
        .input
        .tables
        .iter()
        .filter_map(|t| artifact(done, t.step, t.port))
        .map(|a| a.rows)
        .sum();
    let path = folder.join(&output.path);
    let suffix = output.path.extension().unwrap_or_default().to_string_lossy().into_owned();
    let mut format = json!({"output": digest, "format": suffix, "version": OUTPUT_FORMAT});
    if let OutputFormat::Text { column } = &output.format {
        format["column"] = json!(column);
    }
    let key = Digest::of_json(&format);
    if let Some(known) = store.check_result(&key).await
        && let Some(bytes) = known.get("bytes").and_then(Value::as_u64)
        && std::fs::metadata(&path).is_ok_and(|m| m.is_file() && m.len() == bytes)
        && hash_file(&path).is_ok_and(|h| known.get("file") == Some(&json!(h)))
    {
        return Ok(WrittenOutput { path, rows, written: false });
    }
    let parent = path.parent().unwrap_or(folder).to_path_buf();
    let failed = |e: std::io::Error| -> RunError {
        StepError::new(format!("cannot write {}: {e}", path.display())).because(e).into()
    };
    std::fs::create_dir_all(&parent).map_err(failed)?;
    // A file that replaces another has its rights. A link is replaced, never followed.
    let replaced = std::fs::symlink_metadata(&path).ok().filter(|about| about.is_file());
    let whole = WholeFile::create_in(&parent).map_err(failed)?;
    export(plan, output, store, done, whole.file()).await?;
    if let Some(replaced) = replaced {
        let rights = Permissions::from_mode(replaced.permissions().mode() & 0o777);
        whole.file().set_permissions(rights).map_err(failed)?;
    }
    let file = hash_file(whole.path()).map_err(failed)?;
    let bytes = whole.file().metadata().map_err(failed)?.len();
    whole.finish(&path).map_err(failed)?;
    let known = json!({"file": file, "bytes": bytes});
    let _ = store.put_check_result(&key, &known, blobs(&output.input, done)).await;
    Ok(WrittenOutput { path, rows, written: true })
}

fn hash_file(path: &Path) -> std::io::Result<Digest> {
    Digest::of_reader(File::open(path)?)
}

/// The rows of the output in the order of its key.
async fn export(
    plan: &Plan,
    output: &PlannedOutput,
    store: &Store,
    done: &StepManifests,
    file: &File,
) -> Result<(), RunError> {
    let fills = |table: &TableRef| {
        let port = plan.steps[table.step].port(table.port);
        port.is_some_and(|p| p.table.schema.fields().iter().any(|f| is_virtual(f)))
    };
    let plain = !output.input.united && !output.input.tables.iter().any(fills);
    if let (OutputFormat::Parquet, true, [table]) =
        (&output.format, plain, output.input.tables.as_slice())
    {
        // The stored file is just this.
        let stored = artifact(done, table.step, table.port).map(|a| store.local_blob(&a.blob));
        if let Some(Some(blob)) = stored {
            std::io::copy(&mut File::open(blob)?, &mut &*file)?;
            return Ok(());
        }
    }
    let session = session(1);
    let df = open(&session, store, plan, &output.input, done)?;
    let order = output.input.schema.key.iter().map(|c| column(c).sort(true, true)).collect();
    let df = df.sort(order)?;
    let schema: SchemaRef = Arc::new(df.schema().as_arrow().clone());
    let mut stream = df.execute_stream().await?;
    let mut out = BufWriter::new(file);
    match &output.format {
        OutputFormat::Text { column } => {
            let at = schema.index_of(column)?;
            let mut rows = 0;
            while let Some(batch) = stream.next().await {
                let batch = batch?;
                for text in batch.column(at).as_string::<i32>().iter().flatten() {
                    rows += 1;
                    out.write_all(text.as_bytes())?;
                }
            }
            if rows != 1 {
                let message = format!("it is the text of one row, but the table has {rows} texts");
                return Err(RunError::Rows(message));
            }
        }
        OutputFormat::Parquet => {
            let mut writer = ArrowWriter::try_new(&mut out, schema, None)?;
            while let Some(batch) = stream.next().await {
                writer.write(&batch?)?;
            }
            writer.close()?;
        }
        OutputFormat::Jsonl | OutputFormat::Csv => {
            let format = match &output.format {
                OutputFormat::Csv => TableFormat::Csv,
                _ => TableFormat::Json,
            };
            let mut writer = TableWriter::new(&mut out, schema, format)?;
            while let Some(batch) = stream.next().await {
                writer.write(&batch?)?;
            }
            writer.finish()?;
        }
    }
    out.flush()?;
    Ok(())
}
