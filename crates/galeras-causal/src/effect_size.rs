//! Effect sizes with intervals, for independent arms, pairs and clusters: Cohen's d and d_z,
//! Hedges' g, Cliff's delta, Vargha and Delaney's A.

#[cfg(test)]
mod tests;

use crate::column::{ROWS, arm_sizes, check_column, cluster_sums, code_count, of_arm};
use crate::difference::Moments;
use crate::estimate::OneSided;
use crate::refusal::{at_least, require};
use crate::refute::dense;
use crate::tail::{noncentral_t_lower, noncentral_t_upper, over_deviation, shift_interval};
use crate::{ColumnRef, Estimate, Refusal, tail};

/// The clusters (rows without clusters) that have rows in each arm: treated, control.
fn clusters_per_arm(treated: &[bool], clusters: Option<&[u32]>) -> Result<[usize; 2], Refusal> {
    let Some(clusters) = clusters else { return arm_sizes(treated, ROWS, 2) };
    let mut seen = vec![[false; 2]; code_count(clusters)];
    for (treated, cluster) in treated.iter().zip(clusters) {
        seen[*cluster as usize][usize::from(!*treated)] = true;
    }
    let pieces = [0, 1].map(|arm| seen.iter().filter(|seen| seen[arm]).count());
    at_least("clusters with treated rows", pieces[0], 2)?;
    at_least("clusters with control rows", pieces[1], 2)?;
    Ok(pieces)
}

/// A difference in standard deviations, with the distribution of its estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standardised {
    /// The mean difference over the standard deviation.
    pub value: f64,
    /// The degrees of freedom of the standard deviation: rows minus arms, or pairs minus one.
    freedom: f64,
    method: IntervalMethod,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum IntervalMethod {
    /// `value * root` is a noncentral t with shift `root` times the true value.
    Noncentral { root: f64, degrees: f64 },
    /// Student's t around the estimate, with the sandwich of its estimating equations.
    Sandwich(Estimate),
}

impl Standardised {
    /// Its standard error; `None` if the interval is that of the noncentral t.
    pub fn standard_error(&self) -> Option<f64> {
        match self.method {
            IntervalMethod::Noncentral { .. } => None,
            IntervalMethod::Sandwich(estimate) => Some(estimate.standard_error),
        }
    }

    /// The degrees of freedom.
    pub fn degrees(&self) -> f64 {
        match self.method {
            IntervalMethod::Noncentral { degrees, .. } => degrees,
            IntervalMethod::Sandwich(estimate) => estimate.degrees,
        }
    }

    /// Hedges' correction J (1981), which turns d into g: its bias, exact for normal outcomes,
    /// gamma(f / 2) / (sqrt(f / 2) gamma((f - 1) / 2)) with f degrees of freedom; `None` below f =
    /// 2.
    pub fn hedges_correction(&self) -> Option<f64> {
        (self.freedom >= 2.0).then(|| 1.0 / over_deviation(self.freedom, 0.0, f64::recip))
    }
}

impl OneSided for Standardised {
    fn interval(&self, alpha: f64) -> (f64, f64) {
        match self.method {
            IntervalMethod::Noncentral { root, degrees } => {
                let (low, high) = shift_interval(self.value * root, degrees, alpha);
                (low / root, high / root)
            }
            IntervalMethod::Sandwich(estimate) => estimate.interval(alpha),
        }
    }

    fn p_above(&self, bound: f64) -> f64 {
        match self.method {
            IntervalMethod::Noncentral { root, degrees } => {
                noncentral_t_upper(self.value * root, degrees, bound * root)
            }
            IntervalMethod::Sandwich(estimate) => estimate.p_above(bound),
        }
    }

    fn p_below(&self, bound: f64) -> f64 {
        match self.method {
            IntervalMethod::Noncentral { root, degrees } => {
                noncentral_t_lower(self.value * root, degrees, bound * root)
            }
            IntervalMethod::Sandwich(estimate) => estimate.p_below(bound),
        }
    }
}

