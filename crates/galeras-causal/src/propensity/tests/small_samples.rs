//! Few rows and few clusters: the jackknife is what refitting without each gives, and its intervals
//! cover the truth where those of the plain sandwich do not.

use super::Sample;
use crate::propensity::{
    Estimand, Propensity, aipw, aipw_treated, jackknifed_aipw, jackknifed_aipw_treated,
    jackknifed_weighting, weighting,
};
use crate::tests::{Draw, slices};
use crate::{Estimate, Refusal};

const CLIP: (f64, f64) = (0.05, 0.95);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Estimator {
    Weighting,
    Augmented,
    /// Augmented weighting for the treated.
    Treated,
}

const ESTIMATORS: [Estimator; 3] = [Estimator::Weighting, Estimator::Augmented, Estimator::Treated];

impl Sample {
    /// `groups` clusters of `size` rows; two covariates drive treatment and outcome, the effect is 1.
    fn new(seed: u64, groups: u32, size: u32, between: f64) -> Self {
        let mut draw = Draw(seed.wrapping_mul(0x2545_F491_4F6C_DD1D));
        let mut data = Self::default();
        for cluster in 0..groups {
            let group = between * draw.normal();
            for _ in 0..size {
                let (a, b) = (draw.normal(), draw.normal());
                let treated = draw.uniform() < 1.0 / (1.0 + (-(0.4 * a - 0.3 * b)).exp());
                let effect = f64::from(u8::from(treated));
                data.push([a, b], treated, effect + a + b + group + draw.normal());
                data.clusters.push(cluster);
            }
        }
        data
    }

    fn without(&self, cluster: u32) -> Self {
        let kept = |row: &usize| self.clusters[*row] != cluster;
        let rows: Vec<usize> = (0..self.treated.len()).filter(kept).collect();
        Self {
            columns: (self.columns.each_ref())
                .map(|column| rows.iter().map(|row| column[*row]).collect()),
            treated: rows.iter().map(|row| self.treated[*row]).collect(),
            outcome: rows.iter().map(|row| self.outcome[*row]).collect(),
            clusters: Vec::new(),
        }
    }

    fn propensity(&self) -> Result<Propensity, Refusal> {
        Propensity::fit(&slices(&self.columns), &self.treated, None)
    }

    fn weighted(&self, estimand: Estimand) -> f64 {
        let (x, score) = (slices(&self.columns), self.propensity().unwrap());
        let all = (0.0, 1.0);
        let found = weighting(&x, &self.treated, &self.outcome, &score, estimand, all, None);
        found.unwrap().estimate.value
    }

    fn augmented(&self) -> f64 {
        let (x, score) = (slices(&self.columns), self.propensity().unwrap());
        let all = (0.0, 1.0);
        aipw(&x, &self.treated, &self.outcome, &score, all, None).unwrap().estimate.value
    }

    fn augmented_treated(&self) -> f64 {
        let (x, score) = (slices(&self.columns), self.propensity().unwrap());
        let all = (0.0, 1.0);
        aipw_treated(&x, &self.treated, &self.outcome, &score, all, None).unwrap().estimate.value
    }

    /// The standard error of the estimates without each cluster.
    fn refitted(&self, estimate: impl Fn(&Self) -> f64) -> f64 {
        let groups = self.clusters.last().unwrap() + 1;
        let whole = estimate(self);
        let squares: f64 =
            (0..groups).map(|cluster| (estimate(&self.without(cluster)) - whole).powi(2)).sum();
        let groups = f64::from(groups);
        (squares * (groups - 1.0) / groups).sqrt()
    }
}

/// An estimator on the rows of `data`, with clusters if they have several rows.
fn by(data: &Sample, outcome: &[f64], estimator: Estimator) -> Estimate {
    let (x, score) = (slices(&data.columns), data.propensity().unwrap());
    let clusters = (data.clusters[0] == data.clusters[1]).then_some(data.clusters.as_slice());
    let treated = &data.treated;
    let found = match estimator {
        Estimator::Weighting => {
            jackknifed_weighting(&x, treated, outcome, &score, Estimand::Ate, CLIP, clusters)
        }
        Estimator::Augmented => jackknifed_aipw(&x, treated, outcome, &score, CLIP, clusters),
        Estimator::Treated => jackknifed_aipw_treated(&x, treated, outcome, &score, CLIP, clusters),
    };
    found.unwrap()
}

