//! Baselines for any model: an echo of the given code, and the right answer. Neither needs a
//! network, and a table of scores with both shows how far a model is from each.

use std::collections::BTreeMap;

use async_trait::async_trait;
use datafusion::dataframe::DataFrame;
use serde_json::{Value, json};

use super::args::GenerateArgs;
use super::ports::AnswerColumns;
use super::rows::{AnswerForm, ModelTurn, NoAnswer, PromptRows, SampleOutcome, tables};
use galeras_operator::columns::{is_text, require_column};
use galeras_operator::{
    ArgError, BindContext, BoundStep, INPUT, LowerContext, Lowering, Port, Ports, StepError,
    TableStep,
};

/// The reason for the end of an answer: it is complete.
const STOP: &str = "stop";

#[derive(Debug)]
pub(super) struct Baseline {
    pub(super) args: GenerateArgs,
    pub(super) model: String,
    pub(super) key: Vec<String>,
    pub(super) ports: Vec<Port>,
}

impl Baseline {
    /// Checks the inputs.
    pub(super) fn check(args: &GenerateArgs, cx: &BindContext, errors: &mut Vec<ArgError>) {
        for (path, column) in [("given", args.given()), ("reference", args.reference())] {
            if let Some(column) = column {
                require_column(cx, path, column, "utf8", is_text, errors);
            }
        }
    }

    /// The returned column; `None` for the user's last message.
    fn column(&self) -> Option<&str> {
        self.args.given().or(self.args.reference())
    }

    fn texts(&self, rows: &PromptRows) -> Vec<Result<String, NoAnswer>> {
        let Some(column) = self.column() else {
            let said = rows.conversations(self.args.messages()).into_iter();
            return said
                .map(|said| Ok(said?.pop().map(|last| last.content).unwrap_or_default()))
                .collect();
        };
        let null = || NoAnswer::of_row("column", format!("the column `{column}` is null"));
        let texts = rows.texts(column).into_iter();
        texts.map(|text| text.map(str::to_string).ok_or_else(null)).collect()
    }
}

impl BoundStep for Baseline {
    fn args(&self) -> Value {
        json!({
            "provider": self.args.provider,
            "model": self.model,
            "column": self.column(),
            "messages": self.column().is_none().then(|| self.args.messages()),
            "samples": self.args.samples(),
            "extract": self.args.extract(self.column().is_some()),
        })
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn lowering(&self) -> Lowering<'_> {
        Lowering::Table(self)
    }
}

#[async_trait]
impl TableStep for Baseline {
    async fn lower(
        &self,
        cx: &LowerContext,
        mut inputs: BTreeMap<String, DataFrame>,
    ) -> Result<Ports, StepError> {
        let input = inputs
            .remove(INPUT)
            .ok_or_else(|| StepError::new("`generate` needs an input table"))?;
        let rows = PromptRows::read(input, &self.key).await?;
        let turn = |content| {
            let finish_reason = Some(STOP.to_string());
            vec![ModelTurn { content, finish_reason, ..ModelTurn::default() }]
        };
        let answers: Vec<_> = self.texts(&rows).into_iter().map(|text| text.map(turn)).collect();
        let samples = self.args.samples();
        let outcomes: Vec<SampleOutcome> = (0..rows.len())
            .flat_map(|row| (0..samples).map(move |sample| (row, sample)))
            .map(|(row, sample)| SampleOutcome { row, model: 0, sample, answer: row })
            .collect();
        let form = AnswerForm {
            models: std::slice::from_ref(&self.model),
            columns: AnswerColumns::default(),
            extract: self.args.extract(self.column().is_some()),
            price: None,
            ports: &self.ports,
        };
        tables(cx, &form, &rows, &outcomes, &answers)
    }
}
