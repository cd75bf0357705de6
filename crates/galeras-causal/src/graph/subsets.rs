//! Search through subsets by size, for criteria that are not monotone and not cuts of a graph,
//! within a limit on work.

use crate::graph::dag::{CausalGraph, View};

/// All inclusion-minimal subsets of `candidates` (sorted) that `accept` takes, sorted, and true if
/// the list is complete. The search goes by size and ends with the meter's work or `MOST_SETS`.
pub(super) fn minimal_subsets(
    candidates: &[usize],
    meter: &mut Meter,
    mut accept: impl FnMut(&[usize], &mut Meter) -> bool,
) -> (Vec<Vec<usize>>, bool) {
    let mut minimal: Vec<Vec<usize>> = Vec::new();
    let mut complete = true;
    'sizes: for size in 0..=candidates.len() {
        let mut chosen: Vec<usize> = (0..size).collect();
        let mut any_new = false;
        loop {
            let set: Vec<usize> = chosen.iter().map(|&place| candidates[place]).collect();
            meter.spend(size + minimal.len() + 1);
            if !minimal.iter().any(|smaller| is_subset(smaller, &set)) {
                any_new = true;
                if accept(&set, meter) {
                    if minimal.len() == MOST_SETS {
                        complete = false;
                        break 'sizes;
                    }
                    minimal.push(set);
                }
            }
            if meter.is_empty() {
                complete = false;
                break 'sizes;
            }
            if !advance(&mut chosen, candidates.len()) {
                break;
            }
        }
        // Every set of this size contains a minimal one, so every larger one does.
        if !any_new {
            break;
        }
    }
    minimal.sort_unstable();
    (minimal, complete)
}

fn is_subset(smaller: &[usize], larger: &[usize]) -> bool {
    let mut rest = larger.iter();
    smaller.iter().all(|wanted| rest.any(|node| node == wanted))
}

/// The next combination in lexicographic order.
fn advance(chosen: &mut [usize], count: usize) -> bool {
    let size = chosen.len();
    for place in (0..size).rev() {
        if chosen[place] < count - size + place {
            chosen[place] += 1;
            for later in place + 1..size {
                chosen[later] = chosen[later - 1] + 1;
            }
            return true;
        }
    }
    false
}

/// The nodes that may determine if a path between two of `ends` is open: those that may lie on such
/// a path, and their descendants, which can open a collider on it.
///
/// A node in another component, or attached to the rest by one edge, lies on no path. The result is
/// a superset of the nodes that matter, found in linear time.
pub(super) fn relevant(view: View<'_>, ends: &[usize]) -> Vec<bool> {
    let size = view.graph.size();
    let is_end = view.graph.mask(ends);
    let around = |node: usize| view.parents(node).chain(view.children(node).iter().copied());
    let mut connected = view.graph.mask(ends);
    let mut stack = ends.to_vec();
    while let Some(node) = stack.pop() {
        for next in around(node) {
            if !std::mem::replace(&mut connected[next], true) {
                stack.push(next);
            }
        }
    }
    let mut degree: Vec<usize> = (0..size).map(|node| around(node).count()).collect();
    let mut hanging: Vec<usize> =
        (0..size).filter(|&node| degree[node] <= 1 && !is_end[node]).collect();
    let mut kept = connected;
    while let Some(node) = hanging.pop() {
        kept[node] = false;
        for next in around(node) {
            degree[next] = degree[next].saturating_sub(1);
            if degree[next] == 1 && !is_end[next] {
                hanging.push(next);
            }
        }
    }
    let on_paths: Vec<usize> = (0..size).filter(|&node| kept[node]).collect();
    view.descendants(&on_paths, &[])
}

pub(super) const MOST_SETS: usize = 1_000;

/// The most work of one query, in nodes and edges visited.
pub(super) const MOST_WORK: u64 = 20_000_000;

/// The remaining work of a query.
pub(super) struct Meter {
    pub(super) left: u64,
}

impl Meter {
    pub(super) fn new(work: u64) -> Meter {
        Meter { left: work }
    }

    pub(super) fn spend(&mut self, work: usize) {
        self.left = self.left.saturating_sub(work as u64);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.left == 0
    }
}

/// Sets of variables: each sorted by name, and the list sorted by its sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableSets {
    /// The sets. None of them contains another.
    pub sets: Vec<Vec<String>>,
    /// The list is complete. Each set is minimal even if it is not.
    pub complete: bool,
}

impl VariableSets {
    pub(super) fn new(
        graph: &CausalGraph,
        (sets, complete): (Vec<Vec<usize>>, bool),
    ) -> VariableSets {
        VariableSets { sets: sets.iter().map(|set| graph.named(set)).collect(), complete }
    }

    /// The smallest set; ties are broken by name.
    pub fn smallest(&self) -> Option<&Vec<String>> {
        self.sets.iter().min_by_key(|set| set.len())
    }
}