#[test]
fn the_variance_has_the_right_mean_and_degrees_under_equal_variances() {
    // A variance y'By of an estimate c'y, for independent errors of variance one: its mean tr(B) is
    // to be c'c, and its degrees of freedom by clusters tr(B)^2 / tr(BB). Both are found from the estimates of
    // outcomes that are 1 in one or two rows and else 0.
    for (groups, size) in [(24, 1), (8, 4)] {
        let data = Sample::new(3, groups, size, 0.5);
        let n = data.treated.len();
        let unit = |rows: &[usize]| -> Vec<f64> {
            (0..n).map(|row| f64::from(u8::from(rows.contains(&row)))).collect()
        };
        for estimator in ESTIMATORS {
            let alone: Vec<Estimate> =
                (0..n).map(|row| by(&data, &unit(&[row]), estimator)).collect();
            let squares: f64 = alone.iter().map(|one| one.value.powi(2)).sum();
            let variances: Vec<f64> = alone.iter().map(|one| one.standard_error.powi(2)).collect();
            let trace: f64 = variances.iter().sum();
            let what = format!("{groups} {estimator:?}");
            assert!((trace / squares - 1.0).abs() < 1e-9, "{what}: {trace} {squares}");
            let mut of_square: f64 = variances.iter().map(|variance| variance * variance).sum();
            for row in 0..n {
                for other in 0..row {
                    let both = by(&data, &unit(&[row, other]), estimator).standard_error.powi(2);
                    let cell = (both - variances[row] - variances[other]) / 2.0;
                    of_square += 2.0 * cell * cell;
                }
            }
            let mut degrees = trace * trace / of_square;
            if size == 1 {
                // Those of the squared coefficients, less the share of the parameters, if they are
                // more: estimates and residuals are not independent.
                let fourth: f64 = alone.iter().map(|one| one.value.powi(4)).sum();
                let parameters = if estimator == Estimator::Weighting { 4.0 } else { 6.0 };
                let lost = parameters / n as f64;
                degrees = degrees.max(squares * squares / fourth * (1.0 - lost));
            }
            let found = by(&data, &data.outcome, estimator).degrees;
            assert!((found / degrees - 1.0).abs() < 1e-6, "{what}: {found} {degrees}");
        }
    }
}

#[test]
fn one_step_is_nearly_the_estimate_without_a_row_or_cluster() {
    for (groups, size) in [(300, 1), (60, 5)] {
        let data = Sample::new(5, groups, size, 0.5);
        let (x, score) = (slices(&data.columns), data.propensity().unwrap());
        let clusters = (size > 1).then_some(data.clusters.as_slice());
        let (treated, outcome, all) = (&data.treated, &data.outcome, (0.0, 1.0));
        for estimand in [Estimand::Ate, Estimand::Att, Estimand::Atc, Estimand::Ato] {
            let found = jackknifed_weighting(&x, treated, outcome, &score, estimand, all, clusters);
            let ratio = found.unwrap().standard_error / data.refitted(|d| d.weighted(estimand));
            // Refitting is not scaled.
            assert!((0.85..1.05).contains(&ratio), "{estimand:?} {groups}: {ratio}");
        }
        let found = jackknifed_aipw(&x, treated, outcome, &score, all, clusters).unwrap();
        let ratio = found.standard_error / data.refitted(Sample::augmented);
        assert!((0.85..1.05).contains(&ratio), "aipw {groups}: {ratio}");
        let found = jackknifed_aipw_treated(&x, treated, outcome, &score, all, clusters).unwrap();
        let ratio = found.standard_error / data.refitted(Sample::augmented_treated);
        assert!((0.85..1.05).contains(&ratio), "aipw of the treated {groups}: {ratio}");
    }
}

