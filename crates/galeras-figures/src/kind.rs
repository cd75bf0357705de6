//! A kind of figure: what it takes and how it is drawn.

use std::fmt;

use crate::error::FigureError;
use crate::kinds::KINDS;
use crate::sheet::Sheet;
use crate::spec::{Role, Use};
use crate::terminal::Screen;

/// The columns and options of a kind of figure, and its functions.
pub(crate) struct KindSpec {
    /// The name in workflows: `histogram`.
    pub(crate) name: &'static str,
    /// The name that the text for screen readers starts with.
    pub(crate) title: &'static str,
    /// A sentence about the figure for the documentation.
    pub(crate) about: &'static str,
    /// The columns that it needs and takes, the needed ones first.
    pub(crate) columns: &'static [Use],
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
    pub(crate) draw: fn(&mut Sheet<'_>) -> Result<(), FigureError>,
    /// Draws with characters in so many lines, if the kind can be drawn so.
    pub(crate) draw_text: Option<fn(&Sheet<'_>, &mut Screen, usize)>,
}

/// A kind of figure, such as [`Kind::HISTOGRAM`].
#[derive(Clone, Copy)]
pub struct Kind(pub(crate) &'static KindSpec);

impl Kind {
    /// All kinds, in the order of the documentation.
    pub fn all() -> &'static [Kind] {
        KINDS
    }

    /// The kind with this name.
    pub fn named(name: &str) -> Option<Kind> {
        KINDS.iter().copied().find(|kind| kind.name() == name)
    }

    /// The name in workflows: `histogram`.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// A sentence about the figure for the documentation.
    pub fn about(self) -> &'static str {
        self.0.about
    }

    /// The columns that a kind needs and takes, the needed ones first.
    pub fn columns(self) -> &'static [Use] {
        self.0.columns
    }

    /// The use of a column in this kind of figure, if it has one.
    pub fn usage(self, role: Role) -> Option<&'static Use> {
        self.columns().iter().find(|usage| usage.role == role)
    }

    /// `a`, or `an` if the kind's name starts with a vowel.
    pub(crate) fn article(self) -> &'static str {
        if self.name().starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Kind {}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_documented_and_differ() {
        for (at, kind) in KINDS.iter().enumerate() {
            let spec = kind.0;
            assert_eq!(KINDS.iter().position(|k| k == kind), Some(at), "{kind} is there twice");
            assert_eq!(Kind::named(spec.name), Some(*kind));
            assert!(spec.name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{kind}");
            assert!(spec.title.starts_with(char::is_uppercase), "{kind}");
            assert!(spec.about.ends_with('.'), "{kind}");
            let needed = spec.columns.iter().take_while(|usage| usage.needed).count();
            assert!(needed > 0 && spec.columns[needed..].iter().all(|usage| !usage.needed));
            for (at, usage) in spec.columns.iter().enumerate() {
                assert!(!usage.meaning.is_empty() && !usage.meaning.ends_with('.'), "{kind}");
                assert!(spec.columns[..at].iter().all(|other| other.role != usage.role), "{kind}");
            }
            let known = ["bins", "x_scale", "y_scale", "reference", "x_label", "y_label"];
            assert!(spec.options.iter().all(|option| known.contains(option)), "{kind}");
        }
        assert_eq!(Kind::named("nothing"), None);
    }
}
