//! The layout of a graph: layers from top to bottom, few crossings, short edges.
//!
//! The method of Sugiyama, Tagawa and Toda (1981): layers by the longest path, an order within
//! layers by barycentres, then positions. A position is the mean of its neighbours' positions, as
//! close as the adjacent boxes allow, which is an isotonic regression. A long edge is a chain of
//! invisible items, one per layer. If there would be too many to read the picture, long edges are
//! straight.

use std::collections::BTreeSet;

use galeras_figures::crossings;

/// The height of a box.
pub(super) const HEIGHT: f64 = 46.0;
const LAYER: f64 = HEIGHT + 58.0;
const GAP: f64 = 26.0;
/// The room for an edge that passes a layer.
const LANE: f64 = 10.0;
const SWEEPS: usize = 24;

/// The limit on lanes, whose number can grow with the square of the steps: if thousands of steps
/// all read one, there would be millions.
const MAX_LANES: usize = 20_000;

pub(super) struct Layout {
    /// The middle of each box's upper side.
    pub(super) boxes: Vec<(f64, f64)>,
    /// The points where each edge passes a layer, at the height of the boxes' upper sides.
    pub(super) lanes: Vec<Vec<(f64, f64)>>,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// Lays out boxes of the given widths. Edges may form cycles.
pub(super) fn layout(widths: &[f64], edges: &[(usize, usize)]) -> Layout {
    let layer = layers(widths.len(), edges);
    let mut items = Items { widths: widths.to_vec(), up: Vec::new(), down: Vec::new() };
    let mut order = vec![Vec::new(); layer.iter().max().map_or(0, |m| m + 1)];
    layer.iter().enumerate().for_each(|(i, l)| order[*l].push(i));
    let lanes = |(from, to): &(usize, usize)| layer[*to].saturating_sub(layer[*from] + 1);
    let has_lanes = edges.iter().map(lanes).sum::<usize>() <= MAX_LANES;
    let mut chains = Vec::with_capacity(edges.len());
    let mut links = Vec::new();
    for &(from, to) in edges {
        let mut chain = Vec::new();
        let mut last = from;
        let below = if has_lanes { layer[to] } else { 0 };
        for lane in order.iter_mut().take(below).skip(layer[from] + 1) {
            let item = items.widths.len();
            items.widths.push(LANE);
            lane.push(item);
            links.push((last, item));
            chain.push(item);
            last = item;
        }
        if layer[from] < layer[to] {
            links.push((last, to));
        }
        chains.push(chain);
    }
    items.connect(&links);
    items.order(&mut order);
    let x = items.positions(&order, widths.len());
    let mut y = vec![0.0; items.widths.len()];
    for (l, layer) in order.iter().enumerate() {
        layer.iter().for_each(|i| y[*i] = l as f64 * LAYER);
    }
    let side = |sign: f64| {
        let edge = x.iter().zip(&items.widths).map(move |(x, w)| sign * x + w / 2.0);
        edge.fold(0.0, f64::max)
    };
    Layout {
        boxes: (0..widths.len()).map(|i| (x[i], y[i])).collect(),
        lanes: chains.iter().map(|c| c.iter().map(|i| (x[*i], y[*i])).collect()).collect(),
        width: side(1.0),
        height: (order.len().max(1) - 1) as f64 * LAYER + HEIGHT,
    }
}

/// The layer of each node: below everything it reads, unless the graph has a cycle, with at most a
/// screenful of boxes per layer.
fn layers(count: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let mut next = vec![Vec::new(); count];
    let mut waiting = vec![0_usize; count];
    for &(from, to) in edges.iter().filter(|(from, to)| from != to) {
        next[from].push(to);
        waiting[to] += 1;
    }
    let mut depth = vec![0; count];
    let mut open: BTreeSet<usize> = (0..count).collect();
    let mut ready: BTreeSet<usize> = (0..count).filter(|i| waiting[*i] == 0).collect();
    // In a cycle, the first node is taken.
    while let Some(i) = ready.pop_first().or(open.first().copied()) {
        open.remove(&i);
        for to in &next[i] {
            waiting[*to] = waiting[*to].saturating_sub(1);
            if open.contains(to) {
                depth[*to] = depth[*to].max(depth[i] + 1);
                if waiting[*to] == 0 {
                    ready.insert(*to);
                }
            }
        }
    }
    let most = ((count as f64).sqrt() as usize).clamp(6, 12);
    let mut by_depth: Vec<usize> = (0..count).collect();
    by_depth.sort_by_key(|i| depth[*i]);
    let mut least = vec![0; count];
    let mut room = Room { sizes: Vec::new(), next: Vec::new(), most };
    let mut layer = vec![0; count];
    for i in by_depth {
        let l = room.take(least[i]);
        layer[i] = l;
        for to in next[i].iter().filter(|to| depth[**to] > depth[i]) {
            least[*to] = least[*to].max(l + 1);
        }
    }
    layer
}

/// The number of boxes in each layer.
struct Room {
    sizes: Vec<usize>,
    /// For a full layer, a later layer; all layers between them are full.
    next: Vec<usize>,
    most: usize,
}

impl Room {
    /// The first layer from this one on with room for a box, which it then contains.
    fn take(&mut self, from: usize) -> usize {
        let mut at = from;
        while self.sizes.get(at).is_some_and(|size| *size >= self.most) {
            at = self.next[at];
        }
        let layers = self.sizes.len().max(at + 1);
        self.sizes.resize(layers, 0);
        (self.next.len()..layers).for_each(|layer| self.next.push(layer + 1));
        self.sizes[at] += 1;
        // Shortens the path for later searches.
        let mut passed = from;
        while passed < at {
            passed = std::mem::replace(&mut self.next[passed], at);
        }
        at
    }
}

/// Boxes and lanes, with their neighbours in the layers above and below.
struct Items {
    widths: Vec<f64>,
    up: Vec<Vec<usize>>,
    down: Vec<Vec<usize>>,
}

impl Items {
    fn connect(&mut self, links: &[(usize, usize)]) {
        self.up = vec![Vec::new(); self.widths.len()];
        self.down = vec![Vec::new(); self.widths.len()];
        for &(from, to) in links {
            self.down[from].push(to);
            self.up[to].push(from);
        }
    }

