//! Reads the rows of a table as documents of a similarity join; all threads tokenize. Rows are
//! identified by their position in the order of `id`.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{AsArray, RecordBatch};
use datafusion::dataframe::DataFrame;
use futures::StreamExt;
use futures::future::try_join_all;
use tokio::sync::mpsc;

use super::super::tokenizer::{model, read_model};
use super::{BoundDedup, Keywords, Tokens, similarity_error};
use galeras_base::id::ID;
use galeras_operator::worker_threads::{StopOnDrop, on_thread};
use galeras_operator::{LowerContext, StepError, Tell};
use galeras_similarity::{Corpus, CorpusReader, SimilarityLimits, StopFlag};
use galeras_sql::functions::bpe::Bpe;
use galeras_sql::session::column;

const QUEUE: usize = 8;
/// Sorts of the session may take this fraction of the memory.
const OF_MEMORY: usize = 4;

/// A batch and the position of its first row.
type Numbered = (u32, RecordBatch);

/// The tokenizer of the port or the file, for `tokens: bpe`.
pub(super) async fn tokenizer(
    step: &BoundDedup,
    table: Option<DataFrame>,
) -> Result<Option<Arc<Bpe>>, StepError> {
    Ok(match (table, &step.file) {
        (Some(table), _) => Some(Arc::new(model(table).await?)),
        (None, Some(path)) => Some(Arc::new(read_model(path)?)),
        (None, None) => None,
    })
}

/// The memory and disk limits of a search.
pub(super) fn limits(cx: &LowerContext) -> std::io::Result<SimilarityLimits> {
    Ok(SimilarityLimits {
        memory: cx.env.memory - cx.env.memory / OF_MEMORY,
        threads: cx.env.jobs.max(1),
        scratch: cx.scratch.path()?.to_path_buf(),
    })
}

pub(super) async fn read(
    step: &BoundDedup,
    cx: &LowerContext,
    input: DataFrame,
    bpe: Option<Arc<Bpe>>,
    limits: SimilarityLimits,
) -> Result<Corpus, StepError> {
    let mut columns = vec![column(ID), column(&step.args.column)];
    columns.dedup();
    let texts = input
        .select(columns)?
        .sort(vec![column(ID).sort(true, true)])?
        .select(vec![column(&step.args.column)])?;
    let stop = StopOnDrop::default();
    let (send, receive) = mpsc::channel::<Numbered>(QUEUE);
    let queue = Arc::new(Mutex::new(receive));
    let mut readers = Vec::new();
    for _ in 0..limits.threads {
        let reader = match step.args.tokens {
            Tokens::Word => {
                let drop_keywords = step.args.keywords == Keywords::Drop;
                CorpusReader::words(&limits, drop_keywords, step.args.min_tokens)
                    .map_err(similarity_error)?
            }
            Tokens::Bpe => CorpusReader::ids(&limits, step.args.min_tokens),
        };
        let (queue, bpe, flag) = (Arc::clone(&queue), bpe.clone(), stop.flag());
        readers.push(on_thread(move || {
            fill(reader, bpe.as_deref(), &queue, &|| flag.load(Ordering::Relaxed))
        }));
    }
    // If all threads fail, sending fails too, since only they have the receiving end.
    drop(queue);
    let feeding = async move {
        let mut stream = texts.execute_stream().await?;
        let mut first = 0u32;
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            let next =
                u32::try_from(batch.num_rows()).ok().and_then(|rows| first.checked_add(rows));
            let rows = next.ok_or_else(|| StepError::new("`dedup` takes up to 2³² rows"))?;
            if send.send((first, batch)).await.is_err() {
                break;
            }
            first = rows;
        }
        Ok::<_, StepError>(())
    };
    (cx.tell)(Tell::Activity("reading tokens".into()));
    let (readers, ()) = tokio::try_join!(try_join_all(readers), feeding)?;
    (cx.tell)(Tell::Activity("ordering tokens".into()));
    let flag = stop.flag();
    on_thread(move || {
        Corpus::new(readers, limits, &|| flag.load(Ordering::Relaxed)).map_err(similarity_error)
    })
    .await
}

fn fill(
    mut reader: CorpusReader,
    bpe: Option<&Bpe>,
    queue: &Mutex<mpsc::Receiver<Numbered>>,
    stop: StopFlag<'_>,
) -> Result<CorpusReader, StepError> {
    let mut ids = Vec::new();
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
        let Some((first, batch)) = next else { return Ok(reader) };
        let texts = batch.column(0).as_string::<i32>();
        let Some(bpe) = bpe else {
            reader.read_texts(first, texts.iter(), stop).map_err(similarity_error)?;
            continue;
        };
        for (row, text) in (first..).zip(texts) {
            match text {
                None => reader.read_ids(row, None, stop).map_err(similarity_error)?,
                Some(text) => {
                    bpe.encode(text, true, &mut ids).map_err(|e| StepError::new(e.to_string()))?;
                    reader.read_ids(row, Some(&ids), stop).map_err(similarity_error)?;
                }
            }
        }
    }
}
