//! Why a text is not a graph, and why a question about a graph has no answer.

use thiserror::Error;

/// Why a text is not a causal graph.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct GraphError {
    /// What is wrong.
    pub message: String,
    /// The byte of the text at which it is wrong, for a caret.
    pub offset: usize,
    /// What to write instead, where that is known.
    pub help: Option<String>,
}

impl GraphError {
    pub(super) fn new(message: impl Into<String>, offset: usize) -> GraphError {
        GraphError { message: message.into(), offset, help: None }
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> GraphError {
        self.help = Some(help.into());
        self
    }
}

/// Why a question about a graph has no answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum QueryError {
    /// The graph has no node of this name.
    #[error("the graph has no node `{name}`; it has {known}")]
    UnknownNode {
        /// The name that was asked for.
        name: String,
        /// The names that there are, for the message.
        known: String,
    },
    /// The two ends of a question are one node.
    #[error("`{0}` cannot be both the treatment and the outcome")]
    SameNode(String),
    /// The sets are too many to be counted.
    #[error("the valid adjustment sets cannot be counted: {0} variables matter for them")]
    TooLarge(usize),
}
