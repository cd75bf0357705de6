//! Row steps: rows that an earlier run has computed are reused.
//!
//! Every input row gets a digest of the columns that the operator reads. The operator's result for
//! a row is stored under that digest, in *parts*: Parquet files that are finished while the step is
//! still running, so that an interrupted run can continue. Parts belong to a *recipe* (operator,
//! version, arguments), not to an input table.
//!
//! Input, results and output ports are streams: a window of rows is read, its rows without a result
//! are computed on all threads, and the window is passed to the ports while the next one is
//! computed. Memory does not grow with the table, except for some bytes of each row's digest.

mod evaluation;
mod joined_rows;
mod results;
mod window;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{Array, FixedSizeBinaryArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::dataframe::DataFrame;
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::{Expr, lit};

use self::evaluation::{Evaluation, Evaluator};
use self::joined_rows::{Readers, joined_rows, send_rows};
use self::results::Results;
use self::window::{Columns, InputReader, MAX_ROWS, MIN_ROWS, Window};
use super::context::StepContext;
use super::error::RunError;
use crate::locked;
use galeras_base::digest::Digest;
use galeras_base::id::ROW_DIGEST;
use galeras_operator::{Ports, RowStep, StepError, TableSchema};
use galeras_sql::functions::{RowDigest, call};
use galeras_sql::session::{column, empty_table};

/// The number of windows in progress: while one is passed to the ports, all threads are busy.
const AHEAD: usize = 2;
/// The intended time of a window, so that parts are finished in time.
const WINDOW_TIME: Duration = Duration::from_millis(100);
/// Decoded earlier results get one of this many parts of the memory.
const SHARES: usize = 4;

type RowKey = [u8; RowDigest::BYTES as usize];

fn row_key(array: &FixedSizeBinaryArray, row: usize) -> RowKey {
    let mut key = RowKey::default();
    key.copy_from_slice(array.value(row));
    key
}

/// The digest of the columns that are read. Without any, all rows are the same.
fn row_digest(reads: &[String]) -> Expr {
    let columns: Vec<Expr> = reads.iter().map(|name| column(name)).collect();
    call::<RowDigest>(if columns.is_empty() { vec![lit("")] } else { columns })
}

fn digests(batch: &RecordBatch) -> Result<&FixedSizeBinaryArray, StepError> {
    batch
        .column_by_name(ROW_DIGEST)
        .and_then(|column| column.as_any().downcast_ref())
        .ok_or_else(|| StepError::new("a defect: the operator did not keep the row digest"))
}

/// The columns that the operator adds, after the digest.
fn produced_schema(
    session: &SessionContext,
    row: &dyn RowStep,
    input: &SchemaRef,
) -> Result<SchemaRef, RunError> {
    let empty = empty_table(session, &TableSchema::new(Arc::clone(input), None))?;
    let evaluated = row.evaluate(empty.with_column(ROW_DIGEST, row_digest(&row.reads()))?)?;
    // With the types of a Parquet file that is read back.
    Ok(Arc::new(Schema::new(evaluated.schema().as_arrow().fields().clone())))
}

/// The operator's input columns: those that it reads, after the digest.
fn evaluated_schema(input: &SchemaRef, reads: &[String]) -> Result<SchemaRef, RunError> {
    let digest = Field::new(ROW_DIGEST, DataType::FixedSizeBinary(RowDigest::BYTES), false);
    let mut fields = vec![Arc::new(digest)];
    for name in reads {
        fields.push(Arc::clone(&input.fields()[input.index_of(name)?]));
    }
    Ok(Arc::new(Schema::new(fields)))
}

/// A row step whose ports can be read while [`RowRun::compute`] is polled.
pub(super) struct RowRun<'a> {
    /// The output ports, over the stream of joined rows. Each can be executed once, before the
    /// first row is computed.
    pub(super) ports: Ports,
    cx: &'a StepContext,
    reader: InputReader,
    columns: Columns,
    evaluator: Evaluator,
    results: Results<'a>,
    readers: Readers,
    rows: u64,
    /// The expected number of rows without a result.
    expected: u64,
}

/// The numbers of input rows.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RowCounts {
    pub(super) computed: u64,
    pub(super) reused: u64,
}

pub(super) struct RowInput {
    /// The table; `None` for a source.
    pub(super) rows: Option<DataFrame>,
    pub(super) stored: Option<u64>,
    /// The columns by which they are sorted.
    pub(super) order: Vec<String>,
}

