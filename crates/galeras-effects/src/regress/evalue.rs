//! E-values: rows of the port `sensitivity`. An outcome of zeros and ones has that of its risk
//! ratio, by the risks that the primary estimator compares; another one that of an approximation.

use super::args::Args;
use super::comparison::{Comparison, RowSet};
use super::estimate::{EffectEstimate, EstimationSample, FittedPropensity};
use super::estimators::Estimator;
use super::generalised::estimate;
use super::sensitivity_table::SensitivityMeasures;
use galeras_base::prose::{confidence_level, four_digits, interval};
use galeras_causal::{
    EValue, Refusal, RiskRatio, evalue_difference, evalue_ratio, pooled_deviation,
    standardised_risks,
};

/// Adds the E-value of the primary estimate.
pub(super) fn evalue(
    args: &Args,
    measures: &mut SensitivityMeasures<'_>,
    set: &RowSet,
    comparison: &Comparison,
    effect: &EffectEstimate,
    score: Option<&FittedPropensity>,
    folds: Option<&[u32]>,
) {
    if is_binary(&comparison.values) {
        of_risks(args, measures, set, comparison, effect, score, folds);
    } else {
        of_difference(measures, set, comparison, effect);
    }
}

/// Whether an outcome is zero or one in every row.
pub(super) fn is_binary(values: &[f64]) -> bool {
    values.iter().all(|value| *value == 0.0 || *value == 1.0)
}

