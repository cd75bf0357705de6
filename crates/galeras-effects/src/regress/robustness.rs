//! Cinelli and Hazlett's robustness values: rows of the port `sensitivity`. They belong to a
//! regression, so each estimator has those of its own, or none and a reason.

use super::args::Args;
use super::comparison::{Comparison, RowSet};
use super::estimate::{EffectEstimate, FittedPropensity};
use super::estimators::Estimator;
use super::sensitivity_table::SensitivityMeasures;
use super::shared_columns as columns;
use super::unit_pairs::UnitPairs;
use galeras_base::prose::four_digits;
use galeras_causal::{
    Covariance::Classic, InstrumentRobustness, Refusal, Robustness, adjusted,
    instrument_robustness, interacted, paired, robustness,
};

/// The analysis of the primary estimate, and of a linear regression beside it.
const PRIMARY: &str = "robustness";
const BESIDE: &str = "robustness_ols";

/// Adds the robustness values of the primary estimate, and those of `ols` if it stands beside.
pub(super) fn robustness_rows(
    args: &Args,
    measures: &mut SensitivityMeasures<'_>,
    set: &RowSet,
    comparison: &Comparison,
    primary: Result<&EffectEstimate, &str>,
    score: Option<&FittedPropensity>,
) {
    let estimators = args.estimators();
    let covariates: Vec<&[f64]> = set.covariates.iter().map(Vec::as_slice).collect();
    let regression = |lin: bool| {
        if !args.absorb.is_empty() {
            let message = "they are those of a regression without absorbed effects";
            return Err(Refusal::Other(message.into()));
        }
        let fit = if lin { interacted } else { adjusted };
        let fit = fit(&set.treated, comparison.near_zero(), &covariates, Classic, None)?;
        let degrees = fit.residual_degrees as f64;
        robustness(fit.classic_statistic, degrees, 1.0, args.alpha)
    };
    let named = |refusal: Refusal| columns::named(&refusal, &set.names);
    match (estimators[0], primary) {
        (Estimator::Ols, _) => {
            linear(args, measures, set, score, PRIMARY, || regression(false).map_err(named));
        }
        (Estimator::Lin, _) => {
            linear(args, measures, set, score, PRIMARY, || regression(true).map_err(named));
        }
        (Estimator::Paired, Ok(_)) => within_units(args, measures, set, comparison),
        (Estimator::Iv, Ok(_)) => match set.instruments.as_slice() {
            [instrument] => {
                let (treated, values) = (&set.treated, comparison.near_zero());
                let found =
                    instrument_robustness(values, treated, instrument, &covariates, args.alpha);
                match found {
                    Ok(found) => of_instrument(args, measures, set, &found),
                    Err(reason) => measures.refused(PRIMARY, "robustness_value", named(reason)),
                }
            }
            _ => measures.refused(
                PRIMARY,
                "robustness_value",
                "the robustness values of an estimate by instruments are defined for one of them",
            ),
        },
        (Estimator::Paired | Estimator::Iv, Err(reason)) => {
            measures.refused(PRIMARY, "robustness_value", reason);
        }
        (other, _) => {
            // Without covariates nobody expects them.
            if !set.names.is_empty() {
                let reason = format!(
                    "robustness values are those of a regression, and `{}` is none (`ols` among \
                     the estimators gives those of a linear one)",
                    other.name()
                );
                measures.refused(PRIMARY, "robustness_value", reason);
            }
        }
    }
    if estimators[1..].contains(&Estimator::Ols) {
        linear(args, measures, set, score, BESIDE, || regression(false).map_err(named));
    }
}

/// Of a linear regression with the covariates.
fn linear(
    args: &Args,
    measures: &mut SensitivityMeasures<'_>,
    set: &RowSet,
    score: Option<&FittedPropensity>,
    analysis: &'static str,
    regression: impl Fn() -> Result<Robustness, String>,
) {
    if set.names.is_empty() {
        return;
    }
    if let Some(reason) = set.adjusting_refused() {
        return measures.refused(analysis, "robustness_value", reason);
    }
    if let Some(Err(reason @ Refusal::Separated)) = score {
        return measures.refused(analysis, "robustness_value", reason);
    }
    let robustness = match regression() {
        Ok(robustness) => robustness,
        Err(reason) => return measures.refused(analysis, "robustness_value", reason),
    };
    let partial = format!(
        "In a linear regression the treatment explains {} % of what the covariates leave of the \
         outcome.",
        percent(robustness.partial_r2)
    );
    let value = format!(
        "A confounder that explains {} % of what is left of both treatment and outcome would \
         bring the estimate to zero (Cinelli and Hazlett 2020).",
        percent(robustness.value)
    );
    let assumed = match set.correlated() {
        Some(_) => " (by the classic standard error, which takes rows as independent)",
        None => " (by the classic standard error)",
    };
    four(args, measures, analysis, &robustness, partial, value, assumed);
}

