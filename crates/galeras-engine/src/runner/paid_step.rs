//! Paid answers: an answered question is never asked again.
//!
//! While the step runs, every answer is written durably to a journal before it counts. At the end
//! the journal becomes a part of the recipe, like the finished rows of other steps, even if the
//! step fails. A killed run leaves the journal for the next one.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{Array, AsArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::dataframe::DataFrame;
use datafusion::execution::context::SessionContext;
use futures::future::BoxFuture;

use super::context::{StepContext, commit_part};
use super::error::RunError;
use crate::locked;
use galeras_base::digest::Digest;
use galeras_operator::{Answers, KnownAnswers, PaidResult, PaidStep, StepError};
use galeras_sql::session::{BlobEncoding, scan_files};
use galeras_store::{AnswerJournal, JournalEntry, MemoPart, Store};

/// The folder of the journals, next to the downloads.
const FOLDER: &str = "answers";

/// Rows of a batch of answers in a part.
const BATCH: usize = 1024;

/// The answers of a recipe from before this run; none by default.
#[derive(Default)]
pub(super) struct EarlierAnswers {
    /// Batches of questions and answers, as parts hold them.
    batches: Vec<RecordBatch>,
    /// The places of the answers to a question: batch and row, the oldest first.
    places: HashMap<Digest, Vec<(u32, u32)>>,
}

struct KeptAnswers {
    earlier: EarlierAnswers,
    journal: AnswerJournal,
    fresh: Mutex<Vec<JournalEntry>>,
}

/// Asks the questions without an earlier answer.
pub(super) async fn run(
    cx: &StepContext,
    step: &dyn PaidStep,
    inputs: BTreeMap<String, DataFrame>,
    recipe: Digest,
) -> Result<PaidResult, RunError> {
    let (journal, unfinished) =
        AnswerJournal::open(&cx.lower.downloads.join(FOLDER), &recipe).await?;
    let earlier = match cx.lower.forced {
        true => EarlierAnswers::default(),
        false => {
            let parts = cx.parts(&recipe).await?;
            let warn = |message| cx.warn(message);
            EarlierAnswers::of(&cx.lower.session, &cx.store, parts, &unfinished, warn).await?
        }
    };
    let kept = KeptAnswers { earlier, journal, fresh: Mutex::new(unfinished) };
    let result = step.lower(&cx.lower, &kept, inputs).await;
    let stored = kept.store(cx, &recipe).await;
    // The step's error comes first; its answers are safe in the journal.
    let result = result?;
    stored?;
    Ok(result)
}

impl EarlierAnswers {
    /// The present answers of the recipe in the store and in its journal.
    pub(super) async fn now(
        session: &SessionContext,
        store: &Store,
        downloads: &Path,
        recipe: &Digest,
    ) -> Result<Self, RunError> {
        let parts = store.memo_parts(recipe).await?.sound;
        let unfinished = AnswerJournal::peek(&downloads.join(FOLDER), recipe)?;
        Self::of(session, store, parts, &unfinished, |_| {}).await
    }

    async fn of(
        session: &SessionContext,
        store: &Store,
        mut parts: Vec<MemoPart>,
        unfinished: &[JournalEntry],
        warn: impl Fn(String),
    ) -> Result<Self, RunError> {
        let mut batches = Vec::new();
        parts.sort_by(|a, b| a.created.cmp(&b.created).then(a.blob.cmp(&b.blob)));
        for part in parts {
            let read = async {
                Ok::<_, RunError>(
                    scan_files(session, store, &[part.blob], schema())?.collect().await?,
                )
            };
            match read.await {
                Ok(read) => batches.extend(read),
                // A damaged part is a miss.
                Err(error) => warn(format!("part {} cannot be read: {error}", part.blob.short())),
            }
        }
        batches.extend(table(unfinished)?);
        let places = places(&batches);
        Ok(Self { batches, places })
    }
}

impl KnownAnswers for EarlierAnswers {
    fn known(&self, question: &Digest) -> Vec<&str> {
        let places = self.places.get(question).map(Vec::as_slice).unwrap_or_default();
        let answer = |(batch, row): &(u32, u32)| {
            self.batches[*batch as usize].column(1).as_string::<i32>().value(*row as usize)
        };
        places.iter().map(answer).collect()
    }
}

fn schema() -> SchemaRef {
    let text = |name| Field::new(name, DataType::Utf8, false);
    Arc::new(Schema::new(vec![text("question"), text("answer")]))
}

fn table(entries: &[JournalEntry]) -> Result<Vec<RecordBatch>, RunError> {
    let batch = |entries: &[JournalEntry]| {
        let questions = StringArray::from_iter_values(entries.iter().map(|e| e.0.to_string()));
        let answers = StringArray::from_iter_values(entries.iter().map(|e| e.1.as_str()));
        Ok(RecordBatch::try_new(schema(), vec![Arc::new(questions), Arc::new(answers)])?)
    };
    entries.chunks(BATCH).map(batch).collect()
}

fn places(batches: &[RecordBatch]) -> HashMap<Digest, Vec<(u32, u32)>> {
    let mut places: HashMap<Digest, Vec<(u32, u32)>> = HashMap::new();
    for (at, batch) in batches.iter().enumerate() {
        let questions = batch.column(0).as_string::<i32>();
        for row in 0..questions.len() {
            // A question that is not a digest is never asked again.
            if let Ok(question) = questions.value(row).parse() {
                places.entry(question).or_default().push((at as u32, row as u32));
            }
        }
    }
    places
}

impl KeptAnswers {
    /// Turns the journal into a part, and removes it.
    async fn store(self, cx: &StepContext, recipe: &Digest) -> Result<(), RunError> {
        let fresh = self.fresh.into_inner().unwrap_or_else(PoisonError::into_inner);
        if !fresh.is_empty() {
            let mut batches = table(&fresh)?.into_iter();
            let encoding = BlobEncoding::start(&cx.store, schema(), 1, move || batches.next())?;
            let blob = encoding.finish().await?.commit(&cx.store).await?;
            commit_part(&cx.store, recipe, blob, None).await?;
        }
        Ok(self.journal.remove()?)
    }
}

impl KnownAnswers for KeptAnswers {
    fn known(&self, question: &Digest) -> Vec<&str> {
        self.earlier.known(question)
    }
}

impl Answers for KeptAnswers {
    fn keep<'a>(
        &'a self,
        question: &'a Digest,
        answer: &'a str,
    ) -> BoxFuture<'a, Result<(), StepError>> {
        Box::pin(async move {
            self.journal.keep(question, answer).await.map_err(|error| {
                StepError::from(error).help("an answer that cannot be kept is lost: the step stops")
            })?;
            let mut fresh = locked(&self.fresh);
            fresh.push((*question, answer.to_string()));
            Ok(())
        })
    }
}
