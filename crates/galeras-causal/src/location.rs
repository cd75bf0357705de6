//! Robust location of paired differences, and effects relative to the control arm.

#[cfg(test)]
mod tests;

use crate::column::check_column;
use crate::rank::{from_order_key, order_key};
use crate::refusal::{at_least, require};
use crate::{ColumnRef, Refusal, compensated, rank, tail};

/// Robust location of paired differences with tests of zero, and their skewness and kurtosis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RobustLocation {
    /// The median difference, in units of the outcome.
    pub median: f64,
    /// The pseudomedian: the median of the averages of all pairs of differences, including each
    /// difference with itself (J. L. Hodges & E. L. Lehmann 1963).
    pub hodges_lehmann: f64,
    /// The mean without the smallest and the largest tenth, in whole differences.
    pub trimmed_mean: f64,
    /// Wilcoxon's W: the smaller one of the sums of the ranks of |difference| over the positive
    /// and over the negative differences; zero differences are dropped, ties share ranks.
    pub wilcoxon_statistic: f64,
    /// W in standard errors from its expectation, corrected for ties but not for continuity; never
    /// above zero. Zero if all differences are zero.
    pub wilcoxon_z: f64,
    /// The two-sided p-value of W, exact with at most 50 nonzero differences, else by `wilcoxon_z`.
    pub wilcoxon_p: f64,
    /// The two-sided p-value of the exact sign test; zero differences are dropped.
    pub sign_p: f64,
    /// The number of differences above zero.
    pub positive: usize,
    /// The number of differences below zero.
    pub negative: usize,
    /// The number of zero differences.
    pub zero: usize,
    /// The third moment over the cubed deviation, with divisor n; `None` for equal differences.
    pub skewness: Option<f64>,
    /// The fourth moment over the squared variance, minus 3, likewise.
    pub excess_kurtosis: Option<f64>,
}

/// An effect relative to the control arm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RelativeEffect {
    /// The mean of the treated outcomes divided by that of the control outcomes.
    pub ratio_of_means: f64,
    /// The standard error of its logarithm, by the delta method for pairs.
    pub log_ratio_standard_error: f64,
    /// The mean of ln(1 + treated) - ln(1 + control); `None` if an outcome is -1 or below.
    pub mean_log1p_difference: Option<f64>,
}

/// The robust location of paired differences (treated minus control). W and its normal
/// approximation equal those of `scipy.stats.wilcoxon`. O(n log n) in time and O(n) in memory.
pub fn location(differences: &[f64]) -> Result<RobustLocation, Refusal> {
    let n = differences.len();
    check_column(differences, ColumnRef::Differences, n)?;
    at_least("pairs", n, 1)?;
    let sorted = rank::ascending(differences);
    let negative = sorted.partition_point(|&value| value < 0.0);
    let zero = sorted[negative..].partition_point(|&value| value == 0.0);
    let positive = n - negative - zero;
    let cut = (0.1 * n as f64) as usize;
    let (wilcoxon_statistic, wilcoxon_z, wilcoxon_p) = signed_rank(&sorted);
    let shape = shape(&sorted);
    Ok(RobustLocation {
        median: rank::quantile(&sorted, 1, 2),
        hodges_lehmann: pseudomedian(&sorted),
        trimmed_mean: compensated::mean(&sorted[cut..n - cut]),
        wilcoxon_statistic,
        wilcoxon_z,
        wilcoxon_p,
        sign_p: sign_test(positive, negative),
        positive,
        negative,
        zero,
        skewness: shape.map(|(skewness, _)| skewness),
        excess_kurtosis: shape.map(|(_, kurtosis)| kurtosis),
    })
}

/// Skewness and excess kurtosis; both are independent of scale.
fn shape(values: &[f64]) -> Option<(f64, f64)> {
    let column = compensated::centred(values, ColumnRef::Differences).ok()?;
    let n = column.len() as f64;
    let moment = |power: i32| compensated::sum(column.iter().map(|v| v.powi(power))).high / n;
    let variance = moment(2);
    Some((moment(3) / variance.powf(1.5), moment(4) / (variance * variance) - 3.0))
}

