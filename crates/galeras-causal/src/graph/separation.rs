//! d-separation: nodes reachable by open paths, open paths, and minimal separators. Search through
//! subsets by size, for criteria that are not monotone and not cuts of a graph, within a limit on
//! work.

use std::collections::{BTreeSet, VecDeque};

use super::dag::{CausalGraph, QueryError, View};

impl CausalGraph {
    /// True if `given` d-separates every node of `xs` from every node of `ys` (Pearl 2009,
    /// definition 1.2.3). A node in both is separated only if it is given; any argument may contain
    /// latent nodes.
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

    /// The minimal cut near `b`: the part of `near_a` that a walk from `b` reaches.
    fn towards_b(&self, near_a: &[usize], meter: &mut Meter) -> Vec<usize> {
        let stops = self.view.graph.mask(near_a);
        self.walk(self.b, |node| stops[node], meter).stopped_at
    }

    /// The minimal separator next to `a`; `None` if no set separates the two.
    pub(super) fn first(&self, meter: &mut Meter) -> Option<Vec<usize>> {
        let near = self.walk(self.a, |node| self.allowed[node], meter);
        if near.inside[self.b] { None } else { Some(self.towards_b(&near.stopped_at, meter)) }
    }

    /// All minimal separators, sorted, and true if complete; one at least, regardless of the meter.
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
/// a path, and their descendants, which can open a collider on it. A node in another component, or
/// attached to the rest by one edge, lies on no path; others that do not matter may be included.
pub(super) fn relevant(view: View<'_>, ends: &[usize]) -> Vec<bool> {
    let size = view.graph.size();
    let is_end = view.graph.mask(ends);
    let around = |node: usize| view.parents(node).chain(view.children(node).iter().copied());
    let mut kept = view.connected(ends, around);
    let mut degree: Vec<usize> = (0..size).map(|node| around(node).count()).collect();
    let mut hanging: Vec<usize> =
        (0..size).filter(|&node| degree[node] <= 1 && !is_end[node]).collect();
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
