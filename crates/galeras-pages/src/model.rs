//! The data of a report, without their origin.
//!
//! All of it is serde, so that a page can be made from JSON. Texts are raw: the caller does not
//! escape, crop or format them.

use serde::{Deserialize, Serialize};

/// A report of one study.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Report {
    /// The heading of the page.
    pub title: String,
    /// The name of the workflow.
    pub workflow: String,
    /// The research question: Markdown, from the workflow's description.
    pub question: String,
    /// When the page was made, for people: `2026-11-22 21:53 UTC`.
    pub made_at: String,
    /// The program that made the page, with its version: `galeras 0.1.0`.
    pub made_by: String,
    /// The run that the results come from.
    pub run: Option<RunFacts>,
    /// Facts for reviewers: models, prompts, sizes, dates, cost.
    pub facts: Vec<Labelled>,
    /// Every parameter with its value, as JSON.
    pub params: Vec<ParamValue>,
    /// Steps whose results the report lacks. Empty if it is complete.
    pub missing: Vec<MissingStep>,
    /// The sections of the page, in this order.
    pub sections: Vec<Section>,
    /// The steps of the workflow.
    pub graph: Option<StepDiagram>,
}

/// The run whose results are shown.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunFacts {
    /// Its id in the store.
    pub id: String,
    /// When it began, for people.
    pub started: String,
    /// How it ended: `done`, `failed`.
    pub status: String,
    /// How long it took.
    pub seconds: Option<f64>,
}

/// A parameter of the workflow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ParamValue {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: serde_json::Value,
    /// Its purpose in one line; may be empty.
    pub help: String,
    /// True if the value is not the workflow's default.
    pub changed: bool,
}

/// A step without a result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MissingStep {
    /// Its name.
    pub step: String,
    /// Why: `not computed yet`, `failed`.
    pub reason: String,
    /// The command that computes it.
    pub command: String,
}

/// A part of the page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Section {
    /// Prose.
    Text(TextBlock),
    /// Effects in sentences.
    Findings(FindingBlock),
    /// A picture.
    Figure(FigureBlock),
    /// A table.
    Table(TableBlock),
    /// Data points with answers next to references.
    Rows(DataPointBlock),
    /// Where rows were lost.
    Attrition(AttritionBlock),
    /// Refusals and warnings.
    Diagnostics(DiagnosticBlock),
    /// How the same results come again.
    Reproduce(ReproduceBlock),
    /// The graph of the steps, here. Without this section, the graph follows the findings and
    /// figures at the start of the page.
    Steps,
}

/// Prose in Markdown. HTML in it is shown as text.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TextBlock {
    /// The heading; without one, the text continues what is above it.
    pub title: String,
    /// The text.
    pub markdown: String,
}

/// Effects in sentences.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FindingBlock {
    /// The heading.
    pub title: String,
    /// The effects.
    pub findings: Vec<EffectFinding>,
    /// Facts that they share: design, estimator, number of units. Markdown; may be empty.
    pub note: String,
}

/// An effect, and how sure it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EffectFinding {
    /// The finding as a sentence.
    pub sentence: String,
    /// The outcome: `codebleu`.
    pub outcome: String,
    /// The comparison: `few_shot against zero_shot`.
    pub contrast: String,
    /// The group that it holds for, empty if for all: `model = a`.
    pub group: String,
    /// Its status.
    pub status: FindingStatus,
    /// The effect.
    pub effect: Option<f64>,
    /// The lower end of its interval.
    pub low: Option<f64>,
    /// The upper end of its interval.
    pub high: Option<f64>,
    /// The p-value, adjusted for the number of tests.
    pub p_adjusted: Option<f64>,
    /// The number of units, or rows, that the estimate rests on.
    pub n: Option<u64>,
    /// The verdict in a word: `different`, `equivalent`, `trivial`, `inconclusive`.
    pub verdict: String,
}

/// The status of an estimate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingStatus {
    /// There is an estimate.
    #[default]
    Estimated,
    /// The data do not allow one.
    Refused,
    /// The estimator answers another question.
    NotApplicable,
}

/// A picture with its source.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FigureBlock {
    /// The heading; may be empty.
    pub title: String,
    /// The picture as SVG. It is shown as an image: nothing in it runs, loads or styles the page.
    pub svg: String,
    /// Its caption, in Markdown.
    pub caption: String,
    /// The same in words, for those who do not see it.
    pub alt: String,
    /// The step that it comes from.
    pub source: String,
    /// The name of its file when it is saved, without a suffix.
    pub file_name: String,
}

/// Where rows were lost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AttritionBlock {
    /// The stages, in order.
    pub stages: Vec<AttritionStage>,
}

/// A stage that rows pass, or not.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AttritionStage {
    /// The step.
    pub step: String,
    /// Its operator.
    pub operator: String,
    /// The rows that it left.
    pub rows: u64,
    /// The rows that it lost, if known.
    pub lost: Option<u64>,
    /// Why, by reason, the most frequent first.
    pub reasons: Vec<LossReason>,
}

/// A reason for which rows were lost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LossReason {
    /// The reason in words.
    pub reason: String,
    /// How many rows.
    pub rows: u64,
    /// Some of them.
    pub examples: Vec<Labelled>,
}

/// Refusals and warnings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DiagnosticBlock {
    /// The notes, the gravest first.
    pub notes: Vec<DiagnosticNote>,
}

/// A refusal, a warning or a remark.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DiagnosticNote {
    /// How grave it is.
    pub severity: NoteSeverity,
    /// The step that it is about; may be empty.
    pub step: String,
    /// The text.
    pub text: String,
}

