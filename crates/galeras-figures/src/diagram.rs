//! Diagrams of steps: boxes of two lines with arrows between them, from top to bottom.

use std::collections::BTreeMap;

use crate::font;
use crate::node_link::{Flow, NodeLink};
use crate::spec::Theme;
use crate::svg::{Anchor, Area, Fill, Stroke, Svg};
use crate::text::{Label, visible};
use crate::theme::Look;

const MARGIN: f64 = 16.0;
const HEIGHT: f64 = 46.0;
/// The size of a name, and the width of the longest that is not cropped.
const NAME: (f64, f64) = (13.0, 300.0);
const CAPTION: (f64, f64) = (11.0, 380.0);
const LABEL: (f64, f64) = (10.5, 220.0);

/// A directed graph to draw.
///
/// It is drawn in colours for a light page, as attributes. Style sheets can override these by
/// class: `node`, with the class of [`DiagramNode::class`], has a `rect` and the groups `name` and
/// `caption`; `edge` has a `path` and the group `head`; `edge-label` has a `rect` and a `text`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Diagram {
    /// A heading.
    pub title: Option<String>,
    /// The boxes.
    pub nodes: Vec<DiagramNode>,
    /// The arrows. Edges between the same boxes share one; an edge to no box is left out.
    pub edges: Vec<DiagramEdge>,
}

/// A box.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DiagramNode {
    /// The first line; the middle of a long one is cropped.
    pub name: String,
    /// The second line.
    pub caption: String,
    /// The text for the pointer and for screen readers.
    pub description: String,
    /// A class for style sheets.
    pub class: String,
    /// The `id` of the element on the page that the box links to.
    pub target: Option<String>,
}

/// An arrow from one box to another, by their positions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DiagramEdge {
    /// The box that it leaves.
    pub from: usize,
    /// The box that it enters.
    pub to: usize,
    /// A text next to the arrow.
    pub label: Option<String>,
}

/// The drawing of a diagram.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawing {
    /// The elements within an `svg` element.
    pub marks: String,
    /// The width in pixels.
    pub width: f64,
    /// The height in pixels.
    pub height: f64,
}

impl Diagram {
    /// Draws the diagram as part of a page.
    pub fn draw(&self) -> Drawing {
        let look = Look::of(Some(Theme::Light));
        let labels = |node: &DiagramNode| {
            [
                Label::without_middle(&node.name, NAME.0, NAME.1, true),
                Label::without_middle(&node.caption, CAPTION.0, CAPTION.1, false),
            ]
        };
        let labels: Vec<[Label; 2]> = self.nodes.iter().map(labels).collect();
        let width = |[name, caption]: &[Label; 2]| (name.width.max(caption.width) + 24.0).max(84.0);
        let sizes: Vec<(f64, f64)> = labels.iter().map(|l| (width(l), HEIGHT)).collect();
        let mut arrows: BTreeMap<(usize, usize), Vec<&str>> = BTreeMap::new();
        let count = self.nodes.len();
        for edge in self.edges.iter().filter(|e| e.from < count && e.to < count) {
            arrows.entry((edge.from, edge.to)).or_default().extend(edge.label.as_deref());
        }
        let pairs: Vec<(usize, usize)> = arrows.keys().copied().collect();
        let mut svg = Svg::default();
        let title = self.title.as_ref().map(|title| Label::new(title, 16.0, 900.0, 1, true));
        let top = MARGIN + title.as_ref().map_or(0.0, |title| title.height() + 14.0);
        // About as high as wide, but not wider than a screen.
        let most = (count as f64).sqrt().clamp(6.0, 12.0) as usize;
        let flow = Flow { level: false, gap: 26.0, between: 58.0, most };
        let mut placed = NodeLink::place(&sizes, &pairs, flow);
        placed.shift(MARGIN, top);
        let title_width = title.as_ref().map_or(0.0, |title| title.width);
        if let Some(title) = title {
            let at = (MARGIN, MARGIN);
            svg.group("title", |svg| svg.label(&title, at, Anchor::Start, look.ink));
        }

        svg.open_with("g", "arrows", &[("aria-hidden", "true")]);
        for (edge, (&(from, to), texts)) in arrows.iter().enumerate() {
            let class = if texts.is_empty() { "edge" } else { "edge labelled" };
            let (from, to) = (&self.nodes[from], &self.nodes[to]);
            let ends = [("data-from", &from.target), ("data-to", &to.target)];
            let ends = ends.iter().filter_map(|(name, id)| Some((*name, id.as_deref()?)));
            svg.open_with("g", class, &ends.collect::<Vec<_>>());
            let colon = if texts.is_empty() { "" } else { ": " };
            svg.title(&format!("{} → {}{colon}{}", from.name, to.name, texts.join(", ")));
            placed.draw_arrow(&mut svg, edge, Stroke::solid(look.soft, 1.3));
            svg.close();
        }
        svg.close();
        for ((node, labels), area) in self.nodes.iter().zip(&labels).zip(&placed.boxes) {
            draw_box(&mut svg, node, labels, *area, look);
        }
        let width = placed.width.max(title_width) + 2.0 * MARGIN;
        let mut taken = placed.boxes.clone();
        for (edge, texts) in arrows.values().enumerate().filter(|(_, texts)| !texts.is_empty()) {
            let label = Label::fit(&texts.join(", "), LABEL.0, LABEL.1, 1);
            let size = (label.width + 6.0, label.height());
            // Where there is no room, the title of the arrow has the text.
            if let Some(area) = placed.label_place(edge, size, (0.0, width), &mut taken) {
                svg.edge_label(&label, area, look);
            }
        }
        let height = top + placed.height + MARGIN;
        Drawing { marks: svg.marks, width, height }
    }

