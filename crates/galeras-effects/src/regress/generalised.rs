//! Estimators of outcomes that are yes or no, counts or ordered, of ranks, and of regressions with
//! absorbed effects: which function of `causal` answers, and on what scale. Those of mean differences
//! are in `estimate`.

use super::args::Args;
use super::comparison::FEWEST_UNITS;
use super::estimate::{
    EffectEstimate, EstimationSample, FittedPropensity, estimate_mean_difference, treats_clusters,
};
use super::estimators::Estimator;
use super::measure::Measure;
use super::unit_pairs::UnitPairs;
use galeras_base::prose::{count, four_digits, p_equals};
use galeras_causal::{
    Covariance, Estimate, FourfoldTable, InvertedEstimate, Refusal, RiskMeasure, absorbed,
    logistic, mcnemar, negative_binomial, poisson, proportional_odds, rank_sum, signed_rank_shift,
};
use galeras_operator::far_numbers::near_zero;

/// Estimates the effect. `score` is there if the estimator needs one.
pub(super) fn estimate(
    args: &Args,
    estimator: Estimator,
    sample: &EstimationSample<'_>,
    score: Option<&FittedPropensity>,
) -> Result<EffectEstimate, Refusal> {
    if estimator.measure() == Measure::Difference
        && let Some(outcome) = near_zero(sample.outcome)
    {
        let sample = EstimationSample { outcome: &outcome, ..*sample };
        return estimate(args, estimator, &sample, score);
    }
    match estimator {
        Estimator::Ols if !sample.absorbed.is_empty() => estimate_absorbed(args, sample),
        Estimator::RiskDifference => risks(args, sample, RiskMeasure::Difference),
        Estimator::RiskRatio => risks(args, sample, RiskMeasure::Ratio),
        Estimator::OddsRatio => risks(args, sample, RiskMeasure::OddsRatio),
        Estimator::Logistic => by_logistic(args, sample, RiskMeasure::OddsRatio),
        Estimator::LogisticDifference => by_logistic(args, sample, RiskMeasure::Difference),
        Estimator::LogisticRatio => by_logistic(args, sample, RiskMeasure::Ratio),
        Estimator::Poisson | Estimator::NegativeBinomial => by_counts(args, estimator, sample),
        Estimator::ProportionalOdds => by_levels(args, sample),
        Estimator::Wilcoxon => by_ranks(args, sample),
        Estimator::Mcnemar => by_discordant_pairs(args, sample, false),
        Estimator::McnemarMidP => by_discordant_pairs(args, sample, true),
        other => estimate_mean_difference(args, other, sample, score),
    }
}

/// With fewer rows, intervals of a ratio by a logistic regression cover more than they say
/// (docs/coverage.md).
const FEWEST_FOR_RATIO: usize = 50;
/// With fewer degrees of freedom, intervals by `HC1` beside absorbed effects cover less, and so do
/// those by `CR1` with fewer clusters, where these are treated as a whole.
const FEWEST_DEGREES: usize = 35;
const FEWEST_TREATED_WHOLE: usize = 20;

/// An estimate on the scale of inference of its measure.
fn on_scale(estimate: Estimate, measure: Measure, se_kind: impl Into<String>) -> EffectEstimate {
    EffectEstimate { measure, ..EffectEstimate::new(estimate, "ate", se_kind) }
}

/// An estimate with the interval and p-value of a test.
fn inverted(found: InvertedEstimate, measure: Measure, se_kind: &str) -> EffectEstimate {
    let value = if measure.is_ratio() { found.value.ln() } else { found.value };
    let standard_error = found.standard_error.unwrap_or(f64::NAN);
    let estimate = Estimate { value, standard_error, degrees: f64::INFINITY };
    EffectEstimate { inverted: Some(found), ..on_scale(estimate, measure, se_kind) }
}

fn measure_of(measure: RiskMeasure) -> Measure {
    match measure {
        RiskMeasure::Difference => Measure::RiskDifference,
        RiskMeasure::Ratio => Measure::RiskRatio,
        RiskMeasure::OddsRatio => Measure::OddsRatio,
    }
}

/// Two proportions: by score intervals, or with clusters by a logistic regression on the arm alone,
/// which has the same estimates.
fn risks(
    args: &Args,
    sample: &EstimationSample<'_>,
    measure: RiskMeasure,
) -> Result<EffectEstimate, Refusal> {
    if sample.correlated().is_some() {
        let alone = EstimationSample { covariates: &[], ..*sample };
        return by_logistic(args, &alone, measure);
    }
    let table = FourfoldTable::of(sample.treated, sample.outcome)?;
    let found = table.compare(measure, args.alpha)?;
    let mut result = inverted(found, measure_of(measure), "score test");
    let ((x1, n1), (x0, n0)) = (table.treated, table.control);
    result.remarks.push(format!("{x1} of {n1} against {x0} of {n0}."));
    Ok(result)
}

