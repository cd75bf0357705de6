//! The wild cluster bootstrap of a regression on a treatment, for few clusters.
//!
//! With x the treatment and u the residuals, both without the part that the covariates explain, and
//! a null hypothesis that is `shift` above the estimate, a sample replaces the residuals u - shift x
//! of the restricted fit by those times one weight for each cluster. Its t statistic has a numerator
//! and scores of clusters that are linear in `shift`, so that five sums of a sample give its
//! statistic under every hypothesis (Roodman, MacKinnon, Nielsen & Webb 2019, Stata Journal 19:4).

use super::symmetric::dot;
use super::{ClusterRows, Covariance, LinearFit, treatment_column, treatment_first};
use crate::column::check_level;
use crate::refusal::{at_least, require};
use crate::refute::mix;
use crate::{ColumnRef, InvertedEstimate, Refusal};

/// Statistics that differ less are equal: those of a sample and its mirror image.
const TIE: f64 = 1e-9;
/// An interval that reaches so many standard errors is unbounded.
const FARTHEST: f64 = 1e6;

/// The wild cluster bootstrap of the coefficient of a treatment.
pub struct WildClusters {
    value: f64,
    standard_error: f64,
    /// The sum of the squares of x, and that of the squared scores of clusters.
    square: f64,
    meat: f64,
    samples: Vec<Sample>,
}

/// The numerator n - shift m and the squared scores a - 2 shift b + shift² c of a sample.
struct Sample {
    numerator: [f64; 2],
    scores: [f64; 3],
}

impl WildClusters {
    /// Draws `samples` data sets from y ~ 1 + treated + covariates; `weight` gives the weight of a
    /// cluster in a sample, by the positions of the sample and of the cluster. Errors are those of
    /// [`adjusted`](crate::adjusted) with CR1.
    pub fn new(
        treated: &[bool],
        outcome: &[f64],
        covariates: &[&[f64]],
        clusters: &[u32],
        samples: usize,
        weight: impl Fn(usize, usize) -> f64,
    ) -> Result<Self, Refusal> {
        let rows = outcome.len();
        let indicator = treatment_column(treated, rows)?;
        let fit = LinearFit::fit(&treatment_first(&indicator, covariates), outcome)
            .map_err(Refusal::after_treatment)?;
        let estimate = fit.estimate(1, Covariance::Cr1, Some(clusters))?;
        let others = LinearFit::fit(covariates, &indicator)
            .map_err(|_| Refusal::Collinear { column: ColumnRef::Treatment })?;
        let groups = ClusterRows::new(clusters);
        let (count, width) = (groups.count(), others.width);
        at_least("clusters", count, 2)?;
        // Of each cluster: x'u, x'x, and the products of u and x with the basis of the covariates.
        let (mut scores, mut squares) = (vec![0.0; count], vec![0.0; count]);
        let (mut along_u, mut along_x) = (vec![0.0; count * width], vec![0.0; count * width]);
        for (cluster, members) in groups.members().enumerate() {
            for row in members {
                let (x, u) = (others.residuals[*row], fit.residuals[*row]);
                scores[cluster] += x * u;
                squares[cluster] += x * x;
                let basis = &others.basis[row * width..(row + 1) * width];
                let cells = cluster * width..(cluster + 1) * width;
                for (sum, cell) in along_u[cells.clone()].iter_mut().zip(basis) {
                    *sum += u * cell;
                }
                for (sum, cell) in along_x[cells].iter_mut().zip(basis) {
                    *sum += x * cell;
                }
            }
        }
        let square: f64 = squares.iter().sum();
        let drawn = (0..samples).map(|sample| {
            let weights: Vec<f64> = (0..count).map(|cluster| weight(sample, cluster)).collect();
            let numerator = [dot(&weights, &scores), dot(&weights, &squares)];
            let combined = |along: &[f64]| {
                let mut total = vec![0.0; width];
                for (line, weight) in along.chunks_exact(width).zip(&weights) {
                    total.iter_mut().zip(line).for_each(|(sum, cell)| *sum += weight * cell);
                }
                total
            };
            let (of_u, of_x) = (combined(&along_u), combined(&along_x));
            let mut sums = [0.0; 3];
            let parts = weights.iter().zip(&scores).zip(&squares).zip(along_x.chunks_exact(width));
            for (((weight, score), own), line) in parts {
                let share = own / square;
                let p = weight * score - dot(line, &of_u) - share * numerator[0];
                let q = weight * own - dot(line, &of_x) - share * numerator[1];
                sums[0] += p * p;
                sums[1] += p * q;
                sums[2] += q * q;
            }
            Sample { numerator, scores: sums }
        });
        Ok(Self {
            value: estimate.value,
            standard_error: estimate.standard_error,
            square,
            meat: dot(&scores, &scores),
            samples: drawn.collect(),
        })
    }

