//! Reads the input of a row step in a separate task: its rows in their stored order, each with its
//! digest.

use arrow::array::{Array, AsArray, FixedSizeBinaryArray, RecordBatch};
use datafusion::dataframe::DataFrame;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::Expr;
use futures::StreamExt;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use galeras_base::id::ROW_DIGEST;

/// The least rows of a window, except at the end.
pub(super) const MIN_ROWS: usize = 1024;
/// A window ends at the batch that reaches this number of rows ...
pub(super) const MAX_ROWS: usize = 16 * 1024;
/// ... or of bytes.
const MAX_BYTES: usize = 16 << 20;
const QUEUE: usize = 4;

pub(super) struct InputBatch {
    pub(super) rows: RecordBatch,
    pub(super) keys: FixedSizeBinaryArray,
}

pub(super) struct InputReader {
    batches: mpsc::Receiver<Result<InputBatch>>,
    _task: AbortOnDropHandle<()>,
}

impl InputReader {
    /// Starts to read; `digest` computes the digest of a row.
    pub(super) fn start(source: DataFrame, digest: Expr) -> Result<Self> {
        let rows = source.with_column(ROW_DIGEST, digest)?;
        let (out, batches) = mpsc::channel(QUEUE);
        let task = tokio::spawn(async move {
            if let Err(error) = read(rows, &out).await {
                // Without a receiver the rows are not needed.
                let _ = out.send(Err(error)).await;
            }
        });
        Ok(Self { batches, _task: AbortOnDropHandle::new(task) })
    }

    /// The next rows, about `wanted` unless they are large; `None` at the end.
    ///
    /// # Errors
    /// If they cannot be read.
    pub(super) async fn next(&mut self, wanted: usize) -> Result<Option<Vec<InputBatch>>> {
        let (mut window, mut rows, mut bytes) = (Vec::new(), 0, 0);
        while rows < wanted && bytes < MAX_BYTES {
            let Some(batch) = self.batches.recv().await else { break };
            let batch = batch?;
            rows += batch.keys.len();
            bytes += batch.rows.columns().iter().map(super::results::own_bytes).sum::<usize>();
            window.push(batch);
        }
        Ok((!window.is_empty()).then_some(window))
    }
}

/// Sends the partitions in order, which is the stored order of the rows.
async fn read(rows: DataFrame, out: &mpsc::Sender<Result<InputBatch>>) -> Result<()> {
    for mut partition in rows.execute_stream_partitioned().await? {
        while let Some(batch) = partition.next().await {
            let mut rows = batch?;
            if rows.num_rows() == 0 {
                continue;
            }
            let keys = rows.remove_column(rows.num_columns() - 1);
            let keys = keys.as_fixed_size_binary_opt().cloned().ok_or_else(|| {
                DataFusionError::Internal("the digest of a row is not binary".into())
            })?;
            if out.send(Ok(InputBatch { rows, keys })).await.is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}
