//! Columns that several tables have, and the reasons for a number that is missing.

use galeras_causal::{ColumnRef, Estimate, Refusal};
use galeras_operator::small_table::{TableColumn, number, optional_text, text};

/// The reason for a missing number, in words.
#[derive(Clone, Debug)]
pub(crate) enum NoNumber {
    /// A number would not be right.
    Refused(String),
    /// The number does not exist.
    NotApplicable(String),
}

/// The numbers of a row.
pub(crate) type Answer<T> = Result<T, NoNumber>;

impl NoNumber {
    pub(crate) fn reason(&self) -> &str {
        match self {
            Self::Refused(reason) | Self::NotApplicable(reason) => reason,
        }
    }

    pub(crate) fn not_applicable(reason: &str) -> Self {
        Self::NotApplicable(reason.to_owned())
    }
}

impl<E: ToString> From<E> for NoNumber {
    fn from(error: E) -> Self {
        Self::Refused(error.to_string())
    }
}

/// An estimate and its confidence interval.
pub(crate) struct IntervalEstimate {
    pub(crate) estimate: Estimate,
    pub(crate) interval: (f64, f64),
}

impl IntervalEstimate {
    pub(crate) fn new(estimate: Estimate, alpha: f64) -> Self {
        Self { estimate, interval: estimate.interval(alpha) }
    }
}

/// The numbers of a row, if there are any.
pub(crate) fn found<T>(answer: &Answer<T>) -> Option<&T> {
    answer.as_ref().ok()
}

/// The value of the column `status`.
pub(crate) fn status_of<T>(answer: &Answer<T>) -> &'static str {
    match answer {
        Ok(_) => "ok",
        Err(NoNumber::Refused(_)) => "refused",
        Err(NoNumber::NotApplicable(_)) => "not_applicable",
    }
}

/// The value of the column `reason`.
pub(crate) fn reason_of<T>(answer: &Answer<T>) -> Option<&str> {
    answer.as_ref().err().map(NoNumber::reason)
}

pub(crate) const fn outcome<Row>(value: fn(&Row) -> &str) -> TableColumn<Row> {
    text("outcome", "the column on which the effect is", value)
}

/// The outcomes that share a row.
pub(crate) const fn outcomes<Row>(value: fn(&Row) -> &str) -> TableColumn<Row> {
    let about = "the outcomes, with commas, that are compared in these rows and adjusted for these \
                 covariates";
    text("outcomes", about, value)
}

pub(crate) const fn treatment<Row>(value: fn(&Row) -> &str) -> TableColumn<Row> {
    text("treatment", "the arm that is compared", value)
}

pub(crate) const fn control<Row>(value: fn(&Row) -> &str) -> TableColumn<Row> {
    text("control", "the arm that it is compared with", value)
}

pub(crate) const fn status<Row>(value: fn(&Row) -> &str) -> TableColumn<Row> {
    text("status", "ok, refused or not_applicable", value)
}

pub(crate) const fn reason<Row>(value: fn(&Row) -> Option<&str>) -> TableColumn<Row> {
    optional_text("reason", "why there is no number; null if there is one", value)
}

pub(crate) const fn note<Row>(value: fn(&Row) -> &str) -> TableColumn<Row> {
    text("note", "the row in words", value)
}

pub(crate) const fn verdict<Row>(value: fn(&Row) -> Option<&str>) -> TableColumn<Row> {
    let about = "with adjusted p-values: different, trivial, equivalent, superior, noninferior, \
                 inferior or inconclusive";
    optional_text("verdict", about, value)
}

pub(crate) const fn excluded<Row>(value: fn(&Row) -> Option<f64>) -> TableColumn<Row> {
    let about = "effects beyond this, to either side, are excluded at the level alpha";
    number("excluded", about, value)
}

/// A refusal in words: covariates have their names.
pub(crate) fn named(refusal: &Refusal, names: &[String]) -> String {
    refusal.describe(|column| match column {
        ColumnRef::Covariate(position) => names.get(position).map(String::as_str),
        _ => None,
    })
}