/// Cohen's d of two arms: the difference in means over the pooled standard deviation (n - 2).
/// Without clusters its interval inverts the noncentral t (Cumming and Finch 2001; equals R's
/// `MBESS::ci.smd`). With clusters it is Student's t with the sandwich of the means and the
/// variance, summed within clusters, times G / (G - 1), and the clusters of the arm with fewer,
/// minus one, as degrees of freedom; it does not assume a normal distribution. Refuses arms or
/// clusters without variation.
pub fn standardised_difference(
    treated: &[bool],
    outcome: &[f64],
    clusters: Option<&[u32]>,
) -> Result<Standardised, Refusal> {
    check_column(outcome, ColumnRef::Outcome, treated.len())?;
    let [n1, n0] = arm_sizes(treated, ROWS, 2)?.map(|rows| rows as f64);
    let [one, zero] = [true, false].map(|arm| Moments::of(&of_arm(arm, treated, outcome)));
    let (one, zero) = (one?, zero?);
    let reason = "the outcome is constant in both arms: there is no standard deviation";
    require(!(one.is_constant() && zero.is_constant()), reason)?;
    let freedom = n1 + n0 - 2.0;
    let share = |moments: &Moments, n: f64| moments.deviation * ((n - 1.0) / freedom).sqrt();
    let deviation = share(&one, n1).hypot(share(&zero, n0));
    let value = (one.mean - zero.mean) / deviation;
    let Some(codes) = clusters.map(|codes| dense(codes.iter().copied())) else {
        let root = (n1 * n0 / (n1 + n0)).sqrt();
        let method = IntervalMethod::Noncentral { root, degrees: freedom };
        return Ok(Standardised { value, freedom, method });
    };
    let part = |(treated, outcome): (&bool, &f64)| {
        let (mean, weight) = if *treated { (one.mean, 1.0 / n1) } else { (zero.mean, -1.0 / n0) };
        let apart = (outcome - mean) / deviation;
        // The parts of the mean and of the variance, of which d takes half.
        let spread = (apart * apart - freedom / (n1 + n0)) / freedom;
        apart * weight - 0.5 * value * spread
    };
    let parts: Vec<f64> = treated.iter().zip(outcome).map(part).collect();
    let pieces = clusters_per_arm(treated, Some(&codes))?;
    let fewer = pieces[0].min(pieces[1]) as f64;
    sandwich(value, freedom, &cluster_sums(&parts, Some(&codes)), fewer - 1.0)
}

/// Cohen's d_z of pairs: the mean of the differences over their standard deviation (n - 1), with an
/// interval as for [`standardised_difference`]. Refuses differences or clusters without variation.
pub fn standardised_pairs(
    differences: &[f64],
    clusters: Option<&[u32]>,
) -> Result<Standardised, Refusal> {
    let count = differences.len();
    check_column(differences, ColumnRef::Differences, count)?;
    at_least("pairs", count, 2)?;
    let moments = Moments::of(differences)?;
    let reason = "all pairs differ by the same amount: there is no standard deviation";
    require(!moments.is_constant(), reason)?;
    let n = count as f64;
    let value = moments.mean / moments.deviation;
    let Some(codes) = clusters.map(|codes| dense(codes.iter().copied())) else {
        let method = IntervalMethod::Noncentral { root: n.sqrt(), degrees: n - 1.0 };
        return Ok(Standardised { value, freedom: n - 1.0, method });
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
    let reason = "every cluster contributes the same: the standard error would be zero";
    require(standard_error > 1e-14 && standard_error.is_finite(), reason)?;
    let method = IntervalMethod::Sandwich(Estimate { value, standard_error, degrees });
    Ok(Standardised { value, freedom, method })
}

/// The frequency with which an outcome under the treatment exceeds one under control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dominance {
    /// Cliff's delta: P(treated > control) - P(treated < control), in [-1, 1] (N. Cliff,
    /// "Dominance statistics", Psychological Bulletin 114, 1993).
    pub delta: f64,
    /// The standard error of delta.
    pub standard_error: f64,
    /// The degrees of freedom of Student's t.
    pub degrees: f64,
    /// The independent units of the smaller arm: rows, pairs or clusters.
    pub independent: usize,
}

