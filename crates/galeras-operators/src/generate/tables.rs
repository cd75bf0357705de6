//! The output tables of `generate`: their columns, and their rows from answers.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::dataframe::DataFrame;
use datafusion::datasource::MemTable;
use serde::Serialize;

use super::args::Extract;
use super::extract::extract;
use super::rows::{ModelAnswer, ModelTurn, NoAnswer, PromptRows, TokenPair};
use super::unanswered::missing_answers;
use crate::typed_rows;
use galeras_base::digest::Digest;
use galeras_base::id::{ID, row_id};
use galeras_chat::Price;
use galeras_operator::columns::text_field;
use galeras_operator::rejects::reject_columns;
use galeras_operator::{
    ArgError, LowerContext, MAIN, Port, Ports, REJECTS, SUMMARY, StepError, TableSchema, Tell,
    describe,
};

/// The column with the prompt's `id`.
pub(super) const PROMPT_ID: &str = "prompt_id";
/// The column that numbers the answers to one prompt.
pub(super) const SAMPLE: &str = "sample";

pub(super) const MODEL: &str = "model";

/// The `finish_reason` of a refusal by the model.
pub(super) const REFUSAL: &str = "refusal";

/// Optional columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AnswerColumns {
    /// Those of log-probabilities.
    pub(super) logprobs: bool,
    /// Several models answer, so rows without an answer name the model.
    pub(super) models: bool,
}

fn count(name: &str, nullable: bool, about: &str, unit: &str) -> FieldRef {
    describe(name, DataType::Int64, nullable, about, Some(unit))
}

fn sample_field() -> FieldRef {
    count(SAMPLE, false, "which of the answers to the prompt, from 0", "samples")
}

fn token_fields(nullable: bool) -> [FieldRef; 2] {
    [
        count("prompt_tokens", nullable, "tokens read, of all turns", "tokens"),
        count("completion_tokens", nullable, "tokens written, in all turns", "tokens"),
    ]
}

/// The columns of [`AnswerRow`].
fn answer_fields(columns: AnswerColumns) -> Vec<FieldRef> {
    let text = |name, about| describe(name, DataType::Utf8, true, about, None);
    let [read, written] = token_fields(true);
    let earlier = "the answers in earlier turns of the conversation";
    let texts = DataType::new_list(DataType::Utf8, true);
    let mut fields = vec![
        text_field(ID, "the row's identity: of the prompt, the model and the sample"),
        text_field(PROMPT_ID, "the `id` of the prompt"),
        text_field(MODEL, "the model that was asked for"),
        sample_field(),
        text_field("prediction", "the code of the answer, or all of it with `extract: raw`"),
        text_field("raw_response", "the answer as it came"),
        text("reasoning", "the model's thoughts: a field of the server, or from between marks"),
        text("finish_reason", "why the answer ends, in the server's word"),
        read,
        written,
        text("reported_model", "the model that the server says it is"),
        describe("earlier_responses", texts, false, earlier, None),
    ];
    if columns.logprobs {
        fields.extend(logprob_fields());
    }
    fields
}

/// The columns of [`Logprobs`].
fn logprob_fields() -> [FieldRef; 4] {
    let float = |name, about| describe(name, DataType::Float64, true, about, Some("nats"));
    let sum = "natural logarithm of the probability of the answer: the sum over its tokens";
    let each = "the tokens of the answer, each with its own";
    let token = Fields::from(vec![
        Field::new("token", DataType::Utf8, true),
        Field::new("logprob", DataType::Float64, true),
    ]);
    let tokens = DataType::new_list(DataType::Struct(token), true);
    [
        float("logprob_sum", sum),
        float("logprob_mean", "the same per token; exp(-x) is the perplexity"),
        count("n_logprobs", true, "tokens with a log-probability", "tokens"),
        describe("token_logprobs", tokens, true, each, None),
    ]
}

/// The columns of [`RejectedRow`].
fn reject_fields(columns: AnswerColumns) -> Vec<FieldRef> {
    let mut fields = reject_columns();
    let body = "the body of a response in which no answer was found";
    fields.push(describe("raw_response", DataType::Utf8, true, body, None));
    if columns.models {
        fields.push(text_field(MODEL, "the model whose answer is missing"));
    }
    fields.push(sample_field());
    fields
}

