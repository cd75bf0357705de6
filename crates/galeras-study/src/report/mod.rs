//! One page that explains a study from its stored results.
//!
//! Imports go one way: `values` → `findings`, `points`, `attrition`, `notes`, `guidelines`, `columns` →
//! `steps`, `reproduce` → `study`. `galeras_pages` defines how a page looks.

mod attrition;
mod columns;
mod findings;
mod guidelines;
mod notes;
mod points;
mod reproduce;
mod steps;
mod study;
mod values;

use galeras_engine::runner::RunError;
use galeras_operator::StepError;
use galeras_pages::model::Report;

pub use columns::{one_value, text_of};
pub use study::{bundled, study};
pub use values::described;
pub(crate) use values::rows_of;

/// The page of a report.
///
/// # Errors
/// If the page cannot be rendered.
pub fn page(report: &Report) -> Result<String, RunError> {
    galeras_pages::report(report).map_err(|error| StepError::new(error.to_string()).into())
}
