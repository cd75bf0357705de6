//! One estimator on one sample: which function of `causal` answers, and for what it refuses.

use super::super::prose::{count, four_digits, thousands};
use super::args::{Args, EstimandName, Estimator};
use super::comparison::FEWEST_UNITS;
use galeras_causal::{
    Covariance, Estimate, LinearFit, Propensity, Refusal, adjusted, aipw, cross_fit_aipw, dense,
    difference_in_means, interacted, matching, paired, stratification, two_stage, weighting,
};

/// The range to which `aipw` clips scores: wide, as its regressions make up for extreme weights.
const AIPW_CLIP: (f64, f64) = (0.01, 0.99);
/// A first stage with a smaller F is called weak (Staiger and Stock 1997).
const WEAK_F: f64 = 10.0;

/// What is estimated from: columns of the same number of rows.
#[derive(Clone, Copy)]
pub(super) struct EstimationSample<'a> {
    pub(super) treated: &'a [bool],
    pub(super) outcome: &'a [f64],
    pub(super) covariates: &'a [&'a [f64]],
    pub(super) instruments: &'a [&'a [f64]],
    pub(super) units: Option<&'a [u32]>,
    /// Clusters as given, without units in their place.
    pub(super) clusters: Option<&'a [u32]>,
    /// The fold of each row, for cross-fitting.
    pub(super) folds: Option<&'a [u32]>,
    /// Only the estimate is wanted: a regression may leave out its expensive standard errors.
    pub(super) only_value: bool,
}

impl EstimationSample<'_> {
    /// What errors may be correlated within.
    pub(super) fn correlated(&self) -> Option<&[u32]> {
        self.clusters.or(self.units)
    }

    /// The covariance of a regression, and the clusters for it.
    fn covariance(&self, args: &Args) -> (Covariance, Option<&[u32]>) {
        if self.only_value {
            return (Covariance::Classic, None);
        }
        (args.covariance(), self.correlated())
    }
}

/// An estimate and how it came about.
#[derive(Clone, Debug)]
pub(super) struct EffectEstimate {
    pub(super) estimate: Estimate,
    pub(super) estimand: &'static str,
    pub(super) se_kind: String,
    /// Units with rows under both treatments, where pairs were compared.
    pub(super) pairs: Option<usize>,
    /// What else a reader must know, in whole sentences.
    pub(super) remarks: Vec<String>,
}

/// The propensity model that a sample's estimators share, fitted when it is first needed.
pub(super) type FittedPropensity = Result<Propensity, Refusal>;

/// The propensity model of a sample.
pub(super) fn fit_propensity(args: &Args, sample: &EstimationSample<'_>) -> FittedPropensity {
    Propensity::fit(sample.covariates, sample.treated, args.penalty)
}

/// Estimates the effect. `score` is there if the estimator needs one.
pub(super) fn estimate(
    args: &Args,
    estimator: Estimator,
    sample: &EstimationSample<'_>,
    score: Option<&FittedPropensity>,
) -> Result<EffectEstimate, Refusal> {
    match estimator {
        Estimator::Paired => estimate_by_pairs(args, sample),
        Estimator::Difference => estimate_by_difference(sample),
        Estimator::Ols | Estimator::Lin => estimate_by_regression(args, estimator, sample),
        Estimator::Iv => estimate_by_instruments(args, sample),
        _ => {
            let missing = || Refusal::Other("a defect: no propensity score".into());
            let score = score.ok_or_else(missing)?.as_ref().map_err(Refusal::clone)?;
            estimate_by_propensity(args, estimator, sample, score)
        }
    }
}

impl EffectEstimate {
    pub(super) fn new(
        estimate: Estimate,
        estimand: &'static str,
        se_kind: impl Into<String>,
    ) -> Self {
        Self { estimate, estimand, se_kind: se_kind.into(), pairs: None, remarks: Vec::new() }
    }
}

