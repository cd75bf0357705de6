//! The rows to answer, and the output tables: answers as columns after those of the row, rows
//! without an answer, the summary.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int64Array, ListBuilder, RecordBatch, StringArray,
    StringBuilder,
};
use arrow::compute::interleave;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::dataframe::DataFrame;
use datafusion::datasource::MemTable;
use datafusion::logical_expr::cast;
use serde::{Deserialize, Serialize};

use super::args::Extract;
use super::extract;
use super::logprobs::{self, TokenPair};
use super::ports::{AnswerColumns, MODEL, PROMPT_ID, SAMPLE};
use galeras_base::digest::Digest;
use galeras_base::id::{ID, row_id};
use galeras_chat::{Price, Usd};
use galeras_operator::{INPUT, LowerContext, MAIN, Port, Ports, REJECTS, SUMMARY, StepError};
use galeras_sql::functions::{Message, RowId, call, conversation};
use galeras_sql::session::column;

const BATCH: usize = 8192;

/// A message of the model: one turn of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct ModelTurn {
    pub(super) content: String,
    /// The reason for the end of the text, in the server's words.
    pub(super) finish_reason: Option<String>,
    /// The model that the server names.
    pub(super) model: Option<String>,
    /// Tokens of the prompt, counted by the server.
    pub(super) prompt_tokens: Option<u64>,
    pub(super) completion_tokens: Option<u64>,
    /// The tokens of the answer and their log-probabilities, if requested and returned by the
    /// server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) logprobs: Option<Vec<TokenPair>>,
    /// The question, since several conversations may share an answer.
    #[serde(skip)]
    pub(super) question: Option<Digest>,
}

/// The answer to a conversation: every turn of the model.
pub(super) type ModelAnswer = Vec<ModelTurn>;

/// The reason for a missing answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NoAnswer {
    /// A stable word for the kind of failure.
    pub(super) rule: String,
    /// The error.
    pub(super) reason: String,
    /// The next run may succeed.
    pub(super) again: bool,
}

impl NoAnswer {
    /// A failure caused by the row.
    pub(super) fn of_row(rule: &str, reason: impl Into<String>) -> Self {
        Self { rule: rule.into(), reason: reason.into(), again: false }
    }
}

/// The input in memory.
pub(super) struct PromptRows {
    batches: Vec<RecordBatch>,
    /// The batch and row of each.
    places: Vec<(usize, usize)>,
    pub(super) ids: Vec<String>,
}

impl PromptRows {
    pub(super) async fn of(
        mut inputs: BTreeMap<String, DataFrame>,
        key: &[String],
    ) -> Result<Self, StepError> {
        let input = inputs.remove(INPUT);
        let input = input.ok_or_else(|| StepError::new("`generate` needs an input table"))?;
        Self::read(input, key).await
    }

