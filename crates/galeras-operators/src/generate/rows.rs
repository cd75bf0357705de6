//! The rows to answer, and answers in memory.

use std::borrow::Cow;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::compute::interleave;
use arrow::datatypes::DataType;
use datafusion::logical_expr::cast;
use serde::{Deserialize, Serialize};

use galeras_base::digest::Digest;
use galeras_operator::columns::is_text;
use galeras_operator::{ArgError, INPUT, Inputs, StepError, TableSchema, take_input};
use galeras_sql::functions::{Message, RowId, call, conversation};
use galeras_sql::session::column;
use galeras_workflow::code::Code;

/// A token, and the logarithm of its probability.
pub(super) type TokenPair = (String, Option<f64>);

/// A message of the model: one turn of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct ModelTurn {
    pub(super) content: String,
    /// The thoughts, from the server's field for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reasoning: Option<String>,
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

/// A body in which no answer was found. It is kept like an answer, as it was paid: a later version of
/// this program may read it.
#[derive(Serialize, Deserialize)]
pub(super) struct UnreadBody<'a> {
    pub(super) body: Cow<'a, str>,
}

/// The answer to a conversation: every turn of the model.
pub(super) type ModelAnswer = Vec<ModelTurn>;

/// The reason for a missing answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NoAnswer {
    /// A stable word for the kind of failure.
    pub(super) rule: String,
    pub(super) reason: String,
    /// The next run may succeed.
    pub(super) again: bool,
    /// The body of a response in which no answer was found.
    pub(super) unread: Option<Box<str>>,
}

impl NoAnswer {
    /// A failure caused by the row.
    pub(super) fn of_row(rule: &str, reason: impl Into<String>) -> Self {
        Self { rule: rule.into(), reason: reason.into(), again: false, unread: None }
    }
}

/// Checks that the table has a column `name` of texts; otherwise reports it at `argument`.
pub(super) fn require_texts(
    table: &TableSchema,
    argument: &str,
    name: &str,
    errors: &mut Vec<ArgError>,
) {
    match table.field(name) {
        None => errors.push(ArgError::unknown_column(argument, name, table.names())),
        Some(field) if !is_text(field.data_type()) => {
            let message = format!("the column `{name}` is not text");
            errors.push(ArgError::new(argument, Code::WrongType, message));
        }
        Some(_) => {}
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
    /// Reads all rows of the input; `key` identifies them.
    pub(super) async fn read(inputs: &mut Inputs, key: &[String]) -> Result<Self, StepError> {
        let input = take_input(inputs, INPUT)?;
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

    /// The values of a column in these rows.
    pub(super) fn values(&self, name: &str, rows: &[usize]) -> Result<ArrayRef, StepError> {
        let places: Vec<(usize, usize)> = rows.iter().map(|row| self.places[*row]).collect();
        let columns = self.batches.iter().map(|batch| batch.column_by_name(name));
        let columns: Option<Vec<&dyn Array>> =
            columns.map(|column| column.map(|column| column.as_ref())).collect();
        let missing = || StepError::new(format!("the input has no `{name}`"));
        Ok(interleave(&columns.ok_or_else(missing)?, &places)?)
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