/// The means of the units under both arms, for units that have rows in both.
pub(super) struct UnitPairs {
    pub(super) treatment: Vec<f64>,
    pub(super) control: Vec<f64>,
    /// The unit of each pair.
    pub(super) units: Vec<u32>,
    /// The first row of each pair.
    pub(super) rows: Vec<u32>,
    /// Units with rows in one arm only.
    pub(super) incomplete: usize,
    /// Whether some unit has several rows in an arm.
    pub(super) averaged: bool,
}

impl UnitPairs {
    /// The pairs of a sample with units.
    pub(super) fn of(treated: &[bool], outcome: &[f64], units: &[u32]) -> Self {
        let size = units.iter().max().map_or(0, |last| *last as usize + 1);
        let mut sums = vec![[(0.0, 0u32); 2]; size];
        let mut first = vec![0u32; size];
        for (row, (unit, treated)) in units.iter().zip(treated).enumerate() {
            let arms = &mut sums[*unit as usize];
            if arms[0].1 + arms[1].1 == 0 {
                first[*unit as usize] = row as u32;
            }
            let (sum, n) = &mut arms[usize::from(*treated)];
            *sum += outcome[row];
            *n += 1;
        }
        let mut pairs = Self {
            treatment: Vec::with_capacity(size),
            control: Vec::with_capacity(size),
            units: Vec::with_capacity(size),
            rows: Vec::with_capacity(size),
            incomplete: 0,
            averaged: false,
        };
        for (unit, [(control, n0), (treatment, n1)]) in sums.into_iter().enumerate() {
            if n0 == 0 || n1 == 0 {
                pairs.incomplete += 1;
                continue;
            }
            pairs.averaged |= n0 > 1 || n1 > 1;
            pairs.treatment.push(treatment / f64::from(n1));
            pairs.control.push(control / f64::from(n0));
            pairs.units.push(unit as u32);
            pairs.rows.push(first[unit]);
        }
        pairs
    }

    /// The cluster of each pair, from the unit and the cluster of each row.
    ///
    /// # Errors
    /// A unit has rows in two clusters.
    pub(super) fn clusters(&self, units: &[u32], clusters: &[u32]) -> Result<Vec<u32>, Refusal> {
        let mut of_unit = vec![u32::MAX; units.len()];
        for (unit, cluster) in units.iter().zip(clusters) {
            let known = &mut of_unit[*unit as usize];
            if *known != u32::MAX && known != cluster {
                let message = "a unit has rows in two clusters: units must lie within one";
                return Err(Refusal::Other(message.into()));
            }
            *known = *cluster;
        }
        Ok(self.units.iter().map(|unit| of_unit[*unit as usize]).collect())
    }

    /// Treatment minus control, of each pair.
    pub(super) fn differences(&self) -> Vec<f64> {
        self.treatment.iter().zip(&self.control).map(|(t, c)| t - c).collect()
    }
}

fn estimate_by_pairs(
    args: &Args,
    sample: &EstimationSample<'_>,
) -> Result<EffectEstimate, Refusal> {
    let no_units = || Refusal::Other("a defect: no units".into());
    let units = sample.units.ok_or_else(no_units)?;
    let pairs = UnitPairs::of(sample.treated, sample.outcome, units);
    let n_pairs = pairs.rows.len();
    // A refuter may leave some out: whether there are enough is asked of the data as they are.
    let needed = if sample.only_value { 2 } else { FEWEST_UNITS };
    if n_pairs < needed {
        return Err(Refusal::TooFew { what: "pairs", found: n_pairs, needed });
    }
    let mut result = match sample.clusters {
        None => {
            let paired = paired(&pairs.treatment, &pairs.control)?;
            EffectEstimate::new(paired.estimate, "ate", "paired t")
        }
        Some(clusters) => {
            let of_pairs = dense(pairs.clusters(units, clusters)?.into_iter());
            let (kind, clusters) = sample.covariance(args);
            let fit =
                LinearFit::fit(&[], &pairs.differences()).map_err(|refusal| match refusal {
                    Refusal::Constant(_) => {
                        Refusal::Other("all paired differences are equal".into())
                    }
                    other => other,
                })?;
            let estimate = fit.estimate(0, kind, clusters.map(|_| of_pairs.as_slice()))?;
            EffectEstimate::new(estimate, "ate", format!("{kind} of pair differences"))
        }
    };
    if pairs.incomplete > 0 {
        let units = count(pairs.incomplete, "unit is", "units are");
        result.remarks.push(format!("{units} without rows under one of the two and not used."));
    }
    if pairs.averaged {
        result.remarks.push("Several rows of a unit under one arm are averaged first.".into());
    }
    result.pairs = Some(pairs.rows.len());
    Ok(result)
}

