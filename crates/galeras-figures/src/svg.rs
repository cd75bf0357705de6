//! Writes SVG: shapes, labels and groups, with two decimals of a pixel.
//!
//! It writes no identifiers, styles or scripts, so a page can hold several pictures.

use std::fmt::Write as _;

use crate::font::FONT_FAMILY;
use crate::text::{LEADING, Label, visible};
use crate::theme::Look;

/// CSS pixels in a centimetre.
pub(crate) const CM: f64 = 96.0 / 2.54;

/// A place in pixels.
pub(crate) type Point = (f64, f64);

/// The part of a label that is at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// How an outline is drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stroke<'a> {
    pub(crate) color: &'a str,
    pub(crate) width: f64,
    /// Lengths of dashes and gaps; empty for none.
    pub(crate) dash: &'a str,
}

impl<'a> Stroke<'a> {
    pub(crate) fn solid(color: &'a str, width: f64) -> Stroke<'a> {
        Stroke { color, width, dash: "" }
    }
}

/// How a shape is filled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fill<'a> {
    /// A colour, or `none`.
    pub(crate) color: &'a str,
    /// 0 to 1.
    pub(crate) opacity: f64,
}

impl<'a> Fill<'a> {
    pub(crate) const NONE: Fill<'static> = Fill { color: "none", opacity: 1.0 };

    pub(crate) fn solid(color: &'a str) -> Fill<'a> {
        Fill { color, opacity: 1.0 }
    }
}

/// A rectangle in pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Area {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl Area {
    /// The rectangle between two corners, whichever.
    pub(crate) fn between((x1, y1): Point, (x2, y2): Point) -> Area {
        Area { x: x1.min(x2), y: y1.min(y2), width: (x2 - x1).abs(), height: (y2 - y1).abs() }
    }

    /// The rectangle of this size around a point.
    pub(crate) fn around((x, y): Point, width: f64, height: f64) -> Area {
        Area { x: x - width / 2.0, y: y - height / 2.0, width, height }
    }

    pub(crate) fn right(&self) -> f64 {
        self.x + self.width
    }

    pub(crate) fn bottom(&self) -> f64 {
        self.y + self.height
    }

    pub(crate) fn middle(&self) -> Point {
        (self.x + self.width / 2.0, self.y + self.height / 2.0)
    }

    pub(crate) fn meets(&self, other: &Area) -> bool {
        self.x < other.right()
            && other.x < self.right()
            && self.y < other.bottom()
            && other.y < self.bottom()
    }

    /// True if the other rectangle is within this one and meets none of those that are taken.
    pub(crate) fn has_room_for(&self, other: &Area, taken: &[Area]) -> bool {
        other.x >= self.x
            && other.right() <= self.right()
            && other.y >= self.y
            && other.bottom() <= self.bottom()
            && !taken.iter().any(|area| area.meets(other))
    }
}

/// An SVG in the making: the elements so far, without the `svg` element around them.
#[derive(Debug, Default)]
pub(crate) struct Svg {
    pub(crate) marks: String,
}

impl Svg {
    /// Opens a group. The class names its content; it does not change how it looks.
    pub(crate) fn open(&mut self, class: &str) {
        self.open_with("g", class, &[]);
    }

    /// Opens an element with these attributes.
    pub(crate) fn open_with(&mut self, tag: &str, class: &str, attributes: &[(&str, &str)]) {
        let _ = write!(self.marks, "<{tag}");
        for (name, value) in std::iter::once(&("class", class)).chain(attributes) {
            let _ = write!(self.marks, " {name}=\"");
            escape(&mut self.marks, &visible(value));
            self.marks.push('"');
        }
        self.marks.push('>');
    }

    /// Opens a group with a text that is seen when the pointer rests on it.
    pub(crate) fn open_titled(&mut self, class: &str, title: &str) {
        self.open(class);
        self.title(title);
    }

    pub(crate) fn close(&mut self) {
        self.close_tag("g");
    }

    pub(crate) fn close_tag(&mut self, tag: &str) {
        let _ = write!(self.marks, "</{tag}>");
    }

    pub(crate) fn group(&mut self, class: &str, draw: impl FnOnce(&mut Svg)) {
        self.open(class);
        draw(self);
        self.close();
    }

