//! Columns that several tables of `regress` have, and the reasons for a number that is missing.

use galeras_causal::{ColumnRef, Estimate, Refusal};
use galeras_operator::small_table::{TableColumn, number, optional_text, text};

/// The reason for a missing number, in words.
#[derive(Clone, Debug)]
pub(super) enum NoNumber {
    /// A number would not be right.
    Refused(String),
    /// The number does not exist.
    NotApplicable(String),
}

/// The numbers of a row.
pub(super) type Answer<T> = Result<T, NoNumber>;

impl NoNumber {
    pub(super) fn reason(&self) -> &str {
        match self {
            Self::Refused(reason) | Self::NotApplicable(reason) => reason,
        }
    }

    pub(super) fn not_applicable(reason: &str) -> Self {
        Self::NotApplicable(reason.to_owned())
    }
}

impl<E: ToString> From<E> for NoNumber {
    fn from(error: E) -> Self {
        Self::Refused(error.to_string())
    }
}

/// An estimate and its confidence interval.
#[derive(Clone, Copy)]
pub(super) struct IntervalEstimate {
    pub(super) estimate: Estimate,
    pub(super) interval: (f64, f64),
}

impl IntervalEstimate {
    pub(super) fn new(estimate: Estimate, alpha: f64) -> Self {
        Self { estimate, interval: estimate.interval(alpha) }
    }
}

/// The value of the column `status`.
pub(super) fn status_of<T>(answer: &Answer<T>) -> &'static str {
    match answer {
        Ok(_) => "ok",
        Err(NoNumber::Refused(_)) => "refused",
        Err(NoNumber::NotApplicable(_)) => "not_applicable",
    }
}

/// The value of the column `reason`.
pub(super) fn reason_of<T>(answer: &Answer<T>) -> Option<&str> {
    answer.as_ref().err().map(NoNumber::reason)
}

pub(super) const fn outcome<Row>(value: fn(&Row) -> &str) -> TableColumn<Row> {
    text("outcome", "the column on which the effect is", value)
}

/// The outcomes that share a row.
pub(super) const fn outcomes<Row>(value: fn(&Row) -> &str) -> TableColumn<Row> {
    let about = "the outcomes, with commas, that are compared in these rows and adjusted for these \
                 covariates";
    text("outcomes", about, value)
}

pub(super) const fn treatment<Row>(value: fn(&Row) -> &str) -> TableColumn<Row> {
    text("treatment", "the arm that is compared", value)
}

pub(super) const fn control<Row>(value: fn(&Row) -> &str) -> TableColumn<Row> {
    text("control", "the arm that it is compared with", value)
}

pub(super) const fn status<Row>(value: fn(&Row) -> &str) -> TableColumn<Row> {
    text("status", "ok, refused or not_applicable", value)
}

pub(super) const fn reason<Row>(value: fn(&Row) -> Option<&str>) -> TableColumn<Row> {
    optional_text("reason", "why there is no number; null if there is one", value)
}

pub(super) const fn note<Row>(value: fn(&Row) -> &str) -> TableColumn<Row> {
    text("note", "the row in words", value)
}

pub(super) const fn verdict<Row>(value: fn(&Row) -> Option<&str>) -> TableColumn<Row> {
    let about = "with adjusted p-values: different, trivial, equivalent, superior, noninferior, \
                 inferior or inconclusive";
    optional_text("verdict", about, value)
}

pub(super) const fn excluded<Row>(value: fn(&Row) -> Option<f64>) -> TableColumn<Row> {
    let about = "effects beyond this, to either side, are excluded at the level alpha";
    number("excluded", about, value)
}

/// A refusal in words: covariates have their names.
pub(super) fn named(refusal: &Refusal, names: &[String]) -> String {
    refusal.describe(|column| match column {
        ColumnRef::Covariate(position) => names.get(position).map(String::as_str),
        _ => None,
    })
}