fn estimate_by_difference(sample: &EstimationSample<'_>) -> Result<EffectEstimate, Refusal> {
    let means = difference_in_means(sample.treated, sample.outcome)?;
    let mut result = EffectEstimate::new(means.estimate, "ate", "Welch");
    if sample.units.is_some() {
        let remark = "The standard error ignores that rows are paired.";
        result.remarks.push(remark.into());
    } else if sample.clusters.is_some() {
        result.remarks.push("The standard error ignores clusters.".into());
    }
    Ok(result)
}

fn estimate_by_regression(
    args: &Args,
    estimator: Estimator,
    sample: &EstimationSample<'_>,
) -> Result<EffectEstimate, Refusal> {
    let (kind, clusters) = sample.covariance(args);
    let fit = if estimator == Estimator::Ols { adjusted } else { interacted };
    let fit = fit(sample.treated, sample.outcome, sample.covariates, kind, clusters)?;
    let mut result = EffectEstimate::new(fit.estimate, "ate", kind.to_string());
    result.remarks.extend(unpaired_remark(sample, kind));
    Ok(result)
}

/// What is said of a standard error that takes the rows of a unit as independent.
fn unpaired_remark(sample: &EstimationSample<'_>, kind: Covariance) -> Option<String> {
    let ignored = sample.units.is_some() && !kind.is_clustered();
    ignored.then(|| "The standard error ignores that rows are paired.".into())
}

fn estimate_by_instruments(
    args: &Args,
    sample: &EstimationSample<'_>,
) -> Result<EffectEstimate, Refusal> {
    let endogenous: Vec<f64> = sample.treated.iter().map(|t| f64::from(u8::from(*t))).collect();
    let (kind, clusters) = sample.covariance(args);
    let fit = two_stage(
        sample.outcome,
        &endogenous,
        sample.instruments,
        sample.covariates,
        kind,
        clusters,
    )?;
    let mut result = EffectEstimate::new(fit.estimate, "late", kind.to_string());
    result.remarks.extend(unpaired_remark(sample, kind));
    // By the same variances as the estimate, so that clusters do not make an instrument stronger.
    let (f, kind) = match fit.robust_first_stage_f {
        Some(f) => (f, kind.to_string()),
        None => (fit.first_stage_f, "equal variances".into()),
    };
    result.remarks.push(format!("First-stage F = {} ({kind}).", four_digits(f)));
    if f < WEAK_F {
        result.remarks.push("The instrument is weak (F < 10): the interval may not hold.".into());
    }
    Ok(result)
}