    /// The number of samples whose statistic is at least as far from zero as that of the data, under
    /// the hypothesis that the effect is `shift` above the estimate.
    fn as_extreme(&self, shift: f64) -> usize {
        let observed = (shift * self.square).powi(2) * (1.0 - TIE);
        let extreme = |sample: &&Sample| {
            let [n, m] = sample.numerator;
            let [a, b, c] = sample.scores;
            (n - shift * m).powi(2) * self.meat
                >= observed * (a - 2.0 * shift * b + shift * shift * c)
        };
        self.samples.iter().filter(extreme).count()
    }

    /// The p-value of an effect of `null`: 1 + the samples at least as extreme, over 1 + all samples.
    fn p_value(&self, null: f64) -> f64 {
        let extreme = self.as_extreme(null - self.value);
        (1 + extreme) as f64 / (1 + self.samples.len()) as f64
    }

    /// The estimate with the p-value of no effect and the interval of the effects that are not
    /// rejected at the level `alpha`; its ends are infinite where none is rejected. The standard
    /// error is CR1.
    pub fn estimate(&self, alpha: f64) -> Result<InvertedEstimate, Refusal> {
        check_level(alpha)?;
        require(!self.samples.is_empty(), "a bootstrap needs samples")?;
        Ok(InvertedEstimate {
            value: self.value,
            interval: (self.end(-1.0, alpha), self.end(1.0, alpha)),
            p_value: self.p_value(0.0),
            statistic: None,
            standard_error: Some(self.standard_error),
        })
    }

    /// The end of the interval to this side.
    fn end(&self, side: f64, alpha: f64) -> f64 {
        let rejected = |distance: f64| {
            self.p_value(self.value + side * distance * self.standard_error) <= alpha
        };
        let (mut inner, mut outer) = (0.0, 1.0);
        while !rejected(outer) {
            if outer > FARTHEST {
                return side * f64::INFINITY;
            }
            (inner, outer) = (outer, 2.0 * outer);
        }
        while outer - inner > 1e-10 * outer {
            let middle = 0.5 * (inner + outer);
            if rejected(middle) {
                outer = middle;
            } else {
                inner = middle;
            }
        }
        self.value + side * inner * self.standard_error
    }
}

/// Fewer clusters have so few different signs that weights of six values are better.
const FEWEST_FOR_SIGNS: usize = 12;

/// The weights of this many clusters, by the positions of a sample and a cluster: Webb's six values
/// below twelve clusters, else signs (Rademacher), as MacKinnon & Webb recommend.
pub fn wild_weights(seed: u64, clusters: usize) -> impl Fn(usize, usize) -> f64 {
    move |sample, cluster| {
        let draw = mix(mix(seed ^ mix(sample as u64)) ^ cluster as u64);
        if clusters >= FEWEST_FOR_SIGNS {
            return if draw >> 63 == 0 { 1.0 } else { -1.0 };
        }
        let face = ((u128::from(draw) * 6) >> 64) as i32;
        let size = (f64::from(face % 3 + 1) / 2.0).sqrt();
        if face < 3 { size } else { -size }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Study, close};

    /// The numbers of tests/reference/regress_designs.py: every sample is refitted there.
    #[test]
    fn equals_samples_that_are_refitted() {
        let study = Study::read("formula_splitmix42");
        let table = &study.table;
        let rows = 120;
        let treated = study.treated();
        let covariates = table.columns(["x1", "x2"]).map(|column| &column[..rows]);
        let clusters: Vec<u32> = (0..rows as u32).map(|row| (row / 11).min(8)).collect();
        let all_signs =
            |sample: usize, cluster: usize| if (sample >> cluster) & 1 == 0 { -1.0 } else { 1.0 };
        let (treated, outcome) = (&treated[..rows], &study.outcome()[..rows]);
        let wild =
            WildClusters::new(treated, outcome, &covariates, &clusters, 512, all_signs).unwrap();
        for (null, share) in
            [(0.0, 0.00390625), (1.5, 0.00390625), (2.2, 0.2421875), (2.4, 0.046875)]
        {
            assert_eq!(wild.as_extreme(null - wild.value) as f64 / 512.0, share, "{null}");
        }
        let (low, high) = wild.estimate(0.05).unwrap().interval;
        close(low, 1.6837018104681558, 1e-6);
        close(high, 2.395012614358384, 1e-6);
        // Two of 32 signs are the sample and its mirror image: 3 / 33 is above 5 %.
        let five: Vec<u32> = clusters.iter().map(|code| code % 5).collect();
        let wild = WildClusters::new(treated, outcome, &covariates, &five, 32, all_signs).unwrap();
        assert_eq!(wild.estimate(0.05).unwrap().interval, (f64::NEG_INFINITY, f64::INFINITY));
    }

    #[test]
    fn weights_have_mean_zero_and_variance_one() {
        for clusters in [6, 20] {
            let weight = wild_weights(42, clusters);
            let draws: Vec<f64> =
                (0..20_000).map(|at| weight(at / clusters, at % clusters)).collect();
            let mean = draws.iter().sum::<f64>() / 2e4;
            let square = draws.iter().map(|draw| draw * draw).sum::<f64>() / 2e4;
            assert!(mean.abs() < 0.03 && (square - 1.0).abs() < 0.02, "{mean} {square}");
        }
    }
}
