//! Fan-out: every input row becomes a table, which takes minutes. The table of a row is computed in
//! pieces; each is stored when it is complete, and reused by later runs.
//!
//! Tables are streamed from the operator into parts, so they may be larger than memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::SchemaRef;
use datafusion::dataframe::DataFrame;
use datafusion::datasource::MemTable;
use futures::{StreamExt, TryStreamExt};
use tokio::sync::{Mutex, MutexGuard, OnceCell, Semaphore, mpsc};

use super::context::{StepContext, commit_part};
use super::error::RunError;
use crate::locked;
use galeras_base::digest::Digest;
use galeras_base::id::ROW_DIGEST;
use galeras_operator::{FanOutError, FanOutStep, FanOutWork, Ports, StepError};
use galeras_sql::functions::{RowDigest, call};
use galeras_sql::session::{BlobEncoding, column, scan_files};
use galeras_store::MemoPart;

/// The number of rows opened at once; they mostly wait for a network.
const AT_ONCE: usize = 4;
/// Batches between the operator and the encoder.
const QUEUE: usize = 4;

/// A share of the pieces of a row: those with `number % of == share`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    pub(super) share: u32,
    pub(super) of: u32,
}

impl Share {
    const ALL: Self = Self { share: 0, of: 1 };

    fn has(self, piece: u32) -> bool {
        piece % self.of.max(1) == self.share
    }
}

/// Opened rows by digest, kept for their other shares.
pub(super) type OpenedRows = std::sync::Mutex<HashMap<String, OpenedRow>>;

type OpenedRow = Arc<OnceCell<Arc<dyn FanOutWork>>>;

/// The state that the rows of a step share.
struct FanOut<'a> {
    cx: &'a StepContext,
    step: &'a dyn FanOutStep,
    recipe: Digest,
    stored: StoredRows,
    /// Rows are opened concurrently but computed in turn, so that only few use memory.
    turn: Mutex<()>,
    /// A permit for each piece in progress.
    threads: Semaphore,
    opened: &'a OpenedRows,
}

/// The reason why a row has no table.
enum Failure {
    Work(FanOutError),
    /// The run must stop.
    Run(RunError),
}

impl<E: Into<RunError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Run(error.into())
    }
}

pub(super) struct InputRow {
    /// Its digest in hexadecimal digits.
    pub(super) digest: String,
    /// Its name in messages.
    pub(super) label: String,
    batch: RecordBatch,
}

/// Computes the rows without an earlier result. Returns the output ports over stored tables, and
/// the numbers of input rows computed now and before.
pub(super) async fn run(
    cx: &StepContext,
    step: &dyn FanOutStep,
    input: DataFrame,
    recipe: Digest,
) -> Result<(Ports, u64, u64), RunError> {
    let rows = load(step, input.clone()).await?;
    let stored = StoredRows::of(&cx.parts(&recipe).await?);
    let mut blobs = Vec::with_capacity(rows.len());
    let mut fresh = Vec::new();
    let mut reused = 0;
    for row in rows {
        match stored.whole(&row.digest) {
            Some(tables) => {
                blobs.extend_from_slice(tables);
                reused += 1;
            }
            None => fresh.push(row),
        }
    }
    let computed = fresh.len() as u64;
    cx.total(computed, reused);
    let threads = Semaphore::new(cx.lower.env.jobs.max(1));
    let opened = OpenedRows::default();
    let turn = Mutex::new(());
    let fan_out = FanOut { cx, step, recipe, stored, turn, threads, opened: &opened };
    let mut work =
        futures::stream::iter(fresh).map(|row| fan_out.expand(row)).buffer_unordered(AT_ONCE);
    let mut done = 0;
    while let Some(tables) = work.next().await {
        blobs.extend(tables?);
        done += 1;
        cx.progress(done);
    }
    drop(work);
    // Equal tables, such as those of repositories without changes, are one blob.
    blobs.sort_unstable();
    blobs.dedup();
    let expanded = if blobs.is_empty() {
        cx.lower
            .session
            .read_table(Arc::new(MemTable::try_new(step.output_schema(), vec![vec![]])?))?
    } else {
        scan_files(&cx.lower.session, &cx.store, &blobs, step.output_schema())?
    };
    Ok((step.ports(input, expanded)?, computed, reused))
}

/// The remaining rows of a step.
pub(super) struct MissingRows {
    /// The rows without a complete table, except refused ones.
    pub(super) rows: Vec<InputRow>,
    /// The number of complete rows.
    pub(super) reused: u64,
    /// True if the user has not consented to the work on some row. Then only a process with the
    /// user's consent may open all rows.
    pub(super) refused: bool,
}

