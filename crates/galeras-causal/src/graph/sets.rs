//! Lists of sets of variables, by name.

use super::dag::CausalGraph;

/// Sets of variables: each sorted by name, and the list sorted by its sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableSets {
    /// The sets. None of them contains another.
    pub sets: Vec<Vec<String>>,
    /// Whether these are all. Each set is minimal even when they are not.
    pub complete: bool,
}

impl VariableSets {
    pub(super) fn new(
        graph: &CausalGraph,
        (sets, complete): (Vec<Vec<usize>>, bool),
    ) -> VariableSets {
        VariableSets { sets: sets.iter().map(|set| graph.named(set)).collect(), complete }
    }

    /// The smallest set; among those of one size, the first by name.
    pub fn smallest(&self) -> Option<&Vec<String>> {
        self.sets.iter().min_by_key(|set| set.len())
    }
}
