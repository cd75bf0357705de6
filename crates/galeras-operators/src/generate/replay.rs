//! Answers from a table: those of an earlier study or another tool, from one model or several.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::compute::can_cast_types;
use arrow::datatypes::DataType;
use datafusion::dataframe::DataFrame;
use serde_json::{Value, json};

use super::ANSWERS;
use super::args::{Extract, GenerateArgs};
use super::local::LocalAnswers;
use super::rows::{ModelAnswer, ModelTurn, NoAnswer, PromptRows, require_texts, text_of, texts_of};
use super::tables::{AnswerColumns, MODEL, PROMPT_ID, SAMPLE, SampleOutcome};
use galeras_base::id::ID;
use galeras_base::prose::count;
use galeras_operator::{ArgError, BindContext, LowerContext, StepError, TableSchema, Tell};
use galeras_workflow::code::Code;
use galeras_workflow::did_you_mean;

/// The table's columns for the answers and their models.
#[derive(Debug)]
pub(super) struct Source {
    answer: String,
    /// Its answers are predictions, which are code already.
    made: bool,
    models: Models,
}

#[derive(Debug)]
enum Models {
    /// The table has no model column.
    Named(String),
    /// The column `model` has the names. One of them counts, or all.
    Column(Option<String>),
}

/// The columns with raw answers and with the predictions made from them.
const RAW_RESPONSE: &str = "raw_response";
const PREDICTION: &str = "prediction";
/// The default model of answers from a table without models.
const UNNAMED: &str = "replay";

impl Source {
    pub(super) fn of(args: &GenerateArgs, cx: &BindContext) -> Self {
        let has = |name: &str| cx.inputs.get(ANSWERS).is_some_and(|a| a.field(name).is_some());
        let models = match has(MODEL) {
            true => Models::Column(args.model.clone()),
            false => Models::Named(args.model.clone().unwrap_or_else(|| UNNAMED.to_string())),
        };
        let made = args.answer.is_none() && !has(RAW_RESPONSE) && has(PREDICTION);
        let named = args.answer.as_deref();
        let answer = named.unwrap_or(if made { PREDICTION } else { RAW_RESPONSE });
        Self { answer: answer.to_string(), made, models }
    }

    /// The arguments with their defaults.
    pub(super) fn resolved(&self, args: &GenerateArgs) -> Value {
        let mut all = json!({
            "provider": "replay",
            "on": args.on,
            "answer": self.answer,
            "samples": args.samples(),
            "extract": self.extract(args),
        });
        match &self.models {
            Models::Named(model) => all["model"] = json!(model),
            Models::Column(one) => all["models"] = json!({"column": MODEL, "one": one}),
        }
        all
    }

    pub(super) fn extract(&self, args: &GenerateArgs) -> Extract {
        args.extract(self.made)
    }

    pub(super) fn columns(&self) -> AnswerColumns {
        let models = matches!(self.models, Models::Column(None));
        AnswerColumns { models, ..AnswerColumns::default() }
    }
}

/// Optional columns of the answers, in addition to the answer and its sample.
const FACTS: [&str; 5] =
    ["finish_reason", "reported_model", "prompt_tokens", "completion_tokens", "reasoning"];

pub(super) fn check(args: &GenerateArgs, cx: &BindContext, errors: &mut Vec<ArgError>) {
    let Some(answers) = cx.inputs.get(ANSWERS) else { return };
    let input = cx.input();
    let mut wants = |table: &TableSchema, path: &str, name: &str| {
        if table.field(name).is_none() {
            errors.push(ArgError::unknown_column(path, name, table.names()));
        }
    };
    if args.on.is_empty() {
        wants(&input, "", ID);
        if answers.field(PROMPT_ID).is_none() {
            let message = "the answers have no `prompt_id`: name the columns that identify them";
            let error = ArgError::new("", Code::MissingArgument, message);
            errors.push(error.help("on: [snippet_id, treatment]"));
        }
    } else {
        for (at, name) in args.on.iter().enumerate() {
            let path = format!("on[{at}]");
            wants(&input, &path, name);
            wants(answers, &path, name);
        }
    }
    require_texts(answers, "answer", &Source::of(args, cx).answer, errors);
}

