//! The pages on which people judge data points, one at a time.

use minijinja::context;
use serde::Serialize;

use super::row::{RowParts, row_parts};
use super::{REVIEW, ViewFrame, framed, safe};
use crate::error::PageError;
use crate::parts::Parts;
use crate::templates::render;
use crate::text::Markup;

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
///
/// # Errors
/// A template does not fit, which is a mistake of this crate.
pub fn review_start_page(frame: &ViewFrame, of: &ReviewStart) -> Result<String, PageError> {
    let main = render("view_review_start.html", context! { page => super::serialized(of) })?;
    framed(frame, "Review", Markup::default(), main, "", &Parts::default())
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
///
/// # Errors
/// A template does not fit, which is a mistake of this crate.
pub fn review_page(frame: &ViewFrame, of: &ReviewPage) -> Result<String, PageError> {
    let mut parts = Parts::default();
    let row = row_parts(&mut parts, &of.row)?;
    let main =
        render("view_review.html", context! { page => super::serialized(of), row => safe(row) })?;
    let title = if of.deciding { "Decide" } else { "Review" };
    framed(frame, title, Markup::default(), main, REVIEW, &parts)
}
