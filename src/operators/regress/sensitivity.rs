//! Sensitivity of one estimate: the rows of the port `sensitivity`.

use super::super::prose::{four_digits, thousands};
use super::super::small_table::{TableColumn, TableRow};
use super::args::Args;
use super::comparison::{Comparison, Contrast, RowSet};
use super::estimate::{EffectEstimate, FittedPropensity, UnitPairs};
use super::shared_columns::{self as columns, RowStatus};
use galeras_causal::{
    Covariance::Classic, Estimate, Refusal, SignedRanks, adjusted, difference_in_means,
    evalue_difference, location, minimum_detectable, paired_gain, pooled_deviation, relative,
    robustness,
};

/// Hidden bias under which the signed-rank test is reported.
const GAMMAS: [f64; 5] = [1.0, 1.25, 1.5, 2.0, 3.0];
/// The power of the minimum detectable effect.
const POWER: f64 = 0.8;
/// Why nothing is computed that takes units as independent.
pub(super) const CLUSTERED: &str =
    "units of a cluster depend on each other, and it would take them as independent";

/// A measure of how sensitive an estimate is.
pub(super) struct SensitivityRow {
    outcome: String,
    contrast: Contrast,
    analysis: &'static str,
    measure: String,
    value: Option<f64>,
    status: RowStatus,
    note: String,
}

impl TableRow for SensitivityRow {
    const COLUMNS: &'static [TableColumn<Self>] = &[
        columns::outcome(|row| &row.outcome),
        columns::treatment(|row| &row.contrast.treatment),
        columns::control(|row| &row.contrast.control),
        TableColumn::text(
            "analysis",
            "evalue, robustness, rosenbaum, power, location or omnibus",
            |row| row.analysis,
        ),
        TableColumn::text("measure", "what the value is", |row| &row.measure),
        columns::status(|row| row.status.name()),
        columns::reason(|row| row.status.reason()),
        TableColumn::number("value", "the value", |row| row.value),
        columns::note(|row| &row.note),
    ];
}

impl SensitivityRow {
    /// The row of a measure; a refused one gets a note of its own.
    pub(super) fn new(
        outcome: &str,
        contrast: Contrast,
        analysis: &'static str,
        measure: &str,
        value: Result<f64, String>,
        note: String,
    ) -> Self {
        Self {
            outcome: outcome.into(),
            contrast,
            analysis,
            measure: measure.into(),
            status: RowStatus::of(&value),
            note: match &value {
                Ok(_) => note,
                Err(reason) => format!("Not computed: {reason}."),
            },
            value: value.ok(),
        }
    }
}

/// Collects the rows of one comparison.
struct SensitivityMeasures<'a> {
    set: &'a RowSet,
    outcome: &'a str,
    rows: Vec<SensitivityRow>,
}

impl SensitivityMeasures<'_> {
    fn add(
        &mut self,
        analysis: &'static str,
        measure: &str,
        value: Result<f64, String>,
        note: String,
    ) {
        let contrast = self.set.contrast.clone();
        let row = SensitivityRow::new(self.outcome, contrast, analysis, measure, value, note);
        self.rows.push(row);
    }

    fn refused(&mut self, analysis: &'static str, measure: &str, reason: impl ToString) {
        self.add(analysis, measure, Err(reason.to_string()), String::new());
    }
}

/// The rows of the port `sensitivity` of one comparison, whose primary estimate is `primary`.
pub(super) fn sensitivity_rows(
    args: &Args,
    set: &RowSet,
    comparison: &Comparison,
    primary: Result<&EffectEstimate, &str>,
    score: Option<&FittedPropensity>,
) -> Vec<SensitivityRow> {
    let mut measures = SensitivityMeasures { set, outcome: &comparison.outcome, rows: Vec::new() };
    match primary {
        Err(reason) => measures.refused("evalue", "evalue", reason),
        Ok(effect) => {
            evalue(&mut measures, set, comparison, &effect.estimate);
            power(args, &mut measures, set, comparison, effect);
        }
    }
    if comparison.refused.is_none() {
        regression_bias(args, &mut measures, set, comparison, score);
        if let Some(units) = &set.units {
            let pairs = UnitPairs::of(&set.treated, &comparison.values, units);
            if pairs.rows.len() >= 2 {
                let clustered = set.clusters.is_some();
                if clustered {
                    measures.refused("rosenbaum", "gamma_star", CLUSTERED);
                } else {
                    hidden_bias(args, &mut measures, &pairs);
                }
                robust_location(&mut measures, &pairs, clustered);
            }
        }
    }
    measures.rows
}

