//! The diagnostics of a contrast: balance, overlap, sensitivity, effect modification. Each
//! function gives the rows of one port.

use super::super::support::cells::Cell;
use super::super::support::words::{count, interval, level, p_equals, short, thousands};
use super::args::Args;
use super::estimate::{Found, Pairs, Score};
use super::frame::Frame;
use super::sample::{Comparison, RowSet, gather};
use crate::causal::{
    Covariance::Classic, Estimate, Refusal, SignedRanks, adjusted, balance, difference_in_means,
    evalue_difference, interaction, location, minimum_detectable, modification, overlap,
    paired_gain, pooled_deviation, relative, robustness,
};

/// Hidden bias for which the signed-rank test is told.
const GAMMAS: [f64; 5] = [1.0, 1.25, 1.5, 2.0, 3.0];
/// The power of the minimum detectable effect.
const POWER: f64 = 0.8;
/// Above this, arms are called different in a covariate (Stuart 2010).
const BALANCED: f64 = 0.1;

/// The weights of the average treatment effect.
fn weights(args: &Args, score: &[f64], treated: &[bool]) -> Vec<f64> {
    let weight = |(score, treated): (&f64, &bool)| {
        let clipped = score.clamp(args.clip[0], args.clip[1]);
        if *treated { 1.0 / clipped } else { 1.0 / (1.0 - clipped) }
    };
    score.iter().zip(treated).map(weight).collect()
}

/// `status` and `reason` of a row.
fn status<T>(result: &Result<T, Refusal>) -> [Cell; 2] {
    match result {
        Ok(_) => ["ok".into(), Cell::Null],
        Err(reason) => ["refused".into(), reason.to_string().into()],
    }
}

/// The rows of the port `balance`: every confounder and modifier.
pub(super) fn balance_rows(
    args: &Args,
    frame: &Frame,
    set: &RowSet,
    score: Option<&Score>,
) -> Vec<Vec<Cell>> {
    let weights = match score {
        Some(Ok(score)) => Some(weights(args, &score.scores, &set.treated)),
        _ => None,
    };
    let mut names: Vec<&String> = set.names.iter().collect();
    names.extend(args.modifiers.iter().filter(|name| !set.names.contains(name)));
    let n_treated = set.n_treated();
    names
        .into_iter()
        .map(|name| {
            let column = gather(&frame.numbers[name], &set.rows);
            let found = balance(&column, &set.treated, weights.as_deref());
            let [status, reason] = status(&found);
            let note = match &found {
                Ok(found) => balance_note(name, found.smd_before, found.smd_after),
                Err(reason) => format!("The balance of `{name}` is not known: {reason}."),
            };
            let found = found.ok();
            let found = found.as_ref();
            let mut row = outcomes_and_contrast(set);
            row.extend([name.as_str().into(), status, reason]);
            row.extend([
                found.map(|f| f.mean_treated).into(),
                found.map(|f| f.mean_control).into(),
                found.and_then(|f| f.smd_before).into(),
                found.and_then(|f| f.smd_after).into(),
                found.and_then(|f| f.variance_ratio).into(),
                found.and_then(|f| f.variance_ratio_after).into(),
                found.map(|f| f.ks).into(),
                found.and_then(|f| f.ks_after).into(),
                n_treated.into(),
                (set.rows.len() - n_treated).into(),
                note.into(),
            ]);
            row
        })
        .collect()
}

fn balance_note(name: &str, before: Option<f64>, after: Option<f64>) -> String {
    let word = |smd: f64| if smd.abs() > BALANCED { "not balanced" } else { "balanced" };
    match (before, after) {
        (None, _) => format!("`{name}` has one value in each arm, and not the same one."),
        (Some(0.0), _) => format!("`{name}` is balanced: its mean is the same in both arms."),
        (Some(smd), None) => {
            format!("`{name}` is {} (SMD {}).", word(smd), short(smd))
        }
        (Some(smd), Some(weighted)) => format!(
            "`{name}` is {} (SMD {}); weighted, it is {} (SMD {}).",
            word(smd),
            short(smd),
            word(weighted),
            short(weighted)
        ),
    }
}

fn contrast(set: &RowSet) -> Vec<Cell> {
    vec![set.contrast.treatment.as_str().into(), set.contrast.control.as_str().into()]
}

/// The outcomes that a set of rows is about, and the contrast.
fn outcomes_and_contrast(set: &RowSet) -> Vec<Cell> {
    let outcomes: Vec<&str> =
        set.comparisons.iter().map(|comparison| comparison.outcome.as_str()).collect();
    let mut cells = vec![outcomes.join(", ").into()];
    cells.extend(contrast(set));
    cells
}

