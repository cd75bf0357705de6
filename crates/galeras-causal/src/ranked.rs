//! Tests of ranks: shifts by Wilcoxon's tests, between two independent samples (rank sum, Mann and
//! Whitney) and within pairs (signed ranks), each with the estimate and the interval of its test;
//! Friedman's test of k related columns (the arms of a unit).

#[cfg(test)]
mod tests;

use crate::column::{ROWS, check_column, check_level};
use crate::estimate::InvertedEstimate;
use crate::location::{EXACT_DIFFERENCES, location, sign_choices, walsh_sum};
use crate::rank::{ascending, average_ranks, from_order_key, order_key};
use crate::refusal::{at_least, require, require_column};
use crate::{ColumnRef, Refusal, tail};

/// Up to this many rows in each arm, without ties, the distribution of the statistic is exact.
const EXACT_ROWS: usize = 50;

/// The result of the rank sum test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankSum {
    /// The median of all differences of a treated and a control row (Hodges & Lehmann 1963), in
    /// units of the outcome, with the interval of shifts that the test does not reject.
    pub shift: InvertedEstimate,
    /// Mann and Whitney's U: the pairs in which the treated row is larger, ties counted half.
    pub u: f64,
    /// The p-value is exact.
    pub exact: bool,
    /// The share of pairs of rows that have the same value.
    pub tied: f64,
}

/// The rank sum test of `treated` and `control`, the outcomes of two independent samples, in O(n
/// log n). U and p equal those of `scipy.stats.mannwhitneyu`, without a correction for continuity;
/// the p-value is exact with at most 50 rows in each arm and no ties. Refuses too few rows for an
/// interval of `1 - alpha`.
pub fn rank_sum(treated: &[f64], control: &[f64], alpha: f64) -> Result<RankSum, Refusal> {
    check_level(alpha)?;
    for (column, what) in [treated, control].into_iter().zip(ROWS) {
        check_column(column, ColumnRef::Outcome, column.len())?;
        at_least(what, column.len(), 1)?;
        check_size(column, ColumnRef::Outcome, "subtracted")?;
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
    let level = 100.0 * (1.0 - alpha);
    let reason =
        format!("too few rows for an interval of {level} %: {n1} treated and {n0} control");
    require(position > 0, reason)?;
    let differences = Differences { treated: ascending(treated), control: ascending(control) };
    let total = n1 as u64 * n0 as u64;
    let [low, high] = [total.div_ceil(2), total / 2 + 1].map(|middle| differences.select(middle));
    Ok(RankSum {
        shift: InvertedEstimate {
            value: low / 2.0 + high / 2.0,
            interval: (differences.select(position), differences.select(total + 1 - position)),
            p_value,
            statistic: (!exact).then_some(z),
            standard_error: None,
        },
        u,
        exact,
        tied: ranks.tied_share(),
    })
}

/// Refuses values whose sums and differences would overflow.
fn check_size(values: &[f64], column: ColumnRef, verb: &str) -> Result<(), Refusal> {
    let small = values.iter().all(|value| value.abs() <= f64::MAX / 4.0);
    require_column(column, small, format!("has values that are too large to be {verb}"))
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
    let all = (1..=n1).fold(1.0, |product, i| product * (n0 + i) as f64 / i as f64);
    let mut sum = 0.0;
    fewer[n0]
        .iter()
        .map(|count| {
            sum += count;
            sum / all
        })
        .collect()
}

/// All differences of a treated and a control value, which are never stored.
struct Differences {
    treated: Vec<f64>,
    control: Vec<f64>,
}

impl Differences {
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
    /// The p-value is exact.
    pub exact: bool,
    /// The share of differences that are zero, or if it is larger that of pairs of nonzero differences
    /// that have the same size.
    pub tied: f64,
}

/// The signed-rank test of paired differences in O(n log n). W and p are those of [`location()`];
/// the ends of the interval are averages of two differences (Tukey 1949). Refuses differences that
/// are all zero, or too few for an interval of `1 - alpha`.
pub fn signed_rank_shift(differences: &[f64], alpha: f64) -> Result<SignedRankShift, Refusal> {
    check_level(alpha)?;
    let found = location(differences)?;
    let n = differences.len();
    let nonzero = found.positive + found.negative;
    require(nonzero > 0, format!("all {n} differences are zero: there are no ranks"))?;
    check_size(differences, ColumnRef::Differences, "added")?;
    let position = position(n, alpha);
    let level = 100.0 * (1.0 - alpha);
    require(position > 0, format!("too few pairs for an interval of {level} %: {n}"))?;
    let sorted = ascending(differences);
    let sizes: Vec<f64> =
        differences.iter().filter(|value| **value != 0.0).map(|value| value.abs()).collect();
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
        nonzero,
        exact: nonzero <= EXACT_DIFFERENCES,
        tied: average_ranks(&sizes).tied_share().max(found.zero as f64 / n as f64),
    })
}

