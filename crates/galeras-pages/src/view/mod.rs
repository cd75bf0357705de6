//! Pages that a server shows of a study: its steps, tables, rows and runs, and the pages on which
//! people review data points. All of them work without scripts; keys and live updates need one.

mod pages;
mod review;
mod row;

pub use pages::{
    PortLine, StepLine, StepsPage, TablePage, TableTools, TablesPage, message_page, steps_page,
    table_page, tables_page,
};
pub use review::{
    GivenAnswer, RaterLine, ReviewChoice, ReviewPage, ReviewQuestion, ReviewStart, review_page,
    review_start_page,
};
pub use row::{RowParts, RowText, row_page};

use minijinja::Value;

use crate::error::PageError;
use crate::page::{PageFrame, PageLink, page};
use crate::parts::Parts;
use crate::text::Markup;

/// The shared part of the pages of a study.
#[derive(Debug, Clone, Default)]
pub struct ViewFrame {
    /// The name of the workflow.
    pub study: String,
    /// The pages of the study.
    pub links: Vec<PageLink>,
    /// The last part.
    pub footer: String,
}

/// Updates pages that are live.
const LIVE: &str = include_str!("../../assets/live.js");
/// Keys of the page for reviews.
const REVIEW: &str = include_str!("../../assets/review.js");
/// The part that reports lack.
const STYLE: &str = include_str!("../../assets/view.css");

/// A page around its content.
fn framed(
    frame: &ViewFrame,
    title: &str,
    lead: Markup,
    main: Markup,
    script: &str,
    parts: &Parts,
) -> Result<String, PageError> {
    let frame = PageFrame {
        title,
        kicker: &frame.study,
        lead,
        main,
        contents: frame.links.clone(),
        footer: Markup::from_text(&frame.footer),
        script,
        style: STYLE,
        served: true,
    };
    page(frame, parts)
}

/// A part of a page as a value of a template.
fn safe(markup: Markup) -> Value {
    Value::from(markup)
}

/// The page as a value for a template.
fn serialized(of: &impl serde::Serialize) -> Value {
    Value::from(minijinja::value::Serde(of))
}
