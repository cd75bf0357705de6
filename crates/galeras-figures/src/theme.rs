//! Colours, dashes and shapes of the three themes.
//!
//! The colours of groups are those of Okabe and Ito (2008), which people with any kind of colour
//! blindness can distinguish. Dashes and shapes differ as well; in print, greys and hatches.

use std::fmt::Write as _;

use crate::spec::Theme;
use crate::svg::{Area, Fill, Point, Short, Stroke, Svg};

/// The number of groups that a reader can distinguish.
pub(crate) const GROUPS: usize = 8;

/// The looks of a theme.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) theme: Theme,
    pub(crate) ground: &'static str,
    /// Text and outlines.
    pub(crate) ink: &'static str,
    /// Text of less weight.
    pub(crate) soft: &'static str,
    /// Lines of the grid.
    pub(crate) grid: &'static str,
    /// The ground of a panel's heading, and of boxes.
    pub(crate) panel: &'static str,
    colors: [&'static str; GROUPS],
    ramp: [[u8; 3]; 3],
    diverging: [[u8; 3]; 3],
}

static LIGHT: Look = Look {
    theme: Theme::Light,
    ground: "#ffffff",
    ink: "#1b1f24",
    soft: "#57606a",
    grid: "#e3e6ea",
    panel: "#f1f3f5",
    colors: [
        "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#1b1f24", "#8c8c8c",
    ],
    ramp: [[246, 250, 253], [107, 174, 214], [8, 48, 107]],
    diverging: [[5, 80, 150], [247, 247, 247], [190, 75, 0]],
};

static DARK: Look = Look {
    theme: Theme::Dark,
    ground: "#14181d",
    ink: "#e8eaed",
    soft: "#a3abb5",
    grid: "#2d343c",
    panel: "#20262d",
    colors: [
        "#56b4e9", "#e69f00", "#00b386", "#cc79a7", "#f0e442", "#e8743b", "#e8eaed", "#8c959f",
    ],
    ramp: [[28, 36, 46], [33, 113, 181], [198, 219, 239]],
    diverging: [[86, 180, 233], [36, 42, 50], [240, 140, 60]],
};

static PRINT: Look = Look {
    theme: Theme::Print,
    ground: "#ffffff",
    ink: "#000000",
    soft: "#404040",
    grid: "#dddddd",
    panel: "#f0f0f0",
    colors: [
        "#000000", "#7a7a7a", "#404040", "#9a9a9a", "#000000", "#7a7a7a", "#404040", "#9a9a9a",
    ],
    ramp: [[255, 255, 255], [150, 150, 150], [20, 20, 20]],
    diverging: [[90, 90, 90], [255, 255, 255], [90, 90, 90]],
};

/// Fills of groups in print: a grey, and whether there are lines that rise, lines that fall.
const PRINTED: [(&str, bool, bool); GROUPS] = [
    ("#9e9e9e", false, false),
    ("#e4e4e4", false, false),
    ("#ffffff", true, false),
    ("#ffffff", false, false),
    ("#ffffff", false, true),
    ("#e4e4e4", true, false),
    ("#ffffff", true, true),
    ("#9e9e9e", false, true),
];

const DASHES: [&str; GROUPS] =
    ["", "6 3", "2 2.5", "9 3 2 3", "12 3", "5 2 1.5 2 1.5 2", "1 3", "3 1"];

