//! Tests of the pages: what is shown, what is inert, what is left out.

mod budgets;
mod content;
mod hostile;

use crate::model::Report;

/// A report from JSON.
fn from_json(value: serde_json::Value) -> Report {
    serde_json::from_value(value).unwrap()
}

/// The HTML between the first `start` and the next `end`.
fn between<'a>(html: &'a str, start: &str, end: &str) -> &'a str {
    let from = html.find(start).unwrap_or_else(|| panic!("{start} is missing")) + start.len();
    &html[from..from + html[from..].find(end).unwrap_or_else(|| panic!("{end} is missing"))]
}
