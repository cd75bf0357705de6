//! Sensitivity of one estimate: which measures there are of it, and those of pairs and of power.

use super::args::Args;
use super::comparison::{Comparison, RowSet};
use super::estimate::{EffectEstimate, FittedPropensity};
use super::evalue::evalue;
use super::instruments::instrument_rows;
use super::robustness::robustness_rows;
use super::sensitivity_table::SensitivityMeasures;
pub(super) use super::sensitivity_table::{CLUSTERED, SensitivityRow};
use super::unit_pairs::UnitPairs;
use galeras_base::prose::{four_digits, thousands};
use galeras_causal::{
    SignedRanks, difference_in_means, location, minimum_detectable, paired_gain, relative,
};

/// Hidden bias under which the signed-rank test is reported.
const GAMMAS: [f64; 5] = [1.0, 1.25, 1.5, 2.0, 3.0];
/// The power of the minimum detectable effect.
const POWER: f64 = 0.8;

/// The rows of the port `sensitivity` of one comparison, whose primary estimate is `primary`.
pub(super) fn sensitivity_rows(
    args: &Args,
    set: &RowSet,
    comparison: &Comparison,
    primary: Result<&EffectEstimate, &str>,
    score: Option<&FittedPropensity>,
    folds: Option<&[u32]>,
) -> Vec<SensitivityRow> {
    let mut measures = SensitivityMeasures { set, outcome: &comparison.outcome, rows: Vec::new() };
    match primary {
        Err(reason) => measures.refused("evalue", "evalue", reason),
        Ok(effect) => {
            evalue(args, &mut measures, set, comparison, effect, score, folds);
            power(args, &mut measures, set, comparison, effect);
        }
    }
    if comparison.refused.is_none() {
        robustness_rows(args, &mut measures, set, comparison, primary, score);
        instrument_rows(args, &mut measures, set, comparison);
        if let Some(units) = &set.units {
            let pairs = UnitPairs::of(&set.treated, comparison.near_zero(), units);
            if pairs.rows.len() >= 2 {
                let clustered = set.clusters.is_some();
                if clustered {
                    measures.refused("rosenbaum", "gamma_star", CLUSTERED);
                } else {
                    hidden_bias(args, &mut measures, &pairs);
                }
                // A ratio depends on where zero is.
                let levels = UnitPairs::of(&set.treated, &comparison.values, units);
                robust_location(&mut measures, &pairs, &levels, clustered);
            }
        }
    }
    measures.rows
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
    let gain = difference_in_means(&set.treated, comparison.near_zero())
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

fn robust_location(
    measures: &mut SensitivityMeasures<'_>,
    pairs: &UnitPairs,
    levels: &UnitPairs,
    clustered: bool,
) {
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
    if let Ok(relative) = relative(&levels.treatment, &levels.control) {
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