/// The lower end among the sorted averages: the largest k with P(W < k) <= alpha / 2.
fn position(n: usize, alpha: f64) -> u64 {
    let half = alpha / 2.0;
    if n > EXACT_PAIRS {
        let n = n as f64;
        let mean = n * (n + 1.0) / 4.0;
        let deviation = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
        let critical = tail::normal_quantile(1.0 - half);
        return (mean - critical * deviation + 0.5).floor().max(0.0) as u64;
    }
    let all = (n as f64).exp2();
    let mut below = 0.0;
    let mut position = 0;
    for count in sign_choices(1..=n, n * (n + 1) / 2) {
        below += count as f64 / all;
        if below > half {
            break;
        }
        position += 1;
    }
    position
}

/// Friedman's test of k columns over n blocks (Friedman 1937, JASA 32).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FriedmanTest {
    /// The statistic, corrected for ties within blocks.
    pub statistic: f64,
    /// The upper tail of chi-squared with k - 1 degrees of freedom: an approximation, good for n >
    /// 10 and k > 6 or large n.
    pub p_value: f64,
}

/// Tests if `columns` (k columns of the same n blocks) have the same distribution within the
/// blocks; equals `scipy.stats.friedmanchisquare`. Refuses values that are equal in every block.
pub fn friedman(columns: &[&[f64]]) -> Result<FriedmanTest, Refusal> {
    let k = columns.len();
    at_least("arms", k, 3)?;
    let n = columns[0].len();
    for (position, column) in columns.iter().enumerate() {
        check_column(column, ColumnRef::Covariate(position), n)?;
    }
    at_least("blocks", n, 2)?;
    // Twice the rank, minus its expectation k + 1: all sums are integers.
    let mut sums = vec![0i128; k];
    let mut ties = 0i128;
    let mut block: Vec<(f64, usize)> = Vec::with_capacity(k);
    for row in 0..n {
        block.clear();
        block.extend(columns.iter().enumerate().map(|(arm, column)| (column[row], arm)));
        block.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let mut before = 0;
        for group in block.chunk_by(|a, b| a.0 == b.0) {
            let size = group.len();
            let doubled = (2 * before + size + 1) as i128 - (k as i128 + 1);
            group.iter().for_each(|&(_, arm)| sums[arm] += doubled);
            ties += (size as i128).pow(3) - size as i128;
            before += size;
        }
    }
    let (blocks, arms) = (n as i128, k as i128);
    let free = blocks * (arms.pow(3) - arms) - ties;
    require(free > 0, "every block has one value only")?;
    let squares: i128 = sums.iter().map(|sum| sum * sum).sum();
    // 12 sum (R - n (k + 1) / 2)^2 / (n k (k + 1)), divided by 1 - ties / (n (k^3 - k)).
    let statistic = 3.0 * (arms - 1) as f64 * squares as f64 / free as f64;
    let p_value = tail::chi_squared_upper(statistic, (k - 1) as f64).min(1.0);
    Ok(FriedmanTest { statistic, p_value })
}