/// The row of the port `overlap`; none without covariates.
pub(super) fn overlap_row(args: &Args, set: &RowSet, score: Option<&Score>) -> Option<Vec<Cell>> {
    let clip = (args.clip[0], args.clip[1]);
    let refused = |reason: &str| Refusal::Other(reason.to_string());
    let found = match (score, set.adjusting_refused()) {
        (_, Some(reason)) => Err(refused(reason)),
        (Some(Ok(score)), _) => {
            let weights = weights(args, &score.scores, &set.treated);
            overlap(&score.scores, &set.treated, Some(&weights), clip)
        }
        (Some(Err(reason)), _) => Err(reason.clone()),
        (None, _) => return None,
    };
    let constant = score.and_then(|score| score.as_ref().ok()?.constant());
    let [status, reason] = status(&found);
    let mut row = outcomes_and_contrast(set);
    row.extend([status, reason]);
    let note = match (&found, constant) {
        (Err(reason), _) => format!("There are no propensity scores: {reason}."),
        (Ok(_), Some(score)) => format!(
            "Every propensity score is {score:.4}: the confounders are distributed alike in both \
             arms, there is nothing to adjust for."
        ),
        (Ok(found), None) => {
            let n = set.rows.len();
            let percent = 100.0 * found.outside as f64 / n.max(1) as f64;
            format!(
                "Propensity scores are {} under the treatment and {} under control; {} ({} %) \
                 outside of what both have; AUC {}.",
                interval((found.min_treated, found.max_treated)),
                interval((found.min_control, found.max_control)),
                count(found.outside, "row is", "rows are"),
                short(percent),
                short(found.auc),
            )
        }
    };
    let found = found.ok();
    let found = found.as_ref();
    // Scores that differ in their last digit only are one.
    let distinct = found.map(|f| if constant.is_some() { 1 } else { f.distinct });
    let outside = found.map(|f| if constant.is_some() { 0 } else { f.outside });
    row.extend([distinct.into()]);
    row.extend([
        found.map(|f| f.min_treated).into(),
        found.map(|f| f.max_treated).into(),
        found.map(|f| f.min_control).into(),
        found.map(|f| f.max_control).into(),
    ]);
    row.extend((0..5).map(|at| found.map(|f| f.quantiles[at]).into()));
    row.extend([
        outside.into(),
        found.map(|f| f.below_clip + f.above_clip).into(),
        found.map(|f| f.auc).into(),
        found.map(|f| f.effective_treated).into(),
        found.map(|f| f.effective_control).into(),
        note.into(),
    ]);
    Some(row)
}

/// Collects the rows of the port `sensitivity` of one comparison.
struct Measures<'a> {
    set: &'a RowSet,
    outcome: &'a str,
    rows: Vec<Vec<Cell>>,
}

impl Measures<'_> {
    fn add(&mut self, analysis: &str, measure: &str, value: Result<f64, String>, note: String) {
        let mut row: Vec<Cell> = vec![self.outcome.into()];
        row.extend(contrast(self.set));
        row.extend([analysis.into(), measure.into()]);
        match value {
            Ok(value) => {
                row.extend(["ok".into(), Cell::Null, value.into(), note.into()]);
            }
            Err(reason) => {
                let note = format!("Not computed: {reason}.");
                row.extend(["refused".into(), reason.into(), Cell::Null, note.into()]);
            }
        }
        self.rows.push(row);
    }

    fn refused(&mut self, analysis: &str, measure: &str, reason: impl ToString) {
        self.add(analysis, measure, Err(reason.to_string()), String::new());
    }
}

/// The rows of the port `sensitivity` of one comparison, whose primary estimate is `primary`.
pub(super) fn sensitivity_rows(
    args: &Args,
    set: &RowSet,
    comparison: &Comparison,
    primary: Result<&Found, &str>,
) -> Vec<Vec<Cell>> {
    let mut measures = Measures { set, outcome: &comparison.outcome, rows: Vec::new() };
    match primary {
        Err(reason) => measures.refused("evalue", "evalue", reason),
        Ok(found) => {
            evalue(&mut measures, set, comparison, &found.estimate);
            power(args, &mut measures, set, comparison, found);
        }
    }
    if comparison.refused.is_none() {
        regression_bias(args, &mut measures, set, comparison);
        if let Some(units) = &set.units {
            let pairs = Pairs::of(&set.treated, &comparison.values, units);
            if pairs.rows.len() >= 2 {
                hidden_bias(args, &mut measures, &pairs);
                robust_location(&mut measures, &pairs);
            }
        }
    }
    measures.rows
}

