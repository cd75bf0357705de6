//! A report as a whole.

use serde::{Deserialize, Serialize};

use crate::model::diagram::StepDiagram;
use crate::model::point::DataPointBlock;
use crate::model::section::{
    AttritionBlock, DiagnosticBlock, FigureBlock, FindingBlock, ReproduceBlock, TextBlock,
};
use crate::model::table::TableBlock;

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
