//! Finds the rows of the input that are near to rows of `against`.
//!
//! The input is read in blocks, each with an index in memory, and `against` is streamed past each
//! block, so it may have any size. The result depends neither on the blocks nor on the order of
//! rows.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{Array, AsArray, RecordBatch, StringArray};
use arrow::datatypes::DataType;
use datafusion::dataframe::DataFrame;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::{Expr, cast};
use futures::StreamExt;
use futures::future::try_join_all;
use tokio::sync::mpsc;

use super::against::{Against, AgainstIds};
use super::decide::AgainstCounts;
use super::tables::RejectedRow;
use super::{BoundDedup, Keywords, similarity_error};
use galeras_base::id::ID;
use galeras_operator::worker_threads::{StopOnDrop, on_thread};
use galeras_operator::{LowerContext, StepError, Tell};
use galeras_similarity::{
    NearIndex, NearProbe, Nearest, SimilarityLimits, StopFlag, Targets, TokenRows,
};
use galeras_sql::functions::bpe::Bpe;
use galeras_sql::session::column;

/// The most batches that wait for a thread, and the most rows of a batch: memory may exceed that of
/// a block by this much.
const QUEUE: usize = 4;
const BATCH_ROWS: usize = 1024;
/// Rows between two progress messages.
const TOLD_EVERY: u64 = 100_000;

type Queue = Mutex<mpsc::Receiver<RecordBatch>>;

struct Tokenizer {
    bpe: Option<Arc<Bpe>>,
    drop_keywords: bool,
    rows: TokenRows,
    ids: Vec<u32>,
}

impl Tokenizer {
    fn new(step: &BoundDedup, bpe: Option<Arc<Bpe>>) -> Self {
        let drop_keywords = step.args.keywords == Keywords::Drop;
        Self { bpe, drop_keywords, rows: TokenRows::new(drop_keywords), ids: Vec::new() }
    }

    fn read(&mut self, texts: &StringArray, stop: StopFlag<'_>) -> Result<&TokenRows, StepError> {
        self.rows.clear();
        for text in texts {
            match (&self.bpe, text) {
                (None, text) => self.rows.push_text(text, stop).map_err(similarity_error)?,
                (Some(_), None) => self.rows.push_ids(None),
                (Some(bpe), Some(text)) => {
                    let encoded = bpe.encode(text, true, &mut self.ids);
                    encoded.map_err(|e| StepError::new(e.to_string()))?;
                    self.rows.push_ids(Some(&self.ids));
                }
            }
        }
        Ok(&self.rows)
    }

    /// Takes the latest tokens, for another thread.
    fn take(&mut self) -> TokenRows {
        std::mem::replace(&mut self.rows, TokenRows::new(self.drop_keywords))
    }
}

/// A block of the input: its index, and the ids of its rows.
struct Block {
    index: Arc<NearIndex>,
    ids: Vec<String>,
    /// The row of each id, if ids count.
    rows: HashMap<String, u32>,
    /// This was the end of the input.
    last: bool,
}

/// The rows of the input that are near to a row of `against`, and the counts about it.
pub(super) async fn find(
    step: &BoundDedup,
    cx: &LowerContext,
    against: &Against,
    (input, other): (DataFrame, DataFrame),
    bpe: Option<&Arc<Bpe>>,
    limits: &SimilarityLimits,
) -> Result<(Vec<RejectedRow>, AgainstCounts), StepError> {
    let texts =
        input.select(vec![column(ID).alias("__id"), text(&step.args.column).alias("__text")])?;
    let mut columns = vec![text(&against.id).alias("__id"), text(&against.column).alias("__text")];
    columns.extend(against.source.iter().map(|source| text(source).alias("__source")));
    let other = other.select(columns)?;
    let mut source = Source { stream: texts.execute_stream().await?, rest: None };
    let (mut found, mut counts) = (Vec::new(), AgainstCounts::default());
    let mut blocks = 0_u64;
    loop {
        (cx.tell)(Tell::Activity("reading tokens".into()));
        let block = Arc::new(block(step, against, &mut source, bpe, limits).await?);
        blocks += 1;
        let rows = Source { stream: other.clone().execute_stream().await?, rest: None };
        let (nearest, counted) = pass(step, cx, against, (&block, blocks), rows, bpe).await?;
        if blocks == 1 {
            counts = counted;
        }
        for (row, id) in block.ids.iter().enumerate() {
            let Some(document) = block.index.document(row) else { continue };
            let near = match against.ids {
                AgainstIds::Any => nearest.of(document),
                AgainstIds::Other => nearest.other_than(document, id),
                AgainstIds::Same => nearest.of(row as u32),
            };
            if let Some(near) = near {
                counts.near += 1;
                counts.similar += u64::from(near.nearness.similar);
                found.push(RejectedRow::near(id, near));
            }
        }
        if block.last {
            return Ok((found, counts));
        }
    }
}