/// The effect relative to the control arm of outcomes in pairs. Refuses a mean of zero or below
/// (the ratio would be meaningless), or an overflow.
pub fn relative(treated: &[f64], control: &[f64]) -> Result<RelativeEffect, Refusal> {
    let n = treated.len();
    check_column(treated, ColumnRef::TreatedOutcome, n)?;
    check_column(control, ColumnRef::ControlOutcome, n)?;
    at_least("pairs", n, 2)?;
    let means = [compensated::mean(treated), compensated::mean(control)];
    let ratio = means[0] / means[1];
    let [one, zero] = means;
    let reason =
        format!("the means of the arms are {one} and {zero}: a ratio needs means above zero");
    require(one > 0.0 && zero > 0.0 && ratio > 0.0 && ratio.is_finite(), reason)?;
    let pairs = || treated.iter().zip(control);
    let parts: Vec<f64> = pairs().map(|(t, c)| t / means[0] - c / means[1]).collect();
    let centre = compensated::mean(&parts);
    let squares = compensated::sum(parts.iter().map(|part| (part - centre).powi(2))).high;
    let error = (squares / (n as f64 - 1.0) / n as f64).sqrt();
    let reason = "the outcomes are too far from their mean for a standard error of the ratio";
    require(error.is_finite(), reason)?;
    let logs = || pairs().map(|(t, c)| t.ln_1p() - c.ln_1p());
    let log = compensated::sum(logs()).high / n as f64;
    Ok(RelativeEffect {
        ratio_of_means: ratio,
        log_ratio_standard_error: error,
        mean_log1p_difference: pairs().all(|(&t, &c)| t > -1.0 && c > -1.0).then_some(log),
    })
}

/// The median of the averages (d_i + d_j) / 2 over all i <= j; 0 for an empty column. `sorted`
/// ascends.
///
/// The sums ascend along rows and columns of the matrix d_i + d_j, so one walk along its staircase
/// counts the sums up to a bound (Johnson & Mizoguchi 1978, SIAM J. Computing 7; Monahan 1984, ACM
/// TOMS 10). Bisection over doubles, with at most 64 walks, leaves about n sums to sort. The result
/// is exactly one of the sums, or the mean of two.
fn pseudomedian(sorted: &[f64]) -> f64 {
    if sorted.is_empty() {
        return 0.0;
    }
    // Sums of two values must not overflow.
    if compensated::largest(sorted) > f64::MAX / 4.0 {
        let quarters: Vec<f64> = sorted.iter().map(|value| value / 4.0).collect();
        return pseudomedian(&quarters) * 4.0;
    }
    let n = sorted.len() as u64;
    let total = n * (n + 1) / 2;
    // The middle sum, or the lower middle one.
    let wanted = total.div_ceil(2);
    let lower = walsh_sum(sorted, wanted);
    let upper =
        if total % 2 == 1 || count(sorted, lower) > wanted { lower } else { next(sorted, lower) };
    // The mean of two averages; adding zero makes a negative zero positive.
    (lower / 2.0 + upper / 2.0) / 2.0 + 0.0
}

/// The sum at position `wanted`, from 1, of the ascending sums of two; no sum may overflow.
pub(crate) fn walsh_sum(sorted: &[f64], wanted: u64) -> f64 {
    let [Some(&first), Some(&last)] = [sorted.first(), sorted.last()] else {
        return 0.0;
    };
    let n = sorted.len() as u64;
    let total = n * (n + 1) / 2;
    let (mut low, mut high) = (order_key(first + first), order_key(last + last));
    // The number of sums below `low` and up to `high`.
    let (mut below, mut up_to) = (0, total);
    while low < high && up_to - below > n {
        let middle = (low & high) + ((low ^ high) >> 1);
        let count = count(sorted, from_order_key(middle));
        if count >= wanted {
            (high, up_to) = (middle, count);
        } else {
            (low, below) = (middle + 1, count);
        }
    }
    if low == high { from_order_key(low) } else { pick(sorted, low, high, wanted - below) }
}

fn count(sorted: &[f64], bound: f64) -> u64 {
    let (mut row, mut end, mut count) = (0, sorted.len(), 0);
    // If the last one is at most the bound, so are all sums of the row with the columns row..end.
    // Either the row or the end moves, without an unpredictable branch.
    while row < end {
        let fits = usize::from(sorted[row] + sorted[end - 1] <= bound);
        count += (fits * (end - row)) as u64;
        row += fits;
        end -= 1 - fits;
    }
    count
}