fn by_logistic(
    args: &Args,
    sample: &EstimationSample<'_>,
    measure: RiskMeasure,
) -> Result<EffectEstimate, Refusal> {
    let (kind, clusters) = sample.covariance(args);
    let rows = sample.treated.len();
    if measure == RiskMeasure::Ratio && rows < FEWEST_FOR_RATIO && clusters.is_none() {
        let what = "rows for a ratio by a regression";
        if !sample.only_value {
            return Err(Refusal::TooFew { what, found: rows, needed: FEWEST_FOR_RATIO });
        }
    }
    let found = logistic(sample.treated, sample.outcome, sample.covariates, kind, clusters)?;
    let estimate = match measure {
        RiskMeasure::Difference => found.risk_difference,
        RiskMeasure::Ratio => found.log_risk_ratio,
        RiskMeasure::OddsRatio => found.log_odds_ratio,
    };
    let mut result = on_scale(estimate, measure_of(measure), kind.to_string());
    result.remarks.extend(sample.unpaired_remark(kind));
    if measure == RiskMeasure::OddsRatio {
        if !sample.covariates.is_empty() {
            result.remarks.push("The odds ratio is one at equal covariates.".into());
        }
    } else {
        let (one, zero) = (four_digits(found.treated_risk), four_digits(found.control_risk));
        let over = match sample.covariates {
            [] => "",
            _ => ", averaged over the covariates of all rows",
        };
        result.remarks.push(format!("Probabilities {one} against {zero}{over}."));
    }
    Ok(result)
}

fn by_counts(
    args: &Args,
    estimator: Estimator,
    sample: &EstimationSample<'_>,
) -> Result<EffectEstimate, Refusal> {
    let (kind, clusters) = sample.covariance(args);
    let fit = if estimator == Estimator::Poisson { poisson } else { negative_binomial };
    let found = fit(sample.treated, sample.outcome, sample.covariates, kind, clusters)?;
    // Of yes and no, the ratio of means is one of probabilities.
    let binary = sample.outcome.iter().all(|y| *y == 0.0 || *y == 1.0);
    let measure = if binary { Measure::RiskRatio } else { Measure::RateRatio };
    let mut result = on_scale(found.log_ratio, measure, kind.to_string());
    result.remarks.extend(sample.unpaired_remark(kind));
    let pearson = four_digits(found.pearson);
    if estimator == Estimator::NegativeBinomial {
        let dispersion = four_digits(found.dispersion);
        result
            .remarks
            .push(format!("Dispersion {dispersion}; Pearson's chi-squared/df {pearson}."));
    } else if !binary {
        result.remarks.push(format!("Pearson's chi-squared/df {pearson} (1 if Poisson)."));
    }
    if kind == Covariance::Classic && !sample.only_value && estimator == Estimator::Poisson {
        let remark = "The classic standard error assumes that the variance is the mean.";
        result.remarks.push(remark.into());
    }
    Ok(result)
}

/// Refuses clusters that are too few for a standard error without leverages.
fn refuse_few_whole(sample: &EstimationSample<'_>) -> Result<(), Refusal> {
    let Some(clusters) = sample.correlated().filter(|_| !sample.only_value) else { return Ok(()) };
    let found = clusters.iter().max().map_or(0, |last| *last as usize + 1);
    let needed = FEWEST_TREATED_WHOLE;
    if found < needed && treats_clusters(sample.treated, clusters) {
        let what = "clusters, each of which lies in one arm";
        return Err(Refusal::TooFew { what, found, needed });
    }
    Ok(())
}

fn by_levels(args: &Args, sample: &EstimationSample<'_>) -> Result<EffectEstimate, Refusal> {
    refuse_few_whole(sample)?;
    let (kind, clusters) = sample.covariance_without_leverage(args);
    let found =
        proportional_odds(sample.treated, sample.outcome, sample.covariates, kind, clusters)?;
    let mut result = on_scale(found.log_odds_ratio, Measure::OddsRatio, kind.to_string());
    result.remarks.extend(sample.unpaired_remark(kind));
    let levels = count(found.levels.len(), "level", "levels");
    result.remarks.push(format!(
        "The odds of a higher one of {levels}, taken as changed by the same ratio at each."
    ));
    Ok(result)
}