    /// Sorts each layer by the mean place of its neighbours, down and up in turn, and keeps the
    /// order with the fewest crossings.
    fn order(&self, order: &mut Vec<Vec<usize>>) {
        let mut best = (crossings(order, |i| &self.down[i]), order.clone());
        let mut place = vec![0.0; self.widths.len()];
        order.iter().for_each(|layer| note_places(layer, &mut place));
        for sweep in 0..SWEEPS {
            let downwards = sweep % 2 == 0;
            let layers = order.len();
            for l in 0..layers {
                let l = if downwards { l } else { layers - 1 - l };
                let sides = if downwards { &self.up } else { &self.down };
                let key = |i: usize| mean(&place, &sides[i]).unwrap_or(place[i]);
                let mut keyed: Vec<(f64, usize)> = order[l].iter().map(|i| (key(*i), *i)).collect();
                keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
                order[l] = keyed.into_iter().map(|(_, i)| i).collect();
                note_places(&order[l], &mut place);
            }
            let crossings = crossings(order, |i| &self.down[i]);
            if crossings < best.0 {
                best = (crossings, order.clone());
            }
            if best.0 == 0 {
                break;
            }
        }
        *order = best.1;
    }

    /// The middle of each item, the leftmost side at 0.
    fn positions(&self, order: &[Vec<usize>], boxes: usize) -> Vec<f64> {
        let mut x = vec![0.0; self.widths.len()];
        order.iter().for_each(|layer| self.settle(layer, &mut x, &vec![(0.0, 1.0); layer.len()]));
        for sweep in 0..=SWEEPS {
            for l in 0..order.len() {
                let l = if sweep % 2 == 0 { l } else { order.len() - 1 - l };
                let wanted = |i: &usize| {
                    let i = *i;
                    let wanted = if i >= boxes && sweep + 6 > SWEEPS {
                        // In the end, a lane follows the other lanes of its edge rather than boxes.
                        let all = self.up[i].iter().chain(&self.down[i]).copied();
                        let (lanes, ends): (Vec<_>, Vec<_>) = all.partition(|n| *n >= boxes);
                        mean(&x, if lanes.is_empty() { &ends } else { &lanes })
                    } else if sweep == SWEEPS {
                        let all = self.up[i].iter().chain(&self.down[i]).copied();
                        mean(&x, &all.collect::<Vec<_>>())
                    } else if sweep % 2 == 0 {
                        mean(&x, &self.up[i])
                    } else {
                        mean(&x, &self.down[i])
                    };
                    // Lanes have more weight, so that long edges are straight.
                    let weight = if i < boxes { 1.0 } else { 4.0 };
                    (wanted.unwrap_or(x[i]), weight)
                };
                let wishes: Vec<(f64, f64)> = order[l].iter().map(wanted).collect();
                self.settle(&order[l], &mut x, &wishes);
            }
        }
        let left = x.iter().zip(&self.widths).map(|(x, w)| x - w / 2.0);
        let left = left.fold(f64::INFINITY, f64::min);
        x.iter().map(|x| x - left).collect()
    }

