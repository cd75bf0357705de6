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

/// The readers, until the first row is sent.
type Open = Arc<Mutex<Option<Vec<mpsc::Sender<RecordBatch>>>>>;

/// Rows that are sent to all readers that started before the first row.
pub(super) struct JoinedRows {
    schema: SchemaRef,
    open: Open,
}

/// Stops accepting readers.
pub(super) struct Subscribers(Open);

/// The readers, whose streams end when this is dropped.
pub(super) struct Senders(Vec<mpsc::Sender<RecordBatch>>);

impl JoinedRows {
    pub(super) fn new(schema: SchemaRef) -> Self {
        Self { schema, open: Arc::new(Mutex::new(Some(Vec::new()))) }
    }

    pub(super) fn subscribers(&self) -> Subscribers {
        Subscribers(Arc::clone(&self.open))
    }

    /// The table, whose rows are sorted by these columns.
    pub(super) fn table(self, order: &[String]) -> Result<Arc<StreamingTable>> {
        let order = order.iter().map(|name| column(name).sort(true, true)).collect();
        let schema = Arc::clone(&self.schema);
        let table = StreamingTable::try_new(schema, vec![Arc::new(self)])?;
        Ok(Arc::new(table.with_sort_order(order)))
    }
}

impl Subscribers {
    /// Takes the readers; later ones are not accepted.
    pub(super) fn close(&self) -> Senders {
        let open = locked(&self.0).take();
        Senders(open.unwrap_or_default())
    }
}

impl Senders {
    /// Sends rows to all remaining readers.
    pub(super) async fn send(&self, batch: RecordBatch) {
        for sender in &self.0 {
            // A port that has failed stops reading; the others continue.
            let _ = sender.send(batch.clone()).await;
        }
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
        match locked(&self.open).as_mut() {
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
        let joined = JoinedRows::new(batch(0..0).schema());
        let subscribers = joined.subscribers();
        let table = joined.table(&["n".to_string()]).unwrap();
        let df = || session(1).read_table(Arc::clone(&table) as _).unwrap();
        let even = df().filter((column("n") % lit(2_i64)).eq(lit(0_i64))).unwrap();
        let all = df().sort(vec![column("n").sort(true, true)]).unwrap();
        let plan = all.clone().create_physical_plan().await.unwrap();
        let shown = displayable(plan.as_ref()).indent(false).to_string();
        assert!(!shown.contains("SortExec"), "{shown}");
        let streams = (even.execute_stream().await.unwrap(), all.execute_stream().await.unwrap());
        let senders = subscribers.close();
        let send = async {
            for at in 0..20 {
                senders.send(batch(at * 10..at * 10 + 10)).await;
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
        let joined = JoinedRows::new(batch(0..0).schema());
        let subscribers = joined.subscribers();
        let table = joined.table(&[]).unwrap();
        let df = || session(1).read_table(Arc::clone(&table) as _).unwrap();
        let gone = df().execute_stream().await.unwrap();
        let stays = df().execute_stream().await.unwrap();
        drop(gone);
        let senders = subscribers.close();
        let send = async {
            for at in 0..20 {
                senders.send(batch(at..at + 1)).await;
            }
            drop(senders);
        };
        let ((), rows) = tokio::join!(send, stays.try_collect::<Vec<_>>());
        assert_eq!(rows.unwrap().len(), 20);
    }
}
