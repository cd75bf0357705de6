//! Where the nodes of a directed graph are: layers, few crossings, short edges.
//!
//! The method of Sugiyama, Tagawa and Toda (1981): edges that close a cycle are turned round,
//! layers follow from longest paths, the order within layers from barycentres with the fewest
//! crossings kept, and places from the means of neighbours as near as the nodes beside allow. An
//! edge over several layers passes each in a lane of its own.

use crate::crossings::crossings;

/// Nodes and lanes in layers.
#[derive(Clone, Debug)]
pub(crate) struct Layers {
    /// For each node, its layer.
    pub(crate) layer: Vec<usize>,
    /// For each node, the middle of its place across the layers' direction.
    pub(crate) across: Vec<f64>,
    /// For each edge, the lanes it takes through the layers between, as layer and place, from the
    /// edge's beginning to its end.
    pub(crate) lanes: Vec<Vec<(usize, f64)>>,
    /// The number of layers.
    pub(crate) count: usize,
    /// The least and the greatest place that anything takes.
    pub(crate) extent: (f64, f64),
}

const SWEEPS: usize = 24;

struct Item {
    size: f64,
    layer: usize,
    /// Neighbours in the layer before and the one behind.
    before: Vec<usize>,
    behind: Vec<usize>,
}

/// Lays out nodes that take these lengths across the layers' direction, `gap` apart. Any edges
/// will do: loops, doubles and cycles too.
pub(crate) fn layers(sizes: &[f64], edges: &[(usize, usize)], gap: f64) -> Layers {
    let turned = turned(sizes.len(), edges);
    let layer = longest_paths(sizes.len(), edges, &turned);
    let mut items: Vec<Item> = sizes
        .iter()
        .zip(&layer)
        .map(|(size, layer)| Item { size: *size, layer: *layer, before: vec![], behind: vec![] })
        .collect();
    let mut chains = Vec::with_capacity(edges.len());
    for (i, &(from, to)) in edges.iter().enumerate() {
        let (low, high) = if turned[i] { (to, from) } else { (from, to) };
        let mut chain = Vec::new();
        let mut last = low;
        for lane in layer[low] + 1..layer[high] {
            let item = items.len();
            items.push(Item { size: gap * 0.6, layer: lane, before: vec![last], behind: vec![] });
            items[last].behind.push(item);
            chain.push(item);
            last = item;
        }
        if low != high {
            items[last].behind.push(high);
            items[high].before.push(last);
        }
        if turned[i] {
            chain.reverse();
        }
        chains.push(chain);
    }
    let count = layer.iter().max().map_or(0, |m| m + 1);
    let order = ordered(&items, count);
    let across = places(&items, &order, gap);
    let low =
        items.iter().zip(&across).map(|(i, a)| a - i.size / 2.0).fold(f64::INFINITY, f64::min);
    let high =
        items.iter().zip(&across).map(|(i, a)| a + i.size / 2.0).fold(f64::NEG_INFINITY, f64::max);
    let lane = |chain: &Vec<usize>| chain.iter().map(|i| (items[*i].layer, across[*i])).collect();
    Layers {
        lanes: chains.iter().map(lane).collect(),
        across: across[..sizes.len()].to_vec(),
        layer,
        count,
        extent: if items.is_empty() { (0.0, 0.0) } else { (low, high) },
    }
}

/// For each edge whether it closes a cycle on a walk through the nodes in their order.
fn turned(nodes: usize, edges: &[(usize, usize)]) -> Vec<bool> {
    let mut next = vec![Vec::new(); nodes];
    edges.iter().enumerate().for_each(|(i, (from, to))| next[*from].push((i, *to)));
    let mut turned = vec![false; edges.len()];
    // 0: not seen, 1: on the way here, 2: done.
    let mut state = vec![0_u8; nodes];
    for start in 0..nodes {
        let mut way: Vec<(usize, usize)> = vec![(start, 0)];
        if state[start] != 0 {
            continue;
        }
        state[start] = 1;
        while let Some((node, at)) = way.last_mut() {
            match next[*node].get(*at).copied() {
                None => {
                    state[*node] = 2;
                    way.pop();
                }
                Some((edge, to)) => {
                    *at += 1;
                    match state[to] {
                        0 => {
                            state[to] = 1;
                            way.push((to, 0));
                        }
                        1 => turned[edge] = true,
                        _ => {}
                    }
                }
            }
        }
    }
    turned
}

