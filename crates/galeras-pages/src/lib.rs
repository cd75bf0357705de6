//! Pages of a study as HTML that needs no network.
//!
//! [`report`] makes one page of a [`model::Report`], and [`view`] the pages that a server shows.
//!
//! Text from outside (code, prompts, answers, names of columns) is data here: it is escaped in one
//! place, `escape`, which the templates use as well, and characters that hide or reorder text are
//! shown. None of it runs, loads or styles anything.

mod code;
mod diagram;
mod difference;
mod figure;
mod hidden;
mod highlight;
mod markdown;
pub mod model;
mod number;
mod page;
mod parts;
mod report;
mod sections;
mod table;
mod templates;
mod text;
pub mod view;

pub use hidden::{Seen, is_hidden, is_joiner};
pub use page::{PageError, PageLink};
pub use parts::PageLimits;
pub use report::{report, report_within};

#[cfg(test)]
mod tests;
