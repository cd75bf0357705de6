//! The places of a directed graph's nodes: layers, few crossings, short edges.
//!
//! The method of Sugiyama, Tagawa and Toda (1981). Edges that close a cycle are reversed, layers
//! follow from longest paths, and barycentres order each layer; the order with the fewest crossings
//! is kept. A place is the mean of the neighbours' places, as near as the nodes next to it allow
//! (an isotonic regression). An edge over several layers passes each in a lane, unless there would
//! be too many lanes to read.

/// Nodes and lanes in layers. "Across" is along a layer, from 0 to `breadth`.
#[derive(Clone, Debug)]
pub(crate) struct Layers {
    /// The layer of each node.
    pub(crate) layer: Vec<usize>,
    /// The middle of each node across.
    pub(crate) across: Vec<f64>,
    /// The lanes of each edge from its start to its end, as layer and middle across.
    pub(crate) lanes: Vec<Vec<(usize, f64)>>,
    pub(crate) count: usize,
    pub(crate) breadth: f64,
}

const SWEEPS: usize = 24;
/// The size of a lane across.
const LANE: f64 = 10.0;
/// The most lanes. A graph of thousands of nodes that all lead to one would have millions: their
/// number grows with the square of the nodes.
const MAX_LANES: usize = 20_000;

/// Lays out nodes of these sizes across, `gap` apart and at most `most` in a layer. The edges may
/// have loops, doubles and cycles.
pub(crate) fn layers(sizes: &[f64], edges: &[(usize, usize)], gap: f64, most: usize) -> Layers {
    let nodes = sizes.len();
    let reversed = reversed(nodes, edges);
    let turn = |(&(from, to), turned): (&(usize, usize), &bool)| {
        if *turned { (to, from) } else { (from, to) }
    };
    let forward: Vec<(usize, usize)> = edges.iter().zip(&reversed).map(turn).collect();
    let layer = assign(nodes, &forward, most);
    let count = layer.iter().max().map_or(0, |last| last + 1);
    let mut order = vec![Vec::new(); count];
    layer.iter().enumerate().for_each(|(node, l)| order[*l].push(node));
    let mut items = Items {
        nodes,
        gap,
        sizes: sizes.to_vec(),
        before: vec![Vec::new(); nodes],
        behind: vec![Vec::new(); nodes],
    };
    let passed = |(from, to): &(usize, usize)| layer[*to].saturating_sub(layer[*from] + 1);
    let has_lanes = forward.iter().map(passed).sum::<usize>() <= MAX_LANES;
    let mut chains = Vec::with_capacity(edges.len());
    for (&(from, to), turned) in forward.iter().zip(&reversed) {
        let mut chain = Vec::new();
        let mut last = from;
        let end = if has_lanes { layer[to] } else { 0 };
        for (l, lane) in order.iter_mut().enumerate().take(end).skip(layer[from] + 1) {
            let item = items.add_lane();
            items.connect(last, item);
            lane.push(item);
            chain.push((l, item));
            last = item;
        }
        if from != to {
            items.connect(last, to);
        }
        if *turned {
            chain.reverse();
        }
        chains.push(chain);
    }
    items.order(&mut order);
    let across = items.positions(&order);
    let far = across.iter().zip(&items.sizes).map(|(at, size)| at + size / 2.0);
    let place = |chain: Vec<(usize, usize)>| chain.iter().map(|(l, i)| (*l, across[*i])).collect();
    Layers {
        layer,
        lanes: chains.into_iter().map(place).collect(),
        count,
        breadth: far.fold(0.0, f64::max),
        across: across[..nodes].to_vec(),
    }
}

/// Marks the edges that close a cycle in a depth-first search from each node in turn.
fn reversed(nodes: usize, edges: &[(usize, usize)]) -> Vec<bool> {
    let mut next = vec![Vec::new(); nodes];
    edges.iter().enumerate().for_each(|(i, (from, to))| next[*from].push((i, *to)));
    let mut reversed = vec![false; edges.len()];
    let (mut is_open, mut is_done) = (vec![false; nodes], vec![false; nodes]);
    for start in 0..nodes {
        if is_done[start] {
            continue;
        }
        is_open[start] = true;
        let mut path: Vec<(usize, usize)> = vec![(start, 0)];
        while let Some((node, at)) = path.last_mut() {
            let Some(&(edge, to)) = next[*node].get(*at) else {
                is_done[*node] = true;
                path.pop();
                continue;
            };
            *at += 1;
            if !is_open[to] {
                is_open[to] = true;
                path.push((to, 0));
            } else if !is_done[to] {
                reversed[edge] = true;
            }
        }
    }
    reversed
}

