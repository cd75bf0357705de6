//! The columns of the tables that `regress` gives.

use arrow::datatypes::DataType::{self, Boolean, Float64, Int64, Utf8};

use super::super::support::cells::{Column, schema};
use crate::operator::{MAIN, Port, SUMMARY};

/// The port of checks on changed data.
pub(super) const REFUTATIONS: &str = "refutations";
/// The port of covariates in both arms.
pub(super) const BALANCE: &str = "balance";
/// The port of propensity scores in both arms.
pub(super) const OVERLAP: &str = "overlap";
/// The port of what an unobserved confounder would have to do.
pub(super) const SENSITIVITY: &str = "sensitivity";
/// The port of effects that change with a column.
pub(super) const MODIFIERS: &str = "modifiers";
/// The port of what follows from the causal graph.
pub(super) const GRAPH: &str = "graph";

const fn text(name: &'static str, about: &'static str) -> Column {
    Column { name, data_type: Utf8, nullable: false, about, unit: None }
}

const fn maybe(name: &'static str, data_type: DataType, about: &'static str) -> Column {
    Column { name, data_type, nullable: true, about, unit: None }
}

const fn count(name: &'static str, about: &'static str, unit: &'static str) -> Column {
    Column { name, data_type: Int64, nullable: false, about, unit: Some(unit) }
}

const OUTCOME: Column = text("outcome", "the column on which the effect is");
const OUTCOMES: Column = text(
    "outcomes",
    "the outcomes, with commas, that are compared in these rows and adjusted for these covariates",
);
const TREATMENT: Column = text("treatment", "the arm that is compared");
const CONTROL: Column = text("control", "the arm that it is compared with");
const STATUS: Column = text("status", "ok, refused or not_applicable");
const REASON: Column = maybe("reason", Utf8, "why there is no number; null if there is one");
const NOTE: Column = text("note", "the row in words");

/// Estimates, one for each outcome, contrast and estimator.
pub(super) const ESTIMATES: &[Column] = &[
    OUTCOME,
    TREATMENT,
    CONTROL,
    text("estimator", "how the effect is estimated"),
    maybe("estimate", Float64, "the effect: treatment minus control"),
    maybe("ci_low", Float64, "lower end of the confidence interval"),
    maybe("ci_high", Float64, "upper end of the confidence interval"),
    maybe("p_value", Float64, "two-sided p-value of no effect"),
    maybe("p_adjusted", Float64, "adjusted over the contrasts and outcomes of the estimator"),
    STATUS,
    REASON,
    text("estimand", "for whom it is averaged: ate, att, atc, ato, late"),
    Column {
        name: "primary",
        data_type: Boolean,
        nullable: false,
        about: "whether this is the primary estimator",
        unit: None,
    },
    maybe("standard_error", Float64, "the standard error of the estimate"),
    maybe("se_kind", Utf8, "how the standard error is computed"),
    maybe("statistic", Float64, "the estimate divided by its standard error"),
    maybe("df", Float64, "degrees of freedom of Student's t; null for the normal distribution"),
    count("n", "complete rows of both arms; the note says which of them were not used", "rows"),
    count("n_treatment", "of them under the treatment", "rows"),
    count("n_control", "of them under control", "rows"),
    Column {
        name: "n_pairs",
        data_type: Int64,
        nullable: true,
        about: "units with rows under both; null without units",
        unit: Some("units"),
    },
    Column {
        name: "n_clusters",
        data_type: Int64,
        nullable: true,
        about: "clusters; null without clusters",
        unit: Some("clusters"),
    },
    count("n_missing", "rows without a value that is needed", "rows"),
    maybe("adjusted_for", Utf8, "the covariates that were adjusted for, with commas"),
    NOTE,
];

/// The primary estimates, in so few columns that they fit a terminal.
pub(super) const SUMMARY_COLUMNS: &[Column] = &[
    OUTCOME,
    TREATMENT,
    maybe("estimate", Float64, "the effect, to four digits"),
    maybe("ci_low", Float64, "lower end of the confidence interval, to four digits"),
    maybe("ci_high", Float64, "upper end of the confidence interval, to four digits"),
    text("p_adj", "the adjusted p-value, to two digits"),
    count("n", "complete rows of both arms; pairs where these are compared", "rows"),
    STATUS,
    CONTROL,
];

/// Refutations, one for each estimate and refuter.
pub(super) const REFUTATION_COLUMNS: &[Column] = &[
    OUTCOME,
    TREATMENT,
    CONTROL,
    text("estimator", "the estimator that was fitted again"),
    text("refuter", "how the data were changed"),
    maybe("estimate", Float64, "the estimate on the data as they are"),
    maybe("new_effect", Float64, "the mean of the estimates on changed data"),
    maybe("std", Float64, "their standard deviation (divisor n - 1)"),
    maybe("p_value", Float64, "2 min(h, 1 - h), h the share of them above the expected value"),
    maybe("as_large", Int64, "of them at least as far from 0 as the estimate"),
    count("simulations", "changed data sets on which the estimator gave a number", "data sets"),
    count("failed", "changed data sets on which it was refused", "data sets"),
    STATUS,
    REASON,
    NOTE,
];