fn evalue(measures: &mut Measures<'_>, set: &RowSet, comparison: &Comparison, found: &Estimate) {
    let arm = |wanted: bool| -> Vec<f64> {
        let rows = comparison.values.iter().zip(&set.treated);
        rows.filter(|(_, treated)| **treated == wanted).map(|(value, _)| *value).collect()
    };
    let result = pooled_deviation(&arm(true), &arm(false))
        .and_then(|sd| Ok((sd, evalue_difference(found.value, found.standard_error, sd)?)));
    let (deviation, evalue) = match result {
        Ok(found) => found,
        Err(reason) => return measures.refused("evalue", "evalue", reason),
    };
    let d = found.value / deviation;
    measures.add(
        "evalue",
        "standardised_effect",
        Ok(d),
        format!("The effect is {} standard deviations of the outcome.", short(d)),
    );
    measures.add(
        "evalue",
        "risk_ratio",
        Ok(evalue.ratio),
        format!("As an approximate risk ratio: {}.", short(evalue.ratio)),
    );
    if let Some((low, high)) = evalue.interval {
        let note = |end: &str| format!("The {end} end of the interval of the risk ratio.");
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
            short(evalue.point)
        ),
    );
    if let Some(limit) = evalue.limit {
        let note = format!("To move the interval to no effect, {} each.", short(limit));
        measures.add("evalue", "evalue_ci", Ok(limit), note);
    }
}

fn power(
    args: &Args,
    measures: &mut Measures<'_>,
    set: &RowSet,
    comparison: &Comparison,
    found: &Found,
) {
    let error = found.estimate.standard_error;
    match minimum_detectable(error, args.alpha, POWER) {
        Ok(effect) => {
            let note = format!(
                "With this standard error an effect of {} is found with 80 % power at the {} \
                 level.",
                short(effect),
                args.alpha
            );
            measures.add("power", "minimum_detectable_effect", Ok(effect), note);
        }
        Err(reason) => measures.refused("power", "minimum_detectable_effect", reason),
    }
    if found.pairs.is_none() {
        return;
    }
    let gain = difference_in_means(&set.treated, &comparison.values)
        .and_then(|means| paired_gain(error, means.estimate.standard_error, args.alpha, POWER));
    if let Ok(gain) = gain {
        let note = format!("If pairs were ignored, only one of {}.", short(gain.unpaired));
        measures.add("power", "minimum_detectable_unpaired", Ok(gain.unpaired), note);
        let note = format!(
            "Without pairs, {} times as many data points would be needed.",
            short(gain.variance_ratio)
        );
        measures.add("power", "variance_ratio_unpaired", Ok(gain.variance_ratio), note);
    }
}

/// Cinelli and Hazlett's robustness of the linear regression with the covariates.
fn regression_bias(
    args: &Args,
    measures: &mut Measures<'_>,
    set: &RowSet,
    comparison: &Comparison,
) {
    if set.names.is_empty() {
        return;
    }
    if let Some(reason) = set.adjusting_refused() {
        return measures.refused("robustness", "robustness_value", reason);
    }
    let covariates: Vec<&[f64]> = set.covariates.iter().map(Vec::as_slice).collect();
    let values = &comparison.values;
    let result = adjusted(&set.treated, values, &covariates, Classic, None).and_then(|fit| {
        let estimate = fit.estimate;
        robustness(estimate.statistic(), estimate.degrees, 1.0, args.alpha)
    });
    let found = match result {
        Ok(found) => found,
        Err(reason) => {
            let reason = super::named(&reason, &set.names);
            return measures.refused("robustness", "robustness_value", reason);
        }
    };
    let percent = |share: f64| short(100.0 * share);
    for (measure, value, note) in [
        (
            "partial_r2",
            found.partial_r2,
            format!(
                "The treatment explains {} % of what the covariates leave of the outcome.",
                percent(found.partial_r2)
            ),
        ),
        ("partial_f2", found.partial_f2, "Cohen's partial f squared.".to_string()),
        (
            "robustness_value",
            found.value,
            format!(
                "A confounder that explains {} % of what is left of both treatment and outcome \
                 would bring the estimate to zero (Cinelli and Hazlett 2020).",
                percent(found.value)
            ),
        ),
        (
            "robustness_value_alpha",
            found.value_alpha,
            format!(
                "One that explains {} % of both would make it insignificant.",
                percent(found.value_alpha)
            ),
        ),
    ] {
        measures.add("robustness", measure, Ok(value), note);
    }
}