/// The layer of each node, behind those that lead to it. `forward` has no cycles except loops.
fn assign(nodes: usize, forward: &[(usize, usize)], most: usize) -> Vec<usize> {
    let mut next = vec![Vec::new(); nodes];
    let mut waiting = vec![0_usize; nodes];
    for &(from, to) in forward.iter().filter(|(from, to)| from != to) {
        next[from].push(to);
        waiting[to] += 1;
    }
    let mut depth = vec![0; nodes];
    let mut order: Vec<usize> = (0..nodes).filter(|node| waiting[*node] == 0).collect();
    let sources = order.len();
    let mut at = 0;
    while let Some(&node) = order.get(at) {
        at += 1;
        for &to in &next[node] {
            depth[to] = depth[to].max(depth[node] + 1);
            waiting[to] -= 1;
            if waiting[to] == 0 {
                order.push(to);
            }
        }
    }
    // A node with no edge into it is right before the first that it leads to: a confounder is next
    // to its effects, not at the far end.
    for &node in &order[..sources] {
        if let Some(nearest) = next[node].iter().map(|to| depth[*to]).min() {
            depth[node] = nearest - 1;
        }
    }
    let mut by_depth: Vec<usize> = (0..nodes).collect();
    by_depth.sort_by_key(|node| depth[*node]);
    let (mut layer, mut nodes_in) = (depth, Vec::new());
    for node in by_depth {
        // The first layer from its own on that has room.
        while nodes_in.get(layer[node]).is_some_and(|nodes| *nodes >= most) {
            layer[node] += 1;
        }
        nodes_in.resize(nodes_in.len().max(layer[node] + 1), 0);
        nodes_in[layer[node]] += 1;
        for &to in &next[node] {
            layer[to] = layer[to].max(layer[node] + 1);
        }
    }
    layer
}

/// Nodes, then lanes, with their neighbours in the layers before and behind.
struct Items {
    nodes: usize,
    gap: f64,
    sizes: Vec<f64>,
    before: Vec<Vec<usize>>,
    behind: Vec<Vec<usize>>,
}

impl Items {
    fn add_lane(&mut self) -> usize {
        self.sizes.push(LANE);
        self.before.push(Vec::new());
        self.behind.push(Vec::new());
        self.sizes.len() - 1
    }

    fn connect(&mut self, from: usize, to: usize) {
        self.behind[from].push(to);
        self.before[to].push(from);
    }

    /// Sorts each layer by the mean place of its neighbours, forwards and backwards in turn, and
    /// keeps the order with the fewest crossings.
    fn order(&self, order: &mut Vec<Vec<usize>>) {
        let mut best = (crossings(order, &self.behind), order.clone());
        let mut share = vec![0.0; self.sizes.len()];
        order.iter().for_each(|layer| note_shares(layer, &mut share));
        for sweep in 0..SWEEPS {
            if best.0 == 0 {
                break;
            }
            let near = if sweep % 2 == 0 { &self.before } else { &self.behind };
            for l in turns(sweep, order.len()) {
                let key = |i: usize| mean(&share, near[i].iter().copied()).unwrap_or(share[i]);
                let mut keyed: Vec<(f64, usize)> = order[l].iter().map(|i| (key(*i), *i)).collect();
                keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
                order[l] = keyed.into_iter().map(|(_, i)| i).collect();
                note_shares(&order[l], &mut share);
            }
            let crossings = crossings(order, &self.behind);
            if crossings < best.0 {
                best = (crossings, order.clone());
            }
        }
        *order = best.1;
    }

