//! The steps of a study, a table page by page, and pages of tables.

use minijinja::context;
use serde::Serialize;

use super::{LIVE, ViewFrame, framed, safe};
use crate::error::PageError;
use crate::markdown::markdown;
use crate::model::TableBlock;
use crate::parts::Parts;
use crate::table::table;
use crate::templates::render;
use crate::text::Markup;

/// The steps with their states.
#[derive(Debug, Clone, Default, Serialize)]
pub struct StepsPage {
    /// The state of the run: `A run goes on since …`, `The last run ended …`.
    pub status: String,
    /// True during a run.
    pub running: bool,
    /// The address that reports if the page has changed.
    pub events: String,
    /// The errors of the present workflow; may be empty.
    pub problem: String,
    /// The command that computes what is missing; empty if nothing is.
    pub command: String,
    /// The steps in the order of the plan.
    pub steps: Vec<StepLine>,
}

/// A step.
#[derive(Debug, Clone, Default, Serialize)]
pub struct StepLine {
    /// Its name.
    pub name: String,
    /// Its operator.
    pub operator: String,
    /// Its state as a class of the style sheet: `done`, `missing`, `running`, `failed`.
    pub state: String,
    /// Its state in a word or two.
    pub state_text: String,
    /// The reason why it would run.
    pub detail: String,
    /// Its tables.
    pub ports: Vec<PortLine>,
}

/// A table of a step.
#[derive(Debug, Clone, Default, Serialize)]
pub struct PortLine {
    /// The port; the step's name for the main one.
    pub name: String,
    /// The page of the table; empty if it is not stored.
    pub address: String,
    /// Its rows.
    pub rows: Option<u64>,
}

/// The page of the steps, which follows a run.
///
/// # Errors
/// A template does not fit, which is a mistake of this crate.
pub fn steps_page(frame: &ViewFrame, of: &StepsPage) -> Result<String, PageError> {
    let main = render("view_steps.html", context! { page => super::serialized(of) })?;
    framed(frame, "Steps", Markup::default(), main, LIVE, &Parts::default())
}

/// A page of rows of a table.
#[derive(Debug, Clone, Default)]
pub struct TablePage {
    /// The rows.
    pub table: TableBlock,
    /// The part next to them.
    pub tools: TableTools,
}

/// The filter of a table, and the way through its pages.
#[derive(Debug, Clone, Default, Serialize)]
pub struct TableTools {
    /// The table's name, `valid.rejects`.
    pub name: String,
    /// The columns that can be filtered by.
    pub columns: Vec<String>,
    /// The column of the filter; empty for any.
    pub column: String,
    /// The operators: name and text.
    pub operators: Vec<(String, String)>,
    /// The operator of the filter.
    pub operator: String,
    /// The value of the filter.
    pub value: String,
    /// The column by which rows are sorted; empty for the key.
    pub sort: String,
    /// True if the largest come first.
    pub descending: bool,
    /// Where these rows are: `rows 101 to 150 of 5,000,000`.
    pub place: String,
    /// The error of the filter; may be empty.
    pub problem: String,
    /// The page before; empty if there is none.
    pub previous: String,
    /// The page after; empty if there is none.
    pub next: String,
    /// The first page.
    pub first: String,
    /// The last page; empty if it is not known.
    pub last: String,
    /// The number of this page, from 1.
    pub page: u64,
}

/// A page of a table.
///
/// # Errors
/// A template does not fit, which is a mistake of this crate.
pub fn table_page(frame: &ViewFrame, of: &TablePage) -> Result<String, PageError> {
    let mut parts = Parts::default();
    let rows = table(&mut parts, &of.table)?;
    let main = render(
        "view_table.html",
        context! { tools => super::serialized(&of.tools), rows => safe(rows) },
    )?;
    framed(frame, &of.tools.name, Markup::default(), main, "", &parts)
}

/// A page of a few small tables: agreement, runs, what differs between two runs.
#[derive(Debug, Clone, Default)]
pub struct TablesPage {
    /// The title.
    pub title: String,
    /// The text above the tables, in Markdown.
    pub text: String,
    /// The tables.
    pub tables: Vec<TableBlock>,
    /// A form to choose two of these; empty for none.
    pub choices: Vec<String>,
    /// The address that reports if the page has changed; empty if the page does not ask.
    pub events: String,
}

/// A page of a few small tables.
///
/// # Errors
/// A template does not fit, which is a mistake of this crate.
pub fn tables_page(frame: &ViewFrame, of: &TablesPage) -> Result<String, PageError> {
    let mut parts = Parts::default();
    let mut tables = Vec::with_capacity(of.tables.len());
    for block in &of.tables {
        tables.push(context! { title => &block.title, body => safe(table(&mut parts, block)?) });
    }
    let main = render(
        "view_tables.html",
        context! {
            text => safe(markdown(&of.text, 1)),
            tables => tables,
            choices => &of.choices,
            events => &of.events,
        },
    )?;
    let script = if of.events.is_empty() { "" } else { LIVE };
    framed(frame, &of.title, Markup::default(), main, script, &parts)
}

/// A page with one message: something is missing, or not ready.
///
/// # Errors
/// A template does not fit, which is a mistake of this crate.
pub fn message_page(
    frame: &ViewFrame,
    title: &str,
    message: &str,
    command: &str,
) -> Result<String, PageError> {
    let main = render("view_message.html", context! { message => message, command => command })?;
    framed(frame, title, Markup::default(), main, "", &Parts::default())
}
