//! Tests of the signs of paired differences: Wilcoxon's signed ranks and the sign test.

use super::super::{rank, tail};

/// Up to this many differences other than zero the p-value of W is exact.
const EXACT_DIFFERENCES: usize = 50;

/// Wilcoxon's signed-rank test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SignedRank {
    /// The smaller sum of ranks.
    pub(super) statistic: f64,
    /// Its distance from the expectation, in standard errors; zero or below.
    pub(super) z: f64,
    /// The two-sided p-value.
    pub(super) p_value: f64,
}

/// Wilcoxon's signed-rank test of symmetry about zero; zero differences are dropped
/// (F. Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bulletin 1, 1945).
pub(super) fn signed_rank(differences: &[f64]) -> SignedRank {
    let kept: Vec<f64> = differences.iter().copied().filter(|&value| value != 0.0).collect();
    if kept.is_empty() {
        return SignedRank { statistic: 0.0, z: 0.0, p_value: 1.0 };
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
    SignedRank { statistic, z, p_value }
}

/// Twice the share of the 2^n choices of signs whose ranks sum to at most `statistic`, at most
/// 1. Ties make half ranks, hence everything is doubled.
fn exact_p_value(ranks: &[f64], statistic: f64) -> f64 {
    let most = (2.0 * statistic) as usize;
    let mut choices = vec![0u64; most + 1];
    choices[0] = 1;
    for rank in ranks {
        let step = (2.0 * rank) as usize;
        for sum in (step..=most).rev() {
            choices[sum] += choices[sum - step];
        }
    }
    let favourable: u64 = choices.iter().sum();
    let all = 1u64 << ranks.len();
    (2.0 * (favourable as f64 / all as f64)).min(1.0)
}

/// The two-sided p-value of `positive` against `negative` signs under equal chances: twice the
/// smaller tail of the binomial distribution, at most 1.
pub(super) fn sign_test(positive: usize, negative: usize) -> f64 {
    /// A step between the scale of the sum and the next one.
    const STEP: i32 = 512;
    let shift = |steps: i32| 2.0f64.powi(steps);
    let (n, fewer) = (positive + negative, positive.min(negative));
    // Sums the binomial coefficients from the first one, in units of 2^scale; all terms are
    // positive, so that no digits cancel.
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
