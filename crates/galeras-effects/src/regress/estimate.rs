//! One estimator on one sample: which function of `causal` answers, and for what it refuses.

use super::args::{Args, StandardErrors};
use super::comparison::FEWEST_UNITS;
use super::estimators::{EstimandName, Estimator};
use super::instruments::InstrumentColumns;
use super::measure::Measure;
use super::unit_pairs::UnitPairs;
use galeras_base::prose::{count, thousands};
use galeras_causal::{
    Covariance, Estimate, InvertedEstimate, LinearFit, Propensity, Refusal, adjusted, aipw,
    cross_fit_aipw, dense, difference_in_means, interacted, jackknifed_aipw, jackknifed_weighting,
    matching, paired, stratification, weighting,
};

/// The range to which `aipw` clips scores: wide, as its regressions make up for extreme weights.
const AIPW_CLIP: (f64, f64) = (0.01, 0.99);
/// With fewer rows in an arm, intervals of matching cover less than they say (docs/coverage.md), and
/// so do those by strata and by folds with fewer clusters; with fewer rows, those by folds and by
/// instruments cover more.
const FEWEST_MATCHED: usize = 30;
const FEWEST_CLUSTERS: usize = 20;
const FEWEST_FOLDED: usize = 100;
const FEWEST_INSTRUMENTED: usize = 50;

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
    /// The levels of each absorbed column.
    pub(super) absorbed: &'a [&'a [u32]],
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
    pub(super) fn covariance(&self, args: &Args) -> (Covariance, Option<&[u32]>) {
        if self.only_value {
            return (Covariance::Classic, None);
        }
        (args.covariance(), self.correlated())
    }

    /// The same for estimators without leverages: HC1 and CR1 unless others are asked for.
    pub(super) fn covariance_without_leverage(&self, args: &Args) -> (Covariance, Option<&[u32]>) {
        match (self.only_value, args.standard_errors, self.correlated()) {
            (false, None, None) => (Covariance::Hc1, None),
            (false, None, clusters) => (Covariance::Cr1, clusters),
            _ => self.covariance(args),
        }
    }

    /// What is said of a standard error that takes the rows of a unit as independent.
    pub(super) fn unpaired_remark(&self, kind: Covariance) -> Option<String> {
        let ignored = self.units.is_some() && !kind.is_clustered();
        ignored.then(|| "The standard error ignores that rows are paired.".into())
    }
}

/// An estimate and how it came about.
#[derive(Clone, Debug)]
pub(super) struct EffectEstimate {
    /// On the scale of inference: the logarithm of a ratio.
    pub(super) estimate: Estimate,
    pub(super) measure: Measure,
    /// The interval and p-value of a test, in place of those of the standard error.
    pub(super) inverted: Option<InvertedEstimate>,
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

/// The mean difference by one of the estimators of this file. `score` is there if the estimator
/// needs one.
pub(super) fn estimate_mean_difference(
    args: &Args,
    estimator: Estimator,
    sample: &EstimationSample<'_>,
    score: Option<&FittedPropensity>,
) -> Result<EffectEstimate, Refusal> {
    match estimator {
        Estimator::Paired => estimate_by_pairs(args, sample),
        Estimator::Difference => estimate_by_difference(args, sample),
        Estimator::Ols | Estimator::Lin => estimate_by_regression(args, estimator, sample),
        Estimator::Iv => estimate_by_instruments(args, sample),
        _ => {
            let missing = || Refusal::Other("a defect: no propensity score".into());
            let score = score.ok_or_else(missing)?.as_ref().map_err(Refusal::clone)?;
            let unit = squarable_unit(sample.outcome);
            let Some(unit) = unit else {
                return estimate_by_propensity(args, estimator, sample, score);
            };
            let outcome: Vec<f64> = sample.outcome.iter().map(|y| y / unit).collect();
            let sample = EstimationSample { outcome: &outcome, ..*sample };
            let mut result = estimate_by_propensity(args, estimator, &sample, score)?;
            result.estimate.value *= unit;
            result.estimate.standard_error *= unit;
            Ok(result)
        }
    }
}

/// The unit, a power of two, in which outcomes can be squared, where they cannot as they are.
fn squarable_unit(outcome: &[f64]) -> Option<f64> {
    let largest = outcome.iter().fold(0.0_f64, |largest, y| largest.max(y.abs()));
    let squarable = (1e-120..=1e120).contains(&largest) || largest == 0.0 || largest.is_infinite();
    (!squarable).then(|| largest.log2().clamp(-1000.0, 1000.0).round().exp2())
}

impl EffectEstimate {
    pub(super) fn new(
        estimate: Estimate,
        estimand: &'static str,
        se_kind: impl Into<String>,
    ) -> Self {
        Self {
            estimate,
            measure: Measure::Difference,
            inverted: None,
            estimand,
            se_kind: se_kind.into(),
            pairs: None,
            remarks: Vec::new(),
        }
    }

