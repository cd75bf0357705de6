//! Causal graphs: what a drawing of causes says about which effect can be estimated, and how.
//!
//! A `CausalGraph` is read from DOT or dagitty text (`parse`). It tells d-separation (`separation`),
//! minimal adjustment sets for the backdoor criterion (`adjustment`), the frontdoor criterion
//! (`frontdoor`), instruments (`instruments`) and the independencies that data can contradict
//! (`independencies`). `identify` chooses between these. Nothing here sees data.
//!
//! There can be exponentially many sets, so every list is bounded by an amount of work. What it
//! holds is always right; `complete` says whether it is all there is.

mod adjustment;
mod dag;
mod frontdoor;
mod identify;
mod independencies;
mod instruments;
mod parse;
mod separation;
mod separators;
mod subsets;
#[cfg(test)]
mod tests;

use thiserror::Error;

pub use dag::CausalGraph;
pub use identify::{Identification, IdentificationReport, identify};
pub use independencies::{Independence, Independencies};
pub use instruments::{Instrument, Instruments};

/// The most sets of one kind that are listed.
const MOST_SETS: usize = 1_000;

/// The work that one question may take, in nodes and edges visited.
const MOST_WORK: u64 = 20_000_000;

/// At most so many names are shown in a message.
const NAMES_SHOWN: usize = 12;

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
    fn new(message: impl Into<String>, offset: usize) -> GraphError {
        GraphError { message: message.into(), offset, help: None }
    }

    fn help(mut self, help: impl Into<String>) -> GraphError {
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

/// Sets of variables: each sorted by name, and the list sorted by its sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableSets {
    /// The sets. None of them contains another.
    pub sets: Vec<Vec<String>>,
    /// Whether these are all. Each set is minimal even when they are not.
    pub complete: bool,
}

impl VariableSets {
    fn new(graph: &CausalGraph, (sets, complete): (Vec<Vec<usize>>, bool)) -> VariableSets {
        VariableSets { sets: sets.iter().map(|set| graph.named(set)).collect(), complete }
    }

    /// The smallest set; among those of one size, the first by name.
    pub fn smallest(&self) -> Option<&Vec<String>> {
        self.sets.iter().min_by_key(|set| set.len())
    }
}

/// What is left of the work that a question may take.
struct Meter {
    left: u64,
}

impl Meter {
    fn new(work: u64) -> Meter {
        Meter { left: work }
    }

    fn spend(&mut self, work: usize) {
        self.left = self.left.saturating_sub(work as u64);
    }

    fn is_empty(&self) -> bool {
        self.left == 0
    }
}

impl CausalGraph {
    /// Reads a graph from DOT (`digraph { Z -> {X Y}; U [latent="yes"]; U -> X }`) or dagitty
    /// text (`dag { X [exposure] Y [outcome] U [latent] Z -> X -> Y X <-> Y }`).
    ///
    /// Understood are quoted names, comments, chains, groups in braces, `subgraph`, DOT's
    /// defaults (`node [...]`, `edge [...]`) and ports, and edges `->`, `<-`, `<->` and
    /// `dir=both`. `X <-> Y` stands for a latent common cause, which has no name. A node is
    /// latent by `latent`, `unobserved` or `observed="no"`. Other attributes are about the
    /// drawing and are ignored.
    ///
    /// # Errors
    /// Anything else, an edge without a direction, and a cycle, which is named.
    pub fn parse(text: &str) -> Result<CausalGraph, GraphError> {
        parse::parse(text)
    }

    /// The names of the nodes, sorted; latent ones included.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether there is a node of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Whether the node is latent. A name that the graph does not have is not.
    pub fn is_latent(&self, name: &str) -> bool {
        self.find(name).is_some_and(|node| self.latent[node])
    }

    /// The nodes marked `exposure`, sorted.
    pub fn exposures(&self) -> Vec<&str> {
        self.exposures.iter().map(|&node| self.names[node].as_str()).collect()
    }

    /// The nodes marked `outcome`, sorted.
    pub fn outcomes(&self) -> Vec<&str> {
        self.outcomes.iter().map(|&node| self.names[node].as_str()).collect()
    }

    /// Whether a directed path leads from `from` to `to`.
    ///
    /// # Errors
    /// A name that the graph does not have.
    pub fn has_directed_path(&self, from: &str, to: &str) -> Result<bool, QueryError> {
        let (from, to) = (self.node(from)?, self.node(to)?);
        Ok(self.whole().descendants(&[from], &[])[to])
    }

    fn node(&self, name: &str) -> Result<usize, QueryError> {
        self.find(name).ok_or_else(|| {
            let mut known: Vec<String> =
                self.names.iter().take(NAMES_SHOWN).map(|name| format!("`{name}`")).collect();
            if self.names.len() > NAMES_SHOWN {
                known.push(format!("{} more", self.names.len() - NAMES_SHOWN));
            }
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            QueryError::UnknownNode { name: name.to_owned(), known }
        })
    }

    fn ends(&self, treatment: &str, outcome: &str) -> Result<(usize, usize), QueryError> {
        let ends = (self.node(treatment)?, self.node(outcome)?);
        if ends.0 == ends.1 {
            return Err(QueryError::SameNode(treatment.to_owned()));
        }
        Ok(ends)
    }

    fn nodes(&self, names: &[&str]) -> Result<Vec<usize>, QueryError> {
        names.iter().map(|name| self.node(name)).collect()
    }
}