    /// The middle of each item across; the nearest side is at 0.
    fn positions(&self, order: &[Vec<usize>]) -> Vec<f64> {
        let mut across = vec![0.0; self.sizes.len()];
        for layer in order {
            self.settle(layer, &mut across, &vec![(0.0, 1.0); layer.len()]);
        }
        for sweep in 0..=SWEEPS {
            for l in turns(sweep, order.len()) {
                let wish = |i: &usize| {
                    let (before, behind) = (&self.before[*i], &self.behind[*i]);
                    if before.is_empty() && behind.is_empty() {
                        // Near the others, without pushing them aside.
                        return (mean(&across, order[l].iter().copied()).unwrap_or(0.0), 0.01);
                    }
                    let is_lane = *i >= self.nodes;
                    let all = || before.iter().chain(behind).copied();
                    let wish = if is_lane && sweep + 6 > SWEEPS {
                        // In the last sweeps a lane follows its edge's other lanes, not nodes.
                        mean(&across, all().filter(|n| *n >= self.nodes))
                            .or_else(|| mean(&across, all()))
                    } else if sweep == SWEEPS {
                        mean(&across, all())
                    } else if sweep % 2 == 0 {
                        mean(&across, before.iter().copied())
                    } else {
                        mean(&across, behind.iter().copied())
                    };
                    // Lanes hold their place, so that long edges are straight.
                    (wish.unwrap_or(across[*i]), if is_lane { 4.0 } else { 1.0 })
                };
                let wishes: Vec<(f64, f64)> = order[l].iter().map(wish).collect();
                self.settle(&order[l], &mut across, &wishes);
            }
        }
        let sides = across.iter().zip(&self.sizes).map(|(at, size)| at - size / 2.0);
        let nearest = sides.fold(f64::INFINITY, f64::min);
        across.iter().map(|at| at - nearest).collect()
    }

    /// Moves the items of a layer as near to their wishes as the gaps allow, in squares and without
    /// changing their order: weighted isotonic regression by pooling adjacent violators.
    fn settle(&self, layer: &[usize], across: &mut [f64], wishes: &[(f64, f64)]) {
        let mut offsets = Vec::with_capacity(layer.len());
        let mut offset = 0.0;
        for (k, i) in layer.iter().enumerate() {
            if k > 0 {
                offset += (self.sizes[layer[k - 1]] + self.sizes[*i]) / 2.0 + self.gap;
            }
            offsets.push(offset);
        }
        // Pools of neighbours that touch: their common place, weight and number.
        let mut pools: Vec<(f64, f64, usize)> = Vec::new();
        for ((at, weight), offset) in wishes.iter().copied().zip(&offsets) {
            let mut pool = (at - offset, weight, 1);
            while let Some(before) = pools.pop_if(|before| before.0 > pool.0) {
                let weight = before.1 + pool.1;
                let at = (before.0 * before.1 + pool.0 * pool.1) / weight;
                pool = (at, weight, before.2 + pool.2);
            }
            pools.push(pool);
        }
        let places = pools.iter().flat_map(|(at, _, n)| std::iter::repeat_n(*at, *n));
        for ((i, offset), at) in layer.iter().zip(&offsets).zip(places) {
            across[*i] = at + offset;
        }
    }
}

/// The layers in the order of a sweep: forwards, then backwards, and so on.
fn turns(sweep: usize, layers: usize) -> impl Iterator<Item = usize> {
    (0..layers).map(move |l| if sweep.is_multiple_of(2) { l } else { layers - 1 - l })
}

/// Notes where each item is in its layer, from 0 to 1.
fn note_shares(layer: &[usize], share: &mut [f64]) {
    for (at, i) in layer.iter().enumerate() {
        share[*i] = (at as f64 + 0.5) / layer.len() as f64;
    }
}

