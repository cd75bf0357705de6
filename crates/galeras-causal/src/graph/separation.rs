//! d-separation: nodes reachable by open paths, open paths, and minimal separators.

use std::collections::{BTreeSet, VecDeque};

use crate::graph::dag::{CausalGraph, View};
use crate::graph::error::QueryError;
use crate::graph::subsets::{MOST_SETS, Meter};

impl CausalGraph {
    /// True if `given` d-separates every node of `xs` from every node of `ys` (Pearl 2009,
    /// definition 1.2.3). A node in both is separated only if it is given; any argument may contain
    /// latent nodes.
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

/// The nodes that are d-connected to one of `from` given `given`, including `from`. O(nodes +
/// edges): the reachability of Koller and Friedman (2009, algorithm 3.1).
pub(super) fn reachable(
    view: View<'_>,
    from: &[usize],
    given: &[usize],
    meter: &mut Meter,
) -> Vec<bool> {
    let size = view.graph.size();
    let is_given = view.graph.mask(given);
    // A collider is open if it, or a descendant of it, is given.
    let opens = view.ancestors(given);
    let mut reached = vec![false; size];
    // Nodes visited from a child (0) or from a parent (1).
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

/// A shortest path from `from` to `to` that is open given `given`, as its nodes. With
/// `no_colliders`, one without colliders, so that only its own nodes can close it.
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

/// Two nodes and the nodes that may separate them, from which all minimal d-separators are listed
/// with polynomial delay.
///
/// Every minimal d-separator of a and b consists of ancestors of a or b, and a set of such
/// ancestors d-separates them if and only if it cuts them in the moral graph over those ancestors
/// (van der Zander, Textor and Liskiewicz 2014, 2019). All minimal cuts are listed by moving from
/// the one next to a towards b, a node at a time (Shen and Liang 1997; Takata 2010). The moral
/// graph is walked but never built; nodes that must not be in a set are walked through.
pub(super) struct Separation<'a> {
    view: View<'a>,
    a: usize,
    b: usize,
    allowed: &'a [bool],
    ancestors: Vec<bool>,
}

struct Walk {
    inside: Vec<bool>,
    stopped_at: Vec<usize>,
}

impl<'a> Separation<'a> {
    pub(super) fn new(view: View<'a>, a: usize, b: usize, allowed: &'a [bool]) -> Self {
        Separation { view, a, b, allowed, ancestors: view.ancestors(&[a, b]) }
    }

    /// Walks the moral graph from `start`; nodes for which `stops` holds are not entered.
    fn walk(&self, start: usize, stops: impl Fn(usize) -> bool, meter: &mut Meter) -> Walk {
        let size = self.ancestors.len();
        let mut met = vec![false; size];
        let mut inside = vec![false; size];
        // The parents of a child are connected once, however many of them are visited.
        let mut married = vec![false; size];
        let mut stopped_at = Vec::new();
        let mut stack = vec![start];
        let mut work = size;
        met[start] = true;
        inside[start] = true;
        while let Some(node) = stack.pop() {
            let mut meet = |next: usize, stack: &mut Vec<usize>| {
                work += 1;
                if !std::mem::replace(&mut met[next], true) {
                    if stops(next) {
                        stopped_at.push(next);
                    } else {
                        inside[next] = true;
                        stack.push(next);
                    }
                }
            };
            for parent in self.view.parents(node) {
                meet(parent, &mut stack);
            }
            for &child in self.view.children(node) {
                if self.ancestors[child] && !std::mem::replace(&mut married[child], true) {
                    meet(child, &mut stack);
                    for parent in self.view.parents(child) {
                        meet(parent, &mut stack);
                    }
                }
            }
        }
        meter.spend(work);
        stopped_at.sort_unstable();
        Walk { inside, stopped_at }
    }

    /// The minimal cut as near to `b` as `near_a` allows: the part of `near_a` that a walk from `b`
    /// reaches.
    fn towards_b(&self, near_a: &[usize], meter: &mut Meter) -> Vec<usize> {
        let stops = self.view.graph.mask(near_a);
        self.walk(self.b, |node| stops[node], meter).stopped_at
    }

    /// The minimal separator next to `a`; `None` if no set separates the two.
    pub(super) fn first(&self, meter: &mut Meter) -> Option<Vec<usize>> {
        let near = self.walk(self.a, |node| self.allowed[node], meter);
        if near.inside[self.b] { None } else { Some(self.towards_b(&near.stopped_at, meter)) }
    }

    /// All minimal separators, sorted, and true if the list is complete. If there is any, one is
    /// found regardless of the meter.
    pub(super) fn all(&self, meter: &mut Meter) -> (Vec<Vec<usize>>, bool) {
        let Some(first) = self.first(meter) else { return (Vec::new(), true) };
        let mut separators = BTreeSet::from([first.clone()]);
        let mut queue = VecDeque::from([first]);
        let mut complete = true;
        'search: while let Some(set) = queue.pop_front() {
            let cut = self.view.graph.mask(&set);
            let side = self.walk(self.a, |node| cut[node], meter).inside;
            for &moved in &set {
                if meter.is_empty() {
                    complete = false;
                    break 'search;
                }
                // The side of `a` absorbs one node of the cut, and the cut moves behind it.
                let stops = |node: usize| self.allowed[node] && !side[node] && node != moved;
                let near = self.walk(self.a, stops, meter);
                if near.inside[self.b] {
                    continue;
                }
                let next = self.towards_b(&near.stopped_at, meter);
                if !separators.contains(&next) {
                    if separators.len() == MOST_SETS {
                        complete = false;
                        break 'search;
                    }
                    separators.insert(next.clone());
                    queue.push_back(next);
                }
            }
        }
        (separators.into_iter().collect(), complete)
    }
}
