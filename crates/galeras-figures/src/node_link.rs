//! The boxes and arrows of a directed graph: their places, and how arrows and their labels are drawn.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::layout::layers;
use crate::svg::{Area, Fill, Point, Short, Stroke, Svg};

/// How layers follow each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    /// Left to right, not top to bottom.
    pub(crate) level: bool,
    /// The least distance between the boxes of a layer.
    pub(crate) gap: f64,
    /// The distance between layers.
    pub(crate) between: f64,
    /// The most boxes in a layer.
    pub(crate) most: usize,
}

/// A graph with places.
#[derive(Clone, Debug)]
pub(crate) struct NodeLink {
    level: bool,
    pub(crate) boxes: Vec<Area>,
    pub(crate) routes: Vec<Route>,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// The points that an arrow passes, from the side of a box to the side of another.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) points: Vec<Point>,
    is_loop: bool,
}

impl NodeLink {
    /// Places boxes of these widths and heights, with the upper left corner of the whole at 0, 0.
    pub(crate) fn place(sizes: &[(f64, f64)], edges: &[(usize, usize)], flow: Flow) -> NodeLink {
        let level = flow.level;
        // "Along" is the direction in which layers follow each other.
        let along: Vec<f64> = sizes.iter().map(|(w, h)| if level { *w } else { *h }).collect();
        let across: Vec<f64> = sizes.iter().map(|(w, h)| if level { *h } else { *w }).collect();
        let layers = layers(&across, edges, flow.gap, flow.most);
        let mut lengths = vec![0.0_f64; layers.count];
        for (length, layer) in along.iter().zip(&layers.layer) {
            lengths[*layer] = lengths[*layer].max(*length);
        }
        let mut end = 0.0;
        let mut starts = Vec::with_capacity(layers.count);
        for length in &lengths {
            starts.push(end);
            end += length + flow.between;
        }
        let point = |along: f64, across: f64| {
            if level { (along, across) } else { (across, along) }
        };
        let middle = |node: usize| {
            let layer = layers.layer[node];
            starts[layer] + lengths[layer] / 2.0
        };
        let boxes = sizes.iter().enumerate().map(|(node, (width, height))| {
            Area::around(point(middle(node), layers.across[node]), *width, *height)
        });
        let boxes: Vec<Area> = boxes.collect();

        // The arrows at a side of a box are next to each other, in the order of their other ends.
        let onwards = |(from, to): (usize, usize)| layers.layer[to] > layers.layer[from];
        // Each arrow as (the height it leads to, its index, which of its ends this is).
        type Arrow = (f64, usize, usize);
        let mut sides: BTreeMap<(usize, bool), Vec<Arrow>> = BTreeMap::new();
        for (i, &(from, to)) in edges.iter().enumerate().filter(|(_, (from, to))| from != to) {
            let lanes = &layers.lanes[i];
            let towards = lanes.first().map_or(layers.across[to], |lane| lane.1);
            let source = lanes.last().map_or(layers.across[from], |lane| lane.1);
            let onwards = onwards((from, to));
            sides.entry((from, onwards)).or_default().push((towards, i, 0));
            sides.entry((to, !onwards)).or_default().push((source, i, 1));
        }
        let mut offsets = vec![[0.0; 2]; edges.len()];
        for ((node, _), mut ends) in sides {
            ends.sort_by(|a, b| a.0.total_cmp(&b.0));
            let last = ends.len() as f64 - 1.0;
            let step = (across[node] * 0.6 / last.max(1.0)).min(16.0);
            for (at, (_, edge, end)) in ends.into_iter().enumerate() {
                offsets[edge][end] = (at as f64 - last / 2.0) * step;
            }
        }
        let routes = edges.iter().enumerate().map(|(i, &(from, to))| {
            if from == to {
                let (right, y, middle) =
                    (boxes[from].right(), boxes[from].y, boxes[from].middle().1);
                let points = [(-8.0, y), (8.0, y - 10.0), (12.0, middle - 4.0), (0.0, middle)];
                let points = points.map(|(x, y)| (right + x, y)).to_vec();
                return Route { points, is_loop: true };
            }
            let onwards = onwards((from, to));
            let side = |node: usize, far: bool, offset: f64| {
                let half = if far { along[node] / 2.0 } else { -along[node] / 2.0 };
                point(middle(node) + half, layers.across[node] + offset)
            };
            let mut points = vec![side(from, onwards, offsets[i][0])];
            for (layer, across) in &layers.lanes[i] {
                let near = point(starts[*layer], *across);
                let far = point(starts[*layer] + lengths[*layer], *across);
                points.extend(if onwards { [near, far] } else { [far, near] });
            }
            points.push(side(to, !onwards, offsets[i][1]));
            Route { points, is_loop: false }
        });
        let routes = routes.collect();
        let length = (end - flow.between).max(0.0);
        let (width, height) =
            if level { (length, layers.breadth) } else { (layers.breadth, length) };
        NodeLink { level, boxes, routes, width, height }
    }

