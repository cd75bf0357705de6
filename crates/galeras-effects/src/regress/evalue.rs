//! E-values: rows of the port `sensitivity`. A ratio has its own, as a risk ratio; a difference of an
//! outcome of zeros and ones that of the risks that the primary estimator compares; another one that
//! of an approximation.

use super::comparison::arm_values;
use super::estimators::{EffectEstimate, EstimationSample, EstimatorSpec, Measure};
use super::sensitivity::SensitivityMeasures;
use crate::words::ci;
use galeras_base::prose::{by_interval, confidence_level, four_digits};
use galeras_causal::{
    EValue, Refusal, RiskRatio, evalue_difference, evalue_ratio, pooled_deviation,
};

/// Adds the E-value of the primary estimate.
pub(super) fn evalue(measures: &mut SensitivityMeasures<'_>, effect: &EffectEstimate) {
    if effect.measure.is_ratio() {
        of_estimated_ratio(measures, effect);
    } else if is_binary(&measures.comparison.values) {
        of_risks(measures, effect);
    } else {
        of_difference(measures, effect);
    }
}

/// An outcome of a smaller share of the rows is rare: its odds ratio is nearly a risk ratio.
const RARE: f64 = 0.15;

/// By the ratio that was estimated, as a risk ratio (VanderWeele and Ding 2017, table 2): a rate ratio
/// as it is, also an odds ratio of a rare outcome, and else its square root.
fn of_estimated_ratio(measures: &mut SensitivityMeasures<'_>, effect: &EffectEstimate) {
    let alpha = measures.cx.args.alpha;
    let values = &measures.comparison.values;
    let share = values.iter().sum::<f64>() / values.len() as f64;
    let is_rare = is_binary(values) && share < RARE;
    let (what, root) = match effect.measure {
        Measure::OddsRatio if is_rare => {
            ("The odds ratio of a rare outcome, which is nearly a risk ratio", false)
        }
        Measure::OddsRatio => {
            ("The square root of the odds ratio, which approximates a risk ratio", true)
        }
        Measure::RateRatio => ("The rate ratio, which counts as a risk ratio", false),
        _ => ("The risk ratio", false),
    };
    let as_risk = |ratio: f64| if root { ratio.sqrt() } else { ratio };
    let (low, high) = effect.interval(alpha);
    let (ratio, ends) = (as_risk(effect.value()), (as_risk(low), as_risk(high)));
    let evalue = match evalue_ratio(ratio, Some(ends)) {
        Ok(evalue) => evalue,
        Err(reason) => return measures.refused("evalue", "evalue", reason),
    };
    let note = format!("{what}: {} ({}).", by_interval(ratio, ends), ci(alpha, ends));
    measures.add("evalue", "risk_ratio", Ok(ratio), note);
    of_ratio(measures, &evalue, &confidence_level(alpha));
}

pub(super) fn is_binary(values: &[f64]) -> bool {
    values.iter().all(|value| *value == 0.0 || *value == 1.0)
}

/// By the approximation for continuous outcomes.
fn of_difference(measures: &mut SensitivityMeasures<'_>, effect: &EffectEstimate) {
    let estimate = effect.estimate;
    let (treated, values) = (&measures.cx.set.treated, measures.comparison.near_zero());
    let arm = |wanted| arm_values(treated, values, wanted);
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
fn of_risks(measures: &mut SensitivityMeasures<'_>, effect: &EffectEstimate) {
    let (args, set) = (measures.cx.args, measures.cx.set);
    let estimator = args.estimators()[0];
    let sample = measures.cx.sample(&measures.comparison.values);
    let risks = (estimator.risks)(&estimator, &sample, effect.estimate.value);
    let result = risks.and_then(|risks| {
        Ok((risks, evalue_ratio(risks.ratio, Some(risks.interval(args.alpha)))?))
    });
    let (risks, evalue) = match result {
        Ok(result) => result,
        Err(reason) => return measures.refused("evalue", "evalue", reason),
    };
    let outcome = &measures.comparison.outcome;
    for (measure, risk, arm) in [
        ("risk_treatment", risks.treated, &set.contrast.treatment),
        ("risk_control", risks.control, &set.contrast.control),
    ] {
        let note = format!("The share of rows with {outcome} under {arm}: {}.", four_digits(risk));
        measures.add("evalue", measure, Ok(risk), note);
    }
    let ends = risks.interval(args.alpha);
    let note =
        format!("The risk ratio: {} ({}).", by_interval(risks.ratio, ends), ci(args.alpha, ends));
    measures.add("evalue", "risk_ratio", Ok(risks.ratio), note);
    of_ratio(measures, &evalue, &confidence_level(args.alpha));
}

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

/// The risks of an estimator that counts the rows of each arm.
pub(super) fn counted_risks(
    _: &EstimatorSpec,
    sample: &EstimationSample<'_>,
    _: f64,
) -> Result<RiskRatio, Refusal> {
    let count = |wanted: bool| {
        let values = arm_values(sample.treated, sample.outcome, wanted);
        (values.iter().filter(|value| **value == 1.0).count(), values.len())
    };
    RiskRatio::of_counts(count(true), count(false))
}

/// The risks of an estimator whose estimate is the difference of two means, each linear in the
/// outcomes of its arm.
///
/// The means follow from a second estimate with the treated outcomes doubled. With the outcomes of
/// each arm in units of its mean, the estimate is the logarithm of the ratio to first order, and its
/// standard error the one of the delta method.
pub(super) fn scaled_risks(
    estimator: &EstimatorSpec,
    sample: &EstimationSample<'_>,
    difference: f64,
) -> Result<RiskRatio, Refusal> {
    let scaled = |treated: f64, control: f64| -> Vec<f64> {
        let factor = |t: &bool| if *t { treated } else { control };
        sample.outcome.iter().zip(sample.treated).map(|(y, t)| y * factor(t)).collect()
    };
    let doubled = scaled(2.0, 1.0);
    let double = EstimationSample { outcome: &doubled, only_value: true, ..sample.clone() };
    let treated = estimator.run(&double)?.estimate.value - difference;
    let control = treated - difference;
    // Refuse a ratio before its error is computed.
    RiskRatio::new(treated, control, 1.0, f64::INFINITY)?;
    let linear = scaled(1.0 / treated, 1.0 / control);
    let linear = EstimationSample { outcome: &linear, ..sample.clone() };
    let error = estimator.run(&linear)?.estimate;
    RiskRatio::new(treated, control, error.standard_error, error.degrees)
}