/// Opens a row step: reads the index of results, but no input rows.
pub(super) async fn open<'a>(
    cx: &'a StepContext,
    row: &dyn RowStep,
    input: RowInput,
    recipe: Digest,
) -> Result<RowRun<'a>, RunError> {
    let RowInput { rows, stored, order } = input;
    let source = match rows {
        Some(df) => df,
        None => row.source(&cx.lower)?,
    };
    let reads = row.reads();
    let schema: SchemaRef = Arc::new(source.schema().as_arrow().clone());
    let produced = produced_schema(&cx.lower.session, row, &schema)?;
    let columns = Columns::new(&schema, &produced, evaluated_schema(&schema, &reads)?)?;
    let budget = cx.lower.env.memory / SHARES;
    let results = Results::open(cx, recipe, produced, budget).await?;
    let evaluator = Evaluator::new(row, Arc::clone(&columns.read), cx.lower.env.jobs).await?;
    let rows = match stored {
        Some(rows) => rows,
        None => source.clone().count().await? as u64,
    };
    // The exact number is known only after reading the input.
    let expected = rows - rows.min(results.known_rows());
    cx.total(expected, rows - expected);
    let reader = InputReader::start(source, row_digest(&reads))?;
    let (joined, readers) = joined_rows(Arc::clone(&columns.joined), &order)?;
    // The projections of the ports are cheap: one thread keeps the order of the rows.
    let ports = row.ports(cx.one_thread()?.read_table(joined)?)?;
    Ok(RowRun { ports, cx, reader, columns, evaluator, results, readers, rows, expected })
}

/// Computes the rows without a result and stores the results in parts, without an output table.
pub(super) async fn fill(
    cx: &StepContext,
    row: &dyn RowStep,
    input: RowInput,
    recipe: Digest,
) -> Result<RowCounts, RunError> {
    let mut run = open(cx, row, input, recipe).await?;
    run.ports.clear();
    run.compute().await
}

impl RowRun<'_> {
    /// Computes the rows without a result, stores the results in parts, and sends all rows to the
    /// ports, which must be read at the same time. Their streams end when all rows have been sent.
    /// After an error they stay open, so that an incomplete table is never taken for a complete
    /// one.
    pub(super) async fn compute(mut self) -> Result<RowCounts, RunError> {
        let readers = locked(&self.readers).take().unwrap_or_default();
        let (mut counts, mut done) = (RowCounts::default(), 0);
        let mut ahead: VecDeque<(Window, Evaluation)> = VecDeque::with_capacity(AHEAD);
        let (mut size, mut since) = (MIN_ROWS, Instant::now());
        loop {
            while ahead.len() < AHEAD
                && let Some(rows) = self.reader.next(size).await?
            {
                let window = Window::new(rows, &self.columns, &mut self.results).await?;
                counts.computed += window.computed();
                counts.reused += window.reused;
                self.expect(counts.computed);
                let evaluation = self.evaluator.start(&window.fresh)?;
                ahead.push_back((window, evaluation));
            }
            let Some((window, evaluation)) = ahead.pop_front() else { break };
            let evaluated = evaluation
                .finish(|rows| {
                    done += rows as u64;
                    self.cx.progress(done);
                })
                .await?;
            size = next_size(size, since.elapsed());
            since = Instant::now();
            let joined = window.join(&evaluated, &self.columns)?;
            self.results.add(evaluated).await?;
            for batch in joined {
                send_rows(&readers, batch).await;
            }
        }
        if counts.computed + counts.reused != self.rows {
            let message = "a defect: the rows of the input are not those that were counted";
            return Err(StepError::new(message).into());
        }
        drop(readers);
        self.results.finish().await?;
        Ok(counts)
    }

    /// Reports more work than expected.
    fn expect(&mut self, computed: u64) {
        if computed > self.expected {
            self.expected = computed;
            self.cx.total(computed, self.rows.saturating_sub(computed));
        }
    }
}

/// The size of the next window, after this many rows took this time.
fn next_size(rows: usize, took: Duration) -> usize {
    let wanted = WINDOW_TIME.as_secs_f64() / took.as_secs_f64().max(1e-6) * rows as f64;
    (wanted as usize).clamp(rows / 2, rows * 2).clamp(MIN_ROWS, MAX_ROWS)
}