impl Dominance {
    /// The interval of delta of level `1 - alpha`: asymmetric and within [-1, 1] (Feng and Cliff
    /// 2004). If delta is 1 or -1 with zero variance, Wilson's score interval with as many trials
    /// as the smaller arm has independent units.
    pub fn interval(&self, alpha: f64) -> (f64, f64) {
        let d = self.delta;
        if d.abs() == 1.0 {
            let z = tail::normal_quantile(1.0 - 0.5 * alpha);
            let n = self.independent as f64;
            let inner = (n - z * z) / (n + z * z);
            return if d > 0.0 { (inner, 1.0) } else { (-1.0, -inner) };
        }
        let reach = tail::t_quantile(1.0 - 0.5 * alpha, self.degrees) * self.standard_error;
        let rest = (1.0 - d) * (1.0 + d);
        let half = reach * rest.hypot(reach);
        let below = rest + reach * reach;
        let end = |side: f64| ((d * rest + side * half) / below).clamp(-1.0, 1.0);
        (end(-1.0), end(1.0))
    }

    /// Vargha and Delaney's A (A12): P(treated > control) + P(treated = control) / 2, in [0, 1] (A.
    /// Vargha and H. D. Delaney 2000), which is (delta + 1) / 2.
    pub fn a12(&self) -> f64 {
        0.5 * (self.delta + 1.0)
    }

    /// The interval of [`Dominance::a12`], rescaled from that of delta.
    pub fn a12_interval(&self, alpha: f64) -> (f64, f64) {
        let (low, high) = self.interval(alpha);
        (0.5 * (low + 1.0), 0.5 * (high + 1.0))
    }
}

/// Compares every treated row with every control row. The standard error is that of the placements
/// (Brunner and Munzel 2000), summed within clusters if these are given (Obuchowski 1997,
/// Biometrics 53); for pairs the pair is the cluster (Munzel and Brunner 2002). O(n log n).
///
/// Without clusters this is statsmodels' `rank_compare_2indep`. If every cluster lies in one arm,
/// the degrees of freedom are those of Welch and Satterthwaite over clusters; otherwise they are
/// the clusters of the arm with fewer, minus one. Refuses a standard error of zero although the
/// arms overlap.
pub fn dominance(
    treated: &[bool],
    outcome: &[f64],
    clusters: Option<&[u32]>,
) -> Result<Dominance, Refusal> {
    let n = treated.len();
    check_column(outcome, ColumnRef::Outcome, n)?;
    let codes = clusters.map(|codes| dense(codes.iter().copied()));
    let [ones, zeros] = arm_sizes(treated, ROWS, 2)?;
    let pieces = clusters_per_arm(treated, codes.as_deref())?;
    let margins = margins(treated, outcome, [zeros, ones]);
    let sum: i128 = (0..n).filter(|row| treated[*row]).map(|row| i128::from(margins[row])).sum();
    let (n1, n0) = (ones as f64, zeros as f64);
    let delta = sum as f64 / (n1 * n0);
    // The placement of a row on the scale of delta, minus delta, over the size of its arm.
    let part = |row: usize| {
        let margin = margins[row] as f64;
        if treated[row] { (margin / n0 - delta) / n1 } else { (-margin / n1 - delta) / n0 }
    };
    let of_arm = |wanted: bool| -> Vec<f64> {
        let parts: Vec<f64> =
            (0..n).map(|row| if treated[row] == wanted { part(row) } else { 0.0 }).collect();
        cluster_sums(&parts, codes.as_deref())
    };
    let (first, second) = (of_arm(true), of_arm(false));
    let pair = |left: &[f64], right: &[f64]| left.iter().zip(right).map(|(a, b)| a * b).sum();
    let factor = |count: usize| count as f64 / (count as f64 - 1.0);
    let (own, other): (f64, f64) = (pair(&first, &first), pair(&second, &second));
    let (own, other) = (factor(pieces[0]) * own, factor(pieces[1]) * other);
    let shared: f64 = pair(&first, &second);
    let apart = codes.as_ref().is_none_or(|codes| code_count(codes) == pieces[0] + pieces[1]);
    let variance =
        if apart { own + other } else { own + other + 2.0 * factor(first.len()) * shared };
    let [k1, k0] = pieces.map(|count| count as f64);
    let degrees = if apart && variance > 0.0 {
        let (s1, s0) = (own / variance, other / variance);
        1.0 / (s1 * s1 / (k1 - 1.0) + s0 * s0 / (k0 - 1.0))
    } else {
        k1.min(k0) - 1.0
    };
    checked_dominance(delta, variance, degrees, pieces[0].min(pieces[1]))
}

