//! The graph: nodes, edges, the check for cycles, ancestors and descendants, and errors.

use std::collections::BTreeMap;

use thiserror::Error;

pub(super) const SHOWN: usize = 12;

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
}

/// A directed acyclic graph with observed and latent nodes. The named nodes come first, in the
/// order of their names. The unnamed common causes behind each `X <-> Y` follow: they are latent
/// and never shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CausalGraph {
    pub(super) names: Vec<String>,
    pub(super) latent: Vec<bool>,
    pub(super) parents: Vec<Vec<usize>>,
    pub(super) children: Vec<Vec<usize>>,
}

impl CausalGraph {
    /// The number of nodes, including unnamed ones.
    pub(super) fn size(&self) -> usize {
        self.parents.len()
    }

    /// True if a node has a name and is not latent.
    pub(super) fn observed(&self, node: usize) -> bool {
        self.latent.get(node) == Some(&false)
    }

    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.names.binary_search_by(|known| known.as_str().cmp(name)).ok()
    }

    pub(super) fn named(&self, nodes: &[usize]) -> Vec<String> {
        nodes.iter().filter_map(|&node| self.names.get(node).cloned()).collect()
    }

    /// True if an edge connects the two, in either direction.
    pub(super) fn adjacent(&self, a: usize, b: usize) -> bool {
        self.children[a].binary_search(&b).is_ok() || self.children[b].binary_search(&a).is_ok()
    }

    /// The graph with all its edges.
    pub(super) fn whole(&self) -> View<'_> {
        View { graph: self, cut: &[] }
    }

    /// The graph without the edges that leave the marked nodes (Pearl's underlined graph).
    pub(super) fn without_edges_from<'a>(&'a self, cut: &'a [bool]) -> View<'a> {
        View { graph: self, cut }
    }

    pub(super) fn mask(&self, nodes: &[usize]) -> Vec<bool> {
        let mut mask = vec![false; self.size()];
        for &node in nodes {
            mask[node] = true;
        }
        mask
    }

    /// The names of the nodes, sorted, including latent ones.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// True if the graph has a node of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// True if the node is latent; false for a name that the graph does not have.
    pub fn is_latent(&self, name: &str) -> bool {
        self.find(name).is_some_and(|node| self.latent[node])
    }

    /// True if a directed path leads from `from` to `to`.
    pub fn has_directed_path(&self, from: &str, to: &str) -> Result<bool, QueryError> {
        let (from, to) = (self.node(from)?, self.node(to)?);
        Ok(self.whole().descendants(&[from], &[])[to])
    }

    pub(super) fn node(&self, name: &str) -> Result<usize, QueryError> {
        self.find(name).ok_or_else(|| {
            let mut known: Vec<String> =
                self.names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
            if self.names.len() > SHOWN {
                known.push(format!("{} more", self.names.len() - SHOWN));
            }
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            QueryError::UnknownNode { name: name.to_owned(), known }
        })
    }

    pub(super) fn ends(
        &self,
        treatment: &str,
        outcome: &str,
    ) -> Result<(usize, usize), QueryError> {
        let ends = (self.node(treatment)?, self.node(outcome)?);
        if ends.0 == ends.1 {
            return Err(QueryError::SameNode(treatment.to_owned()));
        }
        Ok(ends)
    }

    pub(super) fn nodes(&self, names: &[&str]) -> Result<Vec<usize>, QueryError> {
        names.iter().map(|name| self.node(name)).collect()
    }
}

/// A graph in which some nodes have lost their outgoing edges.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) graph: &'a CausalGraph,
    /// The nodes that have lost them; empty for none.
    cut: &'a [bool],
}

impl<'a> View<'a> {
    fn is_cut(&self, node: usize) -> bool {
        self.cut.get(node) == Some(&true)
    }

    pub(super) fn parents(self, node: usize) -> impl Iterator<Item = usize> + 'a {
        let all: &'a [usize] = &self.graph.parents[node];
        all.iter().copied().filter(move |&parent| !self.is_cut(parent))
    }

    pub(super) fn children(self, node: usize) -> &'a [usize] {
        if self.is_cut(node) { &[] } else { &self.graph.children[node] }
    }

    /// The seeds and their ancestors.
    pub(super) fn ancestors(self, seeds: &[usize]) -> Vec<bool> {
        self.connected(seeds, |node| self.parents(node))
    }

    /// The seeds and their descendants by paths that avoid nodes of `blocked`.
    pub(super) fn descendants(self, seeds: &[usize], blocked: &[bool]) -> Vec<bool> {
        let free = |child: &usize| blocked.get(*child) != Some(&true);
        self.connected(seeds, |node| self.children(node).iter().copied().filter(free))
    }

    /// The seeds and all nodes that are reached from them by steps to `next` nodes.
    pub(super) fn connected<I: Iterator<Item = usize>>(
        self,
        seeds: &[usize],
        next: impl Fn(usize) -> I,
    ) -> Vec<bool> {
        let mut seen = self.graph.mask(seeds);
        let mut stack = seeds.to_vec();
        while let Some(node) = stack.pop() {
            for other in next(node) {
                if !std::mem::replace(&mut seen[other], true) {
                    stack.push(other);
                }
            }
        }
        seen
    }
}