type Key = (Vec<Option<String>>, u32);

type Known = BTreeMap<String, HashMap<Key, ModelAnswer>>;

impl Source {
    /// The models, and the answers for each row, model and sample.
    pub(super) async fn answers(
        &self,
        args: &GenerateArgs,
        cx: &LowerContext,
        rows: PromptRows,
        answers: DataFrame,
    ) -> Result<(Vec<String>, LocalAnswers), StepError> {
        // The join columns of the input and of the answers.
        let (left, right) = match args.on.as_slice() {
            [] => (vec![ID.into()], vec![PROMPT_ID.into()]),
            on => (on.to_vec(), on.to_vec()),
        };
        let mut known = self.known(&answers.collect().await?, &right)?;
        let models: Vec<String> = match &self.models {
            Models::Named(model) | Models::Column(Some(model)) => vec![model.clone()],
            Models::Column(None) if known.is_empty() => vec![UNNAMED.to_string()],
            Models::Column(None) => known.keys().cloned().collect(),
        };
        let known: Vec<_> =
            models.iter().map(|model| known.remove(model).unwrap_or_default()).collect();
        let columns = rows.as_texts(&left)?;
        let asked: BTreeSet<_> = (0..rows.len()).map(|row| rows.key_of(row, &columns)).collect();
        for warning in left_out(&known, &asked, args.samples(), &left, &right) {
            (cx.tell)(Tell::Warning(warning));
        }
        let (mut outcomes, mut answers) = (Vec::new(), Vec::new());
        for row in 0..rows.len() {
            let key = rows.key_of(row, &columns);
            for (model, known) in known.iter().enumerate() {
                for sample in 0..args.samples() {
                    outcomes.push(SampleOutcome { row, model, sample, answer: answers.len() });
                    let key = (key.clone(), sample);
                    answers.push(known.get(&key).cloned().ok_or_else(|| {
                        let shown = shown(&left, &key);
                        let reason = format!("the table has no answer for {shown}");
                        NoAnswer::of_row("answer", reason)
                    }));
                }
            }
        }
        Ok((models, LocalAnswers { rows, outcomes, answers }))
    }
}

/// The warnings that the table has answers that are left out.
fn left_out(
    known: &[HashMap<Key, ModelAnswer>],
    asked: &BTreeSet<Vec<Option<String>>>,
    samples: u32,
    left: &[String],
    right: &[String],
) -> Vec<String> {
    let mut warnings = Vec::new();
    let (to_prompts, others): (Vec<&Key>, Vec<&Key>) =
        known.iter().flat_map(|known| known.keys()).partition(|(key, _)| asked.contains(key));
    let further: Vec<u32> =
        to_prompts.iter().map(|(_, sample)| *sample).filter(|sample| *sample >= samples).collect();
    if let Some(last) = further.iter().max() {
        let answers = count(further.len(), "further answer", "further answers");
        let all = u64::from(*last) + 1;
        warnings
            .push(format!("left out: {answers} to these prompts (`samples: {all}` takes them)"));
    }
    if let Some(first) = others.iter().min() {
        let answers = count(others.len(), "answer", "answers");
        let prompt = asked.first().map(|key| shown(left, &(key.clone(), 0)));
        let prompt = prompt.map_or_else(String::new, |prompt| format!("; a prompt has {prompt}"));
        let answer = shown(right, first);
        warnings.push(format!("left out: {answers} to other prompts, such as {answer}{prompt}"));
    }
    warnings
}

fn shown(names: &[String], (key, sample): &Key) -> String {
    let parts = names
        .iter()
        .zip(key)
        .map(|(name, value)| format!("{name} = {}", value.as_deref().unwrap_or("null")));
    let parts: Vec<String> = parts.collect();
    match sample {
        0 => parts.join(", "),
        sample => format!("{}, sample = {sample}", parts.join(", ")),
    }
}