    /// Reads all rows; `key` identifies them.
    pub(super) async fn read(input: DataFrame, key: &[String]) -> Result<Self, StepError> {
        let id = match key {
            [id] => cast(column(id), DataType::Utf8),
            keys => call::<RowId>(keys.iter().map(|name| column(name)).collect()),
        };
        let batches = input.with_column(PARENT, id)?.collect().await?;
        let mut rows = Self { batches: Vec::new(), places: Vec::new(), ids: Vec::new() };
        for mut batch in batches.into_iter().filter(|batch| batch.num_rows() > 0) {
            let ids = batch.remove_column(batch.num_columns() - 1);
            let ids = ids.as_string::<i32>();
            rows.places.extend((0..batch.num_rows()).map(|row| (rows.batches.len(), row)));
            rows.ids.extend(ids.iter().map(|id| id.unwrap_or_default().to_string()));
            rows.batches.push(batch);
        }
        Ok(rows)
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// The conversation of each row, from a list of messages or a text of the user; or the reason
    /// why there is none.
    pub(super) fn conversations(&self, name: &str) -> Vec<Result<Vec<Message>, NoAnswer>> {
        let said = |(batch, row): &(usize, usize)| -> Result<Vec<Message>, String> {
            let column = self.batches[*batch].column_by_name(name);
            let column = column.ok_or("there is no such column")?;
            if column.is_null(*row) {
                return Err("there is no conversation".into());
            }
            let said = match column.as_list_opt::<i32>() {
                Some(list) => conversation(list, *row)?,
                None => {
                    let text = column.as_string_opt::<i32>();
                    let text = text.ok_or("it is neither messages nor a text")?;
                    vec![Message { role: "user".into(), content: text.value(*row).into() }]
                }
            };
            match said.last().is_some_and(|last| last.role == "user") {
                true => Ok(said),
                false => Err("a conversation ends with a message of the user".into()),
            }
        };
        let failed =
            |why: String| NoAnswer::of_row("messages", format!("the column `{name}`: {why}"));
        self.places.iter().map(|place| said(place).map_err(failed)).collect()
    }

    /// The texts of a column; null if null or absent.
    pub(super) fn texts(&self, name: &str) -> Vec<Option<&str>> {
        let columns: Vec<Option<&StringArray>> = self
            .batches
            .iter()
            .map(|batch| batch.column_by_name(name).and_then(|c| c.as_string_opt::<i32>()))
            .collect();
        let text = |(batch, row): &(usize, usize)| {
            columns[*batch].filter(|texts| texts.is_valid(*row)).map(|texts| texts.value(*row))
        };
        self.places.iter().map(text).collect()
    }

    /// The comparable values of a row's columns.
    pub(super) fn key_of(&self, row: usize, columns: &[Vec<ArrayRef>]) -> Vec<Option<String>> {
        let (batch, at) = self.places[row];
        columns.iter().map(|column| text_of(&column[batch], at)).collect()
    }

    /// These columns as texts, by batch.
    pub(super) fn as_texts(&self, names: &[String]) -> Result<Vec<Vec<ArrayRef>>, StepError> {
        names.iter().map(|name| texts_of(&self.batches, name)).collect()
    }
}

/// The id of the input's row, until the output's replaces it.
const PARENT: &str = "__parent";

pub(super) fn texts_of(batches: &[RecordBatch], name: &str) -> Result<Vec<ArrayRef>, StepError> {
    let column = |batch: &RecordBatch| {
        let column = batch.column_by_name(name);
        let column = column.ok_or_else(|| StepError::new(format!("no column `{name}`")))?;
        Ok(arrow::compute::cast(column, &DataType::Utf8)?)
    };
    batches.iter().map(column).collect()
}

pub(super) fn text_of(column: &ArrayRef, at: usize) -> Option<String> {
    let texts = column.as_string::<i32>();
    texts.is_valid(at).then(|| texts.value(at).to_string())
}

/// The position of the answer for a row and a sample.
pub(super) struct SampleOutcome {
    pub(super) row: usize,
    pub(super) model: usize,
    pub(super) sample: u32,
    /// The answer's position; rows with the same question share one.
    pub(super) answer: usize,
}

/// Settings for the columns of answers.
pub(super) struct AnswerForm<'a> {
    pub(super) models: &'a [String],
    pub(super) columns: AnswerColumns,
    pub(super) extract: Extract,
    pub(super) price: Option<Price>,
    pub(super) ports: &'a [Port],
}

/// The output ports: answered rows, rows without an answer, the summary.
pub(super) fn tables(
    cx: &LowerContext,
    form: &AnswerForm<'_>,
    rows: &PromptRows,
    outcomes: &[SampleOutcome],
    answers: &[Result<ModelAnswer, NoAnswer>],
) -> Result<Ports, StepError> {
    let (mut answered, mut failed) = (Vec::new(), Vec::new());
    for outcome in outcomes {
        match &answers[outcome.answer] {
            Ok(answer) => answered.push((outcome, answer)),
            Err(why) => failed.push((outcome, why)),
        }
    }
    let [main, rejects, summary] = form.ports else {
        return Err(StepError::new("a defect: `generate` has three ports"));
    };
    let main = batches(rows, &main.table.stored(), &answered, |name, part| {
        answered_column(form, rows, name, part)
    })?;
    let rejected = batches(rows, &rejects.table.stored(), &failed, |name, part| {
        let text = |of: fn(&NoAnswer) -> &str| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(part.iter().map(|(_, why)| of(why))))
        };
        match name {
            "rule" => Some(text(|why| &why.rule)),
            "reason" => Some(text(|why| &why.reason)),
            SAMPLE => Some(samples(part)),
            MODEL if form.columns.models => Some(models(form, part)),
            _ => None,
        }
    })?;
    let summed = summed(form, &summary.table.stored(), outcomes, answers)?;
    let table = |batches: Vec<RecordBatch>, port: &Port| -> Result<DataFrame, StepError> {
        let table = MemTable::try_new(port.table.stored(), vec![batches])?;
        Ok(cx.session.read_table(Arc::new(table))?)
    };
    Ok(vec![
        (MAIN, table(main, &form.ports[0])?),
        (REJECTS, table(rejected, &form.ports[1])?),
        (SUMMARY, table(vec![summed], &form.ports[2])?),
    ])
}