    /// A text for the pointer, first in its group.
    pub(crate) fn title(&mut self, text: &str) {
        self.marks.push_str("<title>");
        escape(&mut self.marks, &visible(text));
        self.marks.push_str("</title>");
    }

    fn number(&mut self, name: &str, value: f64) {
        let _ = write!(self.marks, " {name}=\"{}\"", Short(value));
    }

    fn paint(&mut self, fill: Fill<'_>, stroke: Option<Stroke<'_>>) {
        let _ = write!(self.marks, " fill=\"{}\"", fill.color);
        if fill.opacity < 1.0 {
            self.number("fill-opacity", fill.opacity);
        }
        if let Some(stroke) = stroke {
            let _ = write!(self.marks, " stroke=\"{}\"", stroke.color);
            self.number("stroke-width", stroke.width);
            if !stroke.dash.is_empty() {
                let _ = write!(self.marks, " stroke-dasharray=\"{}\"", stroke.dash);
            }
        }
        self.marks.push_str("/>");
    }

    fn shape(
        &mut self,
        tag: &str,
        numbers: &[(&str, f64)],
        fill: Fill<'_>,
        stroke: Option<Stroke<'_>>,
    ) {
        let _ = write!(self.marks, "<{tag}");
        numbers.iter().for_each(|(name, value)| self.number(name, *value));
        self.paint(fill, stroke);
    }

    pub(crate) fn line(&mut self, from: Point, to: Point, stroke: Stroke<'_>) {
        let numbers = [("x1", from.0), ("y1", from.1), ("x2", to.0), ("y2", to.1)];
        self.shape("line", &numbers, Fill::NONE, Some(stroke));
    }

    pub(crate) fn rect(&mut self, area: Area, fill: Fill<'_>, stroke: Option<Stroke<'_>>) {
        self.rounded(area, 0.0, fill, stroke);
    }

    pub(crate) fn rounded(
        &mut self,
        area: Area,
        radius: f64,
        fill: Fill<'_>,
        stroke: Option<Stroke<'_>>,
    ) {
        let Area { x, y, width, height } = area;
        let numbers = [("x", x), ("y", y), ("width", width), ("height", height), ("rx", radius)];
        self.shape("rect", &numbers[..if radius > 0.0 { 5 } else { 4 }], fill, stroke);
    }

    pub(crate) fn circle(&mut self, at: Point, radius: f64, fill: Fill<'_>, stroke: Stroke<'_>) {
        let numbers = [("cx", at.0), ("cy", at.1), ("r", radius)];
        self.shape("circle", &numbers, fill, Some(stroke));
    }

    /// A line through points, closed or not.
    pub(crate) fn path(
        &mut self,
        points: &[Point],
        closed: bool,
        fill: Fill<'_>,
        stroke: Option<Stroke<'_>>,
    ) {
        let mut d = String::new();
        for (i, (x, y)) in points.iter().enumerate() {
            let _ = write!(d, "{}{} {}", if i == 0 { "M" } else { "L" }, Short(*x), Short(*y));
        }
        if closed {
            d.push('Z');
        }
        self.raw_path(&d, fill, stroke);
    }

    /// A path in SVG's own words, which are numbers and letters of commands only.
    pub(crate) fn raw_path(&mut self, d: &str, fill: Fill<'_>, stroke: Option<Stroke<'_>>) {
        let _ = write!(self.marks, "<path d=\"{d}\"");
        self.paint(fill, stroke);
    }

    /// A label whose first line's upper side is at this height.
    pub(crate) fn label(&mut self, label: &Label, at: Point, anchor: Anchor, color: &str) {
        self.lines(label, at, anchor, color, false);
    }

    /// A label whose middle is at this height.
    pub(crate) fn label_beside(&mut self, label: &Label, at: Point, anchor: Anchor, color: &str) {
        self.lines(label, (at.0, at.1 - label.height() / 2.0), anchor, color, false);
    }

    /// A label of one line that reads upwards, the middle of its height at this place.
    pub(crate) fn label_upwards(&mut self, label: &Label, at: Point, anchor: Anchor, color: &str) {
        self.lines(label, (at.0 - label.height() / 2.0, at.1), anchor, color, true);
    }