    /// Moves the items of a layer as close as possible to their wishes without changing their
    /// order: weighted isotonic regression by pooling adjacent violators.
    fn settle(&self, layer: &[usize], x: &mut [f64], wishes: &[(f64, f64)]) {
        let mut offsets = Vec::with_capacity(layer.len());
        let mut offset = 0.0;
        let mut last: Option<f64> = None;
        for i in layer {
            if let Some(last) = last {
                offset += (last + self.widths[*i]) / 2.0 + GAP;
            }
            last = Some(self.widths[*i]);
            offsets.push(offset);
        }
        // Pools of touching neighbours: their common place, weight and number.
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
            x[*i] = at + offset;
        }
    }
}

/// Records the place of each item in its layer, from 0 to 1.
fn note_places(layer: &[usize], place: &mut [f64]) {
    for (at, i) in layer.iter().enumerate() {
        place[*i] = (at as f64 + 0.5) / layer.len() as f64;
    }
}

fn mean(values: &[f64], at: &[usize]) -> Option<f64> {
    (!at.is_empty()).then(|| at.iter().map(|i| values[*i]).sum::<f64>() / at.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlaps(widths: &[f64], layout: &Layout) -> bool {
        let boxes = layout.boxes.iter().zip(widths).enumerate();
        let mut pairs = boxes.clone().flat_map(|a| boxes.clone().map(move |b| (a, b)));
        pairs.any(|((i, (a, wa)), (j, (b, wb)))| {
            i < j && a.1 == b.1 && (a.0 - b.0).abs() < (wa + wb) / 2.0
        })
    }

    #[test]
    fn what_reads_is_below_what_it_reads() {
        let edges: Vec<(usize, usize)> =
            (1..60).flat_map(|i| [((i * 7) % i, i), (i / 2, i)]).collect();
        let widths: Vec<f64> = (0..60).map(|i| 60.0 + (i % 5) as f64 * 30.0).collect();
        let layout = layout(&widths, &edges);
        assert!(edges.iter().all(|(a, b)| layout.boxes[*a].1 < layout.boxes[*b].1));
        assert!(!overlaps(&widths, &layout));
        assert!(layout.boxes.iter().zip(&widths).all(|((x, y), w)| {
            x - w / 2.0 >= -1e-6 && x + w / 2.0 <= layout.width + 1e-6 && *y <= layout.height
        }));
    }

    #[test]
    fn a_wide_matrix_is_broken_into_rows() {
        let edges: Vec<(usize, usize)> = (1..=40).flat_map(|i| [(0, i), (i, 41)]).collect();
        let layout = layout(&[100.0; 42], &edges);
        assert!(layout.width < 3000.0, "{}", layout.width);
    }

    #[test]
    fn cycles_loops_and_nothing_at_all_have_a_layout() {
        let cyclic = layout(&[50.0; 3], &[(0, 1), (1, 2), (2, 0), (1, 1)]);
        assert_eq!(cyclic.boxes.len(), 3);
        assert!(!overlaps(&[50.0; 3], &cyclic));
        assert_eq!(layout(&[], &[]).boxes.len(), 0);
    }

    #[test]
    fn crossings_that_can_be_avoided_are() {
        let edges = [(0, 5), (1, 4), (2, 3)];
        let layout = layout(&[50.0; 6], &edges);
        let mut ends: Vec<(f64, f64)> =
            edges.iter().map(|(a, b)| (layout.boxes[*a].0, layout.boxes[*b].0)).collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(ends.is_sorted_by(|a, b| a.1 < b.1));
    }

    /// Every step reads the first and the one before it: an edge over each number of layers.
    fn all_read_the_first(steps: usize) -> Vec<(usize, usize)> {
        (1..steps).flat_map(|i| [(i - 1, i), (0, i)]).collect()
    }

    #[test]
    fn lanes_are_bounded_however_many_layers_edges_pass() {
        let small = layout(&[50.0; 100], &all_read_the_first(100));
        assert_eq!(small.lanes.iter().map(Vec::len).sum::<usize>(), (1..=98).sum::<usize>());
        let steps = 10_000;
        let large = layout(&vec![50.0; steps], &all_read_the_first(steps));
        assert!(large.lanes.iter().all(Vec::is_empty));
        assert!(large.boxes.windows(2).all(|pair| pair[0].1 < pair[1].1));
    }

    #[test]
    fn a_layer_that_is_full_is_passed_as_if_each_were_looked_at() {
        let mut room = Room { sizes: Vec::new(), next: Vec::new(), most: 2 };
        let mut sizes = vec![0; 64];
        for from in [3, 0, 0, 0, 3, 3, 1, 0, 0, 9, 9, 3, 2, 0, 0, 8, 8, 0] {
            let expected = (from..).find(|at| sizes[*at] < 2).unwrap();
            sizes[expected] += 1;
            assert_eq!(room.take(from), expected);
        }
    }
}
