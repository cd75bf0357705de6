//! Stratification on the score: differences in means within strata of equal rank width.
//!
//! Strata that lack either arm are dropped, and the number of strata is halved until enough are
//! kept.

use super::logistic::constant;
use super::rows::{Rows, finite, same_length};
use crate::{ColumnRef, Estimate, Refusal, average_ranks};

/// Each arm of a kept stratum has more rows than this.
const LEAST: usize = 10;

/// The result of stratification.
#[derive(Clone, Debug, PartialEq)]
pub struct Stratification {
    /// The average effect over the kept rows.
    pub ate: Estimate,
    /// The average effect over the kept treated rows.
    pub att: Estimate,
    /// The average effect over the kept control rows.
    pub atc: Estimate,
    /// The number k of strata, as requested or found by halving.
    pub strata_parameter: f64,
    /// The number of strata with more than ten rows in each arm.
    pub strata_kept: usize,
    /// The number of rows in these.
    pub rows_kept: usize,
}

/// Compares the arms within strata of the score (Rosenbaum & Rubin 1984).
///
/// A row's stratum is its average rank over n times k, rounded half to even. Strata with more than
/// ten rows in each arm are kept. Without `strata`, k starts at n / 20 and is halved and floored
/// until at least k / 2 strata are kept. Scores that are all equal within 1e-8 share one rank, so
/// that rounding cannot split the rows; the estimate is then the difference in means.
///
/// Standard errors take the strata and their sizes as given: the variance of each arm's mean
/// (Neyman 1923), or with `clusters` (codes from zero) the sum of squared cluster sums of the rows'
/// contributions, in which each arm of a stratum has the factor m / (m - 1). Both agree if each row
/// is a cluster.
///
/// `scores`, `treated`, `outcome` and `clusters` have one entry for each of n rows; effects are in
/// units of the outcome.
///
/// # Errors
/// [`Refusal::TooFew`] if fewer than two strata are left, none is kept, an arm is empty, or there
/// are fewer than two clusters; [`Refusal::UnusableColumn`] if a score or an outcome is not finite;
/// [`Refusal::Other`] if lengths differ, cluster codes have gaps, or a standard error is zero or
/// overflows.
pub fn stratification(
    scores: &[f64],
    treated: &[bool],
    outcome: &[f64],
    strata: Option<usize>,
    clusters: Option<&[u32]>,
) -> Result<Stratification, Refusal> {
    same_length("scores", scores.len(), treated.len())?;
    finite(ColumnRef::Score, scores)?;
    let rows = Rows::new(treated, outcome, clusters)?;
    let ranks = ranks(scores);
    let n = scores.len() as f64;
    let (parameter, strata) = match strata {
        Some(count) => (count as f64, Strata::cut(&ranks, treated, count as f64)),
        // A single stratum; halving reaches it for some numbers of rows only.
        None if constant(scores).is_some() => (2.0, Strata::cut(&ranks, treated, 2.0)),
        None => {
            let mut parameter = 0.5 * n / LEAST as f64;
            loop {
                let strata = Strata::cut(&ranks, treated, parameter);
                let kept = strata.kept();
                if parameter < 2.0 || (kept > 0 && kept as f64 >= 0.5 * parameter) {
                    break (parameter, strata);
                }
                parameter = (parameter / 2.0).floor();
            }
        }
    };
    if parameter < 2.0 {
        return Err(Refusal::TooFew { what: "strata", found: parameter as usize, needed: 2 });
    }
    if strata.kept() == 0 {
        return Err(Refusal::TooFew {
            what: "strata with more than ten rows in each arm",
            found: 0,
            needed: 1,
        });
    }
    strata.average(&rows, parameter)
}

/// Average ranks from one; a common rank for all if the scores are constant.
fn ranks(scores: &[f64]) -> Vec<f64> {
    let n = scores.len();
    if constant(scores).is_some() {
        return vec![(n as f64 + 1.0) / 2.0; n];
    }
    average_ranks(scores).ranks
}

struct Strata {
    places: Vec<usize>,
    /// The number of control and treated rows of each stratum; zeros if it is dropped.
    counts: Vec<[usize; 2]>,
}

impl Strata {
    /// Cuts the ranks into about `parameter` strata.
    fn cut(ranks: &[f64], treated: &[bool], parameter: f64) -> Self {
        let n = ranks.len() as f64;
        // With more strata than rows, none could be kept.
        if !(parameter >= 0.0 && parameter <= n) {
            return Self { places: Vec::new(), counts: Vec::new() };
        }
        let places: Vec<usize> =
            ranks.iter().map(|rank| (rank / n * parameter).round_ties_even() as usize).collect();
        let size = places.iter().max().map_or(0, |last| last + 1);
        let mut counts = vec![[0; 2]; size];
        for (place, t) in places.iter().zip(treated) {
            counts[*place][usize::from(*t)] += 1;
        }
        for count in counts.iter_mut().filter(|count| count[0].min(count[1]) <= LEAST) {
            *count = [0; 2];
        }
        Self { places, counts }
    }

    fn kept(&self) -> usize {
        self.counts.iter().filter(|count| count[0] > 0).count()
    }

    /// Averages over strata: by their rows, their treated rows, and their control rows.
    fn average(&self, rows: &Rows<'_>, parameter: f64) -> Result<Stratification, Refusal> {
        let mut means = vec![[0.0; 2]; self.counts.len()];
        let entries =
            || self.places.iter().zip(rows.treated).map(|(place, t)| (*place, usize::from(*t)));
        for ((place, arm), y) in entries().zip(rows.outcome) {
            means[place][arm] += y;
        }
        for (mean, count) in means.iter_mut().zip(&self.counts) {
            *mean = [0, 1].map(|arm| mean[arm] / count[arm].max(1) as f64);
        }
        // Each row's deviation over its arm's size, with the arm's m / (m - 1).
        let deviations: Vec<f64> = entries()
            .zip(rows.outcome)
            .map(|((place, arm), y)| {
                let size = self.counts[place][arm] as f64;
                if size < 2.0 {
                    return 0.0;
                }
                let sign = if arm == 1 { 1.0 } else { -1.0 };
                sign * (y - means[place][arm]) / (size * (size - 1.0)).sqrt()
            })
            .collect();
        let effect = |weight: fn(&[usize; 2]) -> usize| {
            let total = self.counts.iter().map(weight).sum::<usize>() as f64;
            let shares: Vec<f64> =
                self.counts.iter().map(|count| weight(count) as f64 / total).collect();
            let value = shares
                .iter()
                .zip(&means)
                .zip(&self.counts)
                .filter(|(_, count)| count[0] > 0)
                .map(|((share, mean), _)| share * (mean[1] - mean[0]))
                .sum();
            let influence: Vec<f64> = self
                .places
                .iter()
                .zip(&deviations)
                .map(|(place, deviation)| shares[*place] * deviation)
                .collect();
            rows.estimate(value, &influence)
        };
        Ok(Stratification {
            ate: effect(|count| count[0] + count[1])?,
            att: effect(|count| count[1])?,
            atc: effect(|count| count[0])?,
            strata_parameter: parameter,
            strata_kept: self.kept(),
            rows_kept: self.counts.iter().flatten().sum(),
        })
    }
}