fn longest_paths(nodes: usize, edges: &[(usize, usize)], turned: &[bool]) -> Vec<usize> {
    let mut layer = vec![0; nodes];
    // Without cycles this ends after as many rounds as the longest path has edges.
    for _ in 0..nodes {
        let mut moved = false;
        for (i, &(from, to)) in edges.iter().enumerate().filter(|(_, (a, b))| a != b) {
            let (low, high) = if turned[i] { (to, from) } else { (from, to) };
            if layer[high] <= layer[low] {
                layer[high] = layer[low] + 1;
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    // A node with no edge into it stands right before what it leads to: a confounder beside what
    // it confounds, not at the far end.
    let mut entered = vec![false; nodes];
    let mut nearest = vec![usize::MAX; nodes];
    for (i, &(from, to)) in edges.iter().enumerate().filter(|(_, (a, b))| a != b) {
        let (low, high) = if turned[i] { (to, from) } else { (from, to) };
        entered[high] = true;
        nearest[low] = nearest[low].min(layer[high]);
    }
    for node in 0..nodes {
        if !entered[node] && nearest[node] != usize::MAX {
            layer[node] = nearest[node] - 1;
        }
    }
    layer
}

/// The items of each layer in an order with few crossings.
fn ordered(items: &[Item], count: usize) -> Vec<Vec<usize>> {
    let mut order = vec![Vec::new(); count];
    items.iter().enumerate().for_each(|(i, item)| order[item.layer].push(i));
    let mut best = (crossings(&order, |i| &items[i].behind), order.clone());
    for sweep in 0..SWEEPS {
        let mut rank = vec![0.0; items.len()];
        for layer in &order {
            layer.iter().enumerate().for_each(|(at, i)| rank[*i] = at as f64);
        }
        let down = sweep % 2 == 0;
        let layers: Vec<usize> =
            if down { (1..count).collect() } else { (0..count.saturating_sub(1)).rev().collect() };
        for l in layers {
            let key = |i: usize| {
                let near = if down { &items[i].before } else { &items[i].behind };
                match near.is_empty() {
                    true => rank[i],
                    false => near.iter().map(|n| rank[*n]).sum::<f64>() / near.len() as f64,
                }
            };
            let mut keyed: Vec<(f64, usize)> = order[l].iter().map(|i| (key(*i), *i)).collect();
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
            order[l] = keyed.into_iter().map(|(_, i)| i).collect();
            order[l].iter().enumerate().for_each(|(at, i)| rank[*i] = at as f64);
        }
        let found = crossings(&order, |i| &items[i].behind);
        if found < best.0 {
            best = (found, order.clone());
        }
    }
    best.1
}

/// The middle of each item's place.
fn places(items: &[Item], order: &[Vec<usize>], gap: f64) -> Vec<f64> {
    let mut across = vec![0.0; items.len()];
    for layer in order {
        let mut at = 0.0;
        for i in layer {
            across[*i] = at + items[*i].size / 2.0;
            at += items[*i].size + gap;
        }
        let middle = (at - gap) / 2.0;
        layer.iter().for_each(|i| across[*i] -= middle);
    }
    for sweep in 0..SWEEPS {
        let down = sweep % 2 == 0;
        let mut layers: Vec<usize> = (0..order.len()).collect();
        if !down {
            layers.reverse();
        }
        for l in layers {
            let wish = |i: &usize| {
                // At the end both sides count, so that paths come out straight.
                let both = sweep + 2 >= SWEEPS;
                let near = items[*i].before.iter().filter(|_| down || both);
                let near = near.chain(items[*i].behind.iter().filter(|_| !down || both));
                let (sum, n) = near.fold((0.0, 0), |(s, n), j| (s + across[*j], n + 1));
                if n == 0 { across[*i] } else { sum / f64::from(n) }
            };
            let wishes: Vec<f64> = order[l].iter().map(wish).collect();
            let granted = apart(&order[l], items, &wishes, gap);
            order[l].iter().zip(granted).for_each(|(i, place)| across[*i] = place);
        }
    }
    across
}

/// The places nearest to the wished ones, in squares, that keep the order and the gaps: an
/// isotonic regression by pooling neighbours.
fn apart(layer: &[usize], items: &[Item], wishes: &[f64], gap: f64) -> Vec<f64> {
    let mut offsets = Vec::with_capacity(layer.len());
    let mut at = 0.0;
    for (k, i) in layer.iter().enumerate() {
        if k > 0 {
            at += items[layer[k - 1]].size / 2.0 + gap + items[*i].size / 2.0;
        }
        offsets.push(at);
    }
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for (wish, offset) in wishes.iter().zip(&offsets) {
        let mut pool = (wish - offset, 1);
        while let Some(last) = pools.last().filter(|last| last.0 > pool.0) {
            let n = last.1 + pool.1;
            pool = ((last.0 * last.1 as f64 + pool.0 * pool.1 as f64) / n as f64, n);
            pools.pop();
        }
        pools.push(pool);
    }
    let means = pools.into_iter().flat_map(|(mean, n)| std::iter::repeat_n(mean, n));
    means.zip(offsets).map(|(mean, offset)| mean + offset).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_lead_onwards_and_nodes_keep_apart() {
        let edges = [(0, 1), (0, 2), (1, 3), (2, 3), (0, 3), (4, 3)];
        let found = layers(&[20.0; 5], &edges, 10.0);
        assert!(edges.iter().all(|(a, b)| found.layer[*a] < found.layer[*b]));
        for a in 0..5 {
            for b in 0..a {
                let near = (found.across[a] - found.across[b]).abs() < 30.0 - 1e-9;
                assert!(!(near && found.layer[a] == found.layer[b]), "{a} {b}");
            }
        }
        assert_eq!(found.lanes[4].len(), 1);
    }

    #[test]
    fn cycles_loops_and_nothing_at_all_have_a_layout() {
        let found = layers(&[10.0; 3], &[(0, 1), (1, 2), (2, 0), (1, 1)], 5.0);
        assert_eq!(found.layer, [0, 1, 2]);
        assert_eq!(found.lanes[2].len(), 1);
        assert_eq!(layers(&[], &[], 5.0).count, 0);
    }

    #[test]
    fn crossings_that_can_be_avoided_are() {
        let edges = [(0, 5), (1, 4), (2, 3)];
        let found = layers(&[10.0; 6], &edges, 5.0);
        let mut ends: Vec<(f64, f64)> =
            edges.iter().map(|(a, b)| (found.across[*a], found.across[*b])).collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(ends.is_sorted_by(|a, b| a.1 < b.1), "{ends:?}");
    }
}
