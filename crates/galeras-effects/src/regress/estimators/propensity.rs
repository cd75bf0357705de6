//! Estimators by propensity scores.

use super::{EffectEstimate, EstimandName, EstimationSample, EstimatorSpec};
use crate::regress::args::{Args, StandardErrors};
use crate::regress::comparison::FEWEST_UNITS;
use galeras_base::prose::{count, thousands};
use galeras_causal::{
    Propensity, Refusal, Refuter, aipw, aipw_treated, cross_fit_aipw, jackknifed_aipw,
    jackknifed_aipw_treated, jackknifed_weighting, matching, stratification, weighting,
};

/// The range to which `aipw` clips scores: wide, as its regressions make up for extreme weights.
const AIPW_CLIP: (f64, f64) = (0.01, 0.99);
/// Intervals were not found to hold with fewer of them (docs/coverage.md): rows in an arm for
/// matching, clusters for strata and folds, rows for folds.
const FEWEST_MATCHED: usize = 30;
const FEWEST_CLUSTERS: usize = 20;
const FEWEST_FOLDED: usize = 100;

const UNADJUSTED: &str = "nothing is adjusted: this is the difference in means";

pub(super) const MATCHING: EstimatorSpec = EstimatorSpec {
    needs_propensity: true,
    estimands: &[EstimandName::Ate, EstimandName::Att, EstimandName::Atc],
    unfit_refuters: &[(
        Refuter::Bootstrap,
        "the bootstrap is not valid for matching (Abadie and Imbens 2008)",
    )],
    ..EstimatorSpec::new(
        "matching",
        "Nearest-neighbour matching on the propensity score",
        "Each row against its nearest neighbours by propensity score in the other arm.",
        |sample| with_score(sample, UNADJUSTED, by_matching),
    )
};

pub(super) const STRATIFICATION: EstimatorSpec = EstimatorSpec {
    needs_propensity: true,
    estimands: &[EstimandName::Ate, EstimandName::Att, EstimandName::Atc],
    argument: Some("strata"),
    ..EstimatorSpec::new(
        "stratification",
        "Stratification by the propensity score",
        "Differences of means within strata of the propensity score.",
        |sample| with_score(sample, UNADJUSTED, by_strata),
    )
};

pub(super) const WEIGHTING: EstimatorSpec = EstimatorSpec {
    needs_propensity: true,
    estimands: &[EstimandName::Ate, EstimandName::Att, EstimandName::Atc, EstimandName::Ato],
    ..EstimatorSpec::new(
        "weighting",
        "Inverse propensity weighting (Hájek)",
        "Means weighted by the inverse of the propensity (Hájek).",
        |sample| with_score(sample, UNADJUSTED, by_weights),
    )
};

pub(super) const AIPW: EstimatorSpec = EstimatorSpec {
    needs_propensity: true,
    estimands: &[EstimandName::Ate, EstimandName::Att],
    clip: aipw_clip,
    argument: Some("folds"),
    ..EstimatorSpec::new(
        "aipw",
        "Augmented inverse propensity weighting",
        "Augmented inverse propensity weighting: doubly robust.",
        |sample| with_score(sample, "only its regressions adjust", doubly_robust),
    )
};

