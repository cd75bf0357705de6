//! Stored tables as single Parquet files, for readers outside: whatever leaves the store is whole.

use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use parquet::errors::ParquetError;

use super::blob_encoding::BlobEncoding;
use super::encode::encode;
use super::write::StoreTableError;
use galeras_operator::StepError;
use galeras_store::table_file::TableFile;
use galeras_store::{PortArtifact, Store};

/// Rows that are decoded at a time.
const BATCH_ROWS: usize = 8192;

/// Why a table could not be written as one file.
#[derive(Debug, thiserror::Error)]
pub enum WholeTableError {
    /// It cannot be read, or encoded.
    #[error(transparent)]
    Step(#[from] StepError),
    /// The file cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The file of a table with all its columns: its own, or a copy that the store keeps. `None` if the
/// store is no folder.
///
/// # Errors
/// If the table cannot be read, or the copy not be written.
pub fn whole_file(store: &Store, port: &PortArtifact) -> Result<Option<PathBuf>, WholeTableError> {
    if port.layers.is_empty() {
        return Ok(store.local_blob(&port.blob));
    }
    if let Some(copy) = store.whole_copy(&port.blob) {
        return Ok(Some(copy));
    }
    let Some(table) = table(store, port)? else { return Ok(None) };
    store.keep_whole_copy(&port.blob, |file| write_whole(&table, file))
}

/// Writes a stored table with all its columns as Parquet.
fn write_whole(table: &Arc<TableFile>, file: &File) -> Result<(), WholeTableError> {
    let (next, failed) = rows(table)?;
    let schema = Arc::clone(table.schema());
    let mut out = BufWriter::new(file);
    encode(&mut out, schema, 1, None, next)?;
    failed.check()?;
    Ok(out.flush()?)
}

/// A nameless file with all columns of a table that refers to others; `None` if the store is no
/// folder.
///
/// # Errors
/// If the table cannot be read, or the file not be written.
pub fn whole_temporary(
    store: &Store,
    port: &PortArtifact,
) -> Result<Option<File>, WholeTableError> {
    let Some(table) = table(store, port)? else { return Ok(None) };
    let mut file = tempfile::tempfile()?;
    write_whole(&table, &file)?;
    file.rewind()?;
    Ok(Some(file))
}

/// Stores a table of one store in another as a whole file; returns how it is stored there.
///
/// # Errors
/// If the table cannot be read, or the other store not be written.
pub async fn store_whole(
    from: &Store,
    port: &PortArtifact,
    to: &Store,
) -> Result<PortArtifact, StoreTableError> {
    let missing = || StepError::new("a table that refers to others is not in a folder");
    let table = table(from, port)?.ok_or_else(missing)?;
    let (next, failed) = rows(&table)?;
    let encoding = BlobEncoding::start(to, Arc::clone(table.schema()), 1, None, next)?;
    let encoded = encoding.finish().await?;
    failed.check()?;
    let stored = encoded.commit(to).await?;
    let layers = Vec::new();
    Ok(PortArtifact { blob: stored.digest, bytes: stored.bytes, layers, ..port.clone() })
}

/// All rows of a table, and what ended them early, if something did.
fn rows(
    table: &Arc<TableFile>,
) -> Result<(impl FnMut() -> Option<RecordBatch> + Send + 'static, Failure), StepError> {
    let (columns, all) = (table.columns(|_| true), 0..table.rows());
    let mut rows = table.read(&columns, &[all], BATCH_ROWS)?;
    let failed = Failure::default();
    let told = failed.clone();
    let next = move || match rows.next()? {
        Ok(batch) => Some(batch),
        Err(error) => {
            *told.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            None
        }
    };
    Ok((next, failed))
}

/// Why rows ended before their end.
#[derive(Clone, Default)]
struct Failure(Arc<Mutex<Option<ParquetError>>>);

impl Failure {
    fn check(&self) -> Result<(), StepError> {
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }
}

fn table(store: &Store, port: &PortArtifact) -> Result<Option<Arc<TableFile>>, StepError> {
    Ok(store.table_file(&port.blob)?.map(Arc::new))
}