/// Rosenbaum's bounds of the signed-rank test.
fn hidden_bias(args: &Args, measures: &mut Measures<'_>, pairs: &Pairs) {
    let ranks = match SignedRanks::new(&pairs.differences()) {
        Ok(ranks) => ranks,
        Err(reason) => return measures.refused("rosenbaum", "gamma_star", reason),
    };
    match ranks.gamma_star(args.alpha) {
        Ok(gamma) => {
            let note = format!(
                "The signed-rank test stays significant if hidden bias changes the odds of \
                 treatment within a pair by a factor of up to {} (Rosenbaum 2002).",
                short(gamma)
            );
            measures.add("rosenbaum", "gamma_star", Ok(gamma), note);
        }
        Err(reason) => measures.refused("rosenbaum", "gamma_star", reason),
    }
    for gamma in GAMMAS {
        if let Ok(p) = ranks.p_upper(gamma) {
            let note = format!("With a bias of {gamma} the one-sided p is at most {}.", short(p));
            measures.add("rosenbaum", &format!("p_upper_{gamma}"), Ok(p), note);
        }
    }
}

fn robust_location(measures: &mut Measures<'_>, pairs: &Pairs) {
    let n = thousands(pairs.rows.len());
    let found = match location(&pairs.differences()) {
        Ok(found) => found,
        Err(reason) => return measures.refused("location", "median", reason),
    };
    let values = [
        ("median", Some(found.median), "Median paired difference"),
        ("hodges_lehmann", Some(found.hodges_lehmann), "Hodges-Lehmann estimate of the shift"),
        ("trimmed_mean", Some(found.trimmed_mean), "Mean difference without 10 % at each end"),
        ("wilcoxon_w", Some(found.wilcoxon_statistic), "Wilcoxon's signed-rank statistic"),
        ("wilcoxon_z", Some(found.wilcoxon_z), "Its normal approximation"),
        ("wilcoxon_p", Some(found.wilcoxon_p), "Its two-sided p-value"),
        ("sign_p", Some(found.sign_p), "Two-sided p-value of the sign test"),
        ("positive", Some(found.positive as f64), "Pairs with a positive difference"),
        ("negative", Some(found.negative as f64), "Pairs with a negative difference"),
        ("zero", Some(found.zero as f64), "Pairs without a difference"),
        ("skewness", found.skewness, "Skewness of the differences"),
        ("excess_kurtosis", found.excess_kurtosis, "Excess kurtosis of the differences"),
    ];
    for (measure, value, words) in values {
        if let Some(value) = value {
            let shown = if value.fract() == 0.0 { format!("{value}") } else { short(value) };
            let note = format!("{words}, of {n} pairs: {shown}.");
            measures.add("location", measure, Ok(value), note);
        }
    }
    if let Ok(found) = relative(&pairs.treatment, &pairs.control) {
        let ratio = found.ratio_of_means;
        let note =
            format!("The mean under the treatment is {} times that of control.", short(ratio));
        measures.add("location", "ratio_of_means", Ok(ratio), note);
        let se = found.log_ratio_standard_error;
        let note = "Standard error of the logarithm of that ratio, by the delta method.";
        measures.add("location", "log_ratio_se", Ok(se), note.into());
        if let Some(mean) = found.mean_log1p_difference {
            let note = "Mean difference of the logarithms of one plus the outcome.";
            measures.add("location", "mean_diff_log1p", Ok(mean), note.into());
        }
    }
}

