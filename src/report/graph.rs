//! The graph of a workflow's steps: what all formats are drawn from.

use crate::event::StepStatus;

/// A step.
#[derive(Clone, Debug)]
pub struct GraphNode {
    /// The step's name.
    pub name: String,
    /// What is written under the name: the operator.
    pub label: String,
    /// How the step ended, or would end now; `None` if that is not asked.
    pub state: Option<StepStatus>,
}

/// A table that goes from one step to another.
#[derive(Clone, Debug)]
pub struct GraphEdge {
    /// The position of the step that produces it.
    pub from: usize,
    /// The position of the step that reads it.
    pub to: usize,
    /// The port, unless it is the main one.
    pub label: Option<String>,
}

/// The steps of a workflow and the tables between them.
#[derive(Clone, Debug)]
pub struct StepGraph {
    /// The workflow's name.
    pub title: String,
    /// The steps.
    pub nodes: Vec<GraphNode>,
    /// The tables; one that names no step is left out.
    pub edges: Vec<GraphEdge>,
}

/// How a graph is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphFormat {
    /// A Mermaid flow chart, as GitHub shows it.
    Mermaid,
    /// DOT, for Graphviz.
    Dot,
    /// A picture that needs nothing else.
    Svg,
}

impl StepGraph {
    /// The edges between steps that exist.
    pub(super) fn valid_edges(&self) -> impl Iterator<Item = &GraphEdge> {
        let count = self.nodes.len();
        self.edges.iter().filter(move |e| e.from < count && e.to < count)
    }
}

/// The state in one word, as events write it.
pub(super) fn state_name(state: StepStatus) -> &'static str {
    match state {
        StepStatus::Hit => "hit",
        StepStatus::Ran => "ran",
        StepStatus::Failed => "failed",
        StepStatus::Skipped => "skipped",
    }
}