/// By the approximation for continuous outcomes.
fn of_difference(
    measures: &mut SensitivityMeasures<'_>,
    set: &RowSet,
    comparison: &Comparison,
    effect: &EffectEstimate,
) {
    let estimate = effect.estimate;
    let arm = |wanted: bool| -> Vec<f64> {
        let rows = comparison.near_zero().iter().zip(&set.treated);
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
    let note = format!("As an approximate risk ratio: {}.", four_digits(evalue.ratio));
    measures.add("evalue", "risk_ratio", Ok(evalue.ratio), note);
    // The published approximation has no other level.
    of_ratio(measures, &evalue, "95");
}

/// By the risk ratio.
fn of_risks(
    args: &Args,
    measures: &mut SensitivityMeasures<'_>,
    set: &RowSet,
    comparison: &Comparison,
    effect: &EffectEstimate,
    score: Option<&FittedPropensity>,
    folds: Option<&[u32]>,
) {
    let result = risk_ratio(args, set, comparison, effect, score, folds).and_then(|risks| {
        Ok((risks, evalue_ratio(risks.ratio, Some(risks.interval(args.alpha)))?))
    });
    let (risks, evalue) = match result {
        Ok(result) => result,
        Err(reason) => return measures.refused("evalue", "evalue", reason),
    };
    let outcome = measures.outcome;
    for (measure, risk, arm) in [
        ("risk_treatment", risks.treated, &set.contrast.treatment),
        ("risk_control", risks.control, &set.contrast.control),
    ] {
        let note = format!("The share of rows with {outcome} under {arm}: {}.", four_digits(risk));
        measures.add("evalue", measure, Ok(risk), note);
    }
    let note = format!(
        "The risk ratio: {} ({} % CI {}).",
        four_digits(risks.ratio),
        confidence_level(args.alpha),
        interval(risks.interval(args.alpha)),
    );
    measures.add("evalue", "risk_ratio", Ok(risks.ratio), note);
    of_ratio(measures, &evalue, &confidence_level(args.alpha));
}

/// What both have in common.
fn of_ratio(measures: &mut SensitivityMeasures<'_>, evalue: &EValue, level: &str) {
    if let Some((low, high)) = evalue.interval {
        let note = |end: &str| format!("The {end} end of its {level} % interval.");
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
        let note =
            format!("To move its {level} % interval to no effect, {} each.", four_digits(limit));
        measures.add("evalue", "evalue_ci", Ok(limit), note);
    }
}

/// The risk ratio of the primary estimator, whose estimate is the difference of the risks.
fn risk_ratio(
    args: &Args,
    set: &RowSet,
    comparison: &Comparison,
    effect: &EffectEstimate,
    score: Option<&FittedPropensity>,
    folds: Option<&[u32]>,
) -> Result<RiskRatio, Refusal> {
    let covariates: Vec<&[f64]> = set.covariates.iter().map(Vec::as_slice).collect();
    let instruments: Vec<&[f64]> = set.instruments.iter().map(Vec::as_slice).collect();
    let absorbed: Vec<&[u32]> = set.absorbed.iter().map(Vec::as_slice).collect();
    let of = EstimationSample {
        absorbed: &absorbed,
        treated: &set.treated,
        outcome: &comparison.values,
        covariates: &covariates,
        instruments: &instruments,
        units: set.units.as_deref(),
        clusters: set.clusters.as_deref(),
        folds,
        only_value: false,
    };
    let estimator = args.estimators()[0];
    match estimator {
        Estimator::Difference
        | Estimator::RiskDifference
        | Estimator::RiskRatio
        | Estimator::OddsRatio
        | Estimator::Wilcoxon
        | Estimator::Mcnemar
        | Estimator::McnemarMidP => {
            let count = |wanted: bool| {
                let rows = set.treated.iter().zip(&comparison.values);
                let arm = rows.filter(|(treated, _)| **treated == wanted);
                arm.fold((0, 0), |(events, rows), (_, value)| {
                    (events + usize::from(*value == 1.0), rows + 1)
                })
            };
            RiskRatio::of_counts(count(true), count(false))
        }
        Estimator::Ols => {
            let (kind, clusters) = (args.covariance(), set.correlated());
            standardised_risks(&set.treated, &comparison.values, &covariates, kind, clusters)
        }
        Estimator::Frontdoor => {
            Err(Refusal::Other("the front door gives a difference of risks, and no risks".into()))
        }
        // The average probabilities of one logistic regression, from their difference and ratio.
        Estimator::Logistic
        | Estimator::LogisticDifference
        | Estimator::LogisticRatio
        | Estimator::Poisson
        | Estimator::NegativeBinomial
        | Estimator::ProportionalOdds => {
            let answer = |which| estimate(args, which, &of, score).map(|effect| effect.estimate);
            let difference = answer(Estimator::LogisticDifference)?.value;
            let ratio = answer(Estimator::LogisticRatio)?;
            let control = difference / ratio.value.exp_m1();
            RiskRatio::new(control + difference, control, ratio.standard_error, ratio.degrees)
        }
        // These are the difference of two means of which each is linear in the outcomes of its own
        // arm. So the means come out of a second estimate with the treated outcomes doubled. And
        // with the outcomes of each arm in units of its mean, the estimate is the logarithm of the
        // ratio to first order, and its standard error the one of the delta method.
        Estimator::Paired
        | Estimator::Lin
        | Estimator::Matching
        | Estimator::Stratification
        | Estimator::Weighting
        | Estimator::Aipw
        | Estimator::Iv => {
            let scaled = |treated: f64, control: f64| -> Vec<f64> {
                let factor = |t: &bool| if *t { treated } else { control };
                comparison.values.iter().zip(&set.treated).map(|(y, t)| y * factor(t)).collect()
            };
            let doubled = scaled(2.0, 1.0);
            let double = EstimationSample { outcome: &doubled, only_value: true, ..of };
            let double = estimate(args, estimator, &double, score)?;
            let treated = double.estimate.value - effect.estimate.value;
            let control = treated - effect.estimate.value;
            // Whether there is a ratio is known before its error.
            RiskRatio::new(treated, control, 1.0, f64::INFINITY)?;
            let linear = scaled(1.0 / treated, 1.0 / control);
            let linear = EstimationSample { outcome: &linear, ..of };
            let error = estimate(args, estimator, &linear, score)?.estimate;
            RiskRatio::new(treated, control, error.standard_error, error.degrees)
        }
    }
}