#[test]
fn many_rows_have_the_error_of_the_sandwich() {
    let data = Sample::new(9, 4000, 1, 0.0);
    let (x, score) = (slices(&data.columns), data.propensity().unwrap());
    let (treated, outcome) = (&data.treated, &data.outcome);
    let sandwich = weighting(&x, treated, outcome, &score, Estimand::Ate, CLIP, None).unwrap();
    let found = jackknifed_weighting(&x, treated, outcome, &score, Estimand::Ate, CLIP, None);
    let found = found.unwrap();
    assert!((found.value - sandwich.estimate.value).abs() < 1e-12);
    assert!((found.standard_error / sandwich.estimate.standard_error - 1.0).abs() < 0.01);
    let sandwich = aipw(&x, treated, outcome, &score, CLIP, None).unwrap().estimate;
    let found = jackknifed_aipw(&x, treated, outcome, &score, CLIP, None).unwrap();
    assert!((found.value - sandwich.value).abs() < 1e-12);
    assert!((found.standard_error / sandwich.standard_error - 1.0).abs() < 0.01);
    assert!(found.degrees > 500.0 && found.degrees < 4000.0, "{}", found.degrees);
    let sandwich = aipw_treated(&x, treated, outcome, &score, CLIP, None).unwrap().estimate;
    let found = jackknifed_aipw_treated(&x, treated, outcome, &score, CLIP, None).unwrap();
    assert!((found.value - sandwich.value).abs() < 1e-12);
    assert!((found.standard_error / sandwich.standard_error - 1.0).abs() < 0.01);
}

/// The share of the samples, given as estimates by both ways, whose interval holds the truth.
fn coverage(
    groups: u32,
    size: u32,
    between: f64,
    estimate: impl Fn(&Sample) -> Result<[Estimate; 2], Refusal>,
) -> [f64; 2] {
    let (mut covered, mut all) = ([0.0; 2], 0.0);
    for seed in 1..=1500 {
        let Ok(found) = estimate(&Sample::new(seed, groups, size, between)) else { continue };
        for (covered, estimate) in covered.iter_mut().zip(found) {
            let (low, high) = estimate.interval(0.05);
            *covered += f64::from(u8::from((low..=high).contains(&1.0)));
        }
        all += 1.0;
    }
    assert!(all > 500.0, "{all} samples have an estimate");
    covered.map(|covered| covered / all)
}

fn both_ways(data: &Sample, estimator: Estimator) -> Result<[Estimate; 2], Refusal> {
    let (x, score) = (slices(&data.columns), data.propensity()?);
    let (t, y) = (&data.treated, &data.outcome);
    let clusters = (data.clusters[0] == data.clusters[1]).then_some(data.clusters.as_slice());
    Ok(match estimator {
        Estimator::Weighting => [
            weighting(&x, t, y, &score, Estimand::Ate, CLIP, clusters)?.estimate,
            jackknifed_weighting(&x, t, y, &score, Estimand::Ate, CLIP, clusters)?,
        ],
        Estimator::Augmented => [
            aipw(&x, t, y, &score, CLIP, clusters)?.estimate,
            jackknifed_aipw(&x, t, y, &score, CLIP, clusters)?,
        ],
        Estimator::Treated => [
            aipw_treated(&x, t, y, &score, CLIP, clusters)?.estimate,
            jackknifed_aipw_treated(&x, t, y, &score, CLIP, clusters)?,
        ],
    })
}

#[test]
fn intervals_hold_with_few_rows_and_few_clusters() {
    for (groups, size, between) in [(20, 1, 0.0), (50, 1, 0.0), (12, 15, 0.5)] {
        for estimator in ESTIMATORS {
            let [plain, jackknife] =
                coverage(groups, size, between, |data| both_ways(data, estimator));
            let what = format!("{groups} x {size}, {estimator:?}: {plain} {jackknife}");
            assert!((0.93..=0.97).contains(&jackknife), "{what}");
            assert!(plain < jackknife, "{what}");
        }
    }
}

#[test]
fn an_estimate_that_rests_on_one_row_is_refused() {
    // The only treated row: without it there is no mean.
    let treated: Vec<bool> = (0..12).map(|row| row == 5).collect();
    let outcome: Vec<f64> = (0..12).map(|row| f64::from(row * row % 7)).collect();
    let column: Vec<f64> = (0..12).map(|row| f64::from(row * 5 % 12)).collect();
    let x: [&[f64]; 1] = [&column];
    let score = Propensity::fit(&x, &treated, None).unwrap();
    let found = jackknifed_weighting(&x, &treated, &outcome, &score, Estimand::Ate, CLIP, None);
    assert!(found.unwrap_err().to_string().starts_with("the estimate rests on one row"));
}
