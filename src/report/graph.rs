//! The graph of a workflow's steps: what all formats are drawn from.

use super::units::count;

/// A step, or all cells of a matrix step.
#[derive(Clone, Debug)]
pub struct GraphNode {
    /// The step's name.
    pub name: String,
    /// The operator.
    pub label: String,
    /// The state of each cell, of which a step without a matrix has one.
    pub states: Vec<NodeState>,
}

/// The action of a run on a step, at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeState {
    /// Its result is stored.
    Hit,
    /// It was never computed.
    New,
    /// Something that it depends on has changed, or its result is gone.
    Changed,
    /// A step that it reads is computed first; then it is seen whether it runs.
    Waiting,
    /// It cannot be computed.
    Broken,
}

impl NodeState {
    /// All states, the best first.
    pub(super) const ALL: [Self; 5] =
        [Self::Hit, Self::New, Self::Changed, Self::Waiting, Self::Broken];

    /// The state in one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::New => "new",
            Self::Changed => "changed",
            Self::Waiting => "waiting",
            Self::Broken => "broken",
        }
    }
}

impl GraphNode {
    /// The state that all cells have.
    pub(super) fn state(&self) -> Option<NodeState> {
        let first = self.states.first()?;
        self.states.iter().all(|state| state == first).then_some(*first)
    }

    /// The line under the name: the operator and the states of its cells.
    pub(super) fn caption(&self) -> String {
        format!("{} · {}", self.label, self.states_text())
    }

    /// The states in words: `hit`, or `12 cells: 10 hit, 2 new`.
    pub(super) fn states_text(&self) -> String {
        if let [state] = self.states.as_slice() {
            return state.name().to_string();
        }
        let number = |state| self.states.iter().filter(|s| **s == state).count();
        let counts: Vec<String> = NodeState::ALL
            .into_iter()
            .filter(|state| number(*state) > 0)
            .map(|state| format!("{} {}", count(number(state) as u64), state.name()))
            .collect();
        format!("{} cells: {}", count(self.states.len() as u64), counts.join(", "))
    }
}

/// A table that goes from one step to another.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// A line for each step, for a terminal.
    Text,
}

impl StepGraph {
    /// The edges between steps that exist.
    pub(super) fn valid_edges(&self) -> impl Iterator<Item = &GraphEdge> {
        let count = self.nodes.len();
        self.edges.iter().filter(move |e| e.from < count && e.to < count)
    }
}
