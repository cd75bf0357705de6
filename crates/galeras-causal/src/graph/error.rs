//! Errors of graph texts and of graph queries.

use thiserror::Error;

/// A text that is not a causal graph.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct GraphError {
    /// The problem.
    pub message: String,
    /// The byte of the problem in the text, for a caret.
    pub offset: usize,
    /// A suggestion, if there is one.
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

/// A query that has no answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum QueryError {
    /// The graph has no node of this name.
    #[error("the graph has no node `{name}`; it has {known}")]
    UnknownNode {
        /// The requested name.
        name: String,
        /// The existing names, for the message.
        known: String,
    },
    /// Both ends of a query are one node.
    #[error("`{0}` cannot be both the treatment and the outcome")]
    SameNode(String),
    /// There are too many sets to count.
    #[error("the valid adjustment sets cannot be counted: {0} variables matter for them")]
    TooLarge(usize),
}
