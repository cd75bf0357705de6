//! Answers of an n-gram model trained on a table of the same workflow: excludes texts that a row
//! must not be learned from, and formats the answers. `galeras_ngram` has the model.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arrow::array::AsArray;
use arrow::datatypes::DataType;
use datafusion::dataframe::DataFrame;
use datafusion::logical_expr::cast;
use serde_json::{Value, json};

use super::TRAIN;
use super::args::GenerateArgs;
use super::local::LocalAnswers;
use super::rows::{ModelAnswer, ModelTurn, NoAnswer, PromptRows, require_texts};
use super::tables::SampleOutcome;
use galeras_base::id::{ID, keyed_hash};
use galeras_ngram::{CompletionBuffers, CompletionSettings, NgramModel, NgramPrompt, count_tokens};
use galeras_operator::columns::{is_text, require_column};
use galeras_operator::worker_threads::{StopOnDrop, on_thread, pool};
use galeras_operator::{ArgError, BindContext, LowerContext, StepError, Tell};
use galeras_sql::functions::Message;
use galeras_sql::session::column;

/// The default of `max_tokens`.
const MAX_TOKENS: u64 = 256;
/// The default temperature: at 0 an n-gram model repeats itself.
const TEMPERATURE: f64 = 0.8;
/// The column with the data point's `id` in the output of `prompt`.
const SNIPPET_ID: &str = "snippet_id";

pub(super) fn check(args: &GenerateArgs, cx: &BindContext, errors: &mut Vec<ArgError>) {
    require_column(cx, "code", args.code(), "utf8", is_text, errors);
    if let Some(train) = cx.inputs.get(TRAIN) {
        require_texts(train, "train_column", args.train_column(), errors);
    }
}

/// The arguments with their defaults.
pub(super) fn resolved(args: &GenerateArgs, model: &str) -> Value {
    json!({
        "provider": "ngram",
        "model": model,
        "messages": args.messages(),
        "code": args.code(),
        "train_column": args.train_column(),
        "order": args.order(),
        "temperature": args.temperature.unwrap_or(TEMPERATURE),
        "max_tokens": args.max_tokens.unwrap_or(MAX_TOKENS),
        "stop": args.stop,
        "seed": args.seed,
        "samples": args.samples(),
        "extract": args.extract(false),
    })
}

/// The texts to learn from, with an index by row.
struct Corpus {
    /// Distinct texts in alphabetical order, with their counts.
    texts: Vec<(String, u32)>,
    /// The number of texts, including repeats.
    count: usize,
    /// The positions of an id's texts; ids need not be unique if another column is the key.
    by_id: HashMap<String, Vec<usize>>,
}

impl Corpus {
    async fn read(table: DataFrame, name: &str) -> Result<Self, StepError> {
        let has_id = table.schema().fields().iter().any(|field| field.name() == ID);
        let id = if has_id { column(ID) } else { datafusion::logical_expr::lit("") };
        let columns = vec![column(name), cast(id, DataType::Utf8).alias("__id")];
        let mut rows: Vec<(String, String)> = Vec::new();
        for batch in table.select(columns)?.collect().await? {
            let texts = batch.column(0).as_string::<i32>();
            let ids = batch.column(1).as_string::<i32>();
            rows.extend(texts.iter().zip(ids).filter_map(|(text, id)| {
                Some((text?.to_string(), id.unwrap_or_default().to_string()))
            }));
        }
        rows.sort_unstable();
        Ok(Self::of(rows))
    }

    fn of(rows: Vec<(String, String)>) -> Self {
        let count = rows.len();
        let mut by_id: HashMap<String, Vec<usize>> = HashMap::new();
        let mut texts: Vec<(String, u32)> = Vec::new();
        for (text, id) in rows {
            match texts.last_mut().filter(|(last, _)| *last == text) {
                Some((_, times)) => *times = times.saturating_add(1),
                None => texts.push((text, 1)),
            }
            let (at, of_id) = (texts.len() - 1, by_id.entry(id).or_default());
            if of_id.last() != Some(&at) {
                of_id.push(at);
            }
        }
        Self { texts, count, by_id }
    }

