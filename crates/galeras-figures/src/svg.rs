//! Writes SVG: shapes, labels and groups, with two decimals of a pixel.
//!
//! It writes no identifiers, styles or scripts, so a page can hold several pictures.

use std::fmt::Write as _;

use crate::font::FONT_FAMILY;
use crate::text::{LEADING, Label, visible};
use crate::theme::Look;

/// CSS pixels in a centimetre.
pub(crate) const CM: f64 = 96.0 / 2.54;

/// Where a label is in respect to its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    /// It begins there.
    Start,
    /// Its middle is there.
    Middle,
    /// It ends there.
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
    pub(crate) fn between(x1: f64, y1: f64, x2: f64, y2: f64) -> Area {
        Area { x: x1.min(x2), y: y1.min(y2), width: (x2 - x1).abs(), height: (y2 - y1).abs() }
    }

    pub(crate) fn right(&self) -> f64 {
        self.x + self.width
    }

    pub(crate) fn bottom(&self) -> f64 {
        self.y + self.height
    }
}

/// An SVG in the making.
#[derive(Debug, Default)]
pub(crate) struct Svg {
    out: String,
}

impl Svg {
    /// Opens a group. The class names its content; it does not change how it looks.
    pub(crate) fn open(&mut self, class: &str) {
        self.open_with("g", class, &[]);
    }

    /// Opens an element with these attributes.
    pub(crate) fn open_with(&mut self, tag: &str, class: &str, attributes: &[(&str, &str)]) {
        let _ = write!(self.out, "<{tag}");
        for (name, value) in std::iter::once(&("class", class)).chain(attributes) {
            let _ = write!(self.out, " {name}=\"");
            escape(&mut self.out, &visible(value));
            self.out.push('"');
        }
        self.out.push('>');
    }

    /// Opens a group with a text that is seen when the pointer rests on it.
    pub(crate) fn open_titled(&mut self, class: &str, title: &str) {
        self.open(class);
        self.title(title);
    }

    /// Closes a group.
    pub(crate) fn close(&mut self) {
        self.close_tag("g");
    }

    pub(crate) fn close_tag(&mut self, tag: &str) {
        let _ = write!(self.out, "</{tag}>");
    }

    /// A text for the pointer, first in its group.
    pub(crate) fn title(&mut self, text: &str) {
        self.out.push_str("<title>");
        escape(&mut self.out, &visible(text));
        self.out.push_str("</title>");
    }

    fn number(&mut self, name: &str, value: f64) {
        let _ = write!(self.out, " {name}=\"{}\"", Short(value));
    }

