//! Pages of a study as HTML that needs no network.
//!
//! [`report`] makes one page of a [`model::Report`]. Its parts serve other pages as well: [`page()`]
//! is the frame of every page, [`Parts`] the state that the parts of a page share, and a function for
//! each kind of part returns [`Markup`]: [`table()`], [`code()`], [`comparison`], [`data_point`],
//! [`diagram()`].
//!
//! Text from outside (code, prompts, answers, names of columns) is data here: it is escaped in one
//! place, [`escape`], which the templates use as well, and characters that hide or reorder text are
//! shown. None of it runs, loads or styles anything.

mod attrition;
mod code;
mod diagram;
mod difference;
mod error;
mod figure;
mod findings;
mod hidden;
mod highlight;
mod markdown;
pub mod model;
pub mod number;
mod page;
mod parts;
mod point;
mod report;
mod sections;
mod statistics;
mod table;
mod templates;
mod text;
pub mod view;

pub use code::{code, comparison};
pub use diagram::diagram;
pub use error::PageError;
pub use hidden::{Seen, is_hidden, is_joiner, seen};
pub use markdown::markdown;
pub use page::{PageFrame, PageLink, page, policy};
pub use parts::{PageLimits, Parts, script_json, step_id};
pub use point::{data_point, data_points};
pub use report::{report, report_within};
pub use table::table;
pub use text::{Changes, Excerpt, Markup, escape};

#[cfg(test)]
mod tests;