    fn all(&self) -> Vec<&str> {
        let mut all = Vec::with_capacity(self.count);
        for (text, times) in &self.texts {
            all.extend(std::iter::repeat_n(text.as_str(), *times as usize));
        }
        all
    }

    /// The texts that must not be used to complete a row, with their counts: its own text, and any
    /// that begins with the code to continue. These include all equal texts.
    fn own(&self, ids: &[Option<&str>], code: &str) -> Vec<(&str, u32)> {
        let code = code.trim_end();
        let begins = |text: &str| !code.is_empty() && text.starts_with(code);
        let first = self.texts.partition_point(|(text, _)| text.as_str() < code);
        let with_code = (first..self.texts.len()).take_while(|at| begins(&self.texts[*at].0));
        let of_ids = ids.iter().flatten().flat_map(|id| self.by_id.get(*id)).flatten().copied();
        let mut places: Vec<usize> = with_code.chain(of_ids).collect();
        places.sort_unstable();
        places.dedup();
        places.into_iter().map(|at| (self.texts[at].0.as_str(), self.texts[at].1)).collect()
    }
}

/// Trains the model, and answers each row as often as wanted.
pub(super) async fn answers(
    args: &GenerateArgs,
    cx: &LowerContext,
    rows: PromptRows,
    train: DataFrame,
) -> Result<LocalAnswers, StepError> {
    let corpus = Corpus::read(train, args.train_column()).await?;
    let conversations = rows.conversations(args.messages());
    let samples = args.samples();
    let outcomes: Vec<SampleOutcome> = (0..rows.len())
        .flat_map(|row| (0..samples).map(move |sample| (row, sample)))
        .enumerate()
        .map(|(answer, (row, sample))| SampleOutcome { row, model: 0, sample, answer })
        .collect();
    let work = Work { args: args.clone(), corpus, rows, conversations };
    (cx.tell)(Tell::Activity(format!("learning from {} texts", work.corpus.count)));
    (cx.tell)(Tell::Total { work: outcomes.len() as u64, reused: 0 });
    let stop = StopOnDrop::default();
    let (stopped, jobs, tell) = (stop.flag(), cx.env.jobs, Arc::clone(&cx.tell));
    on_thread(move || {
        let answers =
            work.answers(&outcomes, jobs, &stopped, &|done| tell(Tell::Progress(done)))?;
        Ok(LocalAnswers { rows: work.rows, outcomes, answers })
    })
    .await
}

struct Work {
    args: GenerateArgs,
    corpus: Corpus,
    rows: PromptRows,
    conversations: Vec<Result<Vec<Message>, NoAnswer>>,
}

const CHUNK: usize = 32;