/// The output ports.
///
/// # Errors
/// If the input has a column of the answers.
pub(super) fn ports(
    input: &TableSchema,
    columns: AnswerColumns,
) -> Result<Vec<Port>, Vec<ArgError>> {
    let answered = input.extended(&answer_fields(columns), &[ID], None)?;
    let mut rejects = input.with(&reject_fields(columns));
    for name in [SAMPLE, MODEL].into_iter().take(1 + usize::from(columns.models)) {
        if !rejects.key.iter().any(|key| key == name) {
            rejects.key.push(name.into());
        }
    }
    let [read, written] = token_fields(false);
    let cost = "what these cost at `price`; null if the server did not tell tokens";
    let summary = TableSchema::default().with(&[
        text_field(MODEL, "the model that was asked for"),
        text_field("reported_model", "the model that the server says it is"),
        count("rows", false, "answered rows", "rows"),
        count("answers", false, "answers that were given, each turn and each only once", "answers"),
        read,
        written,
        describe("cost_usd", DataType::Float64, true, cost, Some("USD")),
    ]);
    Ok(vec![
        Port::new(MAIN, answered.keyed(&[ID])),
        Port::new(REJECTS, rejects),
        Port::new(SUMMARY, summary.keyed(&[MODEL, "reported_model"])),
    ])
}

/// The position of the answer for a row and a sample.
pub(super) struct SampleOutcome {
    pub(super) row: usize,
    pub(super) model: usize,
    pub(super) sample: u32,
    /// The answer's position; rows with the same question share one.
    pub(super) answer: usize,
}

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
    // Answers that may come with the next run have their own warning.
    let unasked: Vec<_> = failed.iter().filter(|(_, why)| !why.again).collect();
    if let Some((_, why)) = unasked.first() {
        let lost = missing_answers(unasked.len(), outcomes.len());
        (cx.tell)(Tell::Warning(format!("{lost}: {}; the port `rejects` lists them", why.reason)));
    }
    let [main, rejects, summary] = form.ports else {
        return Err(StepError::new("a defect: `generate` has three ports"));
    };
    let own = answer_fields(form.columns);
    let main = table(cx, rows, &main.table, &own, &answered, |outcome, answer| {
        AnswerRow::new(form, &rows.ids[outcome.row], outcome, answer)
    })?;
    let own = reject_fields(form.columns);
    let rejects = table(cx, rows, &rejects.table, &own, &failed, |outcome, why| RejectedRow {
        rule: &why.rule,
        reason: &why.reason,
        raw_response: why.unread.as_deref(),
        model: form.columns.models.then(|| form.models[outcome.model].as_str()),
        sample: outcome.sample,
    })?;
    let summed = summed(form, outcomes, answers);
    let summary = typed_rows::table(&cx.session, &summary.table.stored(), summed)?;
    Ok(vec![(MAIN, main), (REJECTS, rejects), (SUMMARY, summary)])
}

/// The table of these outcomes: a row's `own` columns, the others from the input.
fn table<'a, T, Row: Serialize>(
    cx: &LowerContext,
    rows: &PromptRows,
    table: &TableSchema,
    own: &[FieldRef],
    all: &[(&'a SampleOutcome, &'a T)],
    row: impl Fn(&'a SampleOutcome, &'a T) -> Row,
) -> Result<DataFrame, StepError> {
    let (schema, own) = (table.stored(), TableSchema::default().with(own).stored());
    let own = typed_rows::batches(&own, all.iter().map(|&(outcome, result)| row(outcome, result)))?;
    let mut batches = Vec::with_capacity(own.len());
    for (part, own) in all.chunks(typed_rows::BATCH).zip(own) {
        let part: Vec<usize> = part.iter().map(|(outcome, _)| outcome.row).collect();
        let columns = schema.fields().iter().map(|field| match own.column_by_name(field.name()) {
            Some(column) => Ok(Arc::clone(column)),
            None => rows.values(field.name(), &part),
        });
        let columns = columns.collect::<Result<Vec<ArrayRef>, StepError>>()?;
        batches.push(RecordBatch::try_new(Arc::clone(&schema), columns)?);
    }
    Ok(cx.session.read_table(Arc::new(MemTable::try_new(schema, vec![batches])?))?)
}