fn evalue(
    measures: &mut SensitivityMeasures<'_>,
    set: &RowSet,
    comparison: &Comparison,
    estimate: &Estimate,
) {
    let arm = |wanted: bool| -> Vec<f64> {
        let rows = comparison.values.iter().zip(&set.treated);
        rows.filter(|(_, treated)| **treated == wanted).map(|(value, _)| *value).collect()
    };
    let result = pooled_deviation(&arm(true), &arm(false))
        .and_then(|sd| Ok((sd, evalue_difference(estimate.value, estimate.standard_error, sd)?)));
    let (deviation, evalue) = match result {
        Ok(result) => result,
        Err(reason) => return measures.refused("evalue", "evalue", reason),
    };
    let d = estimate.value / deviation;
    measures.add(
        "evalue",
        "standardised_effect",
        Ok(d),
        format!("The effect is {} standard deviations of the outcome.", four_digits(d)),
    );
    measures.add(
        "evalue",
        "risk_ratio",
        Ok(evalue.ratio),
        format!("As an approximate risk ratio: {}.", four_digits(evalue.ratio)),
    );
    if let Some((low, high)) = evalue.interval {
        let note = |end: &str| format!("The {end} end of its 95 % interval.");
        measures.add("evalue", "risk_ratio_low", Ok(low), note("lower"));
        measures.add("evalue", "risk_ratio_high", Ok(high), note("upper"));
    }
    measures.add(
        "evalue",
        "evalue",
        Ok(evalue.point),
        format!(
            "To explain the effect away, an unobserved confounder would have to be associated \
             with both treatment and outcome by a risk ratio of {} each (VanderWeele and Ding \
             2017).",
            four_digits(evalue.point)
        ),
    );
    if let Some(limit) = evalue.limit {
        let note = format!("To move its 95 % interval to no effect, {} each.", four_digits(limit));
        measures.add("evalue", "evalue_ci", Ok(limit), note);
    }
}

fn power(
    args: &Args,
    measures: &mut SensitivityMeasures<'_>,
    set: &RowSet,
    comparison: &Comparison,
    effect: &EffectEstimate,
) {
    let error = effect.estimate.standard_error;
    match minimum_detectable(error, args.alpha, POWER) {
        Ok(least) => {
            let note = format!(
                "With this standard error an effect of {} is found with 80 % power at the {} \
                 level.",
                four_digits(least),
                args.alpha
            );
            measures.add("power", "minimum_detectable_effect", Ok(least), note);
        }
        Err(reason) => measures.refused("power", "minimum_detectable_effect", reason),
    }
    // Welch's standard error knows no clusters, so that there is nothing to compare with.
    if effect.pairs.is_none() || set.clusters.is_some() {
        return;
    }
    let gain = difference_in_means(&set.treated, &comparison.values)
        .and_then(|means| paired_gain(error, means.estimate.standard_error, args.alpha, POWER));
    if let Ok(gain) = gain {
        let note = format!("If pairs were ignored, only one of {}.", four_digits(gain.unpaired));
        measures.add("power", "minimum_detectable_unpaired", Ok(gain.unpaired), note);
        let note = format!(
            "Without pairs, {} times as many data points would be needed.",
            four_digits(gain.variance_ratio)
        );
        measures.add("power", "variance_ratio_unpaired", Ok(gain.variance_ratio), note);
    }
}

/// Cinelli and Hazlett's robustness of the linear regression with the covariates.
fn regression_bias(
    args: &Args,
    measures: &mut SensitivityMeasures<'_>,
    set: &RowSet,
    comparison: &Comparison,
    score: Option<&FittedPropensity>,
) {
    if set.names.is_empty() {
        return;
    }
    if let Some(reason) = set.adjusting_refused() {
        return measures.refused("robustness", "robustness_value", reason);
    }
    if let Some(Err(reason @ Refusal::Separated)) = score {
        return measures.refused("robustness", "robustness_value", reason);
    }
    let covariates: Vec<&[f64]> = set.covariates.iter().map(Vec::as_slice).collect();
    let values = &comparison.values;
    let result = adjusted(&set.treated, values, &covariates, Classic, None).and_then(|fit| {
        let estimate = fit.estimate;
        robustness(estimate.statistic(), estimate.degrees, 1.0, args.alpha)
    });
    let robustness = match result {
        Ok(robustness) => robustness,
        Err(reason) => {
            let reason = columns::named(&reason, &set.names);
            return measures.refused("robustness", "robustness_value", reason);
        }
    };
    let percent = |share: f64| four_digits(100.0 * share);
    let alpha = args.alpha;
    let assumed = if set.correlated().is_some() {
        " (by the classic standard error, which takes rows as independent)"
    } else {
        " (by the classic standard error)"
    };
    for (measure, value, note) in [
        (
            "partial_r2",
            robustness.partial_r2,
            format!(
                "In a linear regression the treatment explains {} % of what the covariates leave \
                 of the outcome.",
                percent(robustness.partial_r2)
            ),
        ),
        ("partial_f2", robustness.partial_f2, "Cohen's partial f squared.".to_string()),
        (
            "robustness_value",
            robustness.value,
            format!(
                "A confounder that explains {} % of what is left of both treatment and outcome \
                 would bring the estimate to zero (Cinelli and Hazlett 2020).",
                percent(robustness.value)
            ),
        ),
        (
            "robustness_value_alpha",
            robustness.value_alpha,
            if robustness.value_alpha > 0.0 {
                let percent = percent(robustness.value_alpha);
                format!(
                    "One that explains {percent} % of both would make it insignificant at the \
                     {alpha} level{assumed}."
                )
            } else {
                format!("It is insignificant at the {alpha} level without one{assumed}.")
            },
        ),
    ] {
        measures.add("robustness", measure, Ok(value), note);
    }
}

