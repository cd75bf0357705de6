//! d-separation: which nodes a path can reach when some are given, and along which path.

use std::collections::VecDeque;

use super::dag::{CausalGraph, View};
use super::error::QueryError;
use super::meter::Meter;

impl CausalGraph {
    /// Whether `given` d-separates every node of `xs` from every node of `ys` (Pearl 2009,
    /// definition 1.2.3). A node in both is separated only when it is given; latent nodes may
    /// stand anywhere.
    ///
    /// # Errors
    /// [`QueryError::UnknownNode`] for a name that the graph does not have.
    pub fn d_separated(
        &self,
        xs: &[&str],
        ys: &[&str],
        given: &[&str],
    ) -> Result<bool, QueryError> {
        let (xs, ys, given) = (self.nodes(xs)?, self.nodes(ys)?, self.nodes(given)?);
        let reached = reachable(self.whole(), &xs, &given, &mut Meter::new(0));
        Ok(!ys.iter().any(|&node| reached[node]))
    }
}

/// The nodes that are d-connected to one of `from` when `given` is given, those of `from`
/// included. In O(nodes + edges): the reachability of Koller and Friedman (2009, algorithm 3.1).
pub(super) fn reachable(
    view: View<'_>,
    from: &[usize],
    given: &[usize],
    meter: &mut Meter,
) -> Vec<bool> {
    let size = view.graph.size();
    let is_given = view.graph.mask(given);
    // A collider is open when it, or a descendant of it, is given.
    let opens = view.ancestors(given);
    let mut reached = vec![false; size];
    // Whether a node has been met coming from a child (0) or from a parent (1).
    let mut met = vec![[false; 2]; size];
    let mut stack = Vec::new();
    let mut work = size;
    for &start in from {
        if !is_given[start] && !std::mem::replace(&mut met[start][0], true) {
            stack.push((start, 0));
        }
    }
    while let Some((node, side)) = stack.pop() {
        reached[node] |= !is_given[node];
        let upwards = if side == 0 { !is_given[node] } else { opens[node] };
        if upwards {
            for parent in view.parents(node) {
                work += 1;
                if !std::mem::replace(&mut met[parent][0], true) {
                    stack.push((parent, 0));
                }
            }
        }
        if !is_given[node] {
            for &child in view.children(node) {
                work += 1;
                if !std::mem::replace(&mut met[child][1], true) {
                    stack.push((child, 1));
                }
            }
        }
    }
    meter.spend(work);
    reached
}

/// A shortest path from `from` to `to` that is open when `given` is given, as its nodes. With
/// `no_colliders`, one that has none, so that nothing can close it but its own nodes.
pub(super) fn open_path(
    view: View<'_>,
    from: usize,
    to: usize,
    given: &[bool],
    no_colliders: bool,
) -> Option<Vec<usize>> {
    let listed: Vec<usize> = (0..given.len()).filter(|&node| given[node]).collect();
    let opens = if no_colliders { vec![false; given.len()] } else { view.ancestors(&listed) };
    // States are numbered 2 * node + side; the side is as in `reachable`.
    let mut before = vec![usize::MAX; 2 * given.len()];
    let mut queue = VecDeque::from([2 * from]);
    before[2 * from] = 2 * from;
    while let Some(state) = queue.pop_front() {
        let (node, side) = (state / 2, state % 2);
        if node == to {
            let mut path = vec![node];
            let mut at = state;
            while before[at] != at {
                at = before[at];
                path.push(at / 2);
            }
            path.reverse();
            return Some(path);
        }
        let mut step = |next: usize| {
            if before[next] == usize::MAX {
                before[next] = state;
                queue.push_back(next);
            }
        };
        if if side == 0 { !given[node] } else { opens[node] } {
            view.parents(node).for_each(|parent| step(2 * parent));
        }
        if !given[node] {
            view.children(node).iter().for_each(|&child| step(2 * child + 1));
        }
    }
    None
}