fn text(name: &str) -> Expr {
    cast(column(name), DataType::Utf8)
}

/// Splits batches into pieces.
struct Source {
    stream: SendableRecordBatchStream,
    rest: Option<RecordBatch>,
}

impl Source {
    /// Sends pieces until `full`, or until the receivers are gone; returns true if all were sent.
    async fn feed(
        &mut self,
        send: mpsc::Sender<RecordBatch>,
        full: &AtomicBool,
    ) -> Result<bool, StepError> {
        while !full.load(Ordering::Relaxed) {
            let batch = match self.rest.take() {
                Some(batch) => batch,
                None => match self.stream.next().await {
                    Some(batch) => batch?,
                    None => return Ok(true),
                },
            };
            let length = batch.num_rows().min(BATCH_ROWS);
            if length < batch.num_rows() {
                self.rest = Some(batch.slice(length, batch.num_rows() - length));
            }
            if send.send(batch.slice(0, length)).await.is_err() {
                return Ok(false);
            }
        }
        Ok(false)
    }
}

fn next(queue: &Queue) -> Option<RecordBatch> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv()
}

/// The next rows of the input, as many as fit into memory.
async fn block(
    step: &BoundDedup,
    against: &Against,
    source: &mut Source,
    bpe: Option<&Arc<Bpe>>,
    limits: &SimilarityLimits,
) -> Result<Block, StepError> {
    let stop = StopOnDrop::default();
    let full = Arc::new(AtomicBool::new(false));
    let (send, receive) = mpsc::channel::<RecordBatch>(QUEUE);
    let (send_tokens, mut tokens) = mpsc::channel::<(RecordBatch, TokenRows)>(QUEUE);
    let queue = Arc::new(Mutex::new(receive));
    let mut readers = Vec::new();
    for _ in 0..limits.threads {
        let (queue, send, flag) = (Arc::clone(&queue), send_tokens.clone(), stop.flag());
        let mut tokenizer = Tokenizer::new(step, bpe.cloned());
        readers.push(on_thread(move || {
            while let Some(batch) = next(&queue) {
                tokenizer.read(batch.column(1).as_string(), &|| flag.load(Ordering::Relaxed))?;
                if send.blocking_send((batch, tokenizer.take())).is_err() {
                    break;
                }
            }
            Ok(())
        }));
    }
    // If all threads fail, sending fails too, since only they have these ends.
    drop((queue, send_tokens));
    let mut targets = Targets::new(against.thresholds, limits);
    let (flag, is_full) = (stop.flag(), Arc::clone(&full));
    let builder = on_thread(move || {
        let stop = || flag.load(Ordering::Relaxed);
        let mut ids = Vec::new();
        while let Some((batch, rows)) = tokens.blocking_recv() {
            targets.push(&rows, &stop).map_err(similarity_error)?;
            ids.extend(batch.column(0).as_string::<i32>().iter().flatten().map(str::to_owned));
            is_full.store(targets.is_full(), Ordering::Relaxed);
        }
        Ok((NearIndex::new(targets, &stop).map_err(similarity_error)?, ids))
    });
    let (last, _, (index, ids)) =
        tokio::try_join!(source.feed(send, &full), try_join_all(readers), builder)?;
    let rows = match against.ids {
        AgainstIds::Same => ids.iter().cloned().zip(0..).collect(),
        AgainstIds::Any | AgainstIds::Other => HashMap::new(),
    };
    Ok(Block { index: Arc::new(index), ids, rows, last })
}

