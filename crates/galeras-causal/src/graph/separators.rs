//! All minimal sets that d-separate two nodes, with polynomial delay.
//!
//! Every minimal d-separator of a and b consists of ancestors of a or b, and a set of such
//! ancestors d-separates them if and only if it cuts them in the moral graph over those ancestors
//! (van der Zander, Textor and Liskiewicz 2014, 2019). There all minimal cuts are listed by moving
//! from the one next to a towards b, a node at a time (Shen and Liang 1997; Takata 2010). The
//! moral graph is walked, never built: nodes that must not be in a set are walked through.

use std::collections::{BTreeSet, VecDeque};

use super::dag::View;
use super::meter::{MOST_SETS, Meter};

/// Two nodes to be separated by nodes of `allowed`, to which neither belongs.
pub(super) struct Separation<'a> {
    view: View<'a>,
    a: usize,
    b: usize,
    allowed: &'a [bool],
    ancestors: Vec<bool>,
}

/// What a walk from one of the two nodes meets before the nodes that stop it.
struct Walk {
    inside: Vec<bool>,
    stopped_at: Vec<usize>,
}

impl<'a> Separation<'a> {
    pub(super) fn new(view: View<'a>, a: usize, b: usize, allowed: &'a [bool]) -> Self {
        Separation { view, a, b, allowed, ancestors: view.ancestors(&[a, b]) }
    }

    /// Walks the moral graph from `start`; the nodes for which `stops` holds are not entered.
    fn walk(&self, start: usize, stops: impl Fn(usize) -> bool, meter: &mut Meter) -> Walk {
        let size = self.ancestors.len();
        let mut met = vec![false; size];
        let mut inside = vec![false; size];
        // The parents of a child are married once, however many of them come by.
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

    /// The minimal cut that lies as near to `b` as `near_a` lets it: the part of `near_a` that a
    /// walk from `b` meets.
    fn towards_b(&self, near_a: &[usize], meter: &mut Meter) -> Vec<usize> {
        let stops = self.view.graph.mask(near_a);
        self.walk(self.b, |node| stops[node], meter).stopped_at
    }

    /// The minimal separator next to `a`; none when no set separates the two.
    pub(super) fn first(&self, meter: &mut Meter) -> Option<Vec<usize>> {
        let near = self.walk(self.a, |node| self.allowed[node], meter);
        if near.inside[self.b] { None } else { Some(self.towards_b(&near.stopped_at, meter)) }
    }

    /// All minimal separators, sorted, and whether they are all. When there is one, one is found
    /// whatever the meter says.
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
                // The side of `a` takes in one node of the cut, and the cut moves behind it.
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
