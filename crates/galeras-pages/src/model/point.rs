//! Data points with prompts, answers and scores.

use serde::{Deserialize, Serialize};

/// Data points with prompts, answers and scores.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DataPointBlock {
    /// The heading.
    pub title: String,
    /// A description in Markdown.
    pub caption: String,
    /// The data points.
    pub points: Vec<DataPoint>,
    /// Their number in all, if these are a part of them.
    pub total: Option<u64>,
    /// How the shown ones were chosen: `a sample of 100, drawn by their ids`.
    pub choice: String,
    /// The step that they come from.
    pub source: String,
}

/// One answer to one data point.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DataPoint {
    /// Its id in the table.
    pub id: String,
    /// A readable name: `pathlib.py: Path.resolve`.
    pub title: String,
    /// The groups to filter by, with their values: `treatment` and `zero_shot`.
    pub groups: Vec<Labelled>,
    /// The scores, by metric.
    pub scores: Vec<ScoreValue>,
    /// The messages of the prompt.
    pub prompt: Vec<PromptMessage>,
    /// The answer.
    pub answer: Option<String>,
    /// The text that the answer is compared with.
    pub reference: Option<String>,
    /// How answer, reference and code are highlighted.
    pub language: CodeLanguage,
    /// Further texts: the code before the cut, the message of the commit.
    pub texts: Vec<Labelled>,
    /// Where it comes from, from the score back to the commit.
    pub trace: Vec<TraceStep>,
}

/// A text and its name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Labelled {
    /// The name.
    pub name: String,
    /// The text.
    pub value: String,
}

/// A score of an answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScoreValue {
    /// The metric.
    pub metric: String,
    /// Its value; absent if there is none.
    pub value: Option<f64>,
}

/// A message of a prompt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PromptMessage {
    /// The speaker: `system`, `user`, `assistant`.
    pub role: String,
    /// The text.
    pub content: String,
}

/// How a text is highlighted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CodeLanguage {
    /// As Python.
    #[default]
    Python,
    /// Not at all.
    Plain,
}

/// A station on the way of a row.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TraceStep {
    /// The step.
    pub step: String,
    /// The id of the row there, or another name.
    pub id: String,
    /// A description of it there: `commit 3f2a… of psf/requests`.
    pub text: String,
    /// Where to look it up: an address with `https://`; others are shown and lead nowhere.
    pub url: String,
}
