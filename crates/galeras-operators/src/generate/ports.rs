//! The columns of the output tables of `generate`.

use arrow::datatypes::DataType;

use super::logprobs;
use galeras_base::id::ID;
use galeras_operator::columns::text_field;
use galeras_operator::rejects::reject_columns;
use galeras_operator::{MAIN, Port, REJECTS, SUMMARY, TableSchema, describe};

/// The column with the prompt's `id`.
pub(super) const PROMPT_ID: &str = "prompt_id";
/// The column that numbers the answers to one prompt.
pub(super) const SAMPLE: &str = "sample";

pub(super) const MODEL: &str = "model";

/// Optional columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AnswerColumns {
    /// Those of log-probabilities.
    pub(super) logprobs: bool,
    /// Several models answer, so rows without an answer name the model.
    pub(super) models: bool,
}

pub(super) fn ports(input: &TableSchema, columns: AnswerColumns) -> Vec<Port> {
    let text = |name, about| describe(name, DataType::Utf8, true, about, None);
    let count = |name, null, about, unit| describe(name, DataType::Int64, null, about, Some(unit));
    let sample = count(SAMPLE, false, "which of the answers to the prompt, from 0", "samples");
    let tokens = |null| {
        [
            count("prompt_tokens", null, "tokens read, of all turns", "tokens"),
            count("completion_tokens", null, "tokens written, in all turns", "tokens"),
        ]
    };
    let [read, written] = tokens(true);
    let mut answered = input.with(&[
        text_field(ID, "the row's identity: of the prompt, the model and the sample"),
        text_field(PROMPT_ID, "the `id` of the prompt"),
        text_field(MODEL, "the model that was asked for"),
        sample.clone(),
        text_field("prediction", "the code of the answer, or all of it with `extract: raw`"),
        text_field("raw_response", "the answer as it came"),
        text("finish_reason", "why the answer ends, in the server's word"),
        read,
        written,
        text("reported_model", "the model that the server says it is"),
        describe(
            "earlier_responses",
            DataType::new_list(DataType::Utf8, true),
            false,
            "the answers in earlier turns of the conversation",
            None,
        ),
    ]);
    if columns.logprobs {
        answered = answered.with(&logprobs::fields());
    }
    let mut rejected = reject_columns();
    let mut keys = vec![SAMPLE];
    if columns.models {
        rejected.push(text_field(MODEL, "the model whose answer is missing"));
        keys.push(MODEL);
    }
    rejected.push(sample);
    let mut rejects = input.with(&rejected);
    for name in keys {
        if !rejects.key.iter().any(|key| key == name) {
            rejects.key.push(name.into());
        }
    }
    let [read, written] = tokens(false);
    let summary = TableSchema::default().with(&[
        text_field(MODEL, "the model that was asked for"),
        text_field("reported_model", "the model that the server says it is"),
        count("rows", false, "answered rows", "rows"),
        count("answers", false, "answers that were given, each turn and each only once", "answers"),
        read,
        written,
        describe(
            "cost_usd",
            DataType::Float64,
            true,
            "what these cost at `price`; null if the server did not tell tokens",
            Some("USD"),
        ),
    ]);
    vec![
        Port::new(MAIN, answered.keyed(&[ID])),
        Port::new(REJECTS, rejects),
        Port::new(SUMMARY, summary.keyed(&[MODEL, "reported_model"])),
    ]
}