impl Work {
    fn answers(
        &self,
        outcomes: &[SampleOutcome],
        jobs: usize,
        stopped: &AtomicBool,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<Vec<Result<ModelAnswer, NoAnswer>>, StepError> {
        let pool = pool(jobs)?;
        let model = pool.install(|| NgramModel::train(self.args.order(), &self.corpus.all()));
        let model = model.map_err(|error| StepError::new(error.to_string()))?;
        let codes = self.rows.texts(self.args.code());
        let snippets = self.rows.texts(SNIPPET_ID);
        let done = AtomicU64::new(0);
        let chunk = |outcomes: &[SampleOutcome]| {
            let mut scratch = CompletionBuffers::default();
            let answers: Vec<Result<ModelAnswer, NoAnswer>> = outcomes
                .iter()
                .take_while(|_| !stopped.load(Ordering::Relaxed))
                .map(|outcome| {
                    let ids = [Some(self.rows.ids[outcome.row].as_str()), snippets[outcome.row]];
                    self.answer(&model, &mut scratch, outcome, codes[outcome.row], &ids)
                })
                .collect();
            let answered = outcomes.len() as u64;
            progress(done.fetch_add(answered, Ordering::Relaxed) + answered);
            answers
        };
        let answers: Vec<_> = pool.install(|| {
            use rayon::prelude::{ParallelIterator, ParallelSlice};
            outcomes.par_chunks(CHUNK).map(chunk).collect()
        });
        if stopped.load(Ordering::Relaxed) {
            return Err(StepError::interrupted());
        }
        Ok(answers.into_iter().flatten().collect())
    }

    fn answer(
        &self,
        model: &NgramModel,
        scratch: &mut CompletionBuffers,
        outcome: &SampleOutcome,
        code: Option<&str>,
        ids: &[Option<&str>],
    ) -> Result<ModelAnswer, NoAnswer> {
        let Some(code) = code else {
            let reason = format!("the column `{}` is null", self.args.code());
            return Err(NoAnswer::of_row("code", reason));
        };
        let messages = self.conversations[outcome.row].as_ref().map_err(Clone::clone)?;
        let said: Vec<&str> = messages.iter().map(|message| message.content.as_str()).collect();
        let context = said.join("\n");
        let purpose = format!("ngram/{}", outcome.sample);
        let own = self.corpus.own(ids, code);
        let completion = model.complete(
            scratch,
            &NgramPrompt { context: &context, code, own: &own },
            &CompletionSettings {
                temperature: self.args.temperature.unwrap_or(TEMPERATURE),
                max_tokens: self.args.max_tokens.unwrap_or(MAX_TOKENS),
                stop: &self.args.stop,
                seed: keyed_hash(
                    self.args.seed.unwrap_or_default(),
                    &purpose,
                    self.rows.ids[outcome.row].as_bytes(),
                ),
            },
        );
        Ok(vec![ModelTurn {
            content: fenced(&format!("{code}{}", completion.text)),
            finish_reason: Some(completion.finish_reason.as_str().into()),
            prompt_tokens: Some(count_tokens(&context)),
            completion_tokens: Some(completion.tokens),
            ..ModelTurn::default()
        }])
    }
}

/// The code in the form of a chat model, in a fence longer than any in the code.
fn fenced(code: &str) -> String {
    let longest = code.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}python\n{code}\n{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corpus(rows: &[(&str, &str)]) -> Corpus {
        let mut rows: Vec<(String, String)> =
            rows.iter().map(|(text, id)| (text.to_string(), id.to_string())).collect();
        rows.sort_unstable();
        Corpus::of(rows)
    }

    #[test]
    fn a_row_is_not_completed_from_itself() {
        let rows = [("def a(): 1", "a"), ("def a(): 1", "b"), ("def a(): 2", "c"), ("x", "d")];
        let corpus = corpus(&rows);
        // By its code, for any ids.
        assert_eq!(corpus.own(&[None], "def a(): 1"), [("def a(): 1", 2)]);
        let both = [("def a(): 1", 2), ("def a(): 2", 1)];
        assert_eq!(corpus.own(&[None], "def a():  "), both);
        // By its id, if the code to continue was changed; equal texts are excluded with it.
        assert_eq!(corpus.own(&[Some("b"), None], "async def"), [("def a(): 1", 2)]);
        assert_eq!(corpus.own(&[Some("b"), Some("d")], ""), [("def a(): 1", 2), ("x", 1)]);
        assert_eq!(corpus.own(&[Some("a")], "def a"), both);
        assert!(corpus.own(&[Some("e")], "y").is_empty());
        assert_eq!((corpus.count, corpus.all()[..2].to_vec()), (4, vec!["def a(): 1"; 2]));
        let corpus = super::tests::corpus(&[("one", "a"), ("two", "a"), ("three", "b")]);
        assert_eq!(corpus.own(&[Some("a")], ""), [("one", 1), ("two", 1)]);
    }

    #[test]
    fn code_is_found_again_in_its_fence() {
        for code in ["def f(): 1", "\"\"\"\n```\n\"\"\"", "`````"] {
            assert_eq!(
                super::super::extract::extract(&fenced(code)).code.trim_end_matches('\n'),
                code
            );
        }
    }
}
