//! The picture of a graph: boxes, curved edges and their labels as one SVG file.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use super::graph::{GraphNode, NodeState, StepGraph};
use super::layout::{HEIGHT, layout};
use super::text;

const MARGIN: f64 = 24.0;
const TITLE: f64 = 34.0;
const ARROW: f64 = 7.0;
/// Longer names are cropped; the whole name is the box's tooltip.
const NAME: usize = 34;
/// The width of a letter of a port's name.
const LETTER: f64 = 6.2;
/// Like `NAME`, for the text under the name.
const CAPTION: usize = 56;

const STYLE: &str = "\
.galeras-graph{font-family:system-ui,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}\
.galeras-graph .page{fill:#ffffff}\
.galeras-graph .title{font-size:16px;font-weight:600;fill:#202124}\
.galeras-graph .box{fill:#f8f9fa;stroke:#9aa0a6;stroke-width:1.2}\
.galeras-graph .name{font-size:13px;font-weight:600;fill:#202124;text-anchor:middle}\
.galeras-graph .op{font-size:11px;fill:#5f6368;text-anchor:middle}\
.galeras-graph .edge{fill:none;stroke:#80868b;stroke-width:1.4}\
.galeras-graph .arrow{fill:#80868b}\
.galeras-graph .port{font-size:10.5px;fill:#5f6368;text-anchor:middle;\
stroke:#ffffff;stroke-width:4px;stroke-linejoin:round;paint-order:stroke}\
.galeras-graph .hit .box{fill:#e3f4e8;stroke:#2e7d46}\
.galeras-graph .new .box{fill:#e6eefc;stroke:#3b6fc4}\
.galeras-graph .changed .box{fill:#f9f4e3;stroke:#a08a3c}\
.galeras-graph .broken .box{fill:#fce4e2;stroke:#c5352b;stroke-width:2}\
.galeras-graph .waiting .box{stroke-dasharray:4 3}\
@media (prefers-color-scheme:dark){\
.galeras-graph .page{fill:#1b1c1f}\
.galeras-graph .title,.galeras-graph .name{fill:#e8eaed}\
.galeras-graph .box{fill:#2a2c30;stroke:#80868b}\
.galeras-graph .op{fill:#a9aeb4}\
.galeras-graph .edge{stroke:#80868b}\
.galeras-graph .port{fill:#bdc1c6;stroke:#1b1c1f}\
.galeras-graph .hit .box{fill:#1d3526;stroke:#5bb974}\
.galeras-graph .new .box{fill:#1c2a44;stroke:#8ab4f8}\
.galeras-graph .changed .box{fill:#3a3418;stroke:#d6bf5c}\
.galeras-graph .broken .box{fill:#43201d;stroke:#f28b82}\
}";

pub(super) fn render(g: &StepGraph) -> String {
    // Two tables between the same steps are one line with both names.
    let mut edges: BTreeMap<(usize, usize), Vec<&str>> = BTreeMap::new();
    for edge in g.valid_edges() {
        let labels = edges.entry((edge.from, edge.to)).or_default();
        labels.extend(edge.label.as_deref());
    }
    let pairs: Vec<(usize, usize)> = edges.keys().copied().collect();
    let widths: Vec<f64> = g.nodes.iter().map(box_width).collect();
    let placed = layout(&widths, &pairs);
    let title = text::crop(&printable(&g.title), 90);
    let width = placed.width.max(text_width(&title, 9.5)) + 2.0 * MARGIN;
    let height = placed.height + TITLE + 2.0 * MARGIN;
    let left = (width - placed.width) / 2.0;
    let top = MARGIN + TITLE;

    let mut out = String::new();
    // Writing to a String does not fail.
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"galeras-graph\" role=\"img\" \
         width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\">"
    );
    let _ = writeln!(out, "<title>{}</title>", xml(&title));
    let _ = writeln!(out, "<style>{STYLE}</style>");
    let _ = writeln!(out, "<rect class=\"page\" width=\"100%\" height=\"100%\"/>");
    let _ = writeln!(
        out,
        "<text class=\"title\" x=\"{MARGIN}\" y=\"{:.1}\">{}</text>",
        MARGIN + 12.0,
        xml(&title)
    );
    let at = |(x, y): (f64, f64)| (x + left, y + top);
    let ends = Ends::new(&pairs, &placed.boxes, &placed.lanes, &widths);
    let mut labels = String::new();
    let mut taken = Labels::default();
    for (i, ((from, to), ports)) in edges.iter().enumerate() {
        let start = at(placed.boxes[*from]);
        let start = (start.0 + ends.starts[i], start.1 + HEIGHT);
        let end = at(placed.boxes[*to]);
        let end = (end.0 + ends.stops[i], end.1 - ARROW);
        let lanes: Vec<(f64, f64)> = placed.lanes[i].iter().map(|p| at(*p)).collect();
        let path = curve(start, &lanes, end);
        let _ = writeln!(out, "<path class=\"edge\" d=\"{path}\"/>");
        let (x, y) = end;
        let _ = writeln!(
            out,
            "<path class=\"arrow\" d=\"M{:.1} {y:.1}h{:.1}l{:.1} {ARROW}z\"/>",
            x - ARROW / 2.0 - 0.5,
            ARROW + 1.0,
            -ARROW / 2.0 - 0.5
        );
        if !ports.is_empty() {
            let label = text::crop(&printable(&ports.join(", ")), NAME);
            let first = lanes.first().copied().unwrap_or(end);
            let (x, y) = taken.place(start, first, text_width(&label, LETTER));
            let y = y + 3.5;
            let label = xml(&label);
            let _ =
                writeln!(labels, "<text class=\"port\" x=\"{x:.1}\" y=\"{y:.1}\">{label}</text>");
        }
    }
    for (i, node) in g.nodes.iter().enumerate() {
        draw_box(&mut out, node, at(placed.boxes[i]), widths[i]);
    }
    out.push_str(&labels);
    out.push_str("</svg>\n");
    out
}

