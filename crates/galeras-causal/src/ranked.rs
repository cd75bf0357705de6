//! Shifts by Wilcoxon's tests, between two independent samples (rank sum, Mann and Whitney) and
//! within pairs (signed ranks), each with the estimate and the interval of its test.

#[cfg(test)]
mod tests;

use crate::column::{check_column, check_level};
use crate::estimate::InvertedEstimate;
use crate::location::{location, walsh_sum};
use crate::rank::{average_ranks, from_order_key, order_key};
use crate::{ColumnRef, Refusal, tail};

/// Up to this many rows in each arm, without ties, the distribution of the statistic is exact.
const EXACT_ROWS: usize = 50;

/// The result of the rank sum test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankSum {
    /// The median of all differences of a treated and a control row (Hodges & Lehmann 1963), in
    /// units of the outcome, with the interval of shifts that the test does not reject.
    pub shift: InvertedEstimate,
    /// Mann and Whitney's U: the pairs of rows in which the treated one is larger, ties counted
    /// half.
    pub u: f64,
    /// The p-value is exact.
    pub exact: bool,
}

/// The rank sum test of `treated` and `control`, the outcomes of two independent samples, in
/// O(n log n). U and p equal those of `scipy.stats.mannwhitneyu`, without a correction for
/// continuity; the p-value is exact with at most 50 rows in each arm and no ties.
///
/// # Errors
/// [`Refusal::TooFew`] if an arm is empty, or if there are too few rows for an interval of
/// `1 - alpha`; [`Refusal::UnusableColumn`] for values that are not finite or too large;
/// [`Refusal::Constant`] if all values are equal.
pub fn rank_sum(treated: &[f64], control: &[f64], alpha: f64) -> Result<RankSum, Refusal> {
    check_level(alpha)?;
    for (column, what) in [(treated, "treated rows"), (control, "control rows")] {
        check_column(column, ColumnRef::Outcome, column.len())?;
        if column.is_empty() {
            return Err(Refusal::TooFew { what, found: 0, needed: 1 });
        }
        if column.iter().any(|value| value.abs() > f64::MAX / 4.0) {
            let problem = "has values that are too large to be subtracted".to_owned();
            return Err(Refusal::UnusableColumn { column: ColumnRef::Outcome, problem });
        }
    }
    let (n1, n0) = (treated.len(), control.len());
    let pooled: Vec<f64> = treated.iter().chain(control).copied().collect();
    let ranks = average_ranks(&pooled);
    let (a, b, n) = (n1 as f64, n0 as f64, (n1 + n0) as f64);
    // Ranks are multiples of a half: the sum is exact.
    let u = ranks.ranks[..n1].iter().sum::<f64>() - a * (a + 1.0) / 2.0;
    let variance = a * b / 12.0 * (n + 1.0 - ranks.tie_term() / (n * (n - 1.0)));
    if variance <= 0.0 {
        return Err(Refusal::Constant(ColumnRef::Outcome));
    }
    let exact = ranks.ties.is_empty() && n1 <= EXACT_ROWS && n0 <= EXACT_ROWS;
    let z = (u - a * b / 2.0) / variance.sqrt();
    let (p_value, position) = if exact {
        let lower = lower_tails(n1, n0);
        let fewer = u.min(a * b - u) as usize;
        let inside = lower.partition_point(|tail| *tail <= alpha / 2.0);
        ((2.0 * lower[fewer]).min(1.0), inside as u64)
    } else {
        let critical = tail::normal_quantile(1.0 - alpha / 2.0);
        let position = (a * b / 2.0 - critical * variance.sqrt() + 0.5).floor().max(0.0);
        (tail::normal_two_sided(z).min(1.0), position as u64)
    };
    if position == 0 {
        return Err(Refusal::Other(format!(
            "too few rows for an interval of {} %: {n1} treated and {n0} control",
            100.0 * (1.0 - alpha)
        )));
    }
    let differences = Differences::new(treated, control);
    let total = n1 as u64 * n0 as u64;
    let median = {
        let low = differences.select(total.div_ceil(2));
        let high = if total.is_multiple_of(2) { differences.select(total / 2 + 1) } else { low };
        low / 2.0 + high / 2.0
    };
    Ok(RankSum {
        shift: InvertedEstimate {
            value: median,
            interval: (differences.select(position), differences.select(total + 1 - position)),
            p_value,
            statistic: (!exact).then_some(z),
            standard_error: None,
        },
        u,
        exact,
    })
}

/// P(U <= u) for each u from 0 to half of its range, without ties: the coefficients of the Gaussian
/// binomial (Mann & Whitney 1947, Annals of Mathematical Statistics 18:50).
fn lower_tails(n1: usize, n0: usize) -> Vec<f64> {
    let most = n1 * n0 / 2;
    // Counts by u for some treated and j control rows. As doubles they are right to a few units in
    // the last place, because all terms are positive.
    let mut nothing = vec![0.0; most + 1];
    nothing[0] = 1.0;
    let mut fewer = vec![nothing; n0 + 1];
    for _ in 0..n1 {
        let mut counts = vec![fewer[0].clone()];
        for j in 1..=n0 {
            // The largest row is a control, or treated and above j controls.
            let mut cells = counts[j - 1].clone();
            for u in j..=most {
                cells[u] += fewer[j][u - j];
            }
            counts.push(cells);
        }
        fewer = counts;
    }
    let all = choose(n1 + n0, n1);
    let mut sum = 0.0;
    fewer[n0]
        .iter()
        .map(|count| {
            sum += count;
            sum / all
        })
        .collect()
}

