//! Batches into a blob of the store: encoded as Parquet on a separate thread, then committed.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use tokio::task::JoinHandle;

use super::encode::encode;
use galeras_base::digest::Digest;
use galeras_operator::StepError;
use galeras_store::{BlobWriter, Store, StoreError};

/// A blob that a thread encodes. Dropped before it is finished, it leaves nothing in the store.
pub struct BlobEncoding {
    encoder: JoinHandle<Result<EncodedBlob, StepError>>,
}

/// An encoded blob that is not in the store yet.
pub struct EncodedBlob {
    writer: BlobWriter,
    rows: u64,
}

/// A blob in the store.
pub struct StoredBlob {
    /// The digest of its bytes.
    pub digest: Digest,
    /// Its size.
    pub bytes: u64,
    /// The rows in it.
    pub rows: u64,
}

impl BlobEncoding {
    /// Starts to encode the batches that `next` gives, until there is none left. `next` may
    /// block. The columns of a row group are encoded on up to `threads` threads.
    ///
    /// # Errors
    /// If the store takes no new blob.
    pub fn start(
        store: &Store,
        schema: SchemaRef,
        threads: usize,
        next: impl FnMut() -> Option<RecordBatch> + Send + 'static,
    ) -> Result<Self, StoreError> {
        let blob = store.blob_writer()?;
        let encoder = tokio::task::spawn_blocking(move || {
            let encoded = encode(blob, schema, threads, next)?;
            Ok(EncodedBlob { writer: encoded.out, rows: encoded.rows })
        });
        Ok(Self { encoder })
    }

    /// Waits until all batches are encoded.
    ///
    /// # Errors
    /// If a batch does not have the columns of the schema, or the disk fails.
    pub async fn finish(self) -> Result<EncodedBlob, StepError> {
        self.encoder.await.map_err(|_| StepError::new("a writer thread panicked"))?
    }

    /// Waits for the end of the thread and drops what it wrote.
    pub async fn abandon(self) {
        // The result is of no use any more.
        let _ = self.encoder.await;
    }
}

impl EncodedBlob {
    /// Puts the blob into the store.
    ///
    /// # Errors
    /// If it cannot be made durable or be given its name.
    pub async fn commit(self, store: &Store) -> Result<StoredBlob, StoreError> {
        let (digest, bytes) = self.writer.commit(store).await?;
        Ok(StoredBlob { digest, bytes, rows: self.rows })
    }
}