/// The rows of the port `modifiers` of one comparison, without adjusted p-values: the position of
/// a slope's p-value in a row is [`SLOPE_P`], that of its adjusted one comes after.
pub(super) fn modifier_rows(
    args: &Args,
    frame: &Frame,
    set: &RowSet,
    comparison: &Comparison,
) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    for modifier in &args.modifiers {
        let start = |bin: usize, low: Option<f64>, high: Option<f64>| -> Vec<Cell> {
            let mut row: Vec<Cell> = vec![comparison.outcome.as_str().into()];
            row.extend(contrast(set));
            row.extend([modifier.as_str().into(), bin.into(), low.into(), high.into()]);
            row
        };
        let found = match &comparison.refused {
            Some(reason) => Err(reason.clone()),
            None => modified(args, frame, set, comparison, modifier),
        };
        let (found, n) = match found {
            Ok(found) => found,
            Err(reason) => {
                let note = format!("Whether the effect changes with `{modifier}`: {reason}.");
                let mut row = start(0, None, None);
                row.extend(["refused".into(), reason.into()]);
                row.extend(std::iter::repeat_n(Cell::Null, 6));
                row.extend([0usize.into(), note.into()]);
                rows.push(row);
                continue;
            }
        };
        let slope = found.estimate;
        let (low, high) = slope.interval(args.alpha);
        let mut row = start(0, None, None);
        row.extend(["ok".into(), Cell::Null, slope.value.into(), slope.standard_error.into()]);
        row.extend([low.into(), high.into(), slope.p_value().into(), Cell::Null, n.into()]);
        row.push(
            format!(
                "The effect on {} changes by {} per standard deviation of `{modifier}` ({} % CI \
                 {}, p {}).",
                comparison.outcome,
                short(slope.value),
                level(args.alpha),
                interval((low, high)),
                p_equals(slope.p_value())
            )
            .into(),
        );
        rows.push(row);
        for (at, group) in found.groups.iter().enumerate() {
            let estimate = group.mean.zip(group.standard_error).map(|(value, standard_error)| {
                let degrees = (group.n as f64 - 1.0).max(1.0);
                Estimate { value, standard_error, degrees }
            });
            let ends = estimate.filter(|e| e.standard_error > 0.0).map(|e| e.interval(args.alpha));
            let mut row = start(at + 1, Some(group.low), Some(group.high));
            row.extend(match group.mean {
                Some(_) => ["ok".into(), Cell::Null],
                None => ["refused".into(), "no units in one of the arms".into()],
            });
            row.extend([group.mean.into(), group.standard_error.into()]);
            row.extend([ends.map(|e| e.0).into(), ends.map(|e| e.1).into()]);
            row.extend([Cell::Null, Cell::Null, group.n.into()]);
            let edges = if at == 0 { "from" } else { "above" };
            let words = count(group.n, "unit", "units");
            let effect = group.mean.map_or("unknown".into(), short);
            row.push(
                format!(
                    "Where `{modifier}` is {edges} {} to {} ({words}), the effect is {effect}.",
                    short(group.low),
                    short(group.high)
                )
                .into(),
            );
            rows.push(row);
        }
    }
    rows
}

/// The position of a p-value in a row of [`modifier_rows`].
pub(super) const SLOPE_P: usize = 13;

/// How the effect changes with a modifier, and over how many units.
fn modified(
    args: &Args,
    frame: &Frame,
    set: &RowSet,
    comparison: &Comparison,
    modifier: &str,
) -> Result<(crate::causal::Modification, usize), String> {
    let column = gather(&frame.numbers[modifier], &set.rows);
    let words = |refusal: Refusal| match &refusal {
        Refusal::Constant(what) if what == "modifier" => {
            Refusal::Constant(modifier.into()).to_string()
        }
        Refusal::Constant(what) if what == "modifier in one arm" => {
            format!("`{modifier}` has one value only in one of the arms")
        }
        Refusal::Constant(what) => format!("the {what} have one value only"),
        other => other.to_string(),
    };
    let finite = |value: &f64| value.is_finite();
    let check = |column: &[f64]| {
        let missing = column.iter().filter(|value| value.is_nan()).count();
        if missing > 0 && args.missing == super::args::Missing::Refuse {
            let rows = count(missing, "row has", "rows have");
            return Err(format!("{rows} no value of it (missing: drop leaves such rows out)"));
        }
        match column.iter().filter(|value| value.is_infinite()).count() {
            0 => Ok(()),
            rows => Err(format!("it is infinite in {}", count(rows, "row", "rows"))),
        }
    };
    let Some(units) = &set.units else {
        check(&column)?;
        let rows: Vec<u32> =
            (0..column.len() as u32).filter(|row| finite(&column[*row as usize])).collect();
        let found = interaction(
            &gather(&set.treated, &rows),
            &gather(&comparison.values, &rows),
            &gather(&column, &rows),
        );
        return Ok((found.map_err(words)?, rows.len()));
    };
    let pairs = Pairs::of(&set.treated, &comparison.values, units);
    // A modifier is a property of the unit: what the treatment changes cannot modify it.
    let differing = super::sample::differing_units(units, &column);
    if differing > 0 {
        let units = count(differing, "unit", "units");
        return Err(format!("it differs between the rows of {units}, so it is no modifier"));
    }
    let values: Vec<f64> = pairs.rows.iter().map(|row| column[*row as usize]).collect();
    check(&values)?;
    let kept: Vec<u32> =
        (0..values.len() as u32).filter(|pair| finite(&values[*pair as usize])).collect();
    let differences = gather(&pairs.differences(), &kept);
    let found = modification(&differences, &gather(&values, &kept)).map_err(words)?;
    Ok((found, kept.len()))
}