/// Finds the rows without a complete table in the store.
pub(super) async fn missing_rows(
    cx: &StepContext,
    step: &dyn FanOutStep,
    input: DataFrame,
    recipe: Digest,
) -> Result<MissingRows, RunError> {
    let stored = StoredRows::of(&cx.parts(&recipe).await?);
    let mut missing = MissingRows { rows: Vec::new(), reused: 0, refused: false };
    for row in load(step, input).await? {
        if stored.whole(&row.digest).is_some() {
            missing.reused += 1;
        } else if step.refusal(&cx.lower, &row.batch).is_some() {
            missing.refused = true;
        } else {
            missing.rows.push(row);
        }
    }
    Ok(missing)
}

/// Computes a share of the pieces of one row and stores them. Returns the number of pieces, or the
/// reason why the row cannot be computed here. That reason is not a result of the row and is not
/// stored.
pub(super) async fn fill(
    cx: &StepContext,
    step: &dyn FanOutStep,
    input: DataFrame,
    recipe: Digest,
    (digest, share): (&str, Share),
    opened: &OpenedRows,
) -> Result<Result<u64, FanOutError>, RunError> {
    let rows = load(step, input).await?;
    let row = rows.into_iter().find(|row| row.digest == digest);
    let row = row.ok_or_else(|| StepError::new("a defect: the input has no such row"))?;
    let stored = StoredRows::of(&cx.parts(&recipe).await?);
    let threads = Semaphore::new(cx.lower.env.jobs.max(1));
    let turn = Mutex::new(());
    let fan_out = FanOut { cx, step, recipe, stored, turn, threads, opened };
    match fan_out.pieces(&row, share).await {
        Ok(tables) => Ok(Ok(tables.len() as u64)),
        Err(Failure::Run(error)) => Err(error),
        Err(Failure::Work(error)) => Ok(Err(error)),
    }
}

/// The input rows, each digest once.
async fn load(step: &dyn FanOutStep, input: DataFrame) -> Result<Vec<InputRow>, RunError> {
    let digest = call::<RowDigest>(step.reads().iter().map(|name| column(name)).collect());
    let batches = input.with_column(ROW_DIGEST, digest)?.collect().await?;
    let mut rows: Vec<InputRow> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for mut batch in batches.into_iter().filter(|batch| batch.num_rows() > 0) {
        let digests = batch.remove_column(batch.num_columns() - 1);
        let digests = digests.as_fixed_size_binary();
        let labels = batch
            .column_by_name(step.label())
            .and_then(|column| column.as_string_opt::<i32>().cloned())
            .ok_or_else(|| StepError::new(format!("the column `{}` is not text", step.label())))?;
        for at in 0..batch.num_rows() {
            let hex: String = digests.value(at).iter().map(|b| format!("{b:02x}")).collect();
            if seen.insert(hex.clone()) {
                let label = labels.value(at).to_string();
                rows.push(InputRow { digest: hex, label, batch: batch.slice(at, 1) });
            }
        }
    }
    Ok(rows)
}