    /// The estimate on the scale of its measure.
    pub(super) fn value(&self) -> f64 {
        self.inverted.map_or_else(|| self.measure.shown(self.estimate.value), |one| one.value)
    }

    /// The interval on the scale of its measure.
    pub(super) fn interval(&self, alpha: f64) -> (f64, f64) {
        match self.inverted {
            Some(inverted) => inverted.interval,
            None => {
                let (low, high) = self.estimate.interval(alpha);
                (self.measure.shown(low), self.measure.shown(high))
            }
        }
    }

    /// The two-sided p-value of no effect.
    pub(super) fn p_value(&self) -> f64 {
        self.inverted.map_or_else(|| self.estimate.p_value(), |one| one.p_value)
    }

    /// What the p-value is judged by, if that is one number.
    pub(super) fn statistic(&self) -> Option<f64> {
        match self.inverted {
            Some(inverted) => inverted.statistic,
            None => Some(self.estimate.statistic()),
        }
    }

    /// The standard error, of the logarithm of a ratio.
    pub(super) fn standard_error(&self) -> Option<f64> {
        Some(self.estimate.standard_error).filter(|error| error.is_finite())
    }

    /// Notes how many pairs were compared, and what became of the others.
    pub(super) fn of_pairs(&mut self, pairs: &UnitPairs) {
        if pairs.averaged {
            let remark = "Several rows of a unit under one arm are averaged first.";
            self.remarks.push(remark.into());
        }
        self.pairs = Some(pairs.rows.len());
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
    result.of_pairs(&pairs);
    Ok(result)
}

fn estimate_by_difference(
    args: &Args,
    sample: &EstimationSample<'_>,
) -> Result<EffectEstimate, Refusal> {
    if sample.units.is_none() && sample.clusters.is_some() && !sample.only_value {
        // The same difference as the slope of a regression, whose errors know clusters.
        let (kind, clusters) = sample.covariance(args);
        let fit = adjusted(sample.treated, sample.outcome, &[], kind, clusters)?;
        return Ok(EffectEstimate::new(fit.estimate, "ate", kind.to_string()));
    }
    let means = difference_in_means(sample.treated, sample.outcome)?;
    let mut result = EffectEstimate::new(means.estimate, "ate", "Welch");
    if sample.units.is_some() {
        let remark = "The standard error ignores that rows are paired.";
        result.remarks.push(remark.into());
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
    result.remarks.extend(sample.unpaired_remark(kind));
    Ok(result)
}

fn estimate_by_instruments(
    args: &Args,
    sample: &EstimationSample<'_>,
) -> Result<EffectEstimate, Refusal> {
    let found = sample.treated.len();
    if found < FEWEST_INSTRUMENTED && sample.correlated().is_none() && !sample.only_value {
        let what = "rows for an instrument";
        return Err(Refusal::TooFew { what, found, needed: FEWEST_INSTRUMENTED });
    }
    let endogenous: Vec<f64> = sample.treated.iter().map(|t| f64::from(u8::from(*t))).collect();
    let (kind, clusters) = sample.covariance(args);
    let columns = InstrumentColumns {
        outcome: sample.outcome,
        endogenous: &endogenous,
        instruments: sample.instruments,
        exogenous: sample.covariates,
        kind,
        clusters,
    };
    let fit = columns.fit()?;
    let mut result = EffectEstimate::new(fit.estimate, "late", kind.to_string());
    if !sample.only_value {
        columns.refuse_disagreement(&fit)?;
        result.remarks.extend(sample.unpaired_remark(kind));
        result.remarks.extend(columns.remarks(args, &fit));
    }
    Ok(result)
}

/// Whether each cluster lies in one arm.
pub(super) fn treats_clusters(treated: &[bool], clusters: &[u32]) -> bool {
    let mut arms = vec![[false; 2]; clusters.len()];
    let rows = clusters.iter().zip(treated);
    rows.for_each(|(cluster, treated)| arms[*cluster as usize][usize::from(*treated)] = true);
    !arms.contains(&[true; 2])
}

/// The kind of a standard error by all estimating equations, and whether it is the jackknife: so it
/// is unless the plain sandwich was asked for, or no standard error is wanted.
fn error_kind(args: &Args, sample: &EstimationSample<'_>) -> (&'static str, bool) {
    let plain = matches!(args.standard_errors, Some(StandardErrors::HC0 | StandardErrors::CR0));
    match (plain || sample.only_value, sample.correlated().is_some()) {
        (true, true) => ("sandwich, clustered", false),
        (true, false) => ("sandwich", false),
        (false, true) => ("jackknife, clustered", true),
        (false, false) => ("jackknife", true),
    }
}

/// Refuses an estimator by propensities where its intervals do not cover what they say.
fn refuse_few(estimator: Estimator, sample: &EstimationSample<'_>) -> Result<(), Refusal> {
    if sample.only_value {
        return Ok(());
    }
    let by_folds = estimator == Estimator::Aipw && sample.folds.is_some();
    let (what, found, needed) = match sample.correlated().and_then(|codes| codes.iter().max()) {
        Some(last) => {
            let needed = match estimator {
                Estimator::Matching => 0,
                Estimator::Stratification => FEWEST_CLUSTERS,
                _ if by_folds => FEWEST_CLUSTERS,
                _ => FEWEST_UNITS,
            };
            ("clusters", *last as usize + 1, needed)
        }
        None if by_folds => ("rows for folds", sample.treated.len(), FEWEST_FOLDED),
        None => return Ok(()),
    };
    if found < needed { Err(Refusal::TooFew { what, found, needed }) } else { Ok(()) }
}

fn estimate_by_propensity(
    args: &Args,
    estimator: Estimator,
    sample: &EstimationSample<'_>,
    score: &Propensity,
) -> Result<EffectEstimate, Refusal> {
    let clusters = sample.correlated();
    refuse_few(estimator, sample)?;
    let (treated, outcome) = (sample.treated, sample.outcome);
    let name = args.estimand.name();
    let clip = (args.clip[0], args.clip[1]);
    let mut result = match estimator {
        Estimator::Matching => {
            if let Some(clusters) = clusters.filter(|_| !sample.only_value)
                && treats_clusters(treated, clusters)
            {
                let reason = "each cluster lies in one arm, and the standard error of matching \
                              knows no clusters";
                return Err(Refusal::Other(reason.into()));
            }
            let n_treated = treated.iter().filter(|treated| **treated).count();
            let found = n_treated.min(treated.len() - n_treated);
            if found < FEWEST_MATCHED && !sample.only_value {
                let what = "rows of an arm for matching";
                return Err(Refusal::TooFew { what, found, needed: FEWEST_MATCHED });
            }
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
            let (kind, jackknife) = error_kind(args, sample);
            let covariates = sample.covariates;
            let estimate = match jackknife {
                true => jackknifed_weighting(
                    covariates, treated, outcome, score, estimand, clip, clusters,
                )?,
                false => weighted.estimate,
            };
            let mut result = EffectEstimate::new(estimate, name, kind);
            result.remarks.extend(clipping_remark(weighted.clipped, clip));
            result
        }
        _ => match sample.folds {
            None => {
                let robust =
                    aipw(sample.covariates, treated, outcome, score, AIPW_CLIP, false, clusters)?;
                let (kind, jackknife) = error_kind(args, sample);
                let covariates = sample.covariates;
                let estimate = match jackknife {
                    true => {
                        jackknifed_aipw(covariates, treated, outcome, score, AIPW_CLIP, clusters)?
                    }
                    false => robust.estimate,
                };
                let mut result = EffectEstimate::new(estimate, name, kind);
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