impl Source {
    /// The columns of the rows that are answers of one model to one prompt.
    fn within<'a>(&self, on: &'a [String]) -> Vec<&'a str> {
        let model = matches!(self.models, Models::Column(_)).then_some(MODEL);
        on.iter().map(String::as_str).chain(model).collect()
    }

    /// The answers by model and key, without ignored models.
    fn known(&self, batches: &[RecordBatch], on: &[String]) -> Result<Known, StepError> {
        let keys: Vec<Vec<ArrayRef>> =
            on.iter().map(|name| texts_of(batches, name)).collect::<Result<_, _>>()?;
        let texts = texts_of(batches, &self.answer)?;
        let optional = |name: &str| -> Result<Option<Vec<ArrayRef>>, StepError> {
            let column = batches.first().and_then(|batch| batch.column_by_name(name));
            let usable = column.is_some_and(|c| can_cast_types(c.data_type(), &DataType::Utf8));
            usable.then(|| texts_of(batches, name)).transpose()
        };
        let (samples, models) = (optional(SAMPLE)?, optional(MODEL)?);
        let facts: Vec<Option<Vec<ArrayRef>>> =
            FACTS.iter().map(|name| optional(name)).collect::<Result<_, _>>()?;
        let mut known = Known::new();
        let mut others = BTreeSet::new();
        for (at, batch) in batches.iter().enumerate() {
            for row in 0..batch.num_rows() {
                let of = |columns: &Option<Vec<ArrayRef>>| {
                    columns.as_ref().and_then(|columns| text_of(&columns[at], row))
                };
                let key: Vec<_> = keys.iter().map(|column| text_of(&column[at], row)).collect();
                let sample = of(&samples).map_or(Ok(0), |text| text.parse());
                let sample = sample.map_err(|_| {
                    StepError::new("a `sample` of the answers is not a number")
                        .help("the answers to a prompt are numbered from 0")
                })?;
                let model = match &self.models {
                    Models::Named(model) => model.clone(),
                    Models::Column(one) => {
                        let model = of(&models).ok_or_else(|| {
                            let key = shown(on, &(key.clone(), sample));
                            let message = format!("the answer for {key} has no `model`");
                            StepError::new(message)
                        })?;
                        if one.as_ref().is_some_and(|one| *one != model) {
                            others.insert(model);
                            continue;
                        }
                        model
                    }
                };
                // A model without any answers counts as well.
                let known = known.entry(model).or_default();
                // A null text is a missing answer.
                if texts[at].is_null(row) {
                    continue;
                }
                let turn = ModelTurn {
                    content: text_of(&texts[at], row).unwrap_or_default(),
                    finish_reason: of(&facts[0]),
                    model: of(&facts[1]),
                    prompt_tokens: of(&facts[2]).and_then(|text| text.parse().ok()),
                    completion_tokens: of(&facts[3]).and_then(|text| text.parse().ok()),
                    reasoning: of(&facts[4]),
                    ..ModelTurn::default()
                };
                let key = (key, sample);
                if let Some(before) = known.insert(key.clone(), vec![turn.clone()])
                    && before != [turn]
                {
                    let message = format!("two answers for {}", shown(on, &key));
                    let mut help = "the columns in `on` must identify an answer".to_owned();
                    if samples.is_none() {
                        help += &format!(
                            "; several of one prompt need a column `sample`: read the table with \
                             `position: {{ column: {SAMPLE}, within: [{}] }}`, and give `samples` here",
                            self.within(on).join(", ")
                        );
                    }
                    return Err(StepError::new(message).help(help));
                }
            }
        }
        if let (Models::Column(Some(one)), true, false) =
            (&self.models, known.is_empty(), others.is_empty())
        {
            return Err(no_model(one, &others));
        }
        Ok(known)
    }
}

fn no_model(one: &str, others: &BTreeSet<String>) -> StepError {
    let error = StepError::new(format!("the table has no answers of a model `{one}`"));
    match did_you_mean(one, others.iter().map(String::as_str)) {
        Some(name) => error.help(format!("did you mean `{name}`?")),
        None => {
            let mut names: Vec<&str> = others.iter().map(String::as_str).take(LISTED).collect();
            if others.len() > LISTED {
                names.push("…");
            }
            error.help(format!("it has answers of {}", names.join(", ")))
        }
    }
}

const LISTED: usize = 10;
