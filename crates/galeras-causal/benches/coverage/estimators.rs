//! Every estimator with the defaults of the operator `regress`, on every sample and outcome.

use std::collections::HashMap;

use galeras_causal::{
    Covariance, Estimand, Estimate, Propensity, Refusal, adjusted, cross_fit_aipw,
    difference_in_means, in_overlap, interacted, jackknifed_aipw, jackknifed_weighting, matching,
    paired, stratification, two_stage,
};

use crate::random::SplitMix;
use crate::samples::{DataSet, Outcome, Sample, data_set};
use crate::{generalised, grouped, sum};

pub(crate) struct Cell {
    pub(crate) estimator: &'static str,
    pub(crate) sample: Sample,
    pub(crate) outcome: Outcome,
    pub(crate) covered: usize,
    pub(crate) given: usize,
    pub(crate) refused: usize,
}

impl Cell {
    pub(crate) fn share(&self) -> f64 {
        100.0 * self.covered as f64 / self.given.max(1) as f64
    }

    /// An estimator that gives fewer than one in twenty estimates counts as refused.
    pub(crate) fn is_refused(&self) -> bool {
        20 * self.given < self.given + self.refused
    }

    /// Standard errors that take the estimated score as known are too wide (Abadie and Imbens
    /// 2016).
    pub(crate) fn is_wide(&self) -> bool {
        matches!(self.estimator, "matching" | "stratification")
    }

    pub(crate) fn holds(&self) -> bool {
        let most = if self.is_wide() { 100.0 } else { 97.0 };
        self.is_refused() || (93.0..=most).contains(&self.share())
    }
}

/// The cells of all estimators, samples and outcomes whose names, joined by commas, are `wanted`.
pub(crate) fn intervals(data_sets: usize, wanted: impl Fn(&str) -> bool) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (at, sample) in Sample::ALL.into_iter().enumerate() {
        for (place, outcome) in Outcome::ALL.into_iter().enumerate() {
            let cell = match outcome {
                Outcome::Ordered => 900 + at,
                _ => at * 4 + place,
            } as u64;
            let mut estimators = estimators(sample, outcome);
            let name =
                |estimator: &str| format!("{}, {estimator}, {}", sample.name(), outcome.name());
            estimators.retain(|(estimator, _)| wanted(&name(estimator)));
            if estimators.is_empty() {
                continue;
            }
            let counts = sum(
                data_sets,
                || vec![[0usize; 3]; estimators.len()],
                |number, counts: &mut Vec<[usize; 3]>| {
                    let data = data_set(sample, outcome, &mut SplitMix::new(cell, number));
                    for ((_, answer), count) in estimators.iter().zip(counts) {
                        let mut more = SplitMix::new(OTHER_OUTCOMES + cell, number);
                        match answer(&data, outcome, &mut more) {
                            Ok(((low, high), truth)) => {
                                count[0] += usize::from((low..=high).contains(&truth));
                                count[1] += 1;
                            }
                            Err(_) => count[2] += 1,
                        }
                    }
                },
                |total, part| {
                    for (total, part) in total.iter_mut().zip(part) {
                        total.iter_mut().zip(part).for_each(|(total, part)| *total += part);
                    }
                },
            );
            cells.extend(estimators.iter().zip(counts).map(|((estimator, _), counts)| Cell {
                estimator,
                sample,
                outcome,
                covered: counts[0],
                given: counts[1],
                refused: counts[2],
            }));
        }
    }
    cells
}

/// Cells of the random numbers of outcomes that estimators draw.
const OTHER_OUTCOMES: u64 = 2_000;

/// An interval and the truth.
pub(crate) type Checked = ((f64, f64), f64);

/// The answer of an estimator. The random numbers are for an outcome that it draws, the same for all
/// estimators of a data set.
pub(crate) type Answer =
    Box<dyn Fn(&DataSet, Outcome, &mut SplitMix) -> Result<Checked, Refusal> + Sync>;

