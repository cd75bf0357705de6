//! Differences in standard deviations: Cohen's d and d_z, Hedges' g.

use super::super::column::check_column;
use super::super::column_ref::ColumnRef;
use super::super::difference::Moments;
use super::super::equivalence::OneSided;
use super::super::estimate::Estimate;
use super::super::noncentral::{
    noncentral_t_lower, noncentral_t_upper, over_deviation, shift_interval,
};
use super::super::refusal::Refusal;
use super::super::refute::dense;
use super::{at_least, cluster_sums, clusters_per_arm};

/// A difference in standard deviations, with the distribution that it is judged by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standardised {
    /// The mean difference over the standard deviation, without a unit.
    pub value: f64,
    /// The degrees of freedom of the standard deviation: rows less arms, or pairs less one.
    freedom: f64,
    law: Law,
}

/// What the interval comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Law {
    /// `value * root` is a noncentral t whose shift is the true value times `root`: exact for
    /// independent normal outcomes.
    Noncentral { root: f64, degrees: f64 },
    /// Student's t about the estimate, by the sandwich of its estimating equations.
    Sandwich { standard_error: f64, degrees: f64 },
}

impl Standardised {
    /// Its standard error; none where the interval is that of the noncentral t.
    pub fn standard_error(&self) -> Option<f64> {
        match self.law {
            Law::Noncentral { .. } => None,
            Law::Sandwich { standard_error, .. } => Some(standard_error),
        }
    }

    /// The degrees of freedom.
    pub fn degrees(&self) -> f64 {
        match self.law {
            Law::Noncentral { degrees, .. } | Law::Sandwich { degrees, .. } => degrees,
        }
    }

    /// Hedges' correction J, by which d becomes g: its bias, exact for normal outcomes (L. V. Hedges
    /// 1981), gamma(f / 2) / (sqrt(f / 2) gamma((f - 1) / 2)) of the degrees of freedom f of the
    /// standard deviation. None below two, where it is not defined.
    pub fn hedges_correction(&self) -> Option<f64> {
        (self.freedom >= 2.0).then(|| 1.0 / over_deviation(self.freedom, 0.0, f64::recip))
    }

    fn as_estimate(&self, standard_error: f64, degrees: f64) -> Estimate {
        Estimate { value: self.value, standard_error, degrees }
    }
}

impl OneSided for Standardised {
    fn interval(&self, alpha: f64) -> (f64, f64) {
        match self.law {
            Law::Noncentral { root, degrees } => {
                let (low, high) = shift_interval(self.value * root, degrees, alpha);
                (low / root, high / root)
            }
            Law::Sandwich { standard_error, degrees } => {
                self.as_estimate(standard_error, degrees).interval(alpha)
            }
        }
    }

    fn p_above(&self, bound: f64) -> f64 {
        match self.law {
            Law::Noncentral { root, degrees } => {
                noncentral_t_upper(self.value * root, degrees, bound * root)
            }
            Law::Sandwich { standard_error, degrees } => {
                self.as_estimate(standard_error, degrees).p_above(bound)
            }
        }
    }

    fn p_below(&self, bound: f64) -> f64 {
        match self.law {
            Law::Noncentral { root, degrees } => {
                noncentral_t_lower(self.value * root, degrees, bound * root)
            }
            Law::Sandwich { standard_error, degrees } => {
                self.as_estimate(standard_error, degrees).p_below(bound)
            }
        }
    }
}