/// Rosenbaum's bounds of the signed-rank test.
fn hidden_bias(args: &Args, measures: &mut SensitivityMeasures<'_>, pairs: &UnitPairs) {
    let ranks = match SignedRanks::new(&pairs.differences()) {
        Ok(ranks) => ranks,
        Err(reason) => return measures.refused("rosenbaum", "gamma_star", reason),
    };
    match ranks.gamma_star(args.alpha) {
        Ok(gamma) => {
            let significant = ranks.p_upper(1.0).is_ok_and(|p| p <= args.alpha);
            let note = if significant {
                format!(
                    "The one-sided signed-rank test stays significant if hidden bias changes the \
                     odds of treatment within a pair by a factor of up to {} (Rosenbaum 2002).",
                    four_digits(gamma)
                )
            } else {
                "The one-sided signed-rank test is not significant without any hidden bias.".into()
            };
            measures.add("rosenbaum", "gamma_star", Ok(gamma), note);
        }
        Err(reason) => measures.refused("rosenbaum", "gamma_star", reason),
    }
    for gamma in GAMMAS {
        if let Ok(p) = ranks.p_upper(gamma) {
            let note =
                format!("With a bias of {gamma} the one-sided p is at most {}.", four_digits(p));
            measures.add("rosenbaum", &format!("p_upper_{gamma}"), Ok(p), note);
        }
    }
}

fn robust_location(measures: &mut SensitivityMeasures<'_>, pairs: &UnitPairs, clustered: bool) {
    let n = thousands(pairs.rows.len());
    let location = match location(&pairs.differences()) {
        Ok(location) => location,
        Err(reason) => return measures.refused("location", "median", reason),
    };
    let values = [
        ("median", Some(location.median), "Median paired difference"),
        ("hodges_lehmann", Some(location.hodges_lehmann), "Hodges-Lehmann estimate of the shift"),
        ("trimmed_mean", Some(location.trimmed_mean), "Mean difference without 10 % at each end"),
        ("wilcoxon_w", Some(location.wilcoxon_statistic), "Wilcoxon's signed-rank statistic"),
        ("wilcoxon_z", Some(location.wilcoxon_z), "Its normal approximation"),
        ("wilcoxon_p", Some(location.wilcoxon_p), "Its two-sided p-value"),
        ("sign_p", Some(location.sign_p), "Two-sided p-value of the sign test"),
        ("positive", Some(location.positive as f64), "Pairs with a positive difference"),
        ("negative", Some(location.negative as f64), "Pairs with a negative difference"),
        ("zero", Some(location.zero as f64), "Pairs without a difference"),
        ("skewness", location.skewness, "Skewness of the differences"),
        ("excess_kurtosis", location.excess_kurtosis, "Excess kurtosis of the differences"),
    ];
    for (measure, value, words) in values {
        if clustered && ["wilcoxon_z", "wilcoxon_p", "sign_p"].contains(&measure) {
            measures.refused("location", measure, CLUSTERED);
        } else if let Some(value) = value {
            let shown = if value.fract() == 0.0 { format!("{value}") } else { four_digits(value) };
            let note = format!("{words}, of {n} pairs: {shown}.");
            measures.add("location", measure, Ok(value), note);
        }
    }
    if let Ok(relative) = relative(&pairs.treatment, &pairs.control) {
        let ratio = relative.ratio_of_means;
        let note = format!(
            "The mean under the treatment is {} times that of control.",
            four_digits(ratio)
        );
        measures.add("location", "ratio_of_means", Ok(ratio), note);
        let se = relative.log_ratio_standard_error;
        let note = "Standard error of the logarithm of that ratio, by the delta method.";
        if clustered {
            measures.refused("location", "log_ratio_se", CLUSTERED);
        } else {
            measures.add("location", "log_ratio_se", Ok(se), note.into());
        }
        if let Some(mean) = relative.mean_log1p_difference {
            let note = "Mean difference of the logarithms of one plus the outcome.";
            measures.add("location", "mean_diff_log1p", Ok(mean), note.into());
        }
    }
}
