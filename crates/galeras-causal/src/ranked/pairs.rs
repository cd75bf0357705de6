//! Wilcoxon's signed-rank test, with the pseudomedian of Hodges and Lehmann.

use crate::column::check_level;
use crate::inverted::InvertedEstimate;
use crate::location::{location, walsh_sum};
use crate::{ColumnRef, Refusal, tail};

/// Up to this many pairs the place of the interval's ends is exact.
const EXACT_PAIRS: usize = 50;

/// What the signed-rank test gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SignedRankShift {
    /// The pseudomedian of the differences with the interval of shifts that the test does not
    /// reject. The p-value drops differences of zero; estimate and interval have all of them.
    pub shift: InvertedEstimate,
    /// The smaller sum of ranks.
    pub w: f64,
    /// Differences other than zero.
    pub nonzero: usize,
}

/// The signed-rank test of paired differences, in units of the outcome, one for each pair, in
/// O(n log n). W and p are those of [`location()`]; the ends of the interval are averages of two
/// differences (Tukey 1949), at the place that the distribution of W gives.
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
        return Err(Refusal::Other(format!("all {n} differences are zero: nothing has a rank")));
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

/// The place of the lower end among the sorted averages: the largest k with P(W < k) <= alpha / 2.
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
