//! Estimators of outcomes that are yes or no, counts or ordered.

use super::linear::refuse_few_whole;
use super::{Controls, EffectEstimate, EstimationSample, EstimatorSpec, Measure};
use crate::regress::evalue::{counted_risks, is_binary};
use galeras_base::prose::{count, four_digits};
use galeras_causal::{
    CountEffect, Covariance, FourfoldTable, Refusal, RiskMeasure, RiskRatio, logistic,
    negative_binomial, poisson, proportional_odds,
};

/// Intervals of a ratio by a logistic regression cover too much with fewer rows (docs/coverage.md).
const FEWEST_FOR_RATIO: usize = 50;

/// Two proportions.
const PROPORTIONS: EstimatorSpec = EstimatorSpec {
    controls: Controls::Nothing,
    risks: counted_risks,
    ..EstimatorSpec::new("", "", "", |sample| proportions(sample, RiskMeasure::Difference))
};

pub(super) const RISK_DIFFERENCE: EstimatorSpec = EstimatorSpec {
    name: "risk_difference",
    method: "Risk difference",
    doc: "The difference of two proportions, of an outcome that is yes or no.",
    measure: Measure::RiskDifference,
    ..PROPORTIONS
};

pub(super) const RISK_RATIO: EstimatorSpec = EstimatorSpec {
    name: "risk_ratio",
    method: "Risk ratio",
    doc: "Their ratio.",
    estimate: |sample| proportions(sample, RiskMeasure::Ratio),
    measure: Measure::RiskRatio,
    ..PROPORTIONS
};

pub(super) const ODDS_RATIO: EstimatorSpec = EstimatorSpec {
    name: "odds_ratio",
    method: "Odds ratio",
    doc: "The ratio of their odds.",
    estimate: |sample| proportions(sample, RiskMeasure::OddsRatio),
    measure: Measure::OddsRatio,
    ..PROPORTIONS
};

pub(super) const LOGISTIC: EstimatorSpec = EstimatorSpec {
    measure: Measure::OddsRatio,
    is_regression: true,
    risks: |_, sample, _| logistic_risks(sample),
    ..EstimatorSpec::new(
        "logistic",
        "Logistic regression",
        "Logistic regression: the odds ratio at equal covariates.",
        |sample| by_logistic(sample, RiskMeasure::OddsRatio),
    )
};

pub(super) const LOGISTIC_DIFFERENCE: EstimatorSpec = EstimatorSpec {
    name: "logistic_difference",
    method: "Average marginal effect of a logistic regression",
    doc: "Logistic regression: the average marginal effect, a difference of probabilities.",
    estimate: |sample| by_logistic(sample, RiskMeasure::Difference),
    measure: Measure::RiskDifference,
    ..LOGISTIC
};

pub(super) const LOGISTIC_RATIO: EstimatorSpec = EstimatorSpec {
    name: "logistic_ratio",
    method: "Standardised risk ratio of a logistic regression",
    doc: "Logistic regression: the ratio of the average probabilities.",
    estimate: |sample| by_logistic(sample, RiskMeasure::Ratio),
    measure: Measure::RiskRatio,
    ..LOGISTIC
};

pub(super) const POISSON: EstimatorSpec = EstimatorSpec {
    name: "poisson",
    method: "Poisson regression",
    doc: "Poisson regression of counts: the rate ratio; of yes and no the risk ratio.",
    estimate: by_poisson,
    measure: Measure::RateRatio,
    ..LOGISTIC
};

pub(super) const NEGATIVE_BINOMIAL: EstimatorSpec = EstimatorSpec {
    name: "negative_binomial",
    method: "Negative binomial regression",
    doc: "Negative binomial regression of counts (NB2): the rate ratio.",
    estimate: by_negative_binomial,
    measure: Measure::RateRatio,
    ..LOGISTIC
};

pub(super) const PROPORTIONAL_ODDS: EstimatorSpec = EstimatorSpec {
    name: "proportional_odds",
    method: "Proportional odds",
    doc: "Proportional odds of an ordered outcome.",
    estimate: by_levels,
    ..LOGISTIC
};

fn measure_of(measure: RiskMeasure) -> Measure {
    match measure {
        RiskMeasure::Difference => Measure::RiskDifference,
        RiskMeasure::Ratio => Measure::RiskRatio,
        RiskMeasure::OddsRatio => Measure::OddsRatio,
    }
}