/// The values that `rejects` adds to a row without an answer.
#[derive(Serialize)]
struct RejectedRow<'a> {
    rule: &'a str,
    reason: &'a str,
    raw_response: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    sample: u32,
}

/// The values that an answer adds to its row.
#[derive(Serialize)]
struct AnswerRow<'a> {
    id: String,
    prompt_id: &'a str,
    model: &'a str,
    sample: u32,
    prediction: Cow<'a, str>,
    raw_response: &'a str,
    reasoning: Option<Cow<'a, str>>,
    finish_reason: Option<&'a str>,
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    reported_model: Option<&'a str>,
    earlier_responses: Vec<&'a str>,
    #[serde(flatten)]
    logprobs: Option<Logprobs<'a>>,
}

impl<'a> AnswerRow<'a> {
    fn new(
        form: &AnswerForm<'a>,
        prompt_id: &'a str,
        outcome: &SampleOutcome,
        answer: &'a ModelAnswer,
    ) -> Self {
        let (model, sample) = (form.models[outcome.model].as_str(), outcome.sample);
        let id = row_id([prompt_id, model, &sample.to_string()].map(str::as_bytes));
        let last = answer.last();
        let raw_response = last.map_or("", |turn| turn.content.as_str());
        let finish_reason = last.and_then(|turn| turn.finish_reason.as_deref());
        let (prediction, marked) = match (finish_reason, form.extract) {
            (Some(REFUSAL), _) => (Cow::Borrowed(""), None),
            (_, Extract::Code) => {
                let found = extract(raw_response);
                let code = found.code.trim_end_matches(['\r', '\n']).to_owned();
                (Cow::Owned(code), found.reasoning)
            }
            (_, Extract::Raw) => (Cow::Borrowed(raw_response), None),
        };
        let reasoning = last.and_then(|turn| turn.reasoning.as_deref()).map(Cow::Borrowed);
        // Tokens are unknown if the server did not report those of some turn.
        let tokens = |of: fn(&ModelTurn) -> Option<u64>| {
            answer.iter().map(of).sum::<Option<u64>>().filter(|sum| i64::try_from(*sum).is_ok())
        };
        let earlier = answer.iter().take(answer.len().saturating_sub(1));
        let logprobs = last.and_then(|turn| turn.logprobs.as_deref());
        Self {
            id,
            prompt_id,
            model,
            sample,
            prediction,
            raw_response,
            reasoning: reasoning.or_else(|| marked.map(Cow::Owned)),
            finish_reason,
            prompt_tokens: tokens(|turn| turn.prompt_tokens),
            completion_tokens: tokens(|turn| turn.completion_tokens),
            reported_model: last.and_then(|turn| turn.model.as_deref()),
            earlier_responses: earlier.map(|turn| turn.content.as_str()).collect(),
            logprobs: logprobs.filter(|_| form.columns.logprobs).map(Logprobs::new),
        }
    }
}

/// The log-probabilities of an answer's tokens.
#[derive(Serialize)]
struct Logprobs<'a> {
    logprob_sum: Option<f64>,
    logprob_mean: Option<f64>,
    n_logprobs: usize,
    token_logprobs: Vec<TokenLogprob<'a>>,
}

#[derive(Serialize)]
struct TokenLogprob<'a> {
    token: &'a str,
    logprob: Option<f64>,
}

impl<'a> Logprobs<'a> {
    /// The sum, in the order of the tokens, and the mean are `None` if any is unknown.
    fn new(tokens: &'a [TokenPair]) -> Self {
        let sum = tokens.iter().try_fold(0.0, |sum, (_, logprob)| Some(sum + (*logprob)?));
        let sum = sum.filter(|sum: &f64| sum.is_finite());
        let mean = sum.map(|sum| sum / tokens.len() as f64).filter(|mean| mean.is_finite());
        let token = |(token, logprob): &'a TokenPair| TokenLogprob { token, logprob: *logprob };
        Self {
            logprob_sum: sum,
            logprob_mean: mean,
            n_logprobs: tokens.iter().filter(|(_, logprob)| logprob.is_some()).count(),
            token_logprobs: tokens.iter().map(token).collect(),
        }
    }
}