/// An edge of the text, with the byte of its arrow.
#[derive(Clone, Copy)]
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) both: bool,
    pub(super) offset: usize,
}

/// A graph during parsing: nodes in the order of their first appearance.
#[derive(Default)]
pub(super) struct GraphBuilder {
    index: BTreeMap<String, usize>,
    pub(super) latent: Vec<bool>,
    pub(super) edges: Vec<Edge>,
}

impl GraphBuilder {
    pub(super) fn node(&mut self, name: &str, latent: bool) -> usize {
        if let Some(&known) = self.index.get(name) {
            return known;
        }
        let number = self.latent.len();
        self.index.insert(name.to_owned(), number);
        self.latent.push(latent);
        number
    }

    /// Sorts the names, replaces each `<->` by a latent common cause, and checks for cycles.
    pub(super) fn finish(self) -> Result<CausalGraph, GraphError> {
        let mut position = vec![0; self.latent.len()];
        let (mut names, mut latent) = (Vec::new(), Vec::new());
        for (name, met) in self.index {
            position[met] = names.len();
            names.push(name);
            latent.push(self.latent[met]);
        }
        let mut directed: Vec<(usize, usize, usize)> = Vec::new();
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        for edge in &self.edges {
            let (from, to) = (position[edge.from], position[edge.to]);
            if edge.both {
                pairs.push((from.min(to), from.max(to)));
            } else {
                directed.push((from, to, edge.offset));
            }
        }
        directed.sort_unstable();
        directed.dedup_by_key(|edge| (edge.0, edge.1));
        pairs.sort_unstable();
        pairs.dedup();

        let size = names.len() + pairs.len();
        latent.resize(size, true);
        let mut parents = vec![Vec::new(); size];
        let mut children = vec![Vec::new(); size];
        for &(from, to, _) in &directed {
            parents[to].push(from);
            children[from].push(to);
        }
        for (number, &(a, b)) in pairs.iter().enumerate() {
            let cause = names.len() + number;
            parents[a].push(cause);
            parents[b].push(cause);
            children[cause].extend([a, b]);
        }
        let graph = CausalGraph { names, latent, parents, children };
        match graph.cycle() {
            None => Ok(graph),
            Some(cycle) => Err(graph.cycle_error(&cycle, &directed)),
        }
    }
}

impl CausalGraph {
    /// A cycle, as the nodes along it; `None` if the graph is acyclic (Kahn's algorithm).
    fn cycle(&self) -> Option<Vec<usize>> {
        let mut waiting: Vec<usize> = self.parents.iter().map(Vec::len).collect();
        let mut ready: Vec<usize> = (0..self.size()).filter(|&node| waiting[node] == 0).collect();
        while let Some(node) = ready.pop() {
            for &child in &self.children[node] {
                waiting[child] -= 1;
                if waiting[child] == 0 {
                    ready.push(child);
                }
            }
        }
        // Every remaining node has a remaining parent, so walking upwards must return.
        let mut at = (0..self.size()).find(|&node| waiting[node] > 0)?;
        let mut step = vec![usize::MAX; self.size()];
        let mut walk = Vec::new();
        while step[at] == usize::MAX {
            step[at] = walk.len();
            walk.push(at);
            at = self.parents[at].iter().copied().find(|&parent| waiting[parent] > 0)?;
        }
        let mut cycle = walk.split_off(step[at]);
        cycle.reverse();
        // Starts at its first name, so that the message does not depend on the text's order.
        let first = (0..cycle.len()).min_by_key(|&place| cycle[place])?;
        cycle.rotate_left(first);
        Some(cycle)
    }

    fn cycle_error(&self, cycle: &[usize], edges: &[(usize, usize, usize)]) -> GraphError {
        let mut offset = 0;
        for (place, &from) in cycle.iter().enumerate() {
            let to = cycle[(place + 1) % cycle.len()];
            if let Ok(place) = edges.binary_search_by(|edge| (edge.0, edge.1).cmp(&(from, to))) {
                // The last edge in the text closes the cycle.
                offset = offset.max(edges[place].2);
            }
        }
        let mut shown: Vec<&str> =
            cycle.iter().take(SHOWN).map(|&node| self.names[node].as_str()).collect();
        if cycle.len() > SHOWN {
            shown.push("…");
        }
        shown.extend(cycle.first().map(|&node| self.names[node].as_str()));
        let message = format!("the graph has a cycle: {}", shown.join(" -> "));
        GraphError::new(message, offset)
            .help("a causal graph must be acyclic: nothing causes itself")
    }
}