/// For each row, the rows of the other arm below it minus those above it. `sizes` are those of control
/// and treated.
fn margins(treated: &[bool], outcome: &[f64], sizes: [usize; 2]) -> Vec<i64> {
    // Adding zero turns a negative zero into a positive one, with which it ties.
    let mut order: Vec<(f64, usize)> = outcome.iter().map(|y| y + 0.0).zip(0..).collect();
    order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let mut margins = vec![0; outcome.len()];
    let mut below = [0usize; 2];
    for tied in order.chunk_by(|a, b| a.0 == b.0) {
        let ones = tied.iter().filter(|(_, row)| treated[*row]).count();
        let here = [tied.len() - ones, ones];
        for (_, row) in tied {
            let other = usize::from(!treated[*row]);
            let above = sizes[other] - below[other] - here[other];
            margins[*row] = below[other] as i64 - above as i64;
        }
        below[0] += here[0];
        below[1] += here[1];
    }
    margins
}

/// Compares the members of each pair only: the share of pairs in which the treatment is above minus
/// that in which it is below (Cliff's delta within, d_w, of Cliff 1996). `differences` are treated
/// minus control. The standard error is that of a mean of signs, summed within clusters if these
/// are given (CR1 without a factor for rows), with pairs or clusters minus one degrees of freedom.
/// Refuses a standard error of zero if delta is not 1 or -1.
pub fn dominance_within(
    differences: &[f64],
    clusters: Option<&[u32]>,
) -> Result<Dominance, Refusal> {
    let n = differences.len();
    check_column(differences, ColumnRef::Differences, n)?;
    at_least("pairs", n, 2)?;
    let codes = clusters.map(|codes| dense(codes.iter().copied()));
    let sign = |value: &f64| i64::from(*value > 0.0) - i64::from(*value < 0.0);
    let signs: Vec<i64> = differences.iter().map(sign).collect();
    let delta = signs.iter().sum::<i64>() as f64 / n as f64;
    let parts: Vec<f64> = signs.iter().map(|sign| (*sign as f64 - delta) / n as f64).collect();
    let sums = cluster_sums(&parts, codes.as_deref());
    let pieces = sums.len();
    at_least("clusters", pieces, 2)?;
    let free = pieces as f64 - 1.0;
    let variance = sums.iter().map(|sum| sum * sum).sum::<f64>() * pieces as f64 / free;
    checked_dominance(delta, variance, free, pieces)
}

fn checked_dominance(
    delta: f64,
    variance: f64,
    degrees: f64,
    independent: usize,
) -> Result<Dominance, Refusal> {
    let standard_error = variance.max(0.0).sqrt();
    // The rounding error if every placement is the same.
    let reason = "every pair or cluster contributes the same: the standard error would be zero";
    require(delta.abs() >= 1.0 || standard_error >= 1e-12, reason)?;
    Ok(Dominance { delta, standard_error, degrees, independent })
}
