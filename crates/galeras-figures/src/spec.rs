//! Kinds of figures, and the spec of a figure: its kind, columns, words, size and look.

use std::fmt;

use crate::error::FigureError;
use crate::kinds::KINDS;
use crate::sheet::Sheet;
use crate::terminal::Screen;
use crate::text::visible;
use crate::theme::{GROUPS as GROUP_LOOKS, Look};

/// The role of a column in a figure.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::IntoStaticStr, strum::VariantArray,
)]
#[strum(serialize_all = "snake_case")]
pub enum Role {
    /// The horizontal axis, or its counterpart in kinds without one.
    X,
    /// The vertical axis, or its counterpart in kinds without one.
    Y,
    /// The lower end of an interval.
    Low,
    /// The upper end of an interval.
    High,
    /// Groups by colour and shape; the number of a heatmap's cell, or of a place among contours.
    Color,
    /// Small multiples, one panel for each value.
    Facet,
    /// A text next to a mark.
    Label,
}

/// Which columns fit a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Numbers.
    Number,
    /// Texts, or numbers taken as names of categories.
    Category,
}

/// A column that a kind of figure takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// The role of the column.
    pub role: Role,
    /// True if there is no figure without it.
    pub needed: bool,
    /// True if rows without a value are drawn.
    pub sparse: bool,
    /// The type of column that fits.
    pub takes: Takes,
    /// The meaning in this kind of figure: a few words without a full stop.
    pub meaning: &'static str,
}

pub(crate) const fn needs(role: Role, takes: Takes, meaning: &'static str) -> Use {
    Use { role, needed: true, sparse: false, takes, meaning }
}

pub(crate) const fn may(role: Role, takes: Takes, meaning: &'static str) -> Use {
    Use { role, needed: false, sparse: matches!(role, Role::Label), takes, meaning }
}

impl Use {
    pub(crate) const fn sparse(self) -> Use {
        Use { sparse: true, ..self }
    }
}

pub(crate) const GROUPS: Use =
    may(Role::Color, Takes::Category, "groups, by colour and dash or shape");
pub(crate) const PANELS: Use =
    may(Role::Facet, Takes::Category, "one panel for each value, with one scale");
pub(crate) const LOW: Use = may(Role::Low, Takes::Number, "the lower end of the interval");
pub(crate) const HIGH: Use = may(Role::High, Takes::Number, "the upper end of the interval");

/// A kind of figure, such as [`Kind::HISTOGRAM`]: its columns, options and functions.
#[derive(Clone, Copy)]
pub struct Kind {
    /// The name in workflows: `histogram`.
    pub name: &'static str,
    /// The name that the text for screen readers starts with.
    pub(crate) title: &'static str,
    /// A sentence about the figure for the documentation.
    pub about: &'static str,
    /// The columns that it needs and takes, the needed ones first.
    pub columns: &'static [Use],
    /// The options of [`crate::Spec`] that only some kinds take.
    pub(crate) options: &'static [&'static str],
    /// The axis of intervals and of the line of reference.
    pub(crate) along: Role,
    /// The most names of categories on an axis.
    pub(crate) names: usize,
    /// The most groups by colour.
    pub(crate) groups: usize,
    /// The most rows.
    pub(crate) marks: usize,
    /// A row and rows in words, where a row sums up many; otherwise the caption has `n = 3`.
    pub(crate) rows: Option<(&'static str, &'static str)>,
    pub(crate) draw: fn(&mut Sheet<'_>) -> Result<(), FigureError>,
    /// Draws with characters in so many lines, if the kind can be drawn so.
    pub(crate) draw_text: Option<fn(&Sheet<'_>, &mut Screen, usize)>,
}

impl Kind {
    /// The fields that many kinds share.
    pub(crate) const BASE: Kind = Kind {
        name: "",
        title: "",
        about: "",
        columns: &[],
        options: &[],
        along: Role::Y,
        names: 0,
        groups: GROUP_LOOKS,
        marks: 100_000_000,
        rows: None,
        draw: |_| Ok(()),
        draw_text: None,
    };

    /// All kinds, in the order of the documentation.
    pub fn all() -> &'static [Kind] {
        KINDS
    }

    /// The kind with this name.
    pub fn named(name: &str) -> Option<Kind> {
        KINDS.iter().copied().find(|kind| kind.name == name)
    }

    /// The use of a column in this kind of figure, if it has one.
    pub fn usage(self, role: Role) -> Option<&'static Use> {
        self.columns.iter().find(|usage| usage.role == role)
    }

    /// The name after its article: `a bar`, `an ecdf`.
    pub(crate) fn with_article(self) -> String {
        let is_vowel = self.name.starts_with(['a', 'e', 'i', 'o', 'u']);
        format!("{} {}", if is_vowel { "an" } else { "a" }, self.name)
    }
}

impl Default for Kind {
    fn default() -> Self {
        Kind::HISTOGRAM
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Kind {}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The colours of a figure.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    strum::Display,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantArray,
    strum::VariantNames,
)]
#[strum(serialize_all = "snake_case")]
pub enum Theme {
    /// Dark on white.
    #[default]
    Light,
    /// Light on a dark ground.
    Dark,
    /// For paper: greys, dashes and shapes instead of colours.
    Print,
}

