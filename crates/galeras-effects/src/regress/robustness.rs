//! Cinelli and Hazlett's robustness values: rows of the port `sensitivity`. They belong to the
//! regression of an estimator; others have none, with the reason.

use super::estimators::EffectEstimate;
use super::sensitivity::SensitivityMeasures;
use crate::shared_columns as columns;
use galeras_base::prose::four_digits;
use galeras_causal::{
    Covariance::Classic, InstrumentRobustness, Refusal, Robustness, absorbed, adjusted,
    instrument_robustness, interacted, paired, robustness,
};
use galeras_operator::Entry;

/// The analysis of the primary estimate, and of a linear regression next to it.
const PRIMARY: &str = "robustness";
const SECONDARY: &str = "robustness_ols";

type Primary<'a> = Result<&'a EffectEstimate, &'a str>;

pub(super) fn of_ols(measures: &mut SensitivityMeasures<'_>, _: Primary<'_>) {
    of_regression(measures, PRIMARY, false);
}

/// Of `ols` where it is not the primary estimator.
pub(super) fn of_secondary_ols(measures: &mut SensitivityMeasures<'_>) {
    of_regression(measures, SECONDARY, false);
}

pub(super) fn of_lin(measures: &mut SensitivityMeasures<'_>, _: Primary<'_>) {
    of_regression(measures, PRIMARY, true);
}

/// Of an estimator that is not a regression; without covariates no reader expects them.
pub(super) fn of_no_regression(measures: &mut SensitivityMeasures<'_>, _: Primary<'_>) {
    if !measures.cx.set.names.is_empty() {
        let reason = format!(
            "robustness values are those of a regression, and `{}` is none (`ols` among the \
             estimators gives those of a linear one)",
            measures.cx.args.estimators()[0].name()
        );
        measures.refused(PRIMARY, "robustness_value", reason);
    }
}

/// Of a linear regression with the covariates, interacted with the treatment if `lin`.
fn of_regression(measures: &mut SensitivityMeasures<'_>, analysis: &'static str, lin: bool) {
    let (set, absorb) = (measures.cx.set, &measures.cx.args.absorb);
    if set.names.is_empty() && absorb.is_empty() {
        return;
    }
    let refused = set.adjusting_refused().cloned().or_else(|| measures.cx.separated());
    let robustness = match refused {
        Some(reason) => Err(reason),
        None => regression(measures, lin).map_err(|refusal| columns::named(&refusal, &set.names)),
    };
    let robustness = match robustness {
        Ok(robustness) => robustness,
        Err(reason) => return measures.refused(analysis, "robustness_value", reason),
    };
    let others = if absorb.is_empty() { "the covariates leave" } else { "the others leave" };
    let partial = format!(
        "In a linear regression the treatment explains {} % of what {others} of the outcome.",
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
    add_values(measures, analysis, &robustness, partial, value, assumed);
}

fn regression(measures: &SensitivityMeasures<'_>, lin: bool) -> Result<Robustness, Refusal> {
    let (args, set) = (measures.cx.args, measures.cx.set);
    let outcome = measures.comparison.near_zero();
    if !args.absorb.is_empty() && lin {
        return Err(Refusal::Other("`lin` does not absorb effects: only `ols` does".into()));
    }
    if !args.absorb.is_empty() {
        // The absorbed constants are regressors like others.
        let factors: Vec<&[u32]> = set.absorbed.iter().map(Vec::as_slice).collect();
        let fit = absorbed(&set.treated, outcome, &set.covariates(), &factors, Classic, None)?;
        return robustness(fit.estimate.statistic(), fit.residual_degrees as f64, 1.0, args.alpha);
    }
    if args.weights.is_some() {
        let message = "they are those of a regression without weights";
        return Err(Refusal::Other(message.into()));
    }
    let fit = if lin { interacted } else { adjusted };
    let fit = fit(&set.treated, outcome, &set.covariates(), Classic, None)?;
    robustness(fit.classic_statistic, fit.residual_degrees as f64, 1.0, args.alpha)
}

/// Of the paired difference: it is the coefficient of a regression with an intercept for each unit,
/// whose t statistic is that of the pairs and whose residual degrees of freedom are the pairs less
/// one.
pub(super) fn of_pairs(measures: &mut SensitivityMeasures<'_>, primary: Primary<'_>) {
    if let Err(reason) = primary {
        return measures.refused(PRIMARY, "robustness_value", reason);
    }
    let (args, set) = (measures.cx.args, measures.cx.set);
    let Some(pairs) = set.pairs(measures.comparison.near_zero()) else { return };
    let found = paired(&pairs.treatment, &pairs.control)
        .and_then(|estimate| robustness(estimate.statistic(), estimate.degrees, 1.0, args.alpha));
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
    add_values(measures, PRIMARY, &robustness, partial, value, assumed);
}

fn add_values(
    measures: &mut SensitivityMeasures<'_>,
    analysis: &'static str,
    robustness: &Robustness,
    partial: String,
    value: String,
    assumed: &str,
) {
    let alpha = measures.cx.args.alpha;
    measures.add(analysis, "partial_r2", Ok(robustness.partial_r2), partial);
    let note = "Cohen's partial f squared.".to_string();
    measures.add(analysis, "partial_f2", Ok(robustness.partial_f2), note);
    measures.add(analysis, "robustness_value", Ok(robustness.value), value);
    let note = if robustness.value_alpha > 0.0 {
        format!(
            "One that explains {} % of both would make it insignificant at the {alpha} level{assumed}.",
            percent(robustness.value_alpha)
        )
    } else {
        format!("It is insignificant at the {alpha} level without one{assumed}.")
    };
    measures.add(analysis, "robustness_value_alpha", Ok(robustness.value_alpha), note);
}

/// Of an estimate by one instrument.
pub(super) fn of_instrument(measures: &mut SensitivityMeasures<'_>, primary: Primary<'_>) {
    let (args, set) = (measures.cx.args, measures.cx.set);
    let found = match (primary, set.instruments.as_slice()) {
        (Err(reason), _) => Err(reason.to_owned()),
        (Ok(_), [instrument]) => {
            let outcome = measures.comparison.near_zero();
            let covariates = set.covariates();
            instrument_robustness(outcome, &set.treated, instrument, &covariates, args.alpha)
                .map_err(|refusal| columns::named(&refusal, &set.names))
        }
        _ => Err("the robustness values of an estimate by instruments are defined for one of them"
            .to_owned()),
    };
    match found {
        Ok(found) => add_of_instrument(measures, &found),
        Err(reason) => measures.refused(PRIMARY, "robustness_value", reason),
    }
}

fn add_of_instrument(measures: &mut SensitivityMeasures<'_>, found: &InstrumentRobustness) {
    let (alpha, set) = (measures.cx.args.alpha, measures.cx.set);
    let name = &set.plan.instruments[0];
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