/// A row of the port `summary`.
#[derive(Serialize)]
struct SummaryRow<'a> {
    model: &'a str,
    reported_model: &'a str,
    rows: u64,
    answers: u64,
    prompt_tokens: u64,
    completion_tokens: u64,
    cost_usd: Option<f64>,
    /// The server did not report the tokens of some answer.
    #[serde(skip)]
    untold: bool,
}

/// The totals of the answers by the requested model and the model that the server names. An answer
/// that several rows share was paid once.
fn summed<'a>(
    form: &AnswerForm<'a>,
    outcomes: &[SampleOutcome],
    answers: &'a [Result<ModelAnswer, NoAnswer>],
) -> Vec<SummaryRow<'a>> {
    let mut sums: BTreeMap<(&str, &str), SummaryRow<'a>> = BTreeMap::new();
    let mut counted: HashSet<Digest> = HashSet::new();
    let mut seen = vec![false; answers.len()];
    for outcome in outcomes {
        let Ok(answer) = &answers[outcome.answer] else { continue };
        let model = form.models[outcome.model].as_str();
        let reported_model = answer.last().and_then(|turn| turn.model.as_deref()).unwrap_or(model);
        let sums = sums.entry((model, reported_model)).or_insert_with(|| SummaryRow {
            model,
            reported_model,
            rows: 0,
            answers: 0,
            prompt_tokens: 0,
            completion_tokens: 0,
            cost_usd: None,
            untold: false,
        });
        sums.rows += 1;
        if std::mem::replace(&mut seen[outcome.answer], true) {
            continue;
        }
        // Conversations with the same beginning share its answers.
        for turn in answer.iter().filter(|turn| turn.question.is_none_or(|q| counted.insert(q))) {
            sums.answers += 1;
            sums.prompt_tokens += turn.prompt_tokens.unwrap_or(0);
            sums.completion_tokens += turn.completion_tokens.unwrap_or(0);
            sums.untold |= turn.prompt_tokens.is_none() || turn.completion_tokens.is_none();
        }
    }
    let mut rows: Vec<SummaryRow<'a>> = sums.into_values().collect();
    for row in rows.iter_mut().filter(|row| !row.untold) {
        let usd = form.price.map(|price| price.of(row.prompt_tokens, row.completion_tokens));
        let number = usd.map(|usd| usd.to_string().trim_start_matches('$').parse::<f64>());
        row.cost_usd = number.and_then(Result::ok);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_null() {
        for (logprobs, sum, mean, n) in [
            (vec![Some(-0.5), Some(-1.5)], Some(-2.0), Some(-1.0), 2),
            (vec![Some(-0.5), None], None, None, 1),
            (vec![], Some(0.0), None, 0),
            (vec![Some(-f64::MAX), Some(-f64::MAX)], None, None, 2),
        ] {
            let tokens: Vec<TokenPair> =
                logprobs.iter().map(|logprob| ("t".to_string(), *logprob)).collect();
            let found = Logprobs::new(&tokens);
            assert_eq!((found.logprob_sum, found.logprob_mean), (sum, mean), "{logprobs:?}");
            assert_eq!(found.n_logprobs, n, "{logprobs:?}");
            let listed = found.token_logprobs.iter().map(|token| (token.token, token.logprob));
            let wanted = logprobs.iter().map(|logprob| ("t", *logprob));
            assert_eq!(listed.collect::<Vec<_>>(), wanted.collect::<Vec<_>>());
            let schema = TableSchema::default().with(&logprob_fields()).stored();
            let batches = typed_rows::batches(
                &schema,
                [Some(found), None].map(|logprobs| OneRow { logprobs }),
            )
            .unwrap();
            let nulls = |name| batches[0].column_by_name(name).unwrap().null_count();
            assert_eq!(nulls("logprob_sum"), 1 + usize::from(sum.is_none()), "{logprobs:?}");
            assert_eq!((nulls("n_logprobs"), nulls("token_logprobs")), (1, 1), "{logprobs:?}");
        }
    }

    #[derive(Serialize)]
    struct OneRow<'a> {
        #[serde(flatten)]
        logprobs: Option<Logprobs<'a>>,
    }
}