fn by_ranks(args: &Args, sample: &EstimationSample<'_>) -> Result<EffectEstimate, Refusal> {
    if sample.clusters.is_some() {
        return Err(Refusal::Other(
            "Wilcoxon's tests take rows or pairs as independent: they know no clusters".into(),
        ));
    }
    let Some(units) = sample.units else {
        let of = |arm: bool| -> Vec<f64> {
            let rows = sample.treated.iter().zip(sample.outcome);
            rows.filter(|(treated, _)| **treated == arm).map(|(_, y)| *y).collect()
        };
        let found = rank_sum(&of(true), &of(false), args.alpha)?;
        let kind = if found.exact { "rank sum, exact" } else { "rank sum, normal" };
        let mut result = inverted(found.shift, Measure::Difference, kind);
        let u = four_digits(found.u);
        result.remarks.push(format!("The median of all differences of two rows; U = {u}."));
        return Ok(result);
    };
    let pairs = pairs_of(sample, units)?;
    let found = signed_rank_shift(&pairs.differences(), args.alpha)?;
    let mut result = inverted(found.shift, Measure::Difference, "signed ranks");
    let (w, nonzero) = (four_digits(found.w), found.nonzero);
    result.remarks.push(format!(
        "The median of the averages of two differences; W = {w} over {nonzero} that are not zero."
    ));
    result.of_pairs(&pairs);
    Ok(result)
}

fn by_discordant_pairs(
    args: &Args,
    sample: &EstimationSample<'_>,
    mid: bool,
) -> Result<EffectEstimate, Refusal> {
    let no_units = || Refusal::Other("McNemar's test needs a unit".into());
    if sample.clusters.is_some() {
        return Err(Refusal::Other(
            "McNemar's test takes pairs as independent: it knows no clusters".into(),
        ));
    }
    let pairs = pairs_of(sample, sample.units.ok_or_else(no_units)?)?;
    if pairs.averaged {
        return Err(Refusal::Other(
            "a unit has several rows under one arm: McNemar's test needs one row for each".into(),
        ));
    }
    let table = mcnemar(&pairs.treatment, &pairs.control)?;
    let found = table.odds_ratio(mid, args.alpha)?;
    let kind = if mid { "McNemar mid-p" } else { "McNemar exact" };
    let mut result = inverted(found, Measure::OddsRatio, kind);
    let other = if mid { "exact" } else { "mid-p" };
    result.remarks.push(format!(
        "{} gained the outcome, {} lost it, {} did not change ({other} p {}).",
        table.gained,
        table.lost,
        table.unchanged,
        p_equals(table.p_value(!mid))
    ));
    result.of_pairs(&pairs);
    Ok(result)
}

/// The pairs of a sample, of which there are enough.
fn pairs_of(sample: &EstimationSample<'_>, units: &[u32]) -> Result<UnitPairs, Refusal> {
    let pairs = UnitPairs::of(sample.treated, sample.outcome, units);
    let found = pairs.rows.len();
    let needed = if sample.only_value { 2 } else { FEWEST_UNITS };
    match found < needed {
        true => Err(Refusal::TooFew { what: "pairs", found, needed }),
        false => Ok(pairs),
    }
}

/// Least squares with a constant for each level of the absorbed columns.
fn estimate_absorbed(
    args: &Args,
    sample: &EstimationSample<'_>,
) -> Result<EffectEstimate, Refusal> {
    refuse_few_whole(sample)?;
    let (kind, clusters) = sample.covariance_without_leverage(args);
    let found = absorbed(
        sample.treated,
        sample.outcome,
        sample.covariates,
        sample.absorbed,
        kind,
        clusters,
    )?;
    let degrees = found.residual_degrees;
    let few = degrees < FEWEST_DEGREES && kind != Covariance::Classic && clusters.is_none();
    if few && !sample.only_value {
        let what = "degrees of freedom beside absorbed effects";
        return Err(Refusal::TooFew { what, found: degrees, needed: FEWEST_DEGREES });
    }
    let mut result = EffectEstimate::new(found.estimate, "ate", kind.to_string());
    result.remarks.extend(sample.unpaired_remark(kind));
    let constants = count(found.absorbed, "constant", "constants");
    result.remarks.push(format!(
        "{} absorbed for the levels of {}, {} degrees of freedom left.",
        constants,
        galeras_base::prose::name_list(&args.absorb),
        found.residual_degrees
    ));
    Ok(result)
}