type ByScore = fn(&EstimationSample<'_>, &Propensity) -> Result<EffectEstimate, Refusal>;

/// Estimates with the scores of the sample; `constant` is the remark where all are equal.
fn with_score(
    sample: &EstimationSample<'_>,
    constant: &str,
    estimate: ByScore,
) -> Result<EffectEstimate, Refusal> {
    let missing = || Refusal::Other("a defect: no propensity score".into());
    let score = sample.score.ok_or_else(missing)?.as_ref().map_err(Refusal::clone)?;
    let mut result = match squarable_unit(sample.outcome) {
        None => estimate(sample, score)?,
        Some(unit) => {
            let outcome: Vec<f64> = sample.outcome.iter().map(|y| y / unit).collect();
            let scaled = EstimationSample { outcome: &outcome, ..sample.clone() };
            let mut result = estimate(&scaled, score)?;
            result.estimate.value *= unit;
            result.estimate.standard_error *= unit;
            result
        }
    };
    if let Some(score) = score.constant() {
        let remark = format!("Every propensity score is {score:.4}, so that {constant}.");
        result.remarks.push(remark);
    }
    Ok(result)
}

/// The unit, a power of two, in which outcomes can be squared, where they cannot as they are.
fn squarable_unit(outcome: &[f64]) -> Option<f64> {
    let largest = outcome.iter().fold(0.0_f64, |largest, y| largest.max(y.abs()));
    let squarable = (1e-120..=1e120).contains(&largest) || largest == 0.0 || largest.is_infinite();
    (!squarable).then(|| largest.log2().clamp(-1000.0, 1000.0).round().exp2())
}

/// Refuses clusters that are too few for an interval to hold.
fn require_clusters(sample: &EstimationSample<'_>, needed: usize) -> Result<(), Refusal> {
    match sample.correlated().and_then(|codes| codes.iter().max()) {
        Some(last) => sample.require("clusters", *last as usize + 1, needed),
        None => Ok(()),
    }
}

/// The name of the standard error by all estimating equations, and whether it is the jackknife. The
/// plain sandwich is used if it was asked for, or if nobody reads the standard error.
fn error_kind(sample: &EstimationSample<'_>) -> (&'static str, bool) {
    let given = sample.args.standard_errors;
    let plain = matches!(given, Some(StandardErrors::HC0 | StandardErrors::CR0));
    match (plain || sample.only_value, sample.correlated().is_some()) {
        (true, true) => ("sandwich, clustered", false),
        (true, false) => ("sandwich", false),
        (false, true) => ("jackknife, clustered", true),
        (false, false) => ("jackknife", true),
    }
}

/// More clipped scores than this share are let pass only by `max_clipped`.
const FEW_CLIPPED: f64 = 0.01;

fn clipping_remark(scores: usize, rows: usize, (low, high): (f64, f64)) -> Option<String> {
    let words = (scores > 0).then(|| count(scores, "score was", "scores were"))?;
    let range = match (low, high) {
        (low, 1.0) => format!("at least {low}"),
        (0.0, high) => format!("at most {high}"),
        (low, high) => format!("{low} to {high}"),
    };
    let many = match scores as f64 > FEW_CLIPPED * rows as f64 {
        true => {
            " This is not the effect on all rows: those with clipped scores count for less, and \
                 the interval covers too little."
        }
        false => "",
    };
    Some(format!("{words} clipped to {range}.{many}"))
}

fn by_matching(
    sample: &EstimationSample<'_>,
    score: &Propensity,
) -> Result<EffectEstimate, Refusal> {
    let (treated, args) = (sample.treated, sample.args);
    let clusters = sample.correlated();
    if clusters.is_some_and(|codes| !sample.only_value && sample.treats_clusters(codes)) {
        let reason = "each cluster lies in one arm, and the standard error of matching knows no \
                      clusters";
        return Err(Refusal::Other(reason.into()));
    }
    let n_treated = treated.iter().filter(|treated| **treated).count();
    let smaller = n_treated.min(treated.len() - n_treated);
    sample.require("rows of an arm for matching", smaller, FEWEST_MATCHED)?;
    let matched = matching(&score.scores, treated, sample.outcome)?;
    let estimate = match args.estimand {
        EstimandName::Att => matched.att,
        EstimandName::Atc => matched.atc,
        _ => matched.ate,
    };
    let mut result = EffectEstimate::new(estimate, args.estimand.into_str(), "Abadie-Imbens");
    if clusters.is_some() {
        result.remarks.push("The standard error ignores clusters and pairs.".into());
    }
    Ok(result)
}

fn by_strata(sample: &EstimationSample<'_>, score: &Propensity) -> Result<EffectEstimate, Refusal> {
    require_clusters(sample, FEWEST_CLUSTERS)?;
    let (args, clusters) = (sample.args, sample.correlated());
    let strata =
        stratification(&score.scores, sample.treated, sample.outcome, args.strata, clusters)?;
    let estimate = match args.estimand {
        EstimandName::Att => strata.att,
        EstimandName::Atc => strata.atc,
        _ => strata.ate,
    };
    let kind = if clusters.is_some() { "within strata, clustered" } else { "within strata" };
    let mut result = EffectEstimate::new(estimate, args.estimand.into_str(), kind);
    let kept = count(strata.strata_kept, "stratum", "strata");
    let others = match strata.rows_kept < sample.treated.len() {
        true => " The effect is that on these rows, not on all.",
        false => "",
    };
    result.remarks.push(format!("{kept} with {} rows.{others}", thousands(strata.rows_kept)));
    Ok(result)
}

fn by_weights(
    sample: &EstimationSample<'_>,
    score: &Propensity,
) -> Result<EffectEstimate, Refusal> {
    require_clusters(sample, FEWEST_UNITS)?;
    let (args, clusters) = (sample.args, sample.correlated());
    let (x, treated, outcome) = (&sample.covariates, sample.treated, sample.outcome);
    let (estimand, clip) = (args.estimand.into(), args.clip_range());
    let weighted = weighting(x, treated, outcome, score, estimand, clip, clusters)?;
    let (kind, jackknife) = error_kind(sample);
    let estimate = match jackknife {
        true => jackknifed_weighting(x, treated, outcome, score, estimand, clip, clusters)?,
        false => weighted.estimate,
    };
    let mut result = EffectEstimate::new(estimate, args.estimand.into_str(), kind);
    result.remarks.extend(clipping_remark(weighted.clipped, treated.len(), clip));
    Ok(result)
}

fn doubly_robust(
    sample: &EstimationSample<'_>,
    score: &Propensity,
) -> Result<EffectEstimate, Refusal> {
    if let Some(folds) = sample.folds {
        return cross_fitted(sample, folds);
    }
    require_clusters(sample, FEWEST_UNITS)?;
    let (args, clusters) = (sample.args, sample.correlated());
    let (x, treated, outcome) = (&sample.covariates, sample.treated, sample.outcome);
    let (of_treated, clip) = (args.estimand == EstimandName::Att, aipw_clip(args));
    let plain = if of_treated { aipw_treated } else { aipw };
    let robust = plain(x, treated, outcome, score, clip, clusters)?;
    let (kind, jackknife) = error_kind(sample);
    let jackknifed = if of_treated { jackknifed_aipw_treated } else { jackknifed_aipw };
    let estimate = match jackknife {
        true => jackknifed(x, treated, outcome, score, clip, clusters)?,
        false => robust.estimate,
    };
    let mut result = EffectEstimate::new(estimate, args.estimand.into_str(), kind);
    result.remarks.extend(clipping_remark(robust.clipped, treated.len(), clip));
    Ok(result)
}

fn aipw_clip(args: &Args) -> (f64, f64) {
    args.at_unbounded_ends(AIPW_CLIP)
}

fn cross_fitted(sample: &EstimationSample<'_>, folds: &[u32]) -> Result<EffectEstimate, Refusal> {
    let (args, clusters) = (sample.args, sample.correlated());
    if args.estimand != EstimandName::Ate {
        let reason = "with `folds` `aipw` estimates the ate only: remove `folds` for the att";
        return Err(Refusal::Other(reason.into()));
    }
    match clusters {
        Some(_) => require_clusters(sample, FEWEST_CLUSTERS)?,
        None => sample.require("rows for folds", sample.treated.len(), FEWEST_FOLDED)?,
    }
    let wanted = args.folds.unwrap_or_default();
    let mut seen = vec![false; wanted as usize];
    folds.iter().for_each(|fold| seen[*fold as usize] = true);
    if seen.contains(&false) {
        let what = if clusters.is_some() { "units or clusters" } else { "rows" };
        return Err(Refusal::Other(format!("there are too few {what} for {wanted} folds")));
    }
    let (x, treated, outcome) = (&sample.covariates, sample.treated, sample.outcome);
    let penalty = args.penalty;
    let robust = cross_fit_aipw(x, treated, outcome, folds, penalty, AIPW_CLIP, clusters)?;
    let kind = match clusters {
        Some(_) => "influence function, clustered",
        None => "influence function",
    };
    let mut result = EffectEstimate::new(robust.estimate, args.estimand.into_str(), kind);
    result.remarks.extend(clipping_remark(robust.clipped, treated.len(), AIPW_CLIP));
    let folds = folds.iter().max().map_or(0, |last| last + 1);
    result.remarks.push(format!("Models were fitted on other folds of {folds}."));
    Ok(result)
}
