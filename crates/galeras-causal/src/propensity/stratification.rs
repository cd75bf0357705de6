//! Stratification on the score: differences in means within strata of equal rank width.

use super::logistic::constant;
use super::rows::{Rows, finite, same_length};
use crate::rank::average_ranks;
use crate::refusal::at_least;
use crate::{ColumnRef, Estimate, Refusal};

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
/// until at least k / 2 strata are kept. Scores that are all equal within 1e-8 share one rank; the
/// estimate is then the difference in means.
///
/// Standard errors take the strata and their sizes as given: the variance of each arm's mean
/// (Neyman 1923), or with `clusters` (codes from zero) the sum of squared cluster sums of the rows'
/// contributions, in which each arm of a stratum has the factor m / (m - 1). Refuses fewer than two
/// strata, none that is kept, or a standard error of zero.
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
    let n = scores.len() as f64;
    let ranks = match constant(scores) {
        Some(_) => vec![(n + 1.0) / 2.0; scores.len()],
        None => average_ranks(scores).ranks,
    };
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
    at_least("strata", parameter as usize, 2)?;
    at_least("strata with more than ten rows in each arm", strata.kept(), 1)?;
    strata.average(&rows, parameter)
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
            let kept = (0..shares.len()).filter(|place| self.counts[*place][0] > 0);
            let value = kept.map(|place| shares[place] * (means[place][1] - means[place][0])).sum();
            let parts = self.places.iter().zip(&deviations);
            let influence: Vec<f64> =
                parts.map(|(place, deviation)| shares[*place] * deviation).collect();
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