impl FanOut<'_> {
    /// Expands a row and stores its table, or the one that reports its failure.
    async fn expand(&self, row: InputRow) -> Result<Vec<Digest>, RunError> {
        let ended = self.pieces(&row, Share::ALL).await;
        locked(self.opened).remove(&row.digest);
        let error = match ended {
            Ok(tables) => return Ok(tables),
            Err(Failure::Run(error)) => return Err(error),
            Err(Failure::Work(error)) => error,
        };
        let Self { cx, step, .. } = self;
        if cx.lower.env.cancel.is_cancelled() {
            return Err(RunError::Interrupted);
        }
        cx.warn(format!("{}: {}{}", row.label, error.reason, again(&error)));
        let (out, batches) = mpsc::channel(1);
        let encoding = encode_received(cx, step.output_schema(), batches)?;
        // If the encoder has stopped, `store` returns its error.
        let _ = out.send(step.failed(&row.batch, &error)?).await;
        drop(out);
        if error.retry {
            cx.lower.retry.fetch_add(1, Ordering::Relaxed);
        }
        Ok(vec![self.store(encoding, (!error.retry).then_some(row.digest)).await?])
    }

    /// Expands the missing pieces of a row on all threads. The next row gets its turn as soon as
    /// all pieces have started.
    async fn pieces(&self, row: &InputRow, share: Share) -> Result<Vec<Digest>, Failure> {
        let opened = Arc::clone(locked(self.opened).entry(row.digest.clone()).or_default());
        let open = async || Ok(Arc::from(self.step.open(&self.cx.lower, row.batch.clone()).await?));
        let work: &Arc<dyn FanOutWork> =
            opened.get_or_try_init(open).await.map_err(Failure::Work)?;
        let pieces = work.pieces();
        let cut = RowCut { row: row.digest.clone(), cut: work.cut(), pieces };
        let mut tables = Vec::new();
        let mut missing = Vec::new();
        for piece in (0..pieces).filter(|piece| share.has(*piece)) {
            match self.stored.piece(&cut, piece) {
                Some(table) => tables.push(table),
                None => missing.push(piece),
            }
        }
        if !tables.is_empty() {
            let (stored, label) = (tables.len(), &row.label);
            tracing::debug!(label, stored, pieces, "pieces of an interrupted run");
        }
        let last = missing.last().copied();
        let mut turn = Some(self.turn.lock().await);
        let under_way = futures::stream::iter(missing).map(|piece| {
            let turn = if Some(piece) == last { turn.take() } else { None };
            self.piece(work.as_ref(), &cut, piece, turn)
        });
        // One more than the threads: it is stored while they compute.
        let computed = under_way.buffer_unordered(self.cx.lower.env.jobs.saturating_add(1));
        tables.extend(computed.try_collect::<Vec<_>>().await?);
        Ok(tables)
    }

    async fn piece(
        &self,
        work: &dyn FanOutWork,
        cut: &RowCut,
        piece: u32,
        turn: Option<MutexGuard<'_, ()>>,
    ) -> Result<Digest, Failure> {
        let permit = self.threads.acquire().await.map_err(|_| RunError::Interrupted)?;
        drop(turn);
        let (out, batches) = mpsc::channel(QUEUE);
        let encoding = encode_received(self.cx, self.step.output_schema(), batches)?;
        let expanded = work.expand(piece, out).await;
        drop(permit);
        match expanded {
            Ok(()) => Ok(self.store(encoding, Some(cut.part(piece))).await?),
            Err(error) => {
                encoding.abandon().await;
                Err(Failure::Work(error))
            }
        }
    }

    /// Commits a table, as a part of the recipe if it is the result of a row or of a piece.
    async fn store(
        &self,
        encoding: BlobEncoding,
        part: Option<String>,
    ) -> Result<Digest, RunError> {
        let store = &self.cx.store;
        let blob = encoding.finish().await?.commit(store).await?;
        let digest = blob.digest;
        if part.is_some() {
            commit_part(store, &self.recipe, blob, part).await?;
        }
        Ok(digest)
    }
}

fn again(error: &FanOutError) -> &'static str {
    if error.retry { " (the next run tries again)" } else { "" }
}

/// Encodes the operator's batches on a separate thread.
fn encode_received(
    cx: &StepContext,
    schema: SchemaRef,
    mut batches: mpsc::Receiver<RecordBatch>,
) -> Result<BlobEncoding, RunError> {
    Ok(BlobEncoding::start_waiting(&cx.store, schema, 1, move || batches.blocking_recv())?)
}

/// Digits of the digest of a row.
const ROW: usize = 2 * RowDigest::BYTES as usize;
const NUMBER: usize = 8;

/// A division of the work on a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct RowCut {
    /// The digest of the row in hexadecimal digits.
    pub(super) row: String,
    /// The digest of the pieces.
    pub(super) cut: Digest,
    pub(super) pieces: u32,
}

impl RowCut {
    /// The part's name of a piece. A single piece is the row.
    pub(super) fn part(&self, piece: u32) -> String {
        let Self { row, cut, pieces } = self;
        match pieces {
            1 => row.clone(),
            _ => format!("{row}{cut}{piece:0NUMBER$x}{pieces:0NUMBER$x}"),
        }
    }

    /// The cut and the number of the piece that a part is, if it is not a whole row.
    fn of(part: &str) -> Option<(Self, u32)> {
        let (rest, pieces) = part.split_at_checked(part.len().checked_sub(NUMBER)?)?;
        let (rest, piece) = rest.split_at_checked(rest.len().checked_sub(NUMBER)?)?;
        let (row, cut) = rest.split_at_checked(ROW)?;
        let number = |digits: &str| u32::from_str_radix(digits, 16).ok();
        let cut = Self { row: row.to_string(), cut: cut.parse().ok()?, pieces: number(pieces)? };
        let piece = number(piece).filter(|piece| *piece < cut.pieces)?;
        Some((cut, piece))
    }
}

#[derive(Debug, Default)]
pub(super) struct StoredRows {
    /// The time of each table, and the tables that form it.
    whole: HashMap<String, (String, Vec<Digest>)>,
    pieces: HashMap<RowCut, BTreeMap<u32, Digest>>,
}

