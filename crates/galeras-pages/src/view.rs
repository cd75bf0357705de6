//! Pages that a server shows of a study: its steps, tables, rows and runs, and the pages on which
//! people review data points. All of them work without scripts; keys and live updates need one.
//! The only error is a template that does not fit, which is a mistake of this crate.

use minijinja::value::Serde;
use minijinja::{Value, context};
use serde::Serialize;

use crate::code::{code, comparison};
use crate::markdown::markdown;
use crate::model::{CodeLanguage, Labelled, TableBlock};
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

/// The steps with their states.
#[derive(Debug, Clone, Default, Serialize)]
pub struct StepsPage {
    /// The state of the run, such as `The last run ended …`.
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
pub fn steps_page(frame: &ViewFrame, of: &StepsPage) -> Result<String, PageError> {
    let main = render("view_steps.html", context! { page => Value::from(Serde(of)) })?;
    framed(frame, "Steps", main, LIVE, &Parts::default())
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
}

/// A page of a table.
pub fn table_page(frame: &ViewFrame, of: &TablePage) -> Result<String, PageError> {
    let mut parts = Parts::default();
    let rows = table(&mut parts, &of.table)?;
    let main = render(
        "view_table.html",
        context! { tools => Value::from(Serde(&of.tools)), rows => rows },
    )?;
    framed(frame, &of.tools.name, main, "", &parts)
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
pub fn tables_page(frame: &ViewFrame, of: &TablesPage) -> Result<String, PageError> {
    let mut parts = Parts::default();
    let mut tables = Vec::with_capacity(of.tables.len());
    for block in &of.tables {
        tables.push(context! { title => &block.title, body => table(&mut parts, block)? });
    }
    let main = render(
        "view_tables.html",
        context! {
            text => markdown(&of.text, 1),
            tables => tables,
            choices => &of.choices,
            events => &of.events,
        },
    )?;
    let script = if of.events.is_empty() { "" } else { LIVE };
    framed(frame, &of.title, main, script, &parts)
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

/// The row as a part of a page.
fn row_parts(parts: &mut Parts, row: &RowParts) -> Result<Markup, PageError> {
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

/// The reviews of a study: where a rater begins.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ReviewStart {
    /// The steps that ask.
    pub choices: Vec<ReviewChoice>,
}

/// A step that asks, and how far its raters are.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ReviewChoice {
    /// The step.
    pub step: String,
    /// The questions: name and text.
    pub questions: Vec<(String, String)>,
    /// The reason why rating is closed; empty if it is open.
    pub problem: String,
    /// The data points.
    pub points: u64,
    /// The answers that a rater has to give.
    pub answers: u64,
    /// Where the ratings are.
    pub folder: String,
    /// The raters who have begun.
    pub raters: Vec<RaterLine>,
    /// The page of the agreement.
    pub agreement: String,
    /// The page that decides what raters differ on.
    pub decide: String,
}

/// A rater and how far they are.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RaterLine {
    /// The name.
    pub name: String,
    /// The address to continue at; empty if their file is edited by hand.
    pub address: String,
    /// The answers they gave.
    pub done: u64,
}

/// The page on which a rater begins.
pub fn review_start_page(frame: &ViewFrame, of: &ReviewStart) -> Result<String, PageError> {
    let main = render("view_review_start.html", context! { page => Value::from(Serde(of)) })?;
    framed(frame, "Review", main, "", &Parts::default())
}

/// A data point and its questions.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ReviewPage {
    /// The step that asks.
    pub step: String,
    /// The rater.
    pub rater: String,
    /// True if this decides differences between raters.
    pub deciding: bool,
    /// The data point.
    pub id: String,
    /// Its place among the others, from 1.
    pub place: u64,
    /// Their number.
    pub points: u64,
    /// Answers given, and to give.
    pub done: u64,
    /// All answers to give.
    pub answers: u64,
    /// The questions.
    pub questions: Vec<ReviewQuestion>,
    /// The point before; empty if there is none.
    pub previous: String,
    /// The point after; empty if there is none.
    pub next: String,
    /// Where answers are posted.
    pub action: String,
    /// Where the last answer is taken back.
    pub undo: String,
    /// The page of reviews.
    pub leave: String,
    /// The texts of the row.
    #[serde(skip)]
    pub row: RowParts,
}

/// A question and its answer.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ReviewQuestion {
    /// Its name.
    pub name: String,
    /// The question.
    pub text: String,
    /// The answer: `yes`, `no`, `unsure`; empty if there is none.
    pub answer: String,
    /// The note.
    pub note: String,
    /// True if keys answer this one.
    pub current: bool,
    /// The answers of the raters, for a decision.
    pub given: Vec<GivenAnswer>,
}

/// The answer of one rater.
#[derive(Debug, Clone, Default, Serialize)]
pub struct GivenAnswer {
    /// The rater.
    pub rater: String,
    /// The answer.
    pub answer: String,
    /// The note.
    pub note: String,
}

/// The page of a data point to judge.
pub fn review_page(frame: &ViewFrame, of: &ReviewPage) -> Result<String, PageError> {
    let mut parts = Parts::default();
    let row = row_parts(&mut parts, &of.row)?;
    let main = render("view_review.html", context! { page => Value::from(Serde(of)), row => row })?;
    let title = if of.deciding { "Decide" } else { "Review" };
    framed(frame, title, main, REVIEW, &parts)
}