fn estimate_by_propensity(
    args: &Args,
    estimator: Estimator,
    sample: &EstimationSample<'_>,
    score: &Propensity,
) -> Result<EffectEstimate, Refusal> {
    let clusters = sample.correlated();
    let n_clusters = clusters.and_then(|codes| codes.iter().max());
    if let Some(last) = n_clusters.filter(|last| (**last as usize) + 1 < FEWEST_UNITS)
        && estimator != Estimator::Matching
        && !sample.only_value
    {
        // Their variance is one for many clusters, without a correction as CR2 has.
        let found = *last as usize + 1;
        return Err(Refusal::TooFew { what: "clusters", found, needed: FEWEST_UNITS });
    }
    let (treated, outcome) = (sample.treated, sample.outcome);
    let name = args.estimand.name();
    let clip = (args.clip[0], args.clip[1]);
    let mut result = match estimator {
        Estimator::Matching => {
            let matched = matching(&score.scores, treated, outcome)?;
            let estimate = match args.estimand {
                EstimandName::Att => matched.att,
                EstimandName::Atc => matched.atc,
                _ => matched.ate,
            };
            let mut result = EffectEstimate::new(estimate, name, "Abadie-Imbens");
            if clusters.is_some() {
                result.remarks.push("The standard error ignores clusters and pairs.".into());
            }
            result
        }
        Estimator::Stratification => {
            let strata = stratification(&score.scores, treated, outcome, args.strata, clusters)?;
            let estimate = match args.estimand {
                EstimandName::Att => strata.att,
                EstimandName::Atc => strata.atc,
                _ => strata.ate,
            };
            let kind =
                if clusters.is_some() { "within strata, clustered" } else { "within strata" };
            let mut result = EffectEstimate::new(estimate, name, kind);
            let kept = count(strata.strata_kept, "stratum", "strata");
            result.remarks.push(format!("{kept} with {} rows.", thousands(strata.rows_kept)));
            result
        }
        Estimator::Weighting => {
            let estimand = args.estimand.into();
            let weighted =
                weighting(sample.covariates, treated, outcome, score, estimand, clip, clusters)?;
            let kind = if clusters.is_some() { "sandwich, clustered" } else { "sandwich" };
            let mut result = EffectEstimate::new(weighted.estimate, name, kind);
            result.remarks.extend(clipping_remark(weighted.clipped, clip));
            result
        }
        _ => match sample.folds {
            None => {
                let robust =
                    aipw(sample.covariates, treated, outcome, score, AIPW_CLIP, false, clusters)?;
                let kind = if clusters.is_some() { "sandwich, clustered" } else { "sandwich" };
                let mut result = EffectEstimate::new(robust.estimate, name, kind);
                result.remarks.extend(clipping_remark(robust.clipped, AIPW_CLIP));
                result
            }
            Some(folds) => {
                let wanted = args.folds.unwrap_or_default();
                let mut seen = vec![false; wanted as usize];
                folds.iter().for_each(|fold| seen[*fold as usize] = true);
                if seen.contains(&false) {
                    let what = if clusters.is_some() { "units or clusters" } else { "rows" };
                    let reason = format!("there are too few {what} for {wanted} folds");
                    return Err(Refusal::Other(reason));
                }
                let robust = cross_fit_aipw(
                    sample.covariates,
                    treated,
                    outcome,
                    folds,
                    args.penalty,
                    false,
                    AIPW_CLIP,
                    clusters,
                )?;
                let kind = match clusters {
                    Some(_) => "influence function, clustered",
                    None => "influence function",
                };
                let mut result = EffectEstimate::new(robust.estimate, name, kind);
                result.remarks.extend(clipping_remark(robust.clipped, AIPW_CLIP));
                let folds = folds.iter().max().map_or(0, |last| last + 1);
                result.remarks.push(format!("Models were fitted on other folds of {folds}."));
                result
            }
        },
    };
    if let Some(constant) = score.constant() {
        let what = match estimator {
            Estimator::Aipw => "only its regressions adjust",
            _ => "nothing is adjusted: this is the difference in means",
        };
        let remark = format!("Every propensity score is {constant:.4}, so that {what}.");
        result.remarks.push(remark);
    }
    Ok(result)
}

/// What is said of scores outside of the range of weights.
fn clipping_remark(scores: usize, (low, high): (f64, f64)) -> Option<String> {
    let scores = (scores > 0).then(|| count(scores, "score was", "scores were"));
    scores.map(|scores| format!("{scores} clipped to {low} to {high}."))
}