fn of_means(
    name: &'static str,
    estimate: impl Fn(&DataSet) -> Result<Estimate, Refusal> + Sync + 'static,
) -> (&'static str, Answer) {
    let answer = move |data: &DataSet, outcome: Outcome, _: &mut SplitMix| {
        Ok((estimate(data)?.interval(0.05), outcome.effect()))
    };
    (name, Box::new(answer))
}

fn estimators(sample: Sample, outcome: Outcome) -> Vec<(&'static str, Answer)> {
    let mut all = if outcome == Outcome::Ordered { Vec::new() } else { by_means(sample) };
    all.extend(generalised::estimators(sample, outcome));
    all.extend(grouped::estimators(sample, outcome));
    all
}

fn by_means(sample: Sample) -> Vec<(&'static str, Answer)> {
    match sample {
        Sample::Rows(_) => vec![
            of_means("difference", by_difference),
            of_means("ols", by_ols),
            of_means("lin", by_lin),
            of_means("iv", by_instrument),
            of_means("matching", by_matching),
            of_means("stratification", by_strata),
            of_means("weighting", by_weighting),
            of_means("aipw", by_aipw),
            of_means("aipw, 5 folds", by_folds),
        ],
        Sample::Clusters(_) => vec![
            of_means("ols", by_ols),
            of_means("lin", by_lin),
            of_means("stratification", by_strata),
            of_means("weighting", by_weighting),
            of_means("aipw", by_aipw),
            of_means("aipw, 5 folds", by_folds),
        ],
        Sample::TreatedClusters(_) => vec![
            of_means("difference", by_arms),
            of_means("ols", by_ols),
            of_means("lin", by_lin),
            of_means("weighting", by_weighting),
            of_means("aipw", by_aipw),
        ],
        Sample::Units(_) | Sample::Pairs(_) => vec![
            of_means("paired", by_pairs),
            of_means("ols", by_ols),
            of_means("lin", by_lin),
            of_means("weighting", by_weighting),
            of_means("aipw", by_aipw),
        ],
    }
}

/// Refuses smaller samples, as the operator does.
pub(crate) fn at_least(what: &'static str, found: usize, needed: usize) -> Result<(), Refusal> {
    if found < needed { Err(Refusal::TooFew { what, found, needed }) } else { Ok(()) }
}

/// Refuses fewer clusters, if there are any.
fn enough(data: &DataSet, clusters: usize) -> Result<(), Refusal> {
    data.clusters().map_or(Ok(()), |_| at_least("clusters", data.groups(), clusters))
}

/// As the operator, refuses few clusters that each lie in one arm, if standard errors have no
/// leverages.
pub(crate) fn enough_whole(data: &DataSet) -> Result<(), Refusal> {
    let mut arms = HashMap::new();
    for (cluster, arm) in data.clusters.iter().flatten().zip(&data.treated) {
        if arms.insert(cluster, arm).is_some_and(|other| other != arm) {
            return Ok(());
        }
    }
    enough(data, 20)
}

/// The ranges of the operator's scores.
const CLIP: (f64, f64) = (0.05, 0.95);
const AIPW_CLIP: (f64, f64) = (0.01, 0.99);

impl DataSet {
    pub(crate) fn kind(&self) -> Covariance {
        if self.clusters.is_some() { Covariance::Cr2 } else { Covariance::Hc3 }
    }

    /// The default without leverages.
    pub(crate) fn kind_without_leverage(&self) -> Covariance {
        if self.clusters.is_some() { Covariance::Cr1 } else { Covariance::Hc1 }
    }

    /// Refuses, as the operator does, scores of which more than 1 % and more than one are clipped.
    fn score(&self, clip: (f64, f64)) -> Result<Propensity, Refusal> {
        let score = Propensity::fit(&self.columns(), &self.treated, None)?;
        let rows = score.scores.len();
        let clipped = rows - in_overlap(&score.scores, clip).len();
        if clipped > 1 && 100 * clipped > rows {
            return Err(Refusal::NoOverlap("clipped scores".into()));
        }
        Ok(score)
    }
}