    fn paint(&mut self, fill: Fill<'_>, stroke: Option<Stroke<'_>>) {
        let _ = write!(self.out, " fill=\"{}\"", fill.color);
        if fill.opacity < 1.0 {
            self.number("fill-opacity", fill.opacity);
        }
        if let Some(stroke) = stroke {
            let _ = write!(self.out, " stroke=\"{}\"", stroke.color);
            self.number("stroke-width", stroke.width);
            if !stroke.dash.is_empty() {
                let _ = write!(self.out, " stroke-dasharray=\"{}\"", stroke.dash);
            }
        }
        self.out.push_str("/>");
    }

    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), stroke: Stroke<'_>) {
        self.out.push_str("<line");
        for (name, value) in [("x1", from.0), ("y1", from.1), ("x2", to.0), ("y2", to.1)] {
            self.number(name, value);
        }
        self.paint(Fill::NONE, Some(stroke));
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
        self.out.push_str("<rect");
        let Area { x, y, width, height } = area;
        for (name, value) in [("x", x), ("y", y), ("width", width), ("height", height)] {
            self.number(name, value);
        }
        if radius > 0.0 {
            self.number("rx", radius);
        }
        self.paint(fill, stroke);
    }

    pub(crate) fn circle(
        &mut self,
        at: (f64, f64),
        radius: f64,
        fill: Fill<'_>,
        stroke: Option<Stroke<'_>>,
    ) {
        self.out.push_str("<circle");
        for (name, value) in [("cx", at.0), ("cy", at.1), ("r", radius)] {
            self.number(name, value);
        }
        self.paint(fill, stroke);
    }

    /// A line through points, closed or not.
    pub(crate) fn path(
        &mut self,
        points: &[(f64, f64)],
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
        let _ = write!(self.out, "<path d=\"{d}\"");
        self.paint(fill, stroke);
    }

    /// A label whose first line's upper side is at `y`.
    pub(crate) fn label(&mut self, label: &Label, x: f64, y: f64, anchor: Anchor, color: &str) {
        self.lines(label, x, y, anchor, color, None);
    }

    /// A label whose middle is at the height `y`.
    pub(crate) fn label_beside(
        &mut self,
        label: &Label,
        x: f64,
        y: f64,
        anchor: Anchor,
        color: &str,
    ) {
        self.lines(label, x, y - label.height() / 2.0, anchor, color, None);
    }

    /// A label of one line that reads upwards; the middle of its height is at `x`.
    pub(crate) fn label_upwards(
        &mut self,
        label: &Label,
        x: f64,
        y: f64,
        anchor: Anchor,
        color: &str,
    ) {
        self.lines(label, x, y, anchor, color, Some(x - label.height() / 2.0));
    }

    fn lines(
        &mut self,
        label: &Label,
        x: f64,
        y: f64,
        anchor: Anchor,
        color: &str,
        left: Option<f64>,
    ) {
        if label.lines.iter().all(String::is_empty) {
            return;
        }
        if let Some(whole) = &label.whole {
            self.open_titled("cropped", whole);
        }
        for (i, line) in label.lines.iter().enumerate() {
            // The ascent of the font is three quarters of its size, and the leading is shared out.
            let down = (i as f64 * LEADING + (LEADING - 1.0) / 2.0 + 0.8) * label.size;
            self.out.push_str("<text");
            let (x, y) = match left {
                Some(left) => (left + down, y),
                None => (x, y + down),
            };
            self.number("x", x);
            self.number("y", y);
            if left.is_some() {
                let _ = write!(self.out, " transform=\"rotate(-90 {} {})\"", Short(x), Short(y));
            }
            self.number("font-size", label.size);
            match anchor {
                Anchor::Start => {}
                Anchor::Middle => self.out.push_str(" text-anchor=\"middle\""),
                Anchor::End => self.out.push_str(" text-anchor=\"end\""),
            }
            if label.bold {
                self.out.push_str(" font-weight=\"bold\"");
            }
            let _ = write!(self.out, " fill=\"{color}\">");
            escape(&mut self.out, line);
            self.out.push_str("</text>");
        }
        if label.whole.is_some() {
            self.close();
        }
    }

    /// The label of an edge, on a ground that lets little of the edge through.
    pub(crate) fn edge_label(&mut self, label: &Label, area: Area, look: &Look) {
        self.open("edge-label");
        self.rect(area, Fill { color: look.ground, opacity: 0.85 }, None);
        let (x, y) = (area.x + area.width / 2.0, area.y + area.height / 2.0);
        self.label_beside(label, x, y, Anchor::Middle, look.soft);
        self.close();
    }

    /// The elements so far, without the `svg` element around them.
    pub(crate) fn into_marks(self) -> String {
        self.out
    }

    pub(crate) fn from_marks(marks: String) -> Svg {
        Svg { out: marks }
    }

    /// The whole picture, of this size in pixels.
    pub(crate) fn finish(self, width: f64, height: f64, ground: &str, alt: &str) -> String {
        let mut out = String::with_capacity(self.out.len() + alt.len() + 400);
        let _ = write!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}cm\" height=\"{}cm\" \
             viewBox=\"0 0 {} {}\" role=\"img\" font-family=\"{FONT_FAMILY}\" \
             font-kerning=\"none\" aria-label=\"",
            Short(width / CM),
            Short(height / CM),
            Short(width),
            Short(height),
        );
        escape(&mut out, alt);
        out.push_str("\">");
        let _ = write!(
            out,
            "<rect width=\"{}\" height=\"{}\" fill=\"{ground}\"/>",
            Short(width),
            Short(height)
        );
        out.push_str(&self.out);
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
        let short = |v: f64| Short(v).to_string();
        assert_eq!(short(12.0), "12");
        assert_eq!(short(-0.001), "0");
        assert_eq!(short(1.256), "1.26");
        assert_eq!(short(-3.5), "-3.5");
        assert_eq!(short(0.05), "0.05");
    }
}
