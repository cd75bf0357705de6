//! Sensitivity of one estimate: the rows of the port `sensitivity`, and those of pairs and of power.

use super::analysis::SetContext;
use super::comparison::{Comparison, Contrast};
use super::estimators::pairs::UnitPairs;
use super::estimators::{EffectEstimate, OLS};
use super::evalue::evalue;
use super::robustness::of_secondary_ols;
use crate::shared_columns::{self as columns, Answer, NoNumber, found, reason_of, status_of};
use crate::words::ci;
use galeras_base::prose::{by_interval, four_digits, thousands};
use galeras_causal::{
    CorrelationMethod, SignedRanks, correlation, difference_in_means, location, minimum_detectable,
    paired_gain, relative,
};
use galeras_operator::small_table::{TableColumn, TableRow, number, text};

/// Hidden bias under which the signed-rank test is reported.
const GAMMAS: [f64; 5] = [1.0, 1.25, 1.5, 2.0, 3.0];
/// The power of the minimum detectable effect.
const POWER: f64 = 0.8;

pub(super) const CLUSTERED: &str =
    "units of a cluster depend on each other, and it would take them as independent";

pub(super) struct SensitivityRow {
    outcome: String,
    contrast: Contrast,
    analysis: &'static str,
    measure: String,
    value: Answer<f64>,
    note: String,
}

impl TableRow for SensitivityRow {
    const COLUMNS: &'static [TableColumn<Self>] = &[
        columns::outcome(|row| &row.outcome),
        columns::treatment(|row| &row.contrast.treatment),
        columns::control(|row| &row.contrast.control),
        text(
            "analysis",
            "evalue, robustness, robustness_ols, instruments, rosenbaum, power, location, \
             attrition or omnibus",
            |row| row.analysis,
        ),
        text("measure", "what the value is", |row| &row.measure),
        columns::status(|row| status_of(&row.value)),
        columns::reason(|row| reason_of(&row.value)),
        number("value", "the value", |row| found(&row.value).copied()),
        columns::note(|row| &row.note),
    ];
}

impl SensitivityRow {
    /// The row of a measure; a refused one gets a note of its own.
    pub(super) fn new(
        outcome: &str,
        contrast: &Contrast,
        analysis: &'static str,
        measure: &str,
        value: Result<f64, String>,
        note: String,
    ) -> Self {
        Self {
            outcome: outcome.into(),
            contrast: contrast.clone(),
            analysis,
            measure: measure.into(),
            note: match &value {
                Ok(_) => note,
                Err(reason) => format!("Not computed: {reason}."),
            },
            value: value.map_err(NoNumber::Refused),
        }
    }
}

/// Collects the rows of one comparison.
pub(super) struct SensitivityMeasures<'a> {
    pub(super) cx: &'a SetContext<'a>,
    pub(super) comparison: &'a Comparison,
    rows: Vec<SensitivityRow>,
}

impl SensitivityMeasures<'_> {
    pub(super) fn add(
        &mut self,
        analysis: &'static str,
        measure: &str,
        value: Result<f64, String>,
        note: String,
    ) {
        let (outcome, contrast) = (&self.comparison.outcome, &self.cx.set.contrast);
        let row = SensitivityRow::new(outcome, contrast, analysis, measure, value, note);
        self.rows.push(row);
    }

    pub(super) fn refused(&mut self, analysis: &'static str, measure: &str, reason: impl ToString) {
        self.add(analysis, measure, Err(reason.to_string()), String::new());
    }
}

/// The rows of one comparison, whose primary estimate is `primary`.
pub(super) fn sensitivity_rows(
    cx: &SetContext<'_>,
    comparison: &Comparison,
    primary: Result<&EffectEstimate, &str>,
) -> Vec<SensitivityRow> {
    let mut measures = SensitivityMeasures { cx, comparison, rows: Vec::new() };
    match primary {
        Err(reason) => measures.refused("evalue", "evalue", reason),
        Ok(effect) => {
            evalue(&mut measures, effect);
            // The detectable effect is a difference.
            if !effect.measure.is_ratio() {
                power(&mut measures, effect);
            }
        }
    }
    if comparison.refused.is_none() {
        let estimators = cx.args.estimators();
        (estimators[0].robustness)(&mut measures, primary);
        if estimators[1..].contains(&OLS) {
            of_secondary_ols(&mut measures);
        }
        estimators.iter().for_each(|estimator| (estimator.diagnostics)(&mut measures));
        if let Some(pairs) = cx.set.pairs(comparison.near_zero())
            && pairs.len() >= 2
        {
            hidden_bias(&mut measures, &pairs);
            robust_location(&mut measures, &pairs);
        }
    }
    measures.rows
}

fn power(measures: &mut SensitivityMeasures<'_>, effect: &EffectEstimate) {
    let (args, set) = (measures.cx.args, measures.cx.set);
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
    let Some(pairs) = set.pairs(measures.comparison.near_zero()).filter(|_| effect.pairs.is_some())
    else {
        return;
    };
    // Pairing takes the part that both arms share out of the variance (Miller 2024).
    if let Ok(shared) =
        correlation(&pairs.treatment, &pairs.control, CorrelationMethod::Pearson, args.alpha)
    {
        let shown = match shared.interval.filter(|_| set.clusters.is_none()) {
            Some(ends) => {
                format!("{} ({})", by_interval(shared.coefficient, ends), ci(args.alpha, ends))
            }
            None => four_digits(shared.coefficient),
        };
        let note =
            format!("The outcomes of a data point under both arms have a correlation of {shown}.");
        measures.add("power", "correlation_of_arms", Ok(shared.coefficient), note);
    }
    // Welch's standard error knows no clusters, so that there is nothing to compare with.
    if set.clusters.is_some() {
        return;
    }
    let gain = difference_in_means(&set.treated, measures.comparison.near_zero())
        .and_then(|means| paired_gain(error, means.standard_error, args.alpha, POWER));
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

/// Rosenbaum's bounds of the signed-rank test.
fn hidden_bias(measures: &mut SensitivityMeasures<'_>, pairs: &UnitPairs) {
    if measures.cx.set.clusters.is_some() {
        return measures.refused("rosenbaum", "gamma_star", CLUSTERED);
    }
    let args = measures.cx.args;
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

fn robust_location(measures: &mut SensitivityMeasures<'_>, pairs: &UnitPairs) {
    let clustered = measures.cx.set.clusters.is_some();
    let n = thousands(pairs.len());
    let location = match location(&pairs.differences()) {
        Ok(location) => location,
        Err(reason) => return measures.refused("location", "median", reason),
    };
    let values = [
        ("median", Some(location.median), "Median paired difference"),
        ("hodges_lehmann", Some(location.hodges_lehmann), "Hodges-Lehmann estimate of the shift"),
        ("trimmed_mean", Some(location.trimmed_mean), "Mean difference without 10 % at each end"),
        ("wilcoxon_w", Some(location.wilcoxon_statistic), "Wilcoxon's signed-rank statistic"),
        (
            "wilcoxon_z",
            Some(location.wilcoxon_z),
            "Its normal approximation without continuity correction",
        ),
        (
            "wilcoxon_p",
            Some(location.wilcoxon_p),
            "Its two-sided p-value, exact for up to 50 differences that are not zero",
        ),
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
    // A ratio depends on where zero is.
    let levels = measures.cx.set.pairs(&measures.comparison.values);
    let ratio = levels.map(|levels| relative(&levels.treatment, &levels.control));
    if let Some(Ok(relative)) = ratio {
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