/// Balance of covariates, one row for each contrast and covariate (apart for outcomes that are
/// compared in other rows, or adjusted for other covariates).
pub(super) const BALANCE_COLUMNS: &[Column] = &[
    OUTCOMES,
    TREATMENT,
    CONTROL,
    text("covariate", "the confounder or modifier"),
    STATUS,
    REASON,
    maybe("mean_treatment", Float64, "mean under the treatment"),
    maybe("mean_control", Float64, "mean under control"),
    maybe("smd", Float64, "standardised mean difference"),
    maybe("smd_weighted", Float64, "the same after the weights of the estimand"),
    maybe("variance_ratio", Float64, "variance under the treatment by that under control"),
    maybe("variance_ratio_weighted", Float64, "the same after weights"),
    maybe("ks", Float64, "Kolmogorov-Smirnov distance of the two distributions"),
    maybe("ks_weighted", Float64, "the same after weights"),
    count("n_treatment", "rows under the treatment", "rows"),
    count("n_control", "rows under control", "rows"),
    NOTE,
];

/// Overlap of propensity scores, one row for each contrast.
pub(super) const OVERLAP_COLUMNS: &[Column] = &[
    OUTCOMES,
    TREATMENT,
    CONTROL,
    STATUS,
    REASON,
    maybe("distinct_scores", Int64, "different propensity scores; 1 if they tell nobody apart"),
    maybe("min_treatment", Float64, "smallest score under the treatment"),
    maybe("max_treatment", Float64, "largest score under the treatment"),
    maybe("min_control", Float64, "smallest score under control"),
    maybe("max_control", Float64, "largest score under control"),
    maybe("q01", Float64, "1 % quantile of all scores"),
    maybe("q25", Float64, "first quartile of all scores"),
    maybe("median", Float64, "median of all scores"),
    maybe("q75", Float64, "third quartile of all scores"),
    maybe("q99", Float64, "99 % quantile of all scores"),
    maybe("outside", Int64, "rows outside of the scores that both arms have"),
    maybe("clipped", Int64, "rows whose score is outside of `clip`"),
    maybe("auc", Float64, "how well scores tell the arms apart: 0.5 not at all, 1 without error"),
    maybe("effective_treatment", Float64, "effective sample size under the treatment, weighted"),
    maybe("effective_control", Float64, "effective sample size under control, weighted"),
    NOTE,
];

/// Sensitivity, one row for each outcome, contrast and measure.
pub(super) const SENSITIVITY_COLUMNS: &[Column] = &[
    OUTCOME,
    TREATMENT,
    CONTROL,
    text("analysis", "evalue, robustness, rosenbaum, power, location or omnibus"),
    text("measure", "what the value is"),
    STATUS,
    REASON,
    maybe("value", Float64, "the value"),
    NOTE,
];

/// Effect modification: the slope (bin 0) and the effect in each fifth of a modifier.
pub(super) const MODIFIER_COLUMNS: &[Column] = &[
    OUTCOME,
    TREATMENT,
    CONTROL,
    text("modifier", "the column with which the effect may change"),
    count("bin", "0: change of the effect per standard deviation; 1 and on: a group", "groups"),
    maybe("estimate", Float64, "the slope, or the effect in the group"),
    maybe("ci_low", Float64, "lower end of the confidence interval"),
    maybe("ci_high", Float64, "upper end of the confidence interval"),
    maybe("p_value", Float64, "two-sided p-value of no change with the modifier; slopes only"),
    maybe("q_value", Float64, "Benjamini-Hochberg over the outcomes and modifiers; slopes only"),
    maybe(
        "low",
        Float64,
        "lower edge of the group; values are above it, in the first group also equal",
    ),
    maybe("high", Float64, "upper edge of the group; equal to the lower if it is one value"),
    STATUS,
    REASON,
    maybe("standard_error", Float64, "the standard error of the estimate"),
    count("n", "units, without a unit rows", "units"),
    NOTE,
];

/// What follows from the graph.
pub(super) const GRAPH_COLUMNS: &[Column] = &[
    OUTCOME,
    text(
        "kind",
        "adjustment_set (the one used), minimal_adjustment_set, optimal_adjustment_set, \
         frontdoor_set, instrument, identification or independence",
    ),
    text("variables", "the set, the instrument, or the two that are independent; with commas"),
    text("given", "what is conditioned on, with commas"),
    STATUS,
    REASON,
    maybe("coefficient", Float64, "partial correlation, for an independence"),
    maybe("p_value", Float64, "two-sided p-value of no partial correlation"),
    NOTE,
];

/// Every port.
pub(super) fn ports() -> Vec<Port> {
    let contrast = ["outcome", "treatment", "control"];
    let port = |name: &'static str, columns: &[Column], key: &[&str]| {
        Port::new(name, schema(columns).keyed(key))
    };
    let with = |more: &[&'static str]| [&contrast[..], more].concat();
    vec![
        port(MAIN, ESTIMATES, &with(&["estimator", "estimand"])),
        port(SUMMARY, SUMMARY_COLUMNS, &contrast),
        port(REFUTATIONS, REFUTATION_COLUMNS, &with(&["estimator", "refuter"])),
        port(BALANCE, BALANCE_COLUMNS, &["outcomes", "treatment", "control", "covariate"]),
        port(OVERLAP, OVERLAP_COLUMNS, &["outcomes", "treatment", "control"]),
        port(SENSITIVITY, SENSITIVITY_COLUMNS, &with(&["analysis", "measure"])),
        port(MODIFIERS, MODIFIER_COLUMNS, &with(&["modifier", "bin"])),
        port(GRAPH, GRAPH_COLUMNS, &["outcome", "kind", "variables", "given"]),
    ]
}