/// Two proportions: by score intervals, or with clusters by a logistic regression on the arm alone,
/// which has the same estimates.
fn proportions(
    sample: &EstimationSample<'_>,
    measure: RiskMeasure,
) -> Result<EffectEstimate, Refusal> {
    if sample.correlated().is_some() {
        let alone = EstimationSample { covariates: Vec::new(), ..sample.clone() };
        return by_logistic(&alone, measure);
    }
    let table = FourfoldTable::of(sample.treated, sample.outcome)?;
    let found = table.compare(measure, sample.args.alpha)?;
    let mut result = EffectEstimate::by_test(found, measure_of(measure), "score test");
    let ((x1, n1), (x0, n0)) = (table.treated, table.control);
    result.remarks.push(format!("{x1} of {n1} against {x0} of {n0}."));
    Ok(result)
}

fn by_logistic(
    sample: &EstimationSample<'_>,
    measure: RiskMeasure,
) -> Result<EffectEstimate, Refusal> {
    let (kind, clusters) = sample.covariance();
    if measure == RiskMeasure::Ratio && clusters.is_none() {
        let rows = sample.treated.len();
        sample.require("rows for a ratio by a regression", rows, FEWEST_FOR_RATIO)?;
    }
    let found = logistic(sample.treated, sample.outcome, &sample.covariates, kind, clusters)?;
    let estimate = match measure {
        RiskMeasure::Difference => found.risk_difference,
        RiskMeasure::Ratio => found.log_risk_ratio,
        RiskMeasure::OddsRatio => found.log_odds_ratio,
    };
    let mut result = EffectEstimate::regression(estimate, measure_of(measure), sample, kind);
    if measure == RiskMeasure::OddsRatio {
        if !sample.covariates.is_empty() {
            result.remarks.push("The odds ratio is one at equal covariates.".into());
        }
    } else {
        let (one, zero) = (four_digits(found.treated_risk), four_digits(found.control_risk));
        let over = match sample.covariates.as_slice() {
            [] => "",
            _ => ", averaged over the covariates of all rows",
        };
        result.remarks.push(format!("Probabilities {one} against {zero}{over}."));
    }
    Ok(result)
}

/// The average probabilities of one logistic regression, from their difference and ratio.
fn logistic_risks(sample: &EstimationSample<'_>) -> Result<RiskRatio, Refusal> {
    let difference = by_logistic(sample, RiskMeasure::Difference)?.estimate.value;
    let ratio = by_logistic(sample, RiskMeasure::Ratio)?.estimate;
    let control = difference / ratio.value.exp_m1();
    RiskRatio::new(control + difference, control, ratio.standard_error, ratio.degrees)
}

/// A ratio of mean counts, which of yes and no is one of probabilities.
fn of_counts(
    sample: &EstimationSample<'_>,
    found: &CountEffect,
    kind: Covariance,
) -> EffectEstimate {
    let measure = if is_binary(sample.outcome) { Measure::RiskRatio } else { Measure::RateRatio };
    EffectEstimate::regression(found.log_ratio, measure, sample, kind)
}

fn by_poisson(sample: &EstimationSample<'_>) -> Result<EffectEstimate, Refusal> {
    let (kind, clusters) = sample.covariance();
    let found = poisson(sample.treated, sample.outcome, &sample.covariates, kind, clusters)?;
    let mut result = of_counts(sample, &found, kind);
    if !is_binary(sample.outcome) {
        let pearson = four_digits(found.pearson);
        result.remarks.push(format!("Pearson's chi-squared/df {pearson} (1 if Poisson)."));
    }
    if kind == Covariance::Classic && !sample.only_value {
        let remark = "The classic standard error assumes that the variance is the mean.";
        result.remarks.push(remark.into());
    }
    Ok(result)
}

fn by_negative_binomial(sample: &EstimationSample<'_>) -> Result<EffectEstimate, Refusal> {
    let (kind, clusters) = sample.covariance();
    let (treated, outcome) = (sample.treated, sample.outcome);
    let found = negative_binomial(treated, outcome, &sample.covariates, kind, clusters)?;
    let mut result = of_counts(sample, &found, kind);
    let (dispersion, pearson) = (four_digits(found.dispersion), four_digits(found.pearson));
    result.remarks.push(format!("Dispersion {dispersion}; Pearson's chi-squared/df {pearson}."));
    Ok(result)
}

fn by_levels(sample: &EstimationSample<'_>) -> Result<EffectEstimate, Refusal> {
    refuse_few_whole(sample)?;
    let (kind, clusters) = sample.covariance_without_leverage();
    let (treated, outcome) = (sample.treated, sample.outcome);
    let found = proportional_odds(treated, outcome, &sample.covariates, kind, clusters)?;
    let mut result =
        EffectEstimate::regression(found.log_odds_ratio, Measure::OddsRatio, sample, kind);
    let levels = count(found.levels.len(), "level", "levels");
    result.remarks.push(format!(
        "The odds of a higher one of {levels}, taken as changed by the same ratio at each."
    ));
    Ok(result)
}