fn draw_box(out: &mut String, node: &GraphNode, (x, y): (f64, f64), width: f64) {
    let state = node.state().map(NodeState::name);
    let (name, label) = captions(node);
    let _ = writeln!(
        out,
        "<g class=\"{}\"><title>{}</title>\
         <rect class=\"box\" x=\"{:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{HEIGHT}\" \
         rx=\"7\"/><text class=\"name\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>\
         <text class=\"op\" x=\"{x:.1}\" y=\"{:.1}\">{}</text></g>",
        state.unwrap_or("step"),
        xml(&printable(&format!("{}: {}", node.name, node.caption()))),
        x - width / 2.0,
        y + 19.5,
        xml(&name),
        y + 35.5,
        xml(&label)
    );
}

fn captions(node: &GraphNode) -> (String, String) {
    let caption = printable(&node.caption());
    (text::crop_middle(&printable(&node.name), NAME), text::crop(&caption, CAPTION))
}

pub(super) fn box_width(node: &GraphNode) -> f64 {
    let (name, label) = captions(node);
    (text_width(&name, 8.4).max(text_width(&label, 6.9)) + 24.0).max(84.0)
}

fn text_width(text: &str, column: f64) -> f64 {
    text::width(text) as f64 * column
}

/// The ends of edges on the sides of boxes, as distances from the middle: side by side, in the
/// order of the boxes at the other end.
struct Ends {
    starts: Vec<f64>,
    stops: Vec<f64>,
}

impl Ends {
    fn new(
        pairs: &[(usize, usize)],
        boxes: &[(f64, f64)],
        lanes: &[Vec<(f64, f64)>],
        widths: &[f64],
    ) -> Self {
        let towards = |i: usize| lanes[i].first().unwrap_or(&boxes[pairs[i].1]).0;
        let whence = |i: usize| lanes[i].last().unwrap_or(&boxes[pairs[i].0]).0;
        let spread = |node: fn(&(usize, usize)) -> usize, other: &dyn Fn(usize) -> f64| {
            let mut at = vec![0.0; pairs.len()];
            let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
            pairs.iter().enumerate().for_each(|(i, p)| groups.entry(node(p)).or_default().push(i));
            for (node, mut group) in groups {
                group.sort_by(|a, b| other(*a).total_cmp(&other(*b)));
                let last = group.len() as f64 - 1.0;
                let step = (widths[node] * 0.6 / last.max(1.0)).min(16.0);
                for (place, i) in group.into_iter().enumerate() {
                    at[i] = (place as f64 - last / 2.0) * step;
                }
            }
            at
        };
        Self { starts: spread(|p| p.0, &towards), stops: spread(|p| p.1, &whence) }
    }
}

/// The labels so far, by the grid cell of their middle.
#[derive(Default)]
struct Labels(HashMap<(i64, i64), Vec<Label>>);

/// The middle of a label, and its width.
type Label = (f64, f64, f64);

/// The size of a grid cell: labels in cells that are not neighbours do not touch.
const CELL: (f64, f64) = (NAME as f64 * 2.0 * LETTER + 3.0, 12.0);
/// With this many labels in a cell, a new one is placed without a search.
const CROWD: usize = 64;

impl Labels {
    /// A place for a label on the edge from `a` to `b`: its middle, unless a label is there.
    fn place(&mut self, a: (f64, f64), b: (f64, f64), width: f64) -> (f64, f64) {
        let middle = on_curve(a, b, 0.5);
        let places = [0.5, 0.34, 0.66, 0.22, 0.78].map(|t| on_curve(a, b, t));
        let (x, y) = places.into_iter().find(|at| self.is_free(*at, width)).unwrap_or(middle);
        self.0.entry(cell(x, y)).or_default().push((x, y, width));
        (x, y)
    }

