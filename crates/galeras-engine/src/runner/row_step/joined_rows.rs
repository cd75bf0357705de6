//! The joined rows of a row step as a streaming table: every port reads all of them, without a
//! second copy.

use std::fmt;
use std::sync::{Arc, Mutex};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::stream;
use tokio::sync::mpsc;

use crate::locked;
use galeras_sql::session::column;

/// Batches that may wait for a port.
const QUEUE: usize = 4;

/// The readers that started before the first row, until it is sent.
pub(super) type Readers = Arc<Mutex<Option<Vec<mpsc::Sender<RecordBatch>>>>>;

/// Rows that are sent to all readers.
struct JoinedRows {
    schema: SchemaRef,
    readers: Readers,
}

/// A table of rows that are sorted by these columns, and its readers.
pub(super) fn joined_rows(
    schema: SchemaRef,
    order: &[String],
) -> Result<(Arc<StreamingTable>, Readers)> {
    let readers: Readers = Arc::new(Mutex::new(Some(Vec::new())));
    let order = order.iter().map(|name| column(name).sort(true, true)).collect();
    let rows = JoinedRows { schema: Arc::clone(&schema), readers: Arc::clone(&readers) };
    let table = StreamingTable::try_new(schema, vec![Arc::new(rows)])?;
    Ok((Arc::new(table.with_sort_order(order)), readers))
}

/// Sends rows to all remaining readers.
pub(super) async fn send_rows(readers: &[mpsc::Sender<RecordBatch>], batch: RecordBatch) {
    for reader in readers {
        // A port that has failed stops reading; the others continue.
        let _ = reader.send(batch.clone()).await;
    }
}

impl fmt::Debug for JoinedRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("joined rows")
    }
}

impl PartitionStream for JoinedRows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let schema = Arc::clone(&self.schema);
        match locked(&self.readers).as_mut() {
            Some(senders) => {
                let (sender, receiver) = mpsc::channel(QUEUE);
                senders.push(sender);
                let rows = stream::unfold(receiver, |mut receiver| async {
                    let batch = receiver.recv().await?;
                    Some((Ok(batch), receiver))
                });
                Box::pin(RecordBatchStreamAdapter::new(schema, rows))
            }
            None => {
                let late = "a defect: a port was opened after the first row";
                let error = Err(DataFusionError::Internal(late.into()));
                Box::pin(RecordBatchStreamAdapter::new(schema, stream::iter([error])))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, RecordBatch};
    use arrow::datatypes::{DataType, Field, Schema};
    use datafusion::logical_expr::lit;
    use datafusion::physical_plan::displayable;
    use futures::TryStreamExt;

    use super::*;
    use galeras_sql::session::session;

    fn batch(numbers: std::ops::Range<i64>) -> RecordBatch {
        let schema = Schema::new(vec![Field::new("n", DataType::Int64, false)]);
        let column = Int64Array::from_iter_values(numbers);
        RecordBatch::try_new(Arc::new(schema), vec![Arc::new(column)]).unwrap()
    }

    #[tokio::test]
    async fn everyone_who_reads_gets_all_rows_and_who_comes_late_an_error() {
        let order = ["n".to_string()];
        let (table, readers) = joined_rows(batch(0..0).schema(), &order).unwrap();
        let df = || session(1).read_table(Arc::clone(&table) as _).unwrap();
        let even = df().filter((column("n") % lit(2_i64)).eq(lit(0_i64))).unwrap();
        let all = df().sort(vec![column("n").sort(true, true)]).unwrap();
        let plan = all.clone().create_physical_plan().await.unwrap();
        let shown = displayable(plan.as_ref()).indent(false).to_string();
        assert!(!shown.contains("SortExec"), "{shown}");
        let streams = (even.execute_stream().await.unwrap(), all.execute_stream().await.unwrap());
        let senders = locked(&readers).take().unwrap();
        let send = async {
            for at in 0..20 {
                send_rows(&senders, batch(at * 10..at * 10 + 10)).await;
            }
            drop(senders);
        };
        let rows = |stream: SendableRecordBatchStream| async {
            let batches: Vec<_> = stream.try_collect().await.unwrap();
            batches.iter().map(RecordBatch::num_rows).sum::<usize>()
        };
        let ((), even, all) = tokio::join!(send, rows(streams.0), rows(streams.1));
        assert_eq!((even, all), (100, 200));
        assert!(df().collect().await.unwrap_err().to_string().contains("a defect"));
    }

    #[tokio::test]
    async fn who_reads_no_more_holds_nobody_up() {
        let (table, readers) = joined_rows(batch(0..0).schema(), &[]).unwrap();
        let df = || session(1).read_table(Arc::clone(&table) as _).unwrap();
        let gone = df().execute_stream().await.unwrap();
        let stays = df().execute_stream().await.unwrap();
        drop(gone);
        let senders = locked(&readers).take().unwrap();
        let send = async {
            for at in 0..20 {
                send_rows(&senders, batch(at..at + 1)).await;
            }
            drop(senders);
        };
        let ((), rows) = tokio::join!(send, stays.try_collect::<Vec<_>>());
        assert_eq!(rows.unwrap().len(), 20);
    }
}
