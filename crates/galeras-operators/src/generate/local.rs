//! Answers without a network: of an n-gram model, from a table, and two baselines for any model: an
//! echo of the given code, and the right answer. A table of scores with both shows how far a model
//! is from each.

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::args::{Extract, GenerateArgs};
use super::provider::Provider;
use super::replay::Source;
use super::rows::{ModelAnswer, ModelTurn, NoAnswer, PromptRows};
use super::tables::{AnswerColumns, AnswerForm, SampleOutcome, tables};
use super::{ANSWERS, TRAIN, ngram};
use galeras_base::id::ID;
use galeras_operator::columns::{is_text, require_column};
use galeras_operator::event::ROWS;
use galeras_operator::{
    ArgError, BindContext, BoundStep, Inputs, LowerContext, Lowering, Port, Ports, Reads,
    StepError, TableStep, take_input,
};

/// The reason for the end of an answer: it is complete.
const STOP: &str = "stop";

#[derive(Debug)]
pub(super) struct LocalStep {
    pub(super) args: GenerateArgs,
    /// The model's name; answers from a table may name others.
    pub(super) model: String,
    /// The table's columns, for `replay`.
    pub(super) source: Option<Source>,
    pub(super) key: Vec<String>,
    pub(super) ports: Vec<Port>,
}

/// The rows with their answers.
pub(super) struct LocalAnswers {
    pub(super) rows: PromptRows,
    pub(super) outcomes: Vec<SampleOutcome>,
    pub(super) answers: Vec<Result<ModelAnswer, NoAnswer>>,
}

/// Checks the inputs of a baseline.
pub(super) fn check(args: &GenerateArgs, cx: &BindContext, errors: &mut Vec<ArgError>) {
    for (path, column) in [("given", &args.given), ("reference", &args.reference)] {
        if let Some(column) = column {
            require_column(cx, path, column, "utf8", is_text, errors);
        }
    }
}

impl LocalStep {
    /// The column that a baseline returns; `None` for the user's last message.
    fn column(&self) -> Option<&str> {
        self.args.given.as_deref().or(self.args.reference.as_deref())
    }

    fn extract(&self) -> Extract {
        match &self.source {
            Some(source) => source.extract(&self.args),
            None => self.args.extract(self.column().is_some()),
        }
    }

    /// The answers of a baseline; samples share them.
    fn baseline(&self, rows: PromptRows) -> LocalAnswers {
        let turn = |content| {
            let finish_reason = Some(STOP.to_string());
            vec![ModelTurn { content, finish_reason, ..ModelTurn::default() }]
        };
        let answers: Vec<Result<ModelAnswer, NoAnswer>> = match self.column() {
            None => rows
                .conversations(self.args.messages())
                .into_iter()
                .map(|said| Ok(turn(said?.pop().map(|last| last.content).unwrap_or_default())))
                .collect(),
            Some(column) => {
                let null = || NoAnswer::of_row("column", format!("the column `{column}` is null"));
                let texts = rows.texts(column).into_iter();
                texts.map(|text| text.map(|text| turn(text.to_string())).ok_or_else(null)).collect()
            }
        };
        let samples = self.args.samples();
        let outcomes = (0..rows.len())
            .flat_map(|row| (0..samples).map(move |sample| (row, sample)))
            .map(|(row, sample)| SampleOutcome { row, model: 0, sample, answer: row })
            .collect();
        LocalAnswers { rows, outcomes, answers }
    }
}

impl BoundStep for LocalStep {
    fn args(&self) -> Value {
        match (self.args.provider, &self.source) {
            (_, Some(source)) => source.resolved(&self.args),
            (Provider::Ngram, _) => ngram::resolved(&self.args, &self.model),
            (provider, _) => json!({
                "provider": provider,
                "model": self.model,
                "column": self.column(),
                "messages": self.column().is_none().then(|| self.args.messages()),
                "samples": self.args.samples(),
                "extract": self.extract(),
            }),
        }
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn reads(&self, input: &str) -> Reads {
        match input {
            TRAIN => Reads::Columns(vec![ID.to_string(), self.args.train_column().to_string()]),
            _ => Reads::All,
        }
    }

    fn work_unit(&self) -> &'static str {
        if self.args.provider == Provider::Ngram { "answers" } else { ROWS }
    }

    fn lowering(&self) -> Lowering<'_> {
        Lowering::Table(self)
    }
}

impl TableStep for LocalStep {
    fn lower<'a>(
        &'a self,
        cx: &'a LowerContext,
        mut inputs: Inputs,
    ) -> BoxFuture<'a, Result<Ports, StepError>> {
        Box::pin(async move {
            let rows = PromptRows::read(&mut inputs, &self.key).await?;
            let args = &self.args;
            let mut models = vec![self.model.clone()];
            let mut columns = AnswerColumns::default();
            let found = match (args.provider, &self.source) {
                (_, Some(source)) => {
                    let answers = take_input(&mut inputs, ANSWERS)?;
                    let (named, found) = source.answers(args, cx, rows, answers).await?;
                    (models, columns) = (named, source.columns());
                    found
                }
                (Provider::Ngram, _) => {
                    ngram::answers(args, cx, rows, take_input(&mut inputs, TRAIN)?).await?
                }
                _ => self.baseline(rows),
            };
            let form = AnswerForm {
                models: &models,
                columns,
                extract: self.extract(),
                price: None,
                ports: &self.ports,
            };
            tables(cx, &form, &found.rows, &found.outcomes, &found.answers)
        })
    }
}