fn choose(n: usize, k: usize) -> f64 {
    (1..=k).fold(1.0, |product, i| product * (n - k + i) as f64 / i as f64)
}

/// All differences of a treated and a control value, which are never stored.
struct Differences {
    treated: Vec<f64>,
    control: Vec<f64>,
}

impl Differences {
    fn new(treated: &[f64], control: &[f64]) -> Self {
        let sorted = |values: &[f64]| {
            let mut sorted = values.to_vec();
            sorted.sort_unstable_by(f64::total_cmp);
            sorted
        };
        Self { treated: sorted(treated), control: sorted(control) }
    }

    fn count(&self, bound: f64) -> u64 {
        let mut below = 0;
        let mut count = 0;
        // The larger the control, the more treated values are close enough above it.
        for control in &self.control {
            while below < self.treated.len() && self.treated[below] - control <= bound {
                below += 1;
            }
            count += below as u64;
        }
        count
    }

    /// The difference at `position`, from 1, by bisection over doubles.
    fn select(&self, position: u64) -> f64 {
        let last = |values: &[f64]| values.last().copied().unwrap_or_default();
        let mut low = order_key(self.treated[0] - last(&self.control));
        let mut high = order_key(last(&self.treated) - self.control[0]);
        while low < high {
            let middle = (low & high) + ((low ^ high) >> 1);
            if self.count(from_order_key(middle)) >= position {
                high = middle
            } else {
                low = middle + 1
            }
        }
        from_order_key(low)
    }
}

/// Up to this many pairs the position of the interval's ends is exact.
const EXACT_PAIRS: usize = 50;

/// The result of the signed-rank test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SignedRankShift {
    /// The pseudomedian of the differences with the interval of shifts that the test does not
    /// reject. The p-value drops differences of zero; estimate and interval keep them.
    pub shift: InvertedEstimate,
    /// The smaller sum of ranks.
    pub w: f64,
    /// The number of nonzero differences.
    pub nonzero: usize,
}

/// The signed-rank test of paired differences, in units of the outcome, one for each pair, in O(n
/// log n). W and p are those of [`location()`]; the ends of the interval are averages of two
/// differences (Tukey 1949), at the position given by the distribution of W.
///
/// # Errors
/// [`Refusal::TooFew`] without a pair; [`Refusal::UnusableColumn`] for a difference that is not
/// finite or too large; [`Refusal::Other`] if all differences are zero, or there are too few pairs
/// for an interval of `1 - alpha`.
pub fn signed_rank_shift(differences: &[f64], alpha: f64) -> Result<SignedRankShift, Refusal> {
    check_level(alpha)?;
    let found = location(differences)?;
    let n = differences.len();
    if found.positive + found.negative == 0 {
        return Err(Refusal::Other(format!("all {n} differences are zero: there are no ranks")));
    }
    if differences.iter().any(|value| value.abs() > f64::MAX / 4.0) {
        let problem = "has values that are too large to be added".to_owned();
        return Err(Refusal::UnusableColumn { column: ColumnRef::Differences, problem });
    }
    let position = position(n, alpha);
    if position == 0 {
        let level = 100.0 * (1.0 - alpha);
        return Err(Refusal::Other(format!("too few pairs for an interval of {level} %: {n}")));
    }
    let mut sorted = differences.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let total = n as u64 * (n as u64 + 1) / 2;
    let end = |position: u64| walsh_sum(&sorted, position) / 2.0;
    Ok(SignedRankShift {
        shift: InvertedEstimate {
            value: found.hodges_lehmann,
            interval: (end(position), end(total + 1 - position)),
            p_value: found.wilcoxon_p,
            statistic: None,
            standard_error: None,
        },
        w: found.wilcoxon_statistic,
        nonzero: found.positive + found.negative,
    })
}

/// The position of the lower end among the sorted averages: the largest k with P(W < k) <= alpha /
/// 2.
fn position(n: usize, alpha: f64) -> u64 {
    let half = alpha / 2.0;
    if n > EXACT_PAIRS {
        let n = n as f64;
        let mean = n * (n + 1.0) / 4.0;
        let deviation = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
        let critical = tail::normal_quantile(1.0 - half);
        return (mean - critical * deviation + 0.5).floor().max(0.0) as u64;
    }
    // The choices of signs by the sum of their ranks.
    let most = n * (n + 1) / 2;
    let mut choices = vec![0u64; most + 1];
    choices[0] = 1;
    for rank in 1..=n {
        for sum in (rank..=most).rev() {
            choices[sum] += choices[sum - rank];
        }
    }
    let all = (n as f64).exp2();
    let mut below = 0.0;
    let mut position = 0;
    for count in choices {
        below += count as f64 / all;
        if below > half {
            break;
        }
        position += 1;
    }
    position
}
