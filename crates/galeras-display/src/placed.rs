//! The places of a graph's boxes and arrows, for drawing elsewhere.

use super::graph::StepGraph;
use super::layout::{HEIGHT, layout};
use super::svg::box_width;

/// Around the boxes.
const MARGIN: f64 = 12.0;

/// A graph with places, in CSS pixels from the upper left.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlacedGraph {
    /// The total width.
    pub width: f64,
    /// The total height.
    pub height: f64,
    /// The boxes, in the order of the nodes.
    pub boxes: Vec<PlacedBox>,
    /// The arrows.
    pub arrows: Vec<PlacedArrow>,
}

/// The box of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PlacedBox {
    /// Its left side.
    pub x: f64,
    /// Its upper side.
    pub y: f64,
    /// Its width.
    pub width: f64,
    /// Its height.
    pub height: f64,
}

/// An arrow between two boxes; tables between the same steps share one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlacedArrow {
    /// The position of the node that it leaves.
    pub from: usize,
    /// The position of the node that it enters.
    pub to: usize,
    /// The ports, unless it is the main one.
    pub label: String,
    /// Its corners.
    pub points: Vec<[f64; 2]>,
}

/// Places the nodes and edges of a graph.
pub fn place_graph(graph: &StepGraph) -> PlacedGraph {
    let mut edges = std::collections::BTreeMap::<(usize, usize), Vec<&str>>::new();
    for edge in graph.valid_edges() {
        let labels = edges.entry((edge.from, edge.to)).or_default();
        labels.extend(edge.label.as_deref());
    }
    let pairs: Vec<(usize, usize)> = edges.keys().copied().collect();
    let widths: Vec<f64> = graph.nodes.iter().map(box_width).collect();
    let placed = layout(&widths, &pairs);
    let at = |(x, y): (f64, f64)| [x + MARGIN, y + MARGIN];
    let boxes = placed.boxes.iter().zip(&widths).map(|(place, width)| {
        let [x, y] = at(*place);
        PlacedBox { x: x - width / 2.0, y, width: *width, height: HEIGHT }
    });
    let arrows = edges.iter().enumerate().map(|(i, ((from, to), labels))| {
        let [x, y] = at(placed.boxes[*from]);
        let mut points = vec![[x, y + HEIGHT]];
        for lane in &placed.lanes[i] {
            let [x, y] = at(*lane);
            points.extend([[x, y], [x, y + HEIGHT]]);
        }
        points.push(at(placed.boxes[*to]));
        PlacedArrow { from: *from, to: *to, label: labels.join(", "), points }
    });
    PlacedGraph {
        width: placed.width + 2.0 * MARGIN,
        height: placed.height + 2.0 * MARGIN,
        boxes: boxes.collect(),
        arrows: arrows.collect(),
    }
}
