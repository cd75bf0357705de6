//! The rows of the ports of `mixed`, and the columns that their tables have.

use galeras_causal::Estimate;
use galeras_operator::small_table::{
    TableColumn, TableRow, count_of, flag, number, optional_count, optional_text, text,
};

#[derive(Default)]
pub(super) struct FixedRow {
    pub(super) outcome: String,
    pub(super) term: String,
    pub(super) level: String,
    pub(super) base: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) estimate: Option<Estimate>,
    pub(super) interval: Option<(f64, f64)>,
    pub(super) n: usize,
    pub(super) note: String,
}

const REASON: &str = "why there is no number; null if there is one";

fn status(reason: &Option<String>) -> &str {
    if reason.is_some() { "refused" } else { "ok" }
}

impl TableRow for FixedRow {
    const COLUMNS: &'static [TableColumn<Self>] = &[
        text("outcome", "the column that is modelled", |row| &row.outcome),
        text("term", "the fixed column, or (intercept)", |row| &row.term),
        text(
            "level",
            "for a column of text, the value that is compared with the base; empty else",
            |row| &row.level,
        ),
        optional_text("base", "the value it is compared with", |row| row.base.as_deref()),
        text("status", "ok or refused", |row| status(&row.reason)),
        optional_text("reason", REASON, |row| row.reason.as_deref()),
        number(
            "estimate",
            "the coefficient, in units of the outcome per unit of the column",
            |row| Some(row.estimate?.value),
        ),
        number("standard_error", "its standard error", |row| Some(row.estimate?.standard_error)),
        number("ci_low", "lower end of its confidence interval", |row| Some(row.interval?.0)),
        number("ci_high", "upper end", |row| Some(row.interval?.1)),
        number("df", "Satterthwaite's degrees of freedom", |row| Some(row.estimate?.degrees)),
        number("t", "the estimate divided by its standard error", |row| {
            Some(row.estimate?.statistic())
        }),
        number("p_value", "two-sided p-value of a coefficient of zero", |row| {
            Some(row.estimate?.p_value())
        }),
        count_of("n", "rows that were used", "rows", |row| row.n),
        text("note", "the row in words", |row| &row.note),
    ];
}

/// A variance, or a covariance of two effects of a group.
#[derive(Default)]
pub(super) struct ComponentRow {
    pub(super) outcome: String,
    pub(super) group: String,
    pub(super) effect: String,
    pub(super) other: String,
    pub(super) reason: Option<String>,
    pub(super) groups: Option<usize>,
    pub(super) variance: Option<f64>,
    pub(super) covariance: Option<f64>,
    pub(super) correlation: Option<f64>,
    pub(super) share: Option<f64>,
    pub(super) icc: Option<f64>,
    pub(super) note: String,
}

impl TableRow for ComponentRow {
    const COLUMNS: &'static [TableColumn<Self>] = &[
        text("outcome", "the column that is modelled", |row| &row.outcome),
        text("group", "the grouping column, columns with x between them, or (residual)", |row| {
            &row.group
        }),
        text(
            "effect",
            "(intercept), or the column whose slope differs; empty for the residual",
            |row| &row.effect,
        ),
        text(
            "other",
            "for a covariance, the effect that it is with; empty for a variance",
            |row| &row.other,
        ),
        text("status", "ok or refused", |row| status(&row.reason)),
        optional_text("reason", REASON, |row| row.reason.as_deref()),
        optional_count("groups", "how many groups there are", Some("groups"), |row| row.groups),
        number("variance", "the variance, in squared units of the outcome", |row| row.variance),
        number("sd", "its square root", |row| row.variance.map(f64::sqrt)),
        number("covariance", "the covariance of the two effects", |row| row.covariance),
        number("correlation", "their correlation", |row| row.correlation),
        number(
            "share",
            "the variance as a share of the sum of all; null where there are slopes",
            |row| row.share,
        ),
        number(
            "icc",
            "the correlation of two rows that share this group, those it lies in, and no other",
            |row| row.icc,
        ),
        text("note", "the row in words", |row| &row.note),
    ];
}

#[derive(Default)]
pub(super) struct FitRow {
    pub(super) outcome: String,
    pub(super) reason: Option<String>,
    pub(super) method: &'static str,
    pub(super) n: usize,
    pub(super) n_missing: usize,
    pub(super) groups: Option<String>,
    pub(super) parameters: Option<usize>,
    pub(super) criterion: Option<f64>,
    pub(super) log_likelihood: Option<f64>,
    pub(super) aic: Option<f64>,
    pub(super) bic: Option<f64>,
    pub(super) converged: bool,
    pub(super) singular: bool,
    pub(super) note: String,
}

impl TableRow for FitRow {
    const COLUMNS: &'static [TableColumn<Self>] = &[
        text("outcome", "the column that is modelled", |row| &row.outcome),
        text("status", "ok or refused", |row| status(&row.reason)),
        optional_text("reason", REASON, |row| row.reason.as_deref()),
        text("method", "REML or ML", |row| row.method),
        count_of("n", "rows that were used", "rows", |row| row.n),
        count_of("n_missing", "rows without a value", "rows", |row| row.n_missing),
        optional_text("groups", "how many groups each grouping has", |row| row.groups.as_deref()),
        optional_count("parameters", "coefficients, variances and covariances", None, |row| {
            row.parameters
        }),
        number(
            "criterion",
            "the REML criterion, or for ML the deviance: -2 times the log-likelihood",
            |row| row.criterion,
        ),
        number("log_likelihood", "the (restricted) log-likelihood", |row| row.log_likelihood),
        number("aic", "Akaike's criterion", |row| row.aic),
        number("bic", "Schwarz's criterion", |row| row.bic),
        flag("converged", "whether the search ended in a minimum", |row| row.converged),
        flag("singular", "whether a variance is zero, or a correlation 1 or -1", |row| {
            row.singular
        }),
        text("note", "the row in words", |row| &row.note),
    ];
}