/// One part of the output: outcomes with their results.
type Part<'a, T> = [(&'a SampleOutcome, &'a T)];

/// Batches of `schema`: columns from `produced`, the others from the input.
fn batches<T>(
    rows: &PromptRows,
    schema: &SchemaRef,
    all: &Part<'_, T>,
    produced: impl Fn(&str, &Part<'_, T>) -> Option<ArrayRef>,
) -> Result<Vec<RecordBatch>, StepError> {
    let mut batches = Vec::with_capacity(all.len().div_ceil(BATCH));
    for part in all.chunks(BATCH) {
        let places: Vec<(usize, usize)> =
            part.iter().map(|(outcome, _)| rows.places[outcome.row]).collect();
        let column = |field: &Arc<arrow::datatypes::Field>| -> Result<ArrayRef, StepError> {
            if let Some(array) = produced(field.name(), part) {
                return Ok(array);
            }
            let columns: Option<Vec<&dyn Array>> = rows
                .batches
                .iter()
                .map(|batch| batch.column_by_name(field.name()).map(|column| column.as_ref()))
                .collect();
            let columns = columns
                .ok_or_else(|| StepError::new(format!("the input has no `{}`", field.name())))?;
            Ok(interleave(&columns, &places)?)
        };
        let columns: Result<Vec<ArrayRef>, StepError> =
            schema.fields().iter().map(column).collect();
        batches.push(RecordBatch::try_new(Arc::clone(schema), columns?)?);
    }
    Ok(batches)
}

fn samples<T>(part: &Part<'_, T>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(part.iter().map(|(o, _)| i64::from(o.sample))))
}

fn models<T>(form: &AnswerForm<'_>, part: &Part<'_, T>) -> ArrayRef {
    let names = part.iter().map(|(outcome, _)| form.models[outcome.model].as_str());
    Arc::new(StringArray::from_iter_values(names))
}

/// A column made from answers; `None` for a column of the input.
fn answered_column(
    form: &AnswerForm<'_>,
    rows: &PromptRows,
    name: &str,
    part: &Part<'_, ModelAnswer>,
) -> Option<ArrayRef> {
    if form.columns.logprobs {
        let told = part.iter().map(|(_, answer)| answer.last()?.logprobs.as_deref());
        if let Some(column) = logprobs::column(name, told) {
            return Some(column);
        }
    }
    let last = |answer: &ModelAnswer| answer.last().cloned().unwrap_or_default();
    // Tokens are unknown if the server did not report those of some turn.
    let tokens = |of: fn(&ModelTurn) -> Option<u64>| -> ArrayRef {
        let sums = part.iter().map(|(_, answer)| {
            let sum: Option<u64> = answer.iter().map(of).sum();
            sum.and_then(|sum| i64::try_from(sum).ok())
        });
        Arc::new(sums.collect::<Int64Array>())
    };
    let texts = |of: &dyn Fn(&SampleOutcome, &ModelAnswer) -> Option<String>| -> ArrayRef {
        let mut texts = StringBuilder::new();
        part.iter().for_each(|(outcome, answer)| texts.append_option(of(outcome, answer)));
        Arc::new(texts.finish())
    };
    Some(match name {
        ID => texts(&|outcome, _| {
            let sample = outcome.sample.to_string();
            let parent = rows.ids[outcome.row].as_bytes();
            let model = form.models[outcome.model].as_bytes();
            Some(row_id([parent, model, sample.as_bytes()]))
        }),
        PROMPT_ID => texts(&|outcome, _| Some(rows.ids[outcome.row].clone())),
        MODEL => models(form, part),
        SAMPLE => samples(part),
        "prediction" => texts(&|_, answer| {
            let turn = last(answer);
            Some(match (turn.finish_reason.as_deref(), form.extract) {
                (Some(REFUSAL), _) => String::new(),
                (_, Extract::Code) => {
                    extract::code(&turn.content).trim_end_matches(['\r', '\n']).into()
                }
                (_, Extract::Raw) => turn.content,
            })
        }),
        "raw_response" => texts(&|_, answer| Some(last(answer).content)),
        "finish_reason" => texts(&|_, answer| last(answer).finish_reason),
        "prompt_tokens" => tokens(|turn| turn.prompt_tokens),
        "completion_tokens" => tokens(|turn| turn.completion_tokens),
        "reported_model" => texts(&|_, answer| last(answer).model),
        "earlier_responses" => {
            let mut lists = ListBuilder::new(StringBuilder::new());
            for (_, answer) in part {
                for turn in answer.iter().take(answer.len().saturating_sub(1)) {
                    lists.values().append_value(&turn.content);
                }
                lists.append(true);
            }
            Arc::new(lists.finish())
        }
        _ => return None,
    })
}

/// The `finish_reason` of a refusal by the model.
pub(super) const REFUSAL: &str = "refusal";

/// The totals of the answers by the requested model and the model that the server names. An answer
/// that several rows share was paid once.
fn summed(
    form: &AnswerForm<'_>,
    schema: &SchemaRef,
    outcomes: &[SampleOutcome],
    answers: &[Result<ModelAnswer, NoAnswer>],
) -> Result<RecordBatch, StepError> {
    #[derive(Default)]
    struct Sums {
        rows: i64,
        answers: i64,
        tokens: [u64; 2],
        /// The server did not report the tokens of some answer.
        untold: bool,
    }
    let mut sums: BTreeMap<(&str, String), Sums> = BTreeMap::new();
    let mut counted: HashSet<Digest> = HashSet::new();
    let mut seen = vec![false; answers.len()];
    for outcome in outcomes {
        let Ok(answer) = &answers[outcome.answer] else { continue };
        let model = form.models[outcome.model].as_str();
        let reported = answer.last().and_then(|turn| turn.model.as_deref()).unwrap_or(model);
        let sums = sums.entry((model, reported.to_string())).or_default();
        sums.rows += 1;
        if std::mem::replace(&mut seen[outcome.answer], true) {
            continue;
        }
        // Conversations with the same beginning share its answers.
        for turn in answer.iter().filter(|turn| turn.question.is_none_or(|q| counted.insert(q))) {
            sums.answers += 1;
            sums.tokens[0] += turn.prompt_tokens.unwrap_or(0);
            sums.tokens[1] += turn.completion_tokens.unwrap_or(0);
            sums.untold |= turn.prompt_tokens.is_none() || turn.completion_tokens.is_none();
        }
    }
    let count = |of: &dyn Fn(&Sums) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(sums.values().map(of)))
    };
    let tokens = |at: usize| count(&|sums| i64::try_from(sums.tokens[at]).unwrap_or(i64::MAX));
    let cost = sums.values().map(|sums| {
        if sums.untold {
            return None;
        }
        let usd: Usd = form.price?.of(sums.tokens[0], sums.tokens[1]);
        usd.to_string().trim_start_matches('$').parse::<f64>().ok()
    });
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(sums.keys().map(|(model, _)| model))),
        Arc::new(StringArray::from_iter_values(sums.keys().map(|(_, reported)| reported))),
        count(&|sums| sums.rows),
        count(&|sums| sums.answers),
        tokens(0),
        tokens(1),
        Arc::new(cost.collect::<Float64Array>()),
    ];
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}

/// The error of a step that keeps the answers for this many rows.
pub(super) fn with_kept(error: StepError, rows: u64) -> StepError {
    let kept = match rows {
        0 => return error,
        1 => "the answer for one row is kept".to_string(),
        n => format!("the answers for {n} rows are kept"),
    };
    let advice = error.advice().map(|advice| format!("{advice}; {kept}")).unwrap_or(kept);
    error.help(advice)
}