fn by_difference(data: &DataSet) -> Result<Estimate, Refusal> {
    difference_in_means(&data.coin, &data.of_coin)
}

/// The difference in means with the errors of clusters.
fn by_arms(data: &DataSet) -> Result<Estimate, Refusal> {
    Ok(adjusted(&data.treated, &data.outcome, &[], Covariance::Cr2, data.clusters())?.estimate)
}

fn by_ols(data: &DataSet) -> Result<Estimate, Refusal> {
    let (columns, clusters) = (data.columns(), data.clusters());
    Ok(adjusted(&data.treated, &data.outcome, &columns, data.kind(), clusters)?.estimate)
}

fn by_lin(data: &DataSet) -> Result<Estimate, Refusal> {
    let (columns, clusters) = (data.columns(), data.clusters());
    Ok(interacted(&data.treated, &data.outcome, &columns, data.kind(), clusters)?.estimate)
}

fn by_instrument(data: &DataSet) -> Result<Estimate, Refusal> {
    at_least("rows", data.treated.len(), 50)?;
    let (instruments, covariates) = ([data.instrument.as_slice()], data.columns());
    let kind = data.kind();
    let fit = two_stage(&data.of_moved, &data.moved, &instruments, &covariates, kind, None)?;
    // The operator calls such an instrument weak, and warns that the interval may not hold.
    match fit.robust_first_stage_f {
        Some(f) if f >= 10.0 => Ok(fit.estimate),
        _ => Err(Refusal::Other("weak".into())),
    }
}

fn by_pairs(data: &DataSet) -> Result<Estimate, Refusal> {
    let [treatment, control] = data.unit_means();
    paired(&treatment, &control)
}

fn by_matching(data: &DataSet) -> Result<Estimate, Refusal> {
    let treated = data.treated.iter().filter(|treated| **treated).count();
    at_least("rows of an arm", treated.min(data.treated.len() - treated), 30)?;
    Ok(matching(&data.score(CLIP)?.scores, &data.treated, &data.outcome)?.ate)
}

fn by_strata(data: &DataSet) -> Result<Estimate, Refusal> {
    enough(data, 20)?;
    let scores = data.score(CLIP)?.scores;
    Ok(stratification(&scores, &data.treated, &data.outcome, None, data.clusters())?.ate)
}

fn by_weighting(data: &DataSet) -> Result<Estimate, Refusal> {
    enough(data, 10)?;
    let (score, clusters) = (data.score(CLIP)?, data.clusters());
    let (columns, treated, outcome) = (data.columns(), &data.treated, &data.outcome);
    jackknifed_weighting(&columns, treated, outcome, &score, Estimand::Ate, CLIP, clusters)
}

fn by_aipw(data: &DataSet) -> Result<Estimate, Refusal> {
    enough(data, 10)?;
    let (score, clusters) = (data.score(AIPW_CLIP)?, data.clusters());
    jackknifed_aipw(&data.columns(), &data.treated, &data.outcome, &score, AIPW_CLIP, clusters)
}

fn by_folds(data: &DataSet) -> Result<Estimate, Refusal> {
    let rows: Vec<u32> = (0..data.treated.len() as u32).collect();
    let clusters = data.clusters();
    let folds: Vec<u32> = clusters.unwrap_or(&rows).iter().map(|group| group % 5).collect();
    let (columns, treated, outcome) = (data.columns(), &data.treated, &data.outcome);
    enough(data, 20)?;
    if data.clusters.is_none() {
        at_least("rows", data.treated.len(), 100)?;
    }
    data.score(AIPW_CLIP)?;
    let fit = cross_fit_aipw(&columns, treated, outcome, &folds, None, AIPW_CLIP, clusters)?;
    Ok(fit.estimate)
}
