//! Rosenbaum's bounds for the signed-rank test of paired differences.

use crate::refusal::{at_least, require};
use crate::{Refusal, tail};

/// With fewer differences the normal approximation is too coarse.
const MINIMUM: usize = 10;

/// The signed ranks of paired differences, from which the bounds for any gamma follow (Rosenbaum
/// 2002, Observational Studies, section 4.3).
///
/// Gamma is the factor by which an unmeasured confounder may change the odds of treatment within a
/// pair; with gamma 1 the pairs are as good as randomised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SignedRanks {
    /// The larger of both rank sums, with average ranks for ties: the statistic of the one-sided
    /// test in the direction of this sum.
    pub(super) statistic: f64,
    pub(super) smaller: f64,
    /// The sum of the squared ranks.
    squares: f64,
}

impl SignedRanks {
    /// Ranks the differences within pairs (treated minus control, one for each pair, in any unit)
    /// by their size. Refuses fewer than 10 differences other than zero.
    pub fn new(differences: &[f64]) -> Result<Self, Refusal> {
        let finite = differences.iter().all(|difference| difference.is_finite());
        require(finite, "a difference is missing or infinite")?;
        let mut sorted: Vec<f64> =
            differences.iter().copied().filter(|difference| *difference != 0.0).collect();
        at_least("differences other than zero", sorted.len(), MINIMUM)?;
        sorted.sort_unstable_by(|a, b| a.abs().total_cmp(&b.abs()));
        let (mut sums, mut squares, mut ranked) = ([0.0; 2], 0.0, 0_usize);
        for ties in sorted.chunk_by(|a, b| a.abs() == b.abs()) {
            let rank = ranked as f64 + (ties.len() as f64 + 1.0) / 2.0;
            let above = ties.iter().filter(|difference| **difference > 0.0).count();
            sums[1] += rank * above as f64;
            sums[0] += rank * (ties.len() - above) as f64;
            squares += rank * rank * ties.len() as f64;
            ranked += ties.len();
        }
        let [below, above] = sums;
        Ok(Self { statistic: above.max(below), smaller: above.min(below), squares })
    }

    /// The upper bound of the one-sided p-value of no effect, by the normal approximation without a
    /// correction for continuity (Rosenbaum 2002, section 4.3.3). `gamma` is the factor by which
    /// hidden bias may change the odds of treatment. Refuses a gamma below 1 or not finite.
    pub fn p_upper(&self, gamma: f64) -> Result<f64, Refusal> {
        let reason = format!("gamma is {gamma}, but must be at least 1 and finite");
        require(gamma >= 1.0 && gamma.is_finite(), reason)?;
        Ok(self.bound(gamma))
    }

    /// The largest gamma for which the bound is still at most `alpha`: the hidden bias that the
    /// finding endures. 1 if it is insignificant without any. Refuses an `alpha` that is not
    /// between 0 and 0.5: above, no bias may suffice.
    pub fn gamma_star(&self, alpha: f64) -> Result<f64, Refusal> {
        let reason = format!("alpha is {alpha}, but must be above 0, below 0.5");
        require(alpha > 0.0 && alpha < 0.5, reason)?;
        let (mut low, mut high) = (1.0, 2.0);
        if self.bound(low) > alpha {
            return Ok(low);
        }
        // The bound grows with gamma to more than a half, so both searches end.
        while self.bound(high) <= alpha && high < f64::MAX / 4.0 {
            (low, high) = (high, high * 2.0);
        }
        loop {
            let middle = low + (high - low) / 2.0;
            if middle <= low || middle >= high {
                return Ok(low);
            }
            if self.bound(middle) <= alpha {
                low = middle;
            } else {
                high = middle;
            }
        }
    }

    /// The bound for a gamma that is at least 1 and finite. With S the sum of all ranks, p = gamma
    /// / (1 + gamma) and T the statistic, the deviate is (T - pS) / sqrt(p (1 - p) squares).
    /// Multiplied by 1 + gamma and written with S - T, it keeps its digits for any gamma.
    fn bound(&self, gamma: f64) -> f64 {
        let deviate =
            (self.statistic - gamma * self.smaller) / (gamma.sqrt() * self.squares.sqrt());
        tail::normal_upper(deviate)
    }
}