/// Cohen's d of two arms: the difference in means over the pooled standard deviation, whose squares
/// are those about the mean of each arm, over n - 2.
///
/// Without clusters its interval inverts the noncentral t (G. Cumming and S. Finch 2001; equals R's
/// `MBESS::ci.smd`). With clusters, which may lie in one arm or in both (for pairs, the pair), it is
/// Student's t with the sandwich of the means and the variance, summed within clusters, times
/// G / (G - 1), with one degree of freedom less than the clusters of the arm that has fewer; it
/// assumes no normal distribution.
///
/// # Errors
/// [`Refusal::TooFew`] below 2 rows or clusters in an arm; [`Refusal::UnusableColumn`] for another
/// length or a value that is not finite; [`Refusal::Other`] where no arm varies.
pub fn standardised_difference(
    treated: &[bool],
    outcome: &[f64],
    clusters: Option<&[u32]>,
) -> Result<Standardised, Refusal> {
    let n = treated.len();
    check_column(outcome, ColumnRef::Outcome, n)?;
    let arm = |wanted: bool| -> Vec<f64> {
        let rows = treated.iter().zip(outcome).filter(|(treated, _)| **treated == wanted);
        rows.map(|(_, value)| *value).collect()
    };
    let (ones, zeros) = (arm(true), arm(false));
    at_least("treated rows", ones.len(), 2)?;
    at_least("control rows", zeros.len(), 2)?;
    let (one, zero) = (Moments::of(&ones)?, Moments::of(&zeros)?);
    if one.is_constant() && zero.is_constant() {
        let text = "the outcome is constant in both arms: there is no standard deviation";
        return Err(Refusal::Other(text.to_owned()));
    }
    let (n1, n0) = (ones.len() as f64, zeros.len() as f64);
    let freedom = n1 + n0 - 2.0;
    let share = |moments: &Moments, n: f64| moments.deviation * ((n - 1.0) / freedom).sqrt();
    let deviation = share(&one, n1).hypot(share(&zero, n0));
    let value = (one.mean - zero.mean) / deviation;
    let Some(codes) = clusters.map(|codes| dense(codes.iter().copied())) else {
        let root = (n1 * n0 / (n1 + n0)).sqrt();
        let law = Law::Noncentral { root, degrees: freedom };
        return Ok(Standardised { value, freedom, law });
    };
    let parts: Vec<f64> = treated
        .iter()
        .zip(outcome)
        .map(|(treated, outcome)| {
            let (mean, weight) =
                if *treated { (one.mean, 1.0 / n1) } else { (zero.mean, -1.0 / n0) };
            let apart = (outcome - mean) / deviation;
            // The mean's part, and that of the variance, of which d takes half.
            let spread = (apart * apart - freedom / (n1 + n0)) / freedom;
            apart * weight - 0.5 * value * spread
        })
        .collect();
    let pieces = clusters_per_arm(treated, Some(&codes));
    at_least("clusters with treated rows", pieces[0], 2)?;
    at_least("clusters with control rows", pieces[1], 2)?;
    let fewer = pieces[0].min(pieces[1]) as f64;
    sandwich(value, freedom, &cluster_sums(&parts, Some(&codes)), fewer - 1.0)
}

/// Cohen's d_z of pairs: the mean of the differences over their standard deviation (n - 1).
///
/// Without clusters its interval inverts the noncentral t; with clusters of pairs it is a sandwich,
/// as for [`standardised_difference`].
///
/// # Errors
/// [`Refusal::TooFew`] below 2 pairs or clusters; [`Refusal::UnusableColumn`] if a difference is not
/// finite; [`Refusal::Other`] where all are equal.
pub fn standardised_pairs(
    differences: &[f64],
    clusters: Option<&[u32]>,
) -> Result<Standardised, Refusal> {
    let count = differences.len();
    check_column(differences, ColumnRef::Differences, count)?;
    at_least("pairs", count, 2)?;
    let moments = Moments::of(differences)?;
    if moments.is_constant() {
        let text = "all pairs differ by the same amount: there is no standard deviation";
        return Err(Refusal::Other(text.to_owned()));
    }
    let n = count as f64;
    let value = moments.mean / moments.deviation;
    let Some(codes) = clusters.map(|codes| dense(codes.iter().copied())) else {
        let law = Law::Noncentral { root: n.sqrt(), degrees: n - 1.0 };
        return Ok(Standardised { value, freedom: n - 1.0, law });
    };
    let part = |difference: &f64| {
        let apart = (difference - moments.mean) / moments.deviation;
        apart / n - 0.5 * value * (apart * apart - (n - 1.0) / n) / (n - 1.0)
    };
    let parts: Vec<f64> = differences.iter().map(part).collect();
    let sums = cluster_sums(&parts, Some(&codes));
    at_least("clusters", sums.len(), 2)?;
    sandwich(value, n - 1.0, &sums, sums.len() as f64 - 1.0)
}

fn sandwich(value: f64, freedom: f64, sums: &[f64], degrees: f64) -> Result<Standardised, Refusal> {
    let count = sums.len() as f64;
    let variance = sums.iter().map(|sum| sum * sum).sum::<f64>() * count / (count - 1.0);
    let standard_error = variance.sqrt();
    if !(standard_error > 1e-14 && standard_error.is_finite()) {
        let text = "every cluster says the same: the standard error would be zero";
        return Err(Refusal::Other(text.to_owned()));
    }
    Ok(Standardised { value, freedom, law: Law::Sandwich { standard_error, degrees } })
}
