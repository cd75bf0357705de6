//! Answers from a table: those of an earlier study, or of another tool.

use std::collections::{BTreeMap, HashMap};

use arrow::array::{Array, ArrayRef, RecordBatch};
use datafusion::dataframe::DataFrame;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::super::columns::is_text;
use super::ANSWERS;
use super::args::GenerateArgs;
use super::ports::{PROMPT_ID, SAMPLE};
use super::rows::{
    AnswerForm, ModelAnswer, ModelTurn, NoAnswer, PromptRows, SampleOutcome, tables, text_of,
    texts_of,
};
use crate::code::Code;
use crate::id::ID;
use crate::operator::{
    ArgError, BindContext, BoundStep, INPUT, LowerContext, Lowering, Port, Ports, StepError,
    TableSchema, TableStep,
};

/// A step that takes answers from a table.
#[derive(Debug)]
pub(super) struct Replay {
    pub(super) args: GenerateArgs,
    pub(super) model: String,
    pub(super) key: Vec<String>,
    pub(super) ports: Vec<Port>,
}

/// Columns of the answers that are taken if they are there, besides the answer and its sample.
const FACTS: [&str; 4] = ["finish_reason", "reported_model", "prompt_tokens", "completion_tokens"];

impl Replay {
    /// What is wrong with the inputs.
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
                let message =
                    "the answers have no `prompt_id`: name the columns that identify them";
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
        match answers.field(args.answer()) {
            None => {
                errors.push(ArgError::unknown_column("answer", args.answer(), answers.names()));
            }
            Some(field) if !is_text(field.data_type()) => {
                let message = format!("the column `{}` is not text", args.answer());
                errors.push(ArgError::new("answer", Code::WrongType, message));
            }
            Some(_) => {}
        }
        for (name, given) in [
            ("temperature", args.temperature.is_some()),
            ("max_tokens", args.max_tokens.is_some()),
            ("seed", args.seed.is_some()),
            ("stop", !args.stop.is_empty()),
        ] {
            if given {
                let message = format!("`{name}` does not apply to recorded answers");
                errors.push(ArgError::new(name, Code::ConflictingArguments, message));
            }
        }
    }

    /// The columns that find each other: of the input and of the answers.
    fn on(&self) -> (Vec<String>, Vec<String>) {
        if self.args.on.is_empty() {
            return (vec![ID.into()], vec![PROMPT_ID.into()]);
        }
        (self.args.on.clone(), self.args.on.clone())
    }
}

impl BoundStep for Replay {
    fn args(&self) -> Value {
        json!({
            "provider": "replay",
            "model": self.model,
            "on": self.args.on,
            "answer": self.args.answer(),
            "samples": self.args.samples(),
            "extract": self.args.extract,
        })
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn lowering(&self) -> Lowering<'_> {
        Lowering::Table(self)
    }
}

/// The key of an answer and its sample.
type Key = (Vec<Option<String>>, u32);

impl TableStep for Replay {
    fn lower<'a>(
        &'a self,
        cx: &'a LowerContext,
        mut inputs: BTreeMap<String, DataFrame>,
    ) -> BoxFuture<'a, Result<Ports, StepError>> {
        Box::pin(async move {
            let mut take = |name: &str| {
                let table = inputs.remove(name);
                table.ok_or_else(|| StepError::new(format!("`generate` needs a table `{name}`")))
            };
            let (input, answers) = (take(INPUT)?, take(ANSWERS)?);
            let rows = PromptRows::read(input, &self.key).await?;
            let (left, right) = self.on();
            let known = self.known(&answers.collect().await?, &right)?;
            let columns = rows.as_texts(&left)?;
            let (mut outcomes, mut results) = (Vec::new(), Vec::new());
            for row in 0..rows.len() {
                let key = rows.key_of(row, &columns);
                for sample in 0..self.args.samples() {
                    outcomes.push(SampleOutcome { row, sample, answer: results.len() });
                    let key = (key.clone(), sample);
                    results.push(known.get(&key).cloned().ok_or_else(|| {
                        let reason = format!("the table has no answer for {}", shown(&left, &key));
                        NoAnswer::of_row("answer", reason)
                    }));
                }
            }
            let form = AnswerForm {
                model: &self.model,
                extract: self.args.extract.is_code(),
                price: None,
                ports: &self.ports,
            };
            tables(cx, &form, &rows, &outcomes, &results)
        })
    }
}

/// A key in words.
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

impl Replay {
    /// The answers by their keys.
    fn known(
        &self,
        batches: &[RecordBatch],
        on: &[String],
    ) -> Result<HashMap<Key, ModelAnswer>, StepError> {
        let keys: Vec<Vec<ArrayRef>> =
            on.iter().map(|name| texts_of(batches, name)).collect::<Result<_, _>>()?;
        let texts = texts_of(batches, self.args.answer())?;
        let optional = |name: &str| -> Result<Option<Vec<ArrayRef>>, StepError> {
            let there = batches.first().is_some_and(|b| b.column_by_name(name).is_some());
            there.then(|| texts_of(batches, name)).transpose()
        };
        let samples = optional(SAMPLE)?;
        let facts: Vec<Option<Vec<ArrayRef>>> =
            FACTS.iter().map(|name| optional(name)).collect::<Result<_, _>>()?;
        let mut known = HashMap::new();
        for (at, batch) in batches.iter().enumerate() {
            for row in 0..batch.num_rows() {
                let of = |columns: &Option<Vec<ArrayRef>>| {
                    columns.as_ref().and_then(|columns| text_of(&columns[at], row))
                };
                let key: Vec<_> = keys.iter().map(|column| text_of(&column[at], row)).collect();
                let sample = of(&samples).map_or(Ok(0), |text| text.parse());
                let sample = sample
                    .map_err(|_| StepError::new("a `sample` of the answers is not a number"))?;
                // A row without an answer is one that has none.
                if texts[at].is_null(row) {
                    continue;
                }
                let turn = ModelTurn {
                    content: text_of(&texts[at], row).unwrap_or_default(),
                    finish_reason: of(&facts[0]),
                    model: of(&facts[1]),
                    prompt_tokens: of(&facts[2]).and_then(|text| text.parse().ok()),
                    completion_tokens: of(&facts[3]).and_then(|text| text.parse().ok()),
                    question: None,
                };
                let key = (key, sample);
                if let Some(before) = known.insert(key.clone(), vec![turn.clone()])
                    && before != [turn]
                {
                    let message = format!("two answers for {}", shown(on, &key));
                    return Err(
                        StepError::new(message).help("the columns in `on` must identify an answer")
                    );
                }
            }
        }
        Ok(known)
    }
}