fn mean(values: &[f64], at: impl Iterator<Item = usize>) -> Option<f64> {
    let (sum, count) = at.fold((0.0, 0_u32), |(sum, count), i| (sum + values[i], count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// The number of pairs of edges that cross.
fn crossings(order: &[Vec<usize>], behind: &[Vec<usize>]) -> usize {
    let mut rank = vec![0; behind.len()];
    for layer in order {
        layer.iter().enumerate().for_each(|(at, item)| rank[*item] = at);
    }
    let mut crossings = 0;
    for layer in order {
        // The ranks at which edges of the items so far end, in order.
        let mut ends: Vec<usize> = Vec::new();
        for item in layer {
            // The edges of an item do not cross each other.
            let mut ranks: Vec<usize> = behind[*item].iter().map(|to| rank[*to]).collect();
            ranks.sort_unstable();
            for rank in ranks {
                let at = ends.partition_point(|end| *end <= rank);
                crossings += ends.len() - at;
                ends.insert(at, rank);
            }
        }
    }
    crossings
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: usize = usize::MAX;

    /// Checks that edges lead onwards, nodes keep apart and everything is within the breadth.
    #[track_caller]
    fn check(sizes: &[f64], edges: &[(usize, usize)], most: usize) -> Layers {
        let found = layers(sizes, edges, 10.0, most);
        let reversed = reversed(sizes.len(), edges);
        for ((from, to), reversed) in edges.iter().zip(reversed).filter(|((a, b), _)| a != b) {
            assert_eq!(found.layer[*from] < found.layer[*to], !reversed, "{from} to {to}");
        }
        let nodes = found.layer.iter().zip(&found.across).zip(sizes);
        let mut sides: Vec<(usize, f64, f64)> =
            nodes.map(|((layer, at), size)| (*layer, at - size / 2.0, at + size / 2.0)).collect();
        sides.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        for pair in sides.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
            assert!(pair[1].1 - pair[0].2 > 10.0 - 1e-6, "{pair:?}");
        }
        for (_, near, far) in sides {
            assert!(near > -1e-6 && far < found.breadth + 1e-6, "{near} {far}");
        }
        found
    }

    #[test]
    fn edges_lead_onwards_and_nodes_keep_apart() {
        let found = check(&[20.0; 5], &[(0, 1), (0, 2), (1, 3), (2, 3), (0, 3), (4, 3)], ALL);
        assert_eq!(found.lanes[4].len(), 1);
        assert_eq!(found.layer[4], 1, "a source is right before what it leads to");
        let edges: Vec<_> = (1..60).flat_map(|i| [((i * 7) % i, i), (i / 2, i)]).collect();
        let sizes: Vec<f64> = (0..60).map(|i| 60.0 + f64::from(i % 5) * 30.0).collect();
        for most in [ALL, 6] {
            check(&sizes, &edges, most);
        }
    }

    #[test]
    fn a_wide_layer_is_broken_into_several() {
        let edges: Vec<(usize, usize)> = (1..=40).flat_map(|i| [(0, i), (i, 41)]).collect();
        assert!(check(&[100.0; 42], &edges, 6).breadth < 3000.0);
        assert!(check(&[100.0; 42], &edges, ALL).breadth > 4000.0);
    }

    #[test]
    fn cycles_loops_and_nothing_at_all_have_a_layout() {
        let found = check(&[10.0; 3], &[(0, 1), (1, 2), (2, 0), (1, 1)], ALL);
        assert_eq!(found.layer, [0, 1, 2]);
        assert_eq!(found.lanes[2].len(), 1);
        assert_eq!(check(&[], &[], ALL).count, 0);
    }

    #[test]
    fn crossings_that_can_be_avoided_are() {
        let edges = [(0, 5), (1, 4), (2, 3)];
        let found = check(&[10.0; 6], &edges, ALL);
        let mut ends = edges.map(|(a, b)| (found.across[a], found.across[b]));
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(ends.is_sorted_by(|a, b| a.1 < b.1), "{ends:?}");
    }

    #[test]
    fn chains_fans_and_readers_of_one_node_are_laid_out_however_many() {
        let count = 10_000;
        let chain: Vec<(usize, usize)> = (1..count).rev().map(|i| (i - 1, i)).collect();
        assert_eq!(check(&vec![50.0; count], &chain, 12).count, count);
        let fan: Vec<(usize, usize)> = (1..count).map(|i| (0, i)).collect();
        assert_eq!(check(&vec![50.0; count], &fan, ALL).count, 2);
        assert_eq!(check(&vec![50.0; count], &fan, 12).count, 1 + (count - 1).div_ceil(12));
        // An edge over each number of layers.
        let all_read_the_first =
            |n: usize| (1..n).flat_map(|i| [(i - 1, i), (0, i)]).collect::<Vec<_>>();
        let few = check(&[50.0; 100], &all_read_the_first(100), 12);
        assert_eq!(few.lanes.iter().map(Vec::len).sum::<usize>(), (1..=98).sum::<usize>());
        let many = check(&vec![50.0; count], &all_read_the_first(count), 12);
        assert!(many.lanes.iter().all(Vec::is_empty));
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
        let mut expected = 0;
        for pair in order.windows(2) {
            let edges: Vec<(usize, usize)> = (0..pair[0].len())
                .flat_map(|at| behind[pair[0][at]].iter().map(move |to| (at, *to)))
                .map(|(at, to)| (at, pair[1].iter().position(|node| *node == to).unwrap()))
                .collect();
            // Two edges cross if their ends are in another order than their starts.
            let crosses = |a: &(usize, usize), b: &(usize, usize)| a.0 < b.0 && a.1 > b.1;
            expected += edges.iter().flat_map(|a| edges.iter().filter(|b| crosses(a, b))).count();
        }
        assert_eq!(crossings(&order, &behind), expected);
        assert!(expected > 50, "{expected}");
        assert_eq!(crossings(&[], &[]), 0);
    }
}
