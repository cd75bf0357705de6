//! Figures of statistics, drawn from columns of numbers and texts.
//!
//! [`draw`] makes a [`Picture`] of [`Data`] as a [`Spec`] asks for it: an SVG, a caption with the
//! number of rows and what was left out, and a text for those who do not see it. [`png`] and
//! [`pdf`] follow from the SVG, [`embed`] makes it one that carries its font. [`terminal`] draws
//! with characters.
//!
//! The same input gives the same bytes: nothing is drawn by chance, by the clock or in the order
//! of a hash. Lengths within an SVG are CSS pixels, 96 to the inch; `width` and `height` of a
//! [`Spec`] are centimetres. Does not live here: where the columns come from, and how a statistic
//! is estimated; what a figure itself computes (quartiles, bins, densities) says so.

mod data;
mod diagram;
mod error;
mod export;
mod font;
mod kinds;
mod layout;
mod node_link;
mod rows;
mod scale;
mod sheet;
mod spec;
mod stats;
mod svg;
mod terminal;
mod text;
mod theme;

pub use data::{Column, Data, Values};
pub use diagram::{Diagram, DiagramEdge, DiagramNode, Drawing};
pub use error::FigureError;
pub use export::{pdf, png};
pub use font::{FONT_FAMILY, embed, font_css};
pub use spec::{Kind, Picture, Role, Scale, Spec, Takes, Theme, Use};
pub use terminal::terminal;

/// Draws a figure.
///
/// # Errors
///
/// A column that the kind needs is not named or not there or of the wrong type, there is nothing
/// to draw, or more than fits a picture: see [`FigureError`].
pub fn draw(spec: &Spec, data: &Data) -> Result<Picture, FigureError> {
    kinds::draw(spec, data)
}