/// Of the paired difference: it is the coefficient of a regression with an intercept for each unit,
/// whose t statistic is that of the pairs and whose residual degrees of freedom are the pairs less
/// one.
fn within_units(
    args: &Args,
    measures: &mut SensitivityMeasures<'_>,
    set: &RowSet,
    comparison: &Comparison,
) {
    let Some(units) = &set.units else { return };
    let pairs = UnitPairs::of(&set.treated, comparison.near_zero(), units);
    let found = paired(&pairs.treatment, &pairs.control).and_then(|paired| {
        let estimate = paired.estimate;
        robustness(estimate.statistic(), estimate.degrees, 1.0, args.alpha)
    });
    let robustness = match found {
        Ok(robustness) => robustness,
        Err(reason) => return measures.refused(PRIMARY, "robustness_value", reason),
    };
    let partial = format!(
        "Within units the treatment explains {} % of the outcome.",
        percent(robustness.partial_r2)
    );
    let value = format!(
        "What is a property of the unit cannot confound. Something that differs within units, and \
         explains {} % of both treatment and outcome there, would bring the estimate to zero \
         (Cinelli and Hazlett 2020, of the regression with an intercept for each unit).",
        percent(robustness.value)
    );
    let assumed = match set.clusters {
        Some(_) => " (by the paired standard error, which takes units as independent)",
        None => "",
    };
    four(args, measures, PRIMARY, &robustness, partial, value, assumed);
}

/// The four values of one regression.
fn four(
    args: &Args,
    measures: &mut SensitivityMeasures<'_>,
    analysis: &'static str,
    robustness: &Robustness,
    partial: String,
    value: String,
    assumed: &str,
) {
    measures.add(analysis, "partial_r2", Ok(robustness.partial_r2), partial);
    let note = "Cohen's partial f squared.".to_string();
    measures.add(analysis, "partial_f2", Ok(robustness.partial_f2), note);
    measures.add(analysis, "robustness_value", Ok(robustness.value), value);
    let note = if robustness.value_alpha > 0.0 {
        format!(
            "One that explains {} % of both would make it insignificant at the {} level{assumed}.",
            percent(robustness.value_alpha),
            args.alpha
        )
    } else {
        format!("It is insignificant at the {} level without one{assumed}.", args.alpha)
    };
    measures.add(analysis, "robustness_value_alpha", Ok(robustness.value_alpha), note);
}

/// Of an estimate by one instrument.
fn of_instrument(
    args: &Args,
    measures: &mut SensitivityMeasures<'_>,
    set: &RowSet,
    found: &InstrumentRobustness,
) {
    let name = &set.instrument_names[0];
    let mut add = |measure: &str, value: f64, note: String| {
        measures.add(PRIMARY, measure, Ok(value), note);
    };
    for (measure, stage, what) in [
        ("partial_r2_reduced_form", &found.reduced_form, "outcome"),
        ("partial_r2_first_stage", &found.first_stage, "treatment"),
    ] {
        let note = format!(
            "`{name}` explains {} % of what the covariates leave of the {what}.",
            percent(stage.partial_r2)
        );
        add(measure, stage.partial_r2, note);
    }
    for (measure, stage, what) in [
        ("robustness_value_reduced_form", &found.reduced_form, "outcome"),
        ("robustness_value_first_stage", &found.first_stage, "treatment"),
    ] {
        let note = format!(
            "A confounder that explains {} % of what is left of both `{name}` and the {what} would \
             bring its coefficient for the {what} to zero.",
            percent(stage.value)
        );
        add(measure, stage.value, note);
    }
    let note = format!(
        "A confounder of `{name}` that explains {} % of what is left of it and of the outcome, or \
         of the treatment, would let the estimate be zero, or anything (Cinelli and Hazlett 2025).",
        percent(found.value())
    );
    add("robustness_value", found.value(), note);
    let alpha = args.alpha;
    for (measure, value, which) in [
        ("robustness_value_alpha", found.value_alpha(), "that explains"),
        (
            "extreme_robustness_value_alpha",
            found.extreme_alpha(),
            "that explains all of the outcome or the treatment, and of the instrument",
        ),
    ] {
        let note = if value > 0.0 {
            format!(
                "One {which} {} % would make it insignificant at the {alpha} level (by Anderson \
                 and Rubin's test with classic standard errors).",
                percent(value)
            )
        } else {
            format!("It is insignificant at the {alpha} level without one (by the same test).")
        };
        add(measure, value, note);
    }
}

fn percent(share: f64) -> String {
    four_digits(100.0 * share)
}
