//! Pages that a server shows of a study: its steps, tables, rows and runs, and the pages on which
//! people review data points. All of them work without scripts; keys and live updates need one.
//! The only error is a template that does not fit, which is a mistake of this crate.

use minijinja::value::Serde;
use minijinja::{Value, context};
use serde_json::Value as Json;

use crate::code::{code, comparison};
use crate::figure::figure;
use crate::markdown::markdown;
use crate::model::{CodeLanguage, FigureBlock, Labelled, TableBlock};
use crate::page::{PageError, PageFrame, PageLink, page};
use crate::parts::Parts;
use crate::table::table;
use crate::templates::render;
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
const LIVE: &str = include_str!("../assets/live.js");
/// Keys of the page for reviews.
const REVIEW: &str = include_str!("../assets/review.js");
/// The part that reports lack.
const STYLE: &str = include_str!("../assets/view.css");

/// A page around its content.
fn framed(
    frame: &ViewFrame,
    title: &str,
    main: Markup,
    script: &str,
    parts: &Parts,
) -> Result<String, PageError> {
    let frame = PageFrame {
        title,
        kicker: &frame.study,
        main,
        contents: frame.links.clone(),
        footer: Markup::from_text(&frame.footer),
        script,
        style: STYLE,
        served: true,
        ..PageFrame::default()
    };
    page(frame, parts)
}

/// The page of the steps, which follows a run. `page` fills the template `view_steps.html`.
pub fn steps_page(frame: &ViewFrame, page: &Json) -> Result<String, PageError> {
    let main = render("view_steps.html", context! { page => Serde(page) })?;
    framed(frame, "Steps", main, LIVE, &Parts::default())
}

/// A page of the table called `name`. `tools`, its filter and the way through its pages, fill the
/// template `view_table.html`.
pub fn table_page(
    frame: &ViewFrame,
    name: &str,
    rows: &TableBlock,
    tools: &Json,
) -> Result<String, PageError> {
    let mut parts = Parts::default();
    let rows = table(&mut parts, rows)?;
    let main = render("view_table.html", context! { tools => Serde(tools), rows => rows })?;
    framed(frame, name, main, "", &parts)
}

/// A page of a few small tables: agreement, runs, what differs between two runs. Above them are
/// `text` in Markdown and, unless `choices` are empty, a form to choose two of these. `events` is the
/// address that reports if the page has changed; empty if the page does not ask.
pub fn tables_page(
    frame: &ViewFrame,
    title: &str,
    text: &str,
    tables: &[TableBlock],
    choices: &[String],
    events: &str,
) -> Result<String, PageError> {
    let mut parts = Parts::default();
    let mut shown = Vec::with_capacity(tables.len());
    for block in tables {
        shown.push(context! { title => &block.title, body => table(&mut parts, block)? });
    }
    let text = markdown(text, 1);
    let main = render(
        "view_tables.html",
        context! { text => text, tables => shown, choices => Serde(choices), events => events },
    )?;
    let script = if events.is_empty() { "" } else { LIVE };
    framed(frame, title, main, script, &parts)
}

/// A page with one message: something is missing, or not ready.
pub fn message_page(
    frame: &ViewFrame,
    title: &str,
    message: &str,
    command: &str,
) -> Result<String, PageError> {
    let main = render("view_message.html", context! { message => message, command => command })?;
    framed(frame, title, main, "", &Parts::default())
}

/// The texts of a row.
#[derive(Debug, Clone, Default)]
pub struct RowParts {
    /// The row's name.
    pub title: String,
    /// Links to where it comes from. Only to `http` and `https`, or within the server.
    pub links: Vec<PageLink>,
    /// Short values by column.
    pub facts: Vec<Labelled>,
    /// Pictures.
    pub pictures: Vec<FigureBlock>,
    /// Long texts.
    pub texts: Vec<RowText>,
    /// The tables that have the row, and the rows it was made from.
    pub trace: Vec<PageLink>,
}

/// A text, or two side by side.
#[derive(Debug, Clone, Default)]
pub struct RowText {
    /// The text.
    pub text: Labelled,
    /// The text to compare it with.
    pub other: Option<Labelled>,
    /// How it is highlighted.
    pub language: CodeLanguage,
}

/// A link whose address is a page of this server, or a web page.
fn link(of: &PageLink) -> Option<Value> {
    let address = of.address.as_str();
    let outside = address.starts_with("https://") || address.starts_with("http://");
    let inside = address.starts_with('/') && !address.starts_with("//");
    (outside || inside)
        .then(|| context! { address => address, text => &of.text, outside => outside })
}

fn row_parts(parts: &mut Parts, row: &RowParts) -> Result<Markup, PageError> {
    let mut pictures: Vec<Value> = Vec::new();
    for picture in &row.pictures {
        pictures.push(figure(parts, picture)?.into());
    }
    let mut texts: Vec<Value> = Vec::new();
    for RowText { text, other, language } in &row.texts {
        let html = match other {
            Some(other) => comparison(parts, text, other, *language)?,
            None => code(parts, text, *language)?,
        };
        texts.push(html.into());
    }
    render(
        "view_row.html",
        context! {
            links => row.links.iter().filter_map(link).collect::<Value>(),
            facts => Serde(&row.facts),
            chars => parts.limits.cell_chars,
            pictures => pictures,
            texts => texts,
            trace => row.trace.iter().filter_map(link).collect::<Value>(),
        },
    )
}

/// The page of a row.
pub fn row_page(frame: &ViewFrame, row: &RowParts) -> Result<String, PageError> {
    let mut parts = Parts::default();
    let main = row_parts(&mut parts, row)?;
    framed(frame, &row.title, main, "", &parts)
}

/// The page on which a rater begins: the steps that ask, for the template
/// `view_review_start.html`.
pub fn review_start_page(frame: &ViewFrame, choices: &[Json]) -> Result<String, PageError> {
    let main = render("view_review_start.html", context! { choices => Serde(choices) })?;
    framed(frame, "Review", main, "", &Parts::default())
}

/// The page of a data point to judge. `page` has its questions and the way to other points, for the
/// template `view_review.html`.
pub fn review_page(
    frame: &ViewFrame,
    title: &str,
    row: &RowParts,
    page: &Json,
) -> Result<String, PageError> {
    let mut parts = Parts::default();
    let row = row_parts(&mut parts, row)?;
    let main = render("view_review.html", context! { page => Serde(page), row => row })?;
    framed(frame, title, main, REVIEW, &parts)
}