    /// The diagram as a file. `css` may override its colours below the class `galeras-graph`.
    pub fn svg(&self, css: &str) -> String {
        let Drawing { marks, width, height } = self.draw();
        let look = Look::of(Some(Theme::Light));
        let alt = self.title.as_deref().map(visible).unwrap_or_default();
        let svg = Svg { marks }.finish(width, height, look.ground, &alt);
        font::with_style(&svg.replacen("<svg ", "<svg class=\"galeras-graph\" ", 1), css)
    }
}

fn draw_box(svg: &mut Svg, node: &DiagramNode, labels: &[Label; 2], area: Area, look: &Look) {
    let class = format!("node {}", node.class);
    let description = ("aria-label", node.description.as_str());
    match &node.target {
        Some(id) => {
            let href = format!("#{id}");
            svg.open_with("a", &class, &[("href", &href), ("data-step", id), description]);
        }
        None => svg.open_with("g", &class, &[("role", "img"), description]),
    }
    svg.title(&node.description);
    svg.rounded(area, 7.0, Fill::solid(look.panel), Some(Stroke::solid(look.soft, 1.2)));
    let lines = [("name", 15.5, look.ink), ("caption", 32.0, look.soft)];
    for ((class, y, color), label) in lines.into_iter().zip(labels) {
        let at = (area.middle().0, area.y + y);
        svg.group(class, |svg| svg.label_beside(label, at, Anchor::Middle, color));
    }
    svg.close_tag(if node.target.is_some() { "a" } else { "g" });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str) -> DiagramNode {
        let [name, description] = [name.to_string(), format!("{name}: sql")];
        let [caption, class] = ["sql · hit", "hit"].map(str::to_string);
        DiagramNode { name, caption, description, class, target: None }
    }

    fn diagram<const N: usize>(
        nodes: Vec<DiagramNode>,
        edges: [(usize, usize, &str); N],
    ) -> Diagram {
        let edge = |(from, to, label): (usize, usize, &str)| DiagramEdge {
            from,
            to,
            label: (!label.is_empty()).then(|| label.to_string()),
        };
        Diagram { title: None, nodes, edges: edges.map(edge).to_vec() }
    }

    #[test]
    fn names_are_text_and_never_markup() {
        let name = "</text><script>alert(1)</script>\u{1b}\u{202e}&\"";
        let [name, caption, description, class] = [name; 4].map(str::to_string);
        let target = Some(name.clone());
        let edges = [(0, 0, name.as_str()), (0, 7, "nowhere")];
        let node = DiagramNode { name: name.clone(), caption, description, class, target };
        let svg = Diagram { title: Some(name.clone()), ..diagram(vec![node], edges) }.svg("");
        let document = roxmltree::Document::parse(&svg).unwrap();
        assert!(document.descendants().all(|n| !n.has_tag_name("script")));
        assert!(!svg.contains(['\u{1b}', '\u{202e}']) && !svg.contains("nowhere"), "{svg}");
        assert!(svg.contains("&lt;script&gt;"));
    }

    #[test]
    fn edges_between_the_same_boxes_share_an_arrow() {
        let edges = [(0, 1, "left"), (0, 1, ""), (0, 1, "right")];
        let marks = diagram(vec![node("a"), node("b")], edges).draw().marks;
        assert!(marks.contains(">left, right</text>"), "{marks}");
        assert_eq!(marks.matches("class=\"edge labelled\"").count(), 1);
    }

    #[test]
    fn a_box_with_a_target_is_a_link() {
        let linked = DiagramNode { target: Some("step-a".to_string()), ..node("a") };
        let marks = diagram(vec![linked, node("b")], [(0, 1, "")]).draw().marks;
        for element in [
            "<a class=\"node hit\" href=\"#step-a\" data-step=\"step-a\"",
            "<g class=\"edge\" data-from=\"step-a\">",
            "<g class=\"node hit\" role=\"img\" aria-label=\"b: sql\">",
        ] {
            assert!(marks.contains(element), "{element} in {marks}");
        }
    }

    #[test]
    fn the_middle_of_a_long_name_is_cropped() {
        let long = format!("answers[{}, temperature=0.2]", "x".repeat(90));
        let drawing = diagram(vec![node(&long)], []).draw();
        assert!(drawing.marks.contains("temperature=0.2]</text>"), "{}", drawing.marks);
        assert!(drawing.width < 2.0 * MARGIN + 330.0, "{}", drawing.width);
    }
}
