//! Columns that several tables of `regress` have, and the status of a row.

use galeras_causal::{ColumnRef, Refusal};
use galeras_operator::small_table::{TableColumn, optional_text, text};

/// The status of the numbers of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RowStatus {
    Ok,
    /// A number would not be right, and why.
    Refused(String),
    /// The number does not exist, and why.
    NotApplicable(String),
}

impl RowStatus {
    /// `ok`, or `refused` with the error as the reason.
    pub(super) fn of<T, E: ToString>(result: &Result<T, E>) -> Self {
        match result {
            Ok(_) => Self::Ok,
            Err(error) => Self::Refused(error.to_string()),
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Refused(_) => "refused",
            Self::NotApplicable(_) => "not_applicable",
        }
    }

    pub(super) fn reason(&self) -> Option<&str> {
        match self {
            Self::Ok => None,
            Self::Refused(reason) | Self::NotApplicable(reason) => Some(reason),
        }
    }
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

/// A refusal in words: covariates have their names.
pub(super) fn named(refusal: &Refusal, names: &[String]) -> String {
    refusal.describe(|column| match column {
        ColumnRef::Covariate(position) => names.get(position).map(String::as_str),
        _ => None,
    })
}