impl Theme {
    /// The colour of the ground.
    pub fn ground(self) -> &'static str {
        Look::of(Some(self)).ground
    }
}

/// How numbers become places on an axis.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    strum::Display,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantNames,
)]
#[strum(serialize_all = "snake_case")]
pub enum Scale {
    /// Equal differences are equally long.
    #[default]
    Linear,
    /// Equal ratios are equally long. Numbers that are not positive are left out, and the caption
    /// counts them. For lengths of texts, costs, sizes of models.
    Log,
}

/// A description of a figure. Only the kind and the columns it needs must be given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spec {
    /// The kind of figure.
    pub kind: Kind,
    /// The name of the column of [`Role::X`].
    pub x: Option<String>,
    /// The name of the column of [`Role::Y`].
    pub y: Option<String>,
    /// The name of the column of [`Role::Low`].
    pub low: Option<String>,
    /// The name of the column of [`Role::High`].
    pub high: Option<String>,
    /// The name of the column of [`Role::Color`].
    pub color: Option<String>,
    /// The name of the column of [`Role::Facet`].
    pub facet: Option<String>,
    /// The name of the column of [`Role::Label`].
    pub label: Option<String>,
    /// Where the line of reference is, on the axis of the numbers: no effect, a target. A forest
    /// plot has one at 0 without (at 1 on a logarithmic axis), a love plot two at ±0.1 (or at plus
    /// and minus this). A heatmap's palette diverges from it.
    pub reference: Option<f64>,
    /// The number of bins of a histogram, 1 to 500; as many as `numpy.histogram` takes with
    /// `bins="auto"` otherwise, at most 60.
    pub bins: Option<usize>,
    /// The scale of the horizontal numbers.
    pub x_scale: Option<Scale>,
    /// The scale of the vertical numbers.
    pub y_scale: Option<Scale>,
    /// The heading.
    pub title: Option<String>,
    /// The start of the caption; the numbers of rows follow.
    pub caption: Option<String>,
    /// The label of the axis of `x`; the column's name and unit without.
    pub x_label: Option<String>,
    /// The label of the axis of `y`; the column's name and unit without.
    pub y_label: Option<String>,
    /// The width in centimetres, 4 to 100; 16 without.
    pub width: Option<f64>,
    /// The height in centimetres, 2 to 200; what the figure needs without.
    pub height: Option<f64>,
    /// The colours; light without.
    pub theme: Option<Theme>,
    /// The category `control` comes before the others, which it is compared with.
    pub control_first: bool,
}

impl Spec {
    /// A figure of this kind, all else open.
    pub fn new(kind: Kind) -> Spec {
        Spec { kind, ..Spec::default() }
    }

    /// The name of the column that is to do this.
    pub fn column(&self, role: Role) -> Option<&str> {
        match role {
            Role::X => &self.x,
            Role::Y => &self.y,
            Role::Low => &self.low,
            Role::High => &self.high,
            Role::Color => &self.color,
            Role::Facet => &self.facet,
            Role::Label => &self.label,
        }
        .as_deref()
    }

    /// The name of a column for messages; empty without one.
    pub(crate) fn shown(&self, role: Role) -> String {
        visible(self.column(role).unwrap_or_default()).into_owned()
    }
}

/// A figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// The SVG, its text in the font that [`crate::FONT_FAMILY`] names. It refers to nothing
    /// outside of itself, has no identifiers, scripts or styles, and can be part of an HTML page.
    /// [`crate::embed`] makes a file of it that carries its font.
    pub svg: String,
    /// The text below the picture: the words of the spec, the number of rows, the rows left out
    /// with their reasons, and the meaning of the marks. Plain text.
    pub caption: String,
    /// A text instead of the picture: kind, axes, number of rows, ranges. Plain text.
    pub alt: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_documented_and_differ() {
        for (at, kind) in KINDS.iter().enumerate() {
            assert_eq!(KINDS.iter().position(|k| k == kind), Some(at), "{kind} is there twice");
            assert_eq!(Kind::named(kind.name), Some(*kind));
            assert!(kind.name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{kind}");
            assert!(kind.title.starts_with(char::is_uppercase), "{kind}");
            assert!(kind.about.ends_with('.'), "{kind}");
            let needed = kind.columns.iter().take_while(|usage| usage.needed).count();
            assert!(needed > 0 && kind.columns[needed..].iter().all(|usage| !usage.needed));
            for (at, usage) in kind.columns.iter().enumerate() {
                assert!(!usage.meaning.is_empty() && !usage.meaning.ends_with('.'), "{kind}");
                assert!(kind.columns[..at].iter().all(|other| other.role != usage.role), "{kind}");
            }
            let known = ["bins", "x_scale", "y_scale", "reference", "x_label", "y_label"];
            assert!(kind.options.iter().all(|option| known.contains(option)), "{kind}");
        }
        assert_eq!(Kind::named("nothing"), None);
    }
}
