//! The order in which groups are eliminated, so that the factor stays sparse, and the nonzero
//! pattern of the factor.
//!
//! Minimum degree on the quotient graph (George and Liu, "The evolution of the minimum degree
//! ordering algorithm", SIAM Review 31, 1989; the bound of a degree is that of Amestoy, Davis and
//! Duff 1996, simplified). Groups that occur with very many others, and the remaining groups once
//! each is connected with half of the others, are left to the end, where they form one dense block.

use std::collections::BTreeSet;

pub(super) struct Elimination {
    /// Nodes that are eliminated one by one, in this order.
    pub(super) sparse: Vec<u32>,
    /// For each of them, the later nodes with entries in its column of the factor.
    pub(super) below: Vec<Vec<u32>>,
    /// The nodes of the dense block, in ascending order.
    pub(super) tail: Vec<u32>,
}

/// A node of lower degree is not connected with very many.
const SMALLEST_HUB: usize = 64;

struct Graph {
    /// Connections of the matrix that no element covers.
    variables: Vec<Vec<u32>>,
    /// By node, the eliminated nodes whose `below` contains it, without absorbed ones.
    elements: Vec<Vec<u32>>,
    /// For each eliminated node, the nodes connected with it.
    members: Vec<Vec<u32>>,
    eliminated: Vec<bool>,
    is_hub: Vec<bool>,
}

impl Graph {
    fn new(nodes: usize, pairs: &[(u32, u32)]) -> Self {
        let mut variables = vec![Vec::new(); nodes];
        for (a, b) in pairs {
            if a != b {
                variables[*a as usize].push(*b);
                variables[*b as usize].push(*a);
            }
        }
        let most = SMALLEST_HUB.max(10 * nodes.isqrt());
        let is_hub = variables.iter().map(|near| near.len() > most).collect();
        Self {
            variables,
            elements: vec![Vec::new(); nodes],
            members: vec![Vec::new(); nodes],
            eliminated: vec![false; nodes],
            is_hub,
        }
    }

    /// An upper bound of the number of nodes connected with a node.
    fn bound(&self, node: usize) -> usize {
        let elements = self.elements[node].iter().map(|at| self.members[*at as usize].len() - 1);
        self.variables[node].len() + elements.sum::<usize>()
    }

    /// The nodes connected with a node, in ascending order.
    fn neighbours(&self, node: usize) -> Vec<u32> {
        let mut near: Vec<u32> = self.variables[node]
            .iter()
            .chain(self.elements[node].iter().flat_map(|at| &self.members[*at as usize]))
            .copied()
            .filter(|other| *other as usize != node && !self.eliminated[*other as usize])
            .collect();
        near.sort_unstable();
        near.dedup();
        near
    }

    /// Eliminates a node: its neighbours become connected with each other.
    fn eliminate(&mut self, node: usize, near: &[u32]) {
        self.eliminated[node] = true;
        let absorbed = std::mem::take(&mut self.elements[node]);
        self.variables[node] = Vec::new();
        self.members[node] = near.to_vec();
        for other in near {
            let other = *other as usize;
            // The neighbours of hubs are not needed again: hubs stay to the end.
            if self.is_hub[other] {
                continue;
            }
            let kept = |at: &u32| *at as usize != node && near.binary_search(at).is_err();
            self.variables[other].retain(kept);
            self.elements[other].retain(|at| !absorbed.contains(at));
            self.elements[other].push(node as u32);
        }
        for at in absorbed {
            self.members[at as usize] = Vec::new();
        }
    }
}

/// The order for `nodes` nodes, of which the `pairs` are connected.
pub(super) fn order(nodes: usize, pairs: &[(u32, u32)]) -> Elimination {
    let mut graph = Graph::new(nodes, pairs);
    let mut waiting: BTreeSet<(usize, u32)> = (0..nodes)
        .filter(|node| !graph.is_hub[*node])
        .map(|node| (graph.bound(node), node as u32))
        .collect();
    let mut bounds: Vec<usize> = (0..nodes).map(|node| graph.bound(node)).collect();
    let (mut sparse, mut below) = (Vec::new(), Vec::new());
    let mut exact = vec![false; nodes];
    while let Some((_, node)) = waiting.pop_first() {
        let at = node as usize;
        let near = graph.neighbours(at);
        if near.len() < bounds[at] && !exact[at] {
            // The bound was too high, so another node may now come first.
            bounds[at] = near.len();
            exact[at] = true;
            waiting.insert((near.len(), node));
            continue;
        }
        let remaining = nodes - sparse.len();
        if remaining <= SMALLEST_HUB / 2 || near.len() * 2 >= remaining {
            break;
        }
        graph.eliminate(at, &near);
        for other in &near {
            let place = *other as usize;
            if graph.is_hub[place] {
                continue;
            }
            waiting.remove(&(bounds[place], *other));
            bounds[place] = graph.bound(place);
            exact[place] = false;
            waiting.insert((bounds[place], *other));
        }
        sparse.push(node);
        below.push(near);
    }
    let tail = (0..nodes as u32).filter(|node| !graph.eliminated[*node as usize]).collect();
    Elimination { sparse, below, tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Eliminates node by node in a full matrix of flags.
    fn filled(nodes: usize, pairs: &[(u32, u32)], order: &[u32]) -> Vec<Vec<u32>> {
        let mut connected = vec![vec![false; nodes]; nodes];
        for (a, b) in pairs {
            connected[*a as usize][*b as usize] = a != b;
            connected[*b as usize][*a as usize] = a != b;
        }
        let mut gone = vec![false; nodes];
        let mut all = Vec::new();
        for node in order {
            let node = *node as usize;
            gone[node] = true;
            let near: Vec<u32> = (0..nodes as u32)
                .filter(|other| connected[node][*other as usize] && !gone[*other as usize])
                .collect();
            for a in &near {
                for b in &near {
                    connected[*a as usize][*b as usize] = a != b;
                }
            }
            all.push(near);
        }
        all
    }

    #[test]
    fn entries_are_those_of_an_elimination_step_by_step() {
        let mut state = 7_u64;
        let mut draw = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % below
        };
        for (nodes, edges) in [(40, 50), (120, 200), (200, 260), (300, 900), (1, 0)] {
            let mut pairs: Vec<(u32, u32)> = (0..edges)
                .map(|_| (draw(nodes) as u32, draw(nodes) as u32))
                .filter(|(a, b)| a != b)
                .map(|(a, b)| (a.min(b), a.max(b)))
                .collect();
            pairs.sort_unstable();
            pairs.dedup();
            let found = order(nodes, &pairs);
            assert_eq!(found.below, filled(nodes, &pairs, &found.sparse));
            assert_eq!(found.sparse.len() + found.tail.len(), nodes);
        }
    }

    #[test]
    fn a_group_that_occurs_with_all_others_comes_last() {
        // 500 data points, each with all of three models and one of 20 repositories.
        let mut pairs = Vec::new();
        for point in 0..500 {
            pairs.extend((0..3).map(|model| (point, 520 + model)));
            pairs.push((point, 500 + point % 20));
        }
        for repository in 500..520 {
            pairs.extend((0..3).map(|model| (repository, 520 + model)));
        }
        let found = order(523, &pairs);
        assert!(found.below[..490].iter().all(|near| near.len() <= 4));
        assert!(found.tail.len() < 40 && found.tail.ends_with(&[520, 521, 522]));
    }
}