impl Look {
    pub(crate) fn of(theme: Option<Theme>) -> &'static Look {
        match theme.unwrap_or_default() {
            Theme::Light => &LIGHT,
            Theme::Dark => &DARK,
            Theme::Print => &PRINT,
        }
    }

    pub(crate) fn color(&self, group: usize) -> &'static str {
        self.colors[group % GROUPS]
    }

    pub(crate) fn stroke(&self, group: usize, width: f64) -> Stroke<'static> {
        Stroke { color: self.color(group), width, dash: DASHES[group % GROUPS] }
    }

    /// A filled rectangle of a group: its colour, or in print a grey with a hatch.
    pub(crate) fn bar(&self, svg: &mut Svg, area: Area, group: usize, opacity: f64) {
        if self.theme != Theme::Print {
            let outline = Stroke::solid(self.color(group), 1.0);
            svg.rect(area, Fill { color: self.color(group), opacity }, Some(outline));
            return;
        }
        let (grey, rising, falling) = PRINTED[group % GROUPS];
        svg.rect(area, Fill::solid(grey), Some(Stroke::solid(self.ink, 0.8)));
        self.hatch(svg, area, rising, falling);
    }

    /// Lines at 45 degrees within a rectangle.
    pub(crate) fn hatch(&self, svg: &mut Svg, area: Area, rising: bool, falling: bool) {
        const GAP: f64 = 5.0;
        let mut d = String::new();
        let steps = ((area.width + area.height) / GAP) as usize;
        for i in 1..=steps.min(2000) {
            let along = i as f64 * GAP;
            // The line x + y = along, or its mirror image, cut off at the sides.
            let (x1, y1) = (along.min(area.width), (along - area.width).max(0.0));
            let (x2, y2) = ((along - area.height).max(0.0), along.min(area.height));
            let mut add = |a: Point, b: Point| {
                let [ax, bx] = [a.0, b.0].map(|x| Short(area.x + x));
                let [ay, by] = [a.1, b.1].map(|y| Short(area.y + y));
                let _ = write!(d, "M{ax} {ay}L{bx} {by}");
            };
            if rising {
                add((x1, y1), (x2, y2));
            }
            if falling {
                add((area.width - x1, y1), (area.width - x2, y2));
            }
        }
        if !d.is_empty() {
            svg.raw_path(&d, Fill::NONE, Some(Stroke::solid(self.ink, 0.6)));
        }
    }

    /// The mark of a group at a place: each has another shape, filled or not.
    pub(crate) fn mark(&self, svg: &mut Svg, at: Point, radius: f64, group: usize, opacity: f64) {
        let (group, color) = (group % GROUPS, self.color(group));
        let (fill, outline) = match group {
            0..5 => (Fill { color, opacity }, Stroke::solid(color, 1.0)),
            _ => (Fill::solid(self.ground), Stroke::solid(color, 1.4)),
        };
        let (x, y) = at;
        match group {
            0 | 5 => svg.circle(at, radius, fill, outline),
            2 | 6 => {
                let side = 2.0 * (radius * 0.88);
                svg.rect(Area::around(at, side, side), fill, Some(outline));
            }
            1 | 4 => {
                let r = radius * 1.15;
                let (tip, base) =
                    if group == 1 { (y - r, y + 0.8 * r) } else { (y + r, y - 0.8 * r) };
                svg.path(&[(x, tip), (x + r, base), (x - r, base)], true, fill, Some(outline));
            }
            _ => {
                let r = radius * 1.25;
                let points = [(x, y - r), (x + r, y), (x, y + r), (x - r, y)];
                svg.path(&points, true, fill, Some(outline));
            }
        }
    }

    /// A colour for a share from 0 to 1.
    pub(crate) fn sequential(&self, share: f64) -> [u8; 3] {
        between(&self.ramp, share)
    }

    /// A colour for a share from -1 to 1; 0 is nearly the ground.
    pub(crate) fn diverging(&self, share: f64) -> [u8; 3] {
        between(&self.diverging, (share + 1.0) / 2.0)
    }
}

fn between(stops: &[[u8; 3]; 3], share: f64) -> [u8; 3] {
    let share = share.clamp(0.0, 1.0) * 2.0;
    let (from, to, part) =
        if share < 1.0 { (stops[0], stops[1], share) } else { (stops[1], stops[2], share - 1.0) };
    let mix = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * part).round() as u8;
    [mix(from[0], to[0]), mix(from[1], to[1]), mix(from[2], to[2])]
}

pub(crate) fn hex([r, g, b]: [u8; 3]) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// Black or white, whichever is read better on a colour (WCAG 2.2, relative luminance).
pub(crate) fn readable_on(color: [u8; 3]) -> &'static str {
    let luminance = luminance(color);
    if (luminance + 0.05) / 0.05 >= 1.05 / (luminance + 0.05) { "#000000" } else { "#ffffff" }
}

fn luminance(color: [u8; 3]) -> f64 {
    let linear = color.map(|c| {
        let c = f64::from(c) / 255.0;
        if c <= 0.040_45 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    });
    0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
}

/// The parts of a colour in CSS.
pub(crate) fn parts(hex: &str) -> [u8; 3] {
    let part =
        |at: usize| hex.get(at..at + 2).and_then(|p| u8::from_str_radix(p, 16).ok()).unwrap_or(0);
    [part(1), part(3), part(5)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_can_be_read_and_marks_can_be_seen() {
        let check = |color: &str, ground: &str, least: f64| {
            let [a, b] = [color, ground].map(|color| luminance(parts(color)) + 0.05);
            assert!(a.max(b) / a.min(b) >= least, "{color} on {ground}");
        };
        for look in [&LIGHT, &DARK, &PRINT] {
            check(look.ink, look.ground, 7.0);
            check(look.soft, look.ground, 4.5);
            check(look.soft, look.panel, 4.5);
            look.colors.iter().for_each(|color| check(color, look.ground, 2.2));
            for share in 0..=20 {
                let color = look.sequential(f64::from(share) / 20.0);
                check(readable_on(color), &hex(color), 4.5);
            }
        }
    }

    #[test]
    fn groups_differ_without_colour() {
        for (i, a) in DASHES.iter().enumerate() {
            assert!(!DASHES[i + 1..].contains(a));
            assert!(!PRINTED[i + 1..].contains(&PRINTED[i]));
        }
    }
}