/// How grave a note is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteSeverity {
    /// A number that cannot be right was not given.
    Refusal,
    /// Something failed.
    Error,
    /// Something is in doubt.
    #[default]
    Warning,
    /// Something to know.
    Note,
}

/// How the same results come again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReproduceBlock {
    /// A note before the commands, in Markdown; may be empty.
    pub note: String,
    /// The commands for a shell, in order, each with its purpose as its name.
    pub commands: Vec<Labelled>,
    /// The pins of the lock file: repository and commit, model and version.
    pub facts: Vec<Labelled>,
    /// The digests of results, by step and port.
    pub digests: Vec<Labelled>,
}

/// A table, or its first rows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TableBlock {
    /// The heading; may be empty.
    pub title: String,
    /// The caption, in Markdown.
    pub caption: String,
    /// The columns.
    pub columns: Vec<TableColumn>,
    /// The rows: a JSON value for each column.
    pub rows: Vec<Vec<serde_json::Value>>,
    /// The number of rows in all, if these are a part of them.
    pub total: Option<u64>,
    /// How the shown rows were chosen, if they are a part: `first by id`.
    pub choice: String,
    /// The step that it comes from.
    pub source: String,
    /// The name of its file when it is copied or saved, without a suffix. Its label in LaTeX.
    pub file_name: String,
    /// Where each row leads, in the order of `rows`: an address relative to the page, or beginning
    /// with `#`. Empty if nowhere.
    pub row_links: Vec<String>,
}

/// A column of a table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TableColumn {
    /// Its name.
    pub name: String,
    /// Its type as Galeras writes it: `utf8!`, `float64`.
    pub data_type: String,
    /// The unit of its values; may be empty.
    pub unit: String,
    /// A description; may be empty.
    pub description: String,
    /// The link of the heading, for pages that a server sorts. Without it a script of the page
    /// sorts.
    pub sort_link: Option<String>,
    /// For pages that a server sorts: whether the rows are in the order of this column.
    pub sorted: Option<SortDirection>,
    /// Statistics of its values, for the panel of a step.
    pub statistics: Option<ColumnStatistics>,
}

/// The direction in which rows are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SortDirection {
    /// The smallest first.
    Ascending,
    /// The largest first.
    Descending,
}

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
    /// The messages of the prompt, each with its speaker as its name: `system`, `user`.
    pub prompt: Vec<Labelled>,
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

/// The steps of a workflow and the tables between them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StepDiagram {
    /// The steps, in topological order.
    pub steps: Vec<StepBox>,
    /// The edges.
    pub arrows: Vec<StepArrow>,
}

/// A step: its box and its panel.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StepBox {
    /// Its name.
    pub name: String,
    /// Its operator.
    pub operator: String,
    /// Its arguments as YAML.
    pub arguments: String,
    /// Its state.
    pub state: StepCondition,
    /// Why it is in this state: `nothing changed`, `ARG_CHANGED: threshold 0.8 -> 0.7`.
    pub reason: String,
    /// How long it took.
    pub seconds: Option<f64>,
    /// The rows of its main port.
    pub rows: Option<u64>,
    /// The digest of its main port.
    pub digest: String,
    /// Its output ports.
    pub ports: Vec<PortPanel>,
    /// The outcomes of its data tests.
    pub assertions: Vec<AssertionOutcome>,
}

/// The state of a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepCondition {
    /// Its results for the present workflow are in the store.
    Stored,
    /// It was not computed yet.
    #[default]
    Missing,
}

/// An edge between two steps.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StepArrow {
    /// The step that it leaves.
    pub from: String,
    /// The step that it enters.
    pub to: String,
    /// The port that it leaves by, if it is not the main one.
    pub port: String,
}

/// An output port of a step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PortPanel {
    /// Its name: `out`, `rejects`.
    pub name: String,
    /// Its rows, if they are computed.
    pub rows: Option<u64>,
    /// Its digest.
    pub digest: String,
    /// Its columns.
    pub columns: Vec<TableColumn>,
    /// Its first rows.
    pub first_rows: Option<TableBlock>,
}

/// Statistics of the values of a column.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ColumnStatistics {
    /// The number of rows.
    pub count: u64,
    /// How many of them have no value.
    pub nulls: u64,
    /// The number of different values.
    pub distinct: Option<u64>,
    /// True if `distinct` is an estimate.
    pub distinct_estimated: bool,
    /// The smallest value, as text or number.
    pub min: serde_json::Value,
    /// The lower quartile.
    pub q1: Option<f64>,
    /// The median.
    pub median: Option<f64>,
    /// The mean.
    pub mean: Option<f64>,
    /// The standard deviation.
    pub std: Option<f64>,
    /// The upper quartile.
    pub q3: Option<f64>,
    /// The largest value, as text or number.
    pub max: serde_json::Value,
    /// A histogram of numbers, from left to right.
    pub bins: Vec<ValueBin>,
    /// The most frequent values of a column without numbers, the most frequent first.
    pub top: Vec<ValueCount>,
}

/// A bar of a histogram: the values from `low` to `high`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ValueBin {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The number of values.
    pub count: u64,
}

/// How often a value occurs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ValueCount {
    /// The value.
    pub value: String,
    /// How often.
    pub count: u64,
}

/// The outcome of a data test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AssertionOutcome {
    /// The test: `unique: [id]`.
    pub test: String,
    /// True if it passed; absent if it was not run.
    pub passed: Option<bool>,
    /// True if a failure is only a warning.
    pub warns: bool,
    /// The finding: `3 rows fail`.
    pub detail: String,
}