    fn is_free(&self, (x, y): (f64, f64), width: f64) -> bool {
        let (column, row) = cell(x, y);
        let beside =
            (column - 1..=column + 1).flat_map(|c| (row - 1..=row + 1).map(move |r| (c, r)));
        let mut beside = beside.filter_map(|at| self.0.get(&at));
        !beside.any(|labels| {
            let touches =
                |o: &Label| (o.0 - x).abs() < (o.2 + width) / 2.0 + 3.0 && (o.1 - y).abs() < 12.0;
            labels.len() > CROWD || labels.iter().any(touches)
        })
    }
}

fn cell(x: f64, y: f64) -> (i64, i64) {
    ((x / CELL.0).floor() as i64, (y / CELL.1).floor() as i64)
}

/// The vertical distance of a curve's control points from its ends.
fn bend(a: (f64, f64), b: (f64, f64)) -> f64 {
    (b.1 - a.1).abs().max(40.0) / 2.0
}

/// The point at `t`, from 0 to 1, on the cubic Bézier curve from `a` to `b`.
fn on_curve(a: (f64, f64), b: (f64, f64), t: f64) -> (f64, f64) {
    let s = 1.0 - t;
    let weights = [s * s * s, 3.0 * s * s * t, 3.0 * s * t * t, t * t * t];
    let bend = bend(a, b);
    let at = |points: [f64; 4]| points.iter().zip(weights).map(|(p, w)| p * w).sum();
    (at([a.0, a.0, b.0, b.0]), at([a.1, a.1 + bend, b.1 - bend, b.1]))
}

/// The path of an edge through its lanes.
fn curve(start: (f64, f64), lanes: &[(f64, f64)], end: (f64, f64)) -> String {
    let mut path = format!("M{:.1} {:.1}", start.0, start.1);
    let mut from = start;
    let ends = lanes.iter().map(|lane| (*lane, true)).chain([(end, false)]);
    for (to, passes) in ends {
        let bend = bend(from, to);
        let (a, b) = (from.1 + bend, to.1 - bend);
        let _ = write!(path, "C{:.1} {a:.1} {:.1} {b:.1} {:.1} {:.1}", from.0, to.0, to.0, to.1);
        from = to;
        if passes {
            from.1 += HEIGHT;
            let _ = write!(path, "V{:.1}", from.1);
        }
    }
    path
}

/// Text without the characters that XML forbids.
fn printable(text: &str) -> String {
    text::escape(text).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}

fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GraphEdge;

    #[test]
    fn names_are_text_and_never_markup() {
        let name = "</text><script>alert(1)</script>\u{1b}&\"";
        let svg = render(&StepGraph {
            title: name.into(),
            nodes: vec![GraphNode {
                name: name.into(),
                label: name.into(),
                states: vec![NodeState::New],
            }],
            edges: vec![GraphEdge { from: 0, to: 0, label: Some(name.into()) }],
        });
        assert!(!svg.contains("<script") && !svg.contains('\u{1b}'), "{svg}");
        assert!(svg.contains("&lt;script&gt;"));
    }

    #[test]
    fn tables_between_the_same_steps_share_a_line() {
        let node = |name: &str| GraphNode {
            name: name.into(),
            label: "sql".into(),
            states: vec![NodeState::Hit],
        };
        let edge = |label: &str| GraphEdge { from: 0, to: 1, label: Some(label.into()) };
        let svg = render(&StepGraph {
            title: "t".into(),
            nodes: vec![node("a"), node("b")],
            edges: vec![edge("left"), edge("right")],
        });
        assert!(svg.contains(">left, right</text>"), "{svg}");
        assert_eq!(svg.matches("class=\"edge\"").count(), 1);
    }

    #[test]
    fn labels_look_only_where_others_may_touch_them() {
        let mut labels = Labels::default();
        let mut all: Vec<(f64, f64, f64)> = Vec::new();
        for i in 0..400_u32 {
            let number = |n: u32| f64::from(i.wrapping_mul(n) >> 8 & 0xffff) / 65536.0;
            let (a, b) = ((number(7919) * 6000.0, 0.0), (number(104_729) * 6000.0, 900.0));
            let width = 10.0 + number(1_299_709) * 200.0;
            let free = |(x, y): &(f64, f64)| {
                !all.iter()
                    .any(|o| (o.0 - x).abs() < (o.2 + width) / 2.0 + 3.0 && (o.1 - y).abs() < 12.0)
            };
            let places = [0.5, 0.34, 0.66, 0.22, 0.78].map(|t| on_curve(a, b, t));
            let expected = places.into_iter().find(free).unwrap_or(places[0]);
            assert_eq!(labels.place(a, b, width), expected, "label {i}");
            all.push((expected.0, expected.1, width));
        }
    }
}
