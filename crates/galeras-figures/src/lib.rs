//! Figures of statistics, drawn from columns of numbers and texts.
//!
//! [`draw`] makes a [`Picture`] of [`Data`] as a [`Spec`] asks for it: an SVG, a caption with the
//! number of rows and the reasons for missing ones, and a text for screen readers. [`png()`] and
//! [`pdf`] follow from the SVG, [`embed`] makes it one that carries its font. [`terminal`] draws
//! with characters.
//!
//! The same input gives the same bytes: nothing depends on chance, the clock or the order of a hash.
//! Lengths within an SVG are CSS pixels, 96 to the inch; `width` and `height` of a [`Spec`] are
//! centimetres.

mod data;
mod decimals;
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
pub use decimals::{
    ERRORS, column_decimals, decimals_by_interval, fixed, is_estimate, row_decimals,
};
pub use diagram::{Diagram, DiagramEdge, DiagramNode, Drawing};
pub use error::FigureError;
pub use export::{pdf, png};
pub use font::{FONT_FAMILY, embed, font_css};
pub use kinds::draw;
pub use spec::{Kind, Picture, Role, Scale, Spec, Takes, Theme, Use};
pub use terminal::terminal;