async fn pass(
    step: &BoundDedup,
    cx: &LowerContext,
    against: &Against,
    (block, number): (&Arc<Block>, u64),
    mut rows: Source,
    bpe: Option<&Arc<Bpe>>,
) -> Result<(Nearest, AgainstCounts), StepError> {
    let stop = StopOnDrop::default();
    let done = Arc::new(AtomicU64::new(0));
    let (send, receive) = mpsc::channel::<RecordBatch>(QUEUE);
    let queue = Arc::new(Mutex::new(receive));
    let mut probes = Vec::new();
    for _ in 0..cx.env.jobs.max(1) {
        let (queue, flag) = (Arc::clone(&queue), stop.flag());
        let (done, tell) = (Arc::clone(&done), Arc::clone(&cx.tell));
        let mut probe = Probe {
            tokenizer: Tokenizer::new(step, bpe.cloned()),
            probe: NearProbe::new(&block.index),
            block: Arc::clone(block),
            against: against.clone(),
            nearest: Nearest::default(),
            counts: AgainstCounts::default(),
        };
        probes.push(on_thread(move || {
            while let Some(batch) = next(&queue) {
                probe.batch(&batch, &|| flag.load(Ordering::Relaxed))?;
                let rows = batch.num_rows() as u64;
                let before = done.fetch_add(rows, Ordering::Relaxed);
                if before / TOLD_EVERY < (before + rows) / TOLD_EVERY {
                    let part = if number > 1 { format!(" (part {number})") } else { String::new() };
                    let rows = before + rows;
                    tell(Tell::Activity(format!("compared with {rows} rows of `against`{part}")));
                }
            }
            Ok((probe.nearest, probe.counts))
        }));
    }
    drop(queue);
    let never = AtomicBool::new(false);
    let (_, probed) = tokio::try_join!(rows.feed(send, &never), try_join_all(probes))?;
    let (mut nearest, mut counts) = (Nearest::default(), AgainstCounts::default());
    for (own, counted) in probed {
        nearest.merge(own);
        counts.rows += counted.rows;
        counts.compared += counted.compared;
        counts.too_short += counted.too_short;
        counts.nulls += counted.nulls;
    }
    Ok((nearest, counts))
}

/// A thread that compares rows of `against` with a block.
struct Probe {
    tokenizer: Tokenizer,
    probe: NearProbe,
    block: Arc<Block>,
    against: Against,
    nearest: Nearest,
    counts: AgainstCounts,
}

impl Probe {
    fn batch(&mut self, batch: &RecordBatch, stop: StopFlag<'_>) -> Result<(), StepError> {
        let ids = batch.column(0).as_string::<i32>();
        let sources = self.against.source.as_ref().map(|_| batch.column(2).as_string::<i32>());
        let rows = self.tokenizer.read(batch.column(1).as_string(), stop)?;
        let nearest = &mut self.nearest;
        let mut found = Vec::new();
        for row in 0..batch.num_rows() {
            self.counts.rows += 1;
            match self.probe.is_long(rows, row) {
                None => self.counts.nulls += 1,
                Some(false) => self.counts.too_short += 1,
                Some(true) => self.counts.compared += 1,
            }
            if ids.is_null(row) {
                let id = &self.against.id;
                let message = format!("a row of `against` has no `{id}` to name it by");
                return Err(StepError::new(message)
                    .help("name another column in `against_id`, or leave such rows out"));
            }
            let id = ids.value(row);
            let source = sources.filter(|s| s.is_valid(row)).map(|s| s.value(row));
            if self.against.ids == AgainstIds::Same {
                let Some(&own) = self.block.rows.get(id) else { continue };
                let Some(document) = self.block.index.document(own as usize) else { continue };
                if let Some(nearness) =
                    self.probe.pair(rows, row, document, stop).map_err(similarity_error)?
                {
                    nearest.note(own, nearness, id, source);
                }
                continue;
            }
            let wants = |document| nearest.wants(document, id);
            let note = |document, nearness| found.push((document, nearness));
            self.probe.row(rows, row, wants, note, stop).map_err(similarity_error)?;
            for (document, nearness) in found.drain(..) {
                nearest.note(document, nearness, id, source);
            }
        }
        Ok(())
    }
}