impl StoredRows {
    /// Sorts these parts by row. If a row has several tables, as after a forced run, the latest
    /// counts.
    pub(super) fn of(parts: &[MemoPart]) -> Self {
        let mut rows = Self::default();
        let mut finished: HashMap<RowCut, &str> = HashMap::new();
        for part in parts {
            let Some(name) = &part.row else { continue };
            match RowCut::of(name) {
                None => rows.finish(name, &part.created, vec![part.blob]),
                Some((cut, piece)) => {
                    let last = finished.entry(cut.clone()).or_default();
                    *last = (*last).max(&part.created);
                    rows.pieces.entry(cut).or_default().insert(piece, part.blob);
                }
            }
        }
        for (cut, last) in finished {
            let Some(pieces) = rows.pieces.get(&cut) else { continue };
            if pieces.len() == cut.pieces as usize {
                let tables = pieces.values().copied().collect();
                rows.finish(&cut.row, last, tables);
            }
        }
        rows
    }

    fn finish(&mut self, row: &str, when: &str, tables: Vec<Digest>) {
        let known = self.whole.entry(row.to_string()).or_default();
        // At equal times the content decides, not the order of the parts.
        if (when, &tables) >= (known.0.as_str(), &known.1) {
            *known = (when.to_string(), tables);
        }
    }

    /// The tables that form that of the row, if it is complete.
    pub(super) fn whole(&self, row: &str) -> Option<&[Digest]> {
        self.whole.get(row).map(|(_, tables)| tables.as_slice())
    }

    /// The number of complete rows.
    pub(super) fn count(&self) -> usize {
        self.whole.len()
    }

    /// The table of a piece, if it is stored.
    pub(super) fn piece(&self, cut: &RowCut, piece: u32) -> Option<Digest> {
        self.pieces.get(cut)?.get(&piece).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(pieces: u32) -> RowCut {
        RowCut { row: "ab".repeat(16), cut: Digest::of(b"cut"), pieces }
    }

    fn part(row: String, table: &[u8], created: &str) -> MemoPart {
        let created = created.to_string();
        MemoPart { blob: Digest::of(table), bytes: 1, rows: 1, created, row: Some(row) }
    }

    #[test]
    fn names_are_hexadecimal_and_read_back() {
        let name = cut(300).part(299);
        assert!(name.bytes().all(|byte| byte.is_ascii_hexdigit()) && name.len() < 200, "{name}");
        assert_eq!(RowCut::of(&name), Some((cut(300), 299)));
        assert_eq!(cut(1).part(0), cut(1).row, "the only piece is the row");
        for other in [cut(1).part(0), cut(3).part(3), String::new(), "x".repeat(112)] {
            assert_eq!(RowCut::of(&other), None, "{other}");
        }
    }

    #[test]
    fn a_row_is_whole_with_its_last_piece() {
        let (cut, row) = (cut(3), cut(3).row);
        let other = RowCut { cut: Digest::of(b"another cut"), ..cut.clone() };
        let mut parts = vec![
            part(cut.part(0), b"0", "1"),
            part(cut.part(2), b"2", "2"),
            part(other.part(1), b"1 of another", "3"),
        ];
        let stored = StoredRows::of(&parts);
        assert_eq!((stored.whole(&row), stored.count()), (None, 0));
        assert_eq!(stored.piece(&cut, 2), Some(Digest::of(b"2")));
        assert_eq!(stored.piece(&cut, 1), None, "pieces of another cut are others");
        parts.push(part(cut.part(1), b"1", "4"));
        let tables = [b"0", b"1", b"2"].map(|table| Digest::of(table));
        let stored = StoredRows::of(&parts);
        assert_eq!((stored.whole(&row), stored.count()), (Some(&tables[..]), 1));
    }

    #[test]
    fn of_two_tables_of_a_row_the_last_one_counts() {
        let (cut, row) = (cut(2), cut(2).row);
        let pieces = [part(cut.part(0), b"0", "1"), part(cut.part(1), b"1", "5")];
        let tables = [b"0", b"1"].map(|table| Digest::of(table));
        for (when, wanted) in [("4", &tables[..]), ("6", &[Digest::of(b"whole")][..])] {
            let mut parts = pieces.to_vec();
            parts.push(part(row.clone(), b"whole", when));
            assert_eq!(StoredRows::of(&parts).whole(&row), Some(wanted));
            parts.reverse();
            assert_eq!(StoredRows::of(&parts).whole(&row), Some(wanted));
        }
    }
}
