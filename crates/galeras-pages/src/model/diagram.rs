//! The steps of a workflow in a report: boxes, arrows, and a panel for each step.

use serde::{Deserialize, Serialize};

use crate::model::table::TableBlock;

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
    /// Its operator; empty for an embedded workflow.
    pub operator: String,
    /// A description in Markdown; may be empty.
    pub description: String,
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
    /// It is being computed.
    Running,
    /// It failed.
    Failed,
    /// A step before it failed.
    Skipped,
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
    pub columns: Vec<ColumnPanel>,
    /// Its first rows.
    pub first_rows: Option<TableBlock>,
}

/// A column of a port: its type, description and values.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ColumnPanel {
    /// Its name.
    pub name: String,
    /// Its type as Galeras writes it.
    pub data_type: String,
    /// The unit of its values; may be empty.
    pub unit: String,
    /// A description; may be empty.
    pub description: String,
    /// Statistics of its values, if they are computed.
    pub statistics: Option<ColumnStatistics>,
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