    pub(crate) fn shift(&mut self, right: f64, down: f64) {
        let corners = self.boxes.iter_mut().map(|area| (&mut area.x, &mut area.y));
        let points = self.routes.iter_mut().flat_map(|route| &mut route.points);
        for (x, y) in corners.chain(points.map(|(x, y)| (x, y))) {
            (*x, *y) = (*x + right, *y + down);
        }
    }

    /// Draws the arrow of an edge: a curve that leaves and enters each point in the direction of
    /// the layers, and a head.
    pub(crate) fn draw_arrow(&self, svg: &mut Svg, edge: usize, stroke: Stroke<'_>) {
        const HEAD: f64 = 7.0;
        let Route { points, is_loop } = &self.routes[edge];
        let [.., before, tip] = points[..] else { return };
        let direction = match (is_loop, self.level) {
            (true, _) => (-1.0, 0.0),
            (false, true) => ((tip.0 - before.0).signum(), 0.0),
            (false, false) => (0.0, (tip.1 - before.1).signum()),
        };
        let end = (tip.0 - direction.0 * HEAD * 0.8, tip.1 - direction.1 * HEAD * 0.8);
        let mut d = format!("M{} {}", Short(points[0].0), Short(points[0].1));
        let mut curve = |a: Point, b: Point, c: Point| {
            let s = Short;
            let _ = write!(d, "C{} {} {} {} {} {}", s(a.0), s(a.1), s(b.0), s(b.1), s(c.0), s(c.1));
        };
        if *is_loop {
            curve(points[1], points[2], end);
        } else {
            for (i, pair) in points.windows(2).enumerate() {
                let (from, to) = (pair[0], if i + 2 == points.len() { end } else { pair[1] });
                let middle = ((from.0 + to.0) / 2.0, (from.1 + to.1) / 2.0);
                match self.level {
                    true => curve((middle.0, from.1), (middle.0, to.1), to),
                    false => curve((from.0, middle.1), (to.0, middle.1), to),
                }
            }
        }
        svg.raw_path(&d, Fill::NONE, Some(stroke));
        let wing = HEAD * 0.45;
        let back = (tip.0 - direction.0 * HEAD, tip.1 - direction.1 * HEAD);
        let (dx, dy) = (direction.1 * wing, direction.0 * wing);
        let head = [tip, (back.0 + dx, back.1 + dy), (back.0 - dx, back.1 - dy)];
        svg.group("head", |svg| svg.path(&head, true, Fill::solid(stroke.color), None));
    }

    /// Takes a free place for a label of this size on the arrow of an edge, between `left` and
    /// `right`.
    pub(crate) fn label_place(
        &self,
        edge: usize,
        (width, height): (f64, f64),
        (left, right): (f64, f64),
        taken: &mut Vec<Area>,
    ) -> Option<Area> {
        for pair in self.routes[edge].points.windows(2) {
            for t in [0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8] {
                let area = Area::around(self.on_curve(pair[0], pair[1], t), width, height);
                let is_inside = area.x >= left && area.right() <= right;
                if is_inside && !taken.iter().any(|other| other.meets(&area)) {
                    taken.push(area);
                    return Some(area);
                }
            }
        }
        None
    }

    /// The point at `t`, from 0 to 1, on the curve that [`NodeLink::draw_arrow`] draws.
    fn on_curve(&self, from: Point, to: Point, t: f64) -> Point {
        let along = t * (1.5 - 1.5 * t + t * t);
        let across = t * t * (3.0 - 2.0 * t);
        let (x, y) = if self.level { (along, across) } else { (across, along) };
        (from.0 + (to.0 - from.0) * x, from.1 + (to.1 - from.1) * y)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_go_from_side_to_side_and_back_if_they_close_a_cycle() {
        for level in [true, false] {
            let flow = Flow { level, gap: 10.0, between: 40.0, most: 9 };
            let edges = [(0, 1), (1, 2), (0, 2), (2, 0), (1, 1)];
            let mut found = NodeLink::place(&[(50.0, 20.0); 3], &edges, flow);
            found.shift(5.0, 7.0);
            for (edge, (from, to)) in edges.into_iter().enumerate() {
                let points = &found.routes[edge].points;
                let (a, b) = (found.boxes[from], found.boxes[to]);
                let end = |area: Area, (x, y): Point, far: bool| {
                    let far_side = if level { area.right() } else { area.bottom() };
                    let near_side = if level { area.x } else { area.y };
                    let at = if level { x } else { y };
                    (at - if far { far_side } else { near_side }).abs() < 1e-9
                };
                if from == to {
                    assert!((points[3].0 - a.right()).abs() < 1e-9);
                } else {
                    assert!(end(a, points[0], from < to), "{edge}: {points:?}");
                    assert!(end(b, points[points.len() - 1], from > to), "{edge}: {points:?}");
                }
            }
            assert_eq!(found.routes[2].points.len(), 4, "through a lane");
            let inside = |area: &Area| area.x >= 5.0 - 1e-9 && area.y >= 7.0 - 1e-9;
            assert!(found.boxes.iter().all(inside), "{:?}", found.boxes);
        }
    }
}