/// The smallest sum above `bound`, infinite if there is none.
fn next(sorted: &[f64], bound: f64) -> f64 {
    let mut end = sorted.len();
    let mut next = f64::INFINITY;
    for (i, &row) in sorted.iter().enumerate() {
        while end > i && row + sorted[end - 1] > bound {
            end -= 1;
        }
        match sorted.get(end.max(i)) {
            Some(&column) => next = next.min(row + column),
            None => continue,
        }
        if end <= i {
            break;
        }
    }
    next
}

/// The sum at `position` (from 1) among those whose keys are from `low` to `high`.
fn pick(sorted: &[f64], low: i64, high: i64, position: u64) -> f64 {
    let mut end = sorted.len();
    let mut between = Vec::new();
    for (i, &row) in sorted.iter().enumerate() {
        while end > i && order_key(row + sorted[end - 1]) > high {
            end -= 1;
        }
        let sums = sorted[i..end.max(i)].iter().rev().map(|column| order_key(row + column));
        between.extend(sums.take_while(|&sum| sum >= low));
    }
    let index = (position.saturating_sub(1) as usize).min(between.len().saturating_sub(1));
    if between.is_empty() {
        from_order_key(low)
    } else {
        from_order_key(*between.select_nth_unstable(index).1)
    }
}

/// Up to this many nonzero differences, the p-value of W is exact.
pub(crate) const EXACT_DIFFERENCES: usize = 50;

/// Wilcoxon's signed-rank test (1945) of symmetry about zero: the statistic, its distance from the
/// expectation in standard errors, and p. Zero differences are dropped.
fn signed_rank(differences: &[f64]) -> (f64, f64, f64) {
    let kept: Vec<f64> = differences.iter().copied().filter(|&value| value != 0.0).collect();
    if kept.is_empty() {
        return (0.0, 0.0, 1.0);
    }
    let sizes: Vec<f64> = kept.iter().map(|value| value.abs()).collect();
    let ranks = rank::average_ranks(&sizes);
    // Half-integers: every sum is exact.
    let above: f64 = kept.iter().zip(&ranks.ranks).filter(|p| *p.0 > 0.0).map(|p| p.1).sum();
    let n = kept.len() as f64;
    let statistic = above.min(n * (n + 1.0) / 2.0 - above);
    let variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0 - ranks.tie_term() / 48.0;
    let z = ((statistic - n * (n + 1.0) / 4.0) / variance.sqrt()).min(0.0);
    let p_value = if kept.len() <= EXACT_DIFFERENCES {
        exact_p_value(&ranks.ranks, statistic)
    } else {
        tail::normal_two_sided(z).min(1.0)
    };
    (statistic, z, p_value)
}

/// Twice the share of the 2^n choices of signs whose ranks sum to at most `statistic`, at most 1.
fn exact_p_value(ranks: &[f64], statistic: f64) -> f64 {
    // Ties have half ranks, so everything is doubled.
    let doubled = ranks.iter().map(|rank| (2.0 * rank) as usize);
    let favourable: u64 = sign_choices(doubled, (2.0 * statistic) as usize).iter().sum();
    let all = 1u64 << ranks.len();
    (2.0 * (favourable as f64 / all as f64)).min(1.0)
}

/// The choices of signs by the sum of the positive ranks, for sums up to `most`.
pub(crate) fn sign_choices(ranks: impl Iterator<Item = usize>, most: usize) -> Vec<u64> {
    let mut choices = vec![0; most + 1];
    choices[0] = 1;
    for rank in ranks {
        for sum in (rank..=most).rev() {
            choices[sum] += choices[sum - rank];
        }
    }
    choices
}

/// The two-sided p-value of `positive` against `negative` signs under equal chances: twice the
/// smaller tail of the binomial distribution, at most 1.
fn sign_test(positive: usize, negative: usize) -> f64 {
    /// The exponent of one step between scales of the sum.
    const STEP: i32 = 512;
    let shift = |steps: i32| 2.0f64.powi(steps);
    let (n, fewer) = (positive + negative, positive.min(negative));
    // Sums the binomial coefficients, in units of 2^scale; no digits cancel.
    let (mut term, mut total, mut scale) = (1.0, 1.0, -(n as i64));
    for i in 1..=fewer {
        term *= (n - i + 1) as f64 / i as f64;
        total += term;
        if total > shift(STEP) {
            term *= shift(-STEP);
            total *= shift(-STEP);
            scale += i64::from(STEP);
        }
    }
    while scale < 0 && total > 0.0 {
        let step = scale.max(-i64::from(STEP));
        total *= shift(step as i32);
        scale -= step;
    }
    (2.0 * total).min(1.0)
}