    fn lines(&mut self, label: &Label, at: Point, anchor: Anchor, color: &str, upwards: bool) {
        if label.lines.iter().all(String::is_empty) {
            return;
        }
        if let Some(whole) = &label.whole {
            self.open_titled("cropped", whole);
        }
        for (i, line) in label.lines.iter().enumerate() {
            // The ascent of the font is three quarters of its size, and the leading is shared out.
            let down = (i as f64 * LEADING + (LEADING - 1.0) / 2.0 + 0.8) * label.size;
            let (x, y) = if upwards { (at.0 + down, at.1) } else { (at.0, at.1 + down) };
            self.marks.push_str("<text");
            self.number("x", x);
            self.number("y", y);
            if upwards {
                let _ = write!(self.marks, " transform=\"rotate(-90 {} {})\"", Short(x), Short(y));
            }
            self.number("font-size", label.size);
            match anchor {
                Anchor::Start => {}
                Anchor::Middle => self.marks.push_str(" text-anchor=\"middle\""),
                Anchor::End => self.marks.push_str(" text-anchor=\"end\""),
            }
            if label.bold {
                self.marks.push_str(" font-weight=\"bold\"");
            }
            let _ = write!(self.marks, " fill=\"{color}\">");
            escape(&mut self.marks, line);
            self.marks.push_str("</text>");
        }
        if label.whole.is_some() {
            self.close();
        }
    }

    /// The label of an edge, on a ground that lets little of the edge through.
    pub(crate) fn edge_label(&mut self, label: &Label, area: Area, look: &Look) {
        self.group("edge-label", |svg| {
            svg.rect(area, Fill { color: look.ground, opacity: 0.85 }, None);
            svg.label_beside(label, area.middle(), Anchor::Middle, look.soft);
        });
    }

    /// The whole picture, of this size in pixels.
    pub(crate) fn finish(self, width: f64, height: f64, ground: &str, alt: &str) -> String {
        let (w, h) = (Short(width), Short(height));
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}cm\" height=\"{}cm\" \
             viewBox=\"0 0 {w} {h}\" role=\"img\" font-family=\"{FONT_FAMILY}\" \
             font-kerning=\"none\" aria-label=\"",
            Short(width / CM),
            Short(height / CM),
        );
        escape(&mut out, alt);
        let _ = write!(out, "\"><rect width=\"{w}\" height=\"{h}\" fill=\"{ground}\"/>");
        out.push_str(&self.marks);
        out.push_str("</svg>\n");
        out
    }
}

/// A number with at most two decimals.
pub(crate) struct Short(pub(crate) f64);

impl std::fmt::Display for Short {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let hundredths = (self.0 * 100.0).round();
        let sign = if hundredths < 0.0 { "-" } else { "" };
        let hundredths = hundredths.abs() as u64;
        write!(f, "{sign}{}", hundredths / 100)?;
        match hundredths % 100 {
            0 => Ok(()),
            rest if rest % 10 == 0 => write!(f, ".{}", rest / 10),
            rest => write!(f, ".{rest:02}"),
        }
    }
}

/// Appends a text in which nothing is markup.
fn escape(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_have_no_negative_zero() {
        for (value, text) in
            [(12.0, "12"), (-0.001, "0"), (1.256, "1.26"), (-3.5, "-3.5"), (0.05, "0.05")]
        {
            assert_eq!(Short(value).to_string(), text);
        }
    }

    #[test]
    fn an_area_is_free_if_it_is_inside_and_meets_no_other() {
        let whole = Area { x: 0.0, y: 0.0, width: 2000.0, height: 900.0 };
        let mut taken: Vec<Area> = Vec::new();
        for i in 0..400_u32 {
            let mixed = i.wrapping_mul(2_654_435_761);
            let number = |n: u32| f64::from(mixed.wrapping_mul(n) >> 16) / 65536.0;
            let (x, y) = (number(7919) * 2000.0 - 500.0, number(104_729) * 900.0);
            let area = Area { x, y, width: 10.0 + number(1_299_709) * 200.0, height: 12.0 };
            let inside = x >= 0.0 && x + area.width <= 2000.0 && y + 12.0 <= 900.0;
            let meets =
                |o: &Area| (o.x - x) < area.width && (x - o.x) < o.width && (o.y - y).abs() < 12.0;
            let expected = inside && !taken.iter().any(meets);
            assert_eq!(whole.has_room_for(&area, &taken), expected, "area {i}");
            if expected {
                taken.push(area);
            }
        }
        assert!((50..350).contains(&taken.len()), "{}", taken.len());
    }
}
