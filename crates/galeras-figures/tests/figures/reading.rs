//! Reads a figure back as a person does: by its axes.

use galeras_figures::{Data, Spec, draw};
use roxmltree::{Document, Node};

/// The drawn figure. Its text is never freed.
pub(crate) fn drawn(spec: &Spec, data: &Data) -> Document<'static> {
    Document::parse(draw(spec, data).unwrap().svg.leak()).unwrap()
}

/// From pixels to numbers, by the numbers of an axis.
pub(crate) struct Axis {
    ticks: Vec<(f64, f64)>,
    log: bool,
}

impl Axis {
    /// The number at a place.
    pub(crate) fn value(&self, pixel: f64) -> f64 {
        let (first, last) = (self.ticks[0], self.ticks[self.ticks.len() - 1]);
        let to = |v: f64| if self.log { v.ln() } else { v };
        let slope = (to(last.1) - to(first.1)) / (last.0 - first.0);
        let value = to(first.1) + (pixel - first.0) * slope;
        if self.log { value.exp() } else { value }
    }

    /// The place of a number.
    pub(crate) fn pixel(&self, value: f64) -> f64 {
        let (first, last) = (self.ticks[0], self.ticks[self.ticks.len() - 1]);
        let to = |v: f64| if self.log { v.ln() } else { v };
        let share = (to(value) - to(first.1)) / (to(last.1) - to(first.1));
        first.0 + share * (last.0 - first.0)
    }

    /// Fails unless a mark is within half a pixel of its number.
    #[track_caller]
    pub(crate) fn check(&self, pixel: f64, value: f64) {
        let place = self.pixel(value);
        assert!((pixel - place).abs() < 0.5, "{value} is at {pixel}, not at {place}");
    }
}

/// A number as figures write it.
pub(crate) fn parse(text: &str) -> f64 {
    text.replace(',', "").replace('−', "-").parse().unwrap_or_else(|_| panic!("{text}"))
}

pub(crate) fn attribute(node: Node<'_, '_>, name: &str) -> f64 {
    node.attribute(name)
        .and_then(|v| v.parse().ok())
        .unwrap_or_else(|| panic!("{name} of {node:?}"))
}

/// The right side of a rectangle, or the lower one.
pub(crate) fn end(rect: Node<'_, '_>, side: &str) -> f64 {
    attribute(rect, side) + attribute(rect, if side == "x" { "width" } else { "height" })
}

/// The elements of a class, in the order of the picture.
pub(crate) fn all<'a>(document: &'a Document<'_>, class: &str) -> Vec<Node<'a, 'a>> {
    document.descendants().filter(|n| n.attribute("class") == Some(class)).collect()
}

/// The elements with this name under one.
pub(crate) fn under<'a>(node: Node<'a, 'a>, name: &str) -> Vec<Node<'a, 'a>> {
    node.descendants().filter(|n| n.has_tag_name(name)).collect()
}

/// The elements with a name under those of a class.
pub(crate) fn within<'a>(document: &'a Document<'_>, class: &str, name: &str) -> Vec<Node<'a, 'a>> {
    all(document, class).into_iter().flat_map(|node| under(node, name)).collect()
}

/// The axes of the first panel, `x` or `y`.
pub(crate) fn axis(document: &Document<'_>, name: &str, log: bool) -> Axis {
    let attr = if name == "x" { "x1" } else { "y1" };
    let panel = all(document, "axes")[0];
    let ticks = panel.children().filter(|n| n.attribute("class") == Some(&*format!("tick {name}")));
    let tick = |n: Node<'_, '_>| {
        let line = n.children().find(|c| c.has_tag_name("line")).unwrap();
        let text = n.children().find(|c| c.has_tag_name("text")).unwrap();
        (attribute(line, attr), parse(text.text().unwrap()))
    };
    let ticks: Vec<(f64, f64)> = ticks.map(tick).collect();
    assert!(ticks.len() >= 2, "{ticks:?}");
    let axis = Axis { ticks, log };
    // All numbers of an axis agree with each other.
    axis.ticks.iter().for_each(|(pixel, value)| {
        assert!((axis.pixel(*value) - pixel).abs() < 0.05, "{:?}", axis.ticks);
    });
    axis
}

/// The corners of a path of straight lines.
pub(crate) fn corners(node: Node<'_, '_>) -> Vec<(f64, f64)> {
    let d = node.attribute("d").unwrap();
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut rest = d.trim_end_matches('Z');
    while let Some(command) = rest.chars().next() {
        let end = rest[1..].find(['M', 'L', 'H', 'V', 'Z']).map_or(rest.len(), |e| e + 1);
        let numbers: Vec<f64> = rest[1..end].split(' ').map(|v| v.parse().unwrap()).collect();
        let last = points.last().copied();
        points.push(match command {
            'H' => (numbers[0], last.unwrap().1),
            'V' => (last.unwrap().0, numbers[0]),
            _ => (numbers[0], numbers[1]),
        });
        rest = &rest[end..];
    }
    points
}
