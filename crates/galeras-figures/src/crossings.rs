//! How often the edges between the layers of a graph cross.

/// How many pairs of edges cross, where `order` has the nodes of each layer from one side to the
/// other, and `behind` those of the next layer that a node has edges to.
///
/// # Panics
///
/// If a node has an edge to one that is in no layer.
pub fn crossings<'a>(order: &[Vec<usize>], behind: impl Fn(usize) -> &'a [usize]) -> usize {
    let nodes = order.iter().flatten().max().map_or(0, |last| last + 1);
    let mut rank = vec![0; nodes];
    for layer in order {
        layer.iter().enumerate().for_each(|(at, node)| rank[*node] = at);
    }
    let widest = order.iter().map(Vec::len).max().unwrap_or(0);
    let mut crossings = 0;
    for layer in order {
        let mut ends = Ends::new(widest);
        for node in layer {
            let behind = behind(*node);
            crossings += behind.iter().map(|to| ends.behind(rank[*to])).sum::<usize>();
            behind.iter().for_each(|to| ends.add(rank[*to]));
        }
    }
    crossings
}

/// How many edges end at each place of a layer: a tree of sums, after Fenwick (1994).
struct Ends {
    sums: Vec<usize>,
    all: usize,
}

impl Ends {
    fn new(places: usize) -> Self {
        Self { sums: vec![0; places + 1], all: 0 }
    }

    fn add(&mut self, place: usize) {
        self.all += 1;
        let mut at = place + 1;
        while let Some(sum) = self.sums.get_mut(at) {
            *sum += 1;
            at += at & at.wrapping_neg();
        }
    }

    /// The edges that end behind this place.
    fn behind(&self, place: usize) -> usize {
        let mut at = place + 1;
        let mut before = 0;
        while at > 0 {
            before += self.sums[at];
            at -= at & at.wrapping_neg();
        }
        self.all - before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two edges cross if their ends are in another order than their beginnings.
    fn counted(order: &[Vec<usize>], behind: &[Vec<usize>]) -> usize {
        let at = |node: usize, layer: &[usize]| layer.iter().position(|n| *n == node);
        let mut found = 0;
        for pair in order.windows(2) {
            let edges: Vec<(usize, usize)> = pair[0]
                .iter()
                .enumerate()
                .flat_map(|(from, node)| behind[*node].iter().map(move |to| (from, *to)))
                .filter_map(|(from, to)| Some((from, at(to, &pair[1])?)))
                .collect();
            let crosses = |a: &(usize, usize), b: &(usize, usize)| a.0 < b.0 && a.1 > b.1;
            found += edges.iter().flat_map(|a| edges.iter().filter(|b| crosses(a, b))).count();
        }
        found
    }

    #[test]
    fn crossings_are_those_of_pairs_of_edges() {
        // Three layers of 5, 9 and 4 nodes, edges by a linear congruence.
        let order = vec![vec![3, 0, 4, 1, 2], (5..14).rev().collect(), vec![15, 14, 17, 16]];
        let mut behind: Vec<Vec<usize>> = vec![Vec::new(); 18];
        let mut seed = 7_usize;
        for (node, targets) in behind.iter_mut().enumerate().take(14) {
            let (first, count) = if node < 5 { (5, 9) } else { (14, 4) };
            for _ in 0..3 {
                seed = (seed * 1103 + 12_345) % 65_537;
                targets.push(first + seed % count);
            }
        }
        let found = crossings(&order, |node| &behind[node]);
        assert_eq!(found, counted(&order, &behind));
        assert!(found > 50, "{found}");
        assert_eq!(crossings(&[], |_| &[]), 0);
    }
}
