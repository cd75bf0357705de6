//! McNemar's test of pairs with a yes-or-no outcome.

use crate::inverted::{InvertedEstimate, falling_root};
use crate::{ColumnRef, Refusal, tail};

/// Pairs by whether each member has the outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct McNemar {
    /// Pairs in which the treated member only has it.
    pub gained: usize,
    /// Pairs in which the control only has it.
    pub lost: usize,
    /// Pairs in which both or neither have it.
    pub unchanged: usize,
}

/// Counts pairs; `treated` and `control` hold the outcome (0 and 1) of both members of each.
///
/// # Errors
/// [`Refusal::UnusableColumn`] if a value is not 0 or 1; [`Refusal::Other`] if lengths differ.
pub fn mcnemar(treated: &[f64], control: &[f64]) -> Result<McNemar, Refusal> {
    if treated.len() != control.len() {
        return Err(Refusal::Other(format!(
            "{} outcomes under the treatment, {} under the control",
            treated.len(),
            control.len()
        )));
    }
    for y in treated.iter().chain(control) {
        if *y != 0.0 && *y != 1.0 {
            let problem = format!(
                "is {y} for a member of a pair: McNemar's test needs 0 or 1 for each of the two"
            );
            return Err(Refusal::UnusableColumn { column: ColumnRef::Outcome, problem });
        }
    }
    let count =
        |of: (f64, f64)| treated.iter().zip(control).filter(|(t, c)| (**t, **c) == of).count();
    let (gained, lost) = (count((1.0, 0.0)), count((0.0, 1.0)));
    Ok(McNemar { gained, lost, unchanged: treated.len() - gained - lost })
}

impl McNemar {
    /// The two-sided p-value of equal chances of gain and loss: the binomial test of the pairs that
    /// changed (statsmodels' `mcnemar(exact=True)`). With `mid`, half of the probability of what
    /// was observed counts (Fagerland, Lydersen & Laake 2013, BMC Medical Research Methodology
    /// 13:91). 1 if no pair changed.
    pub fn p_value(&self, mid: bool) -> f64 {
        let changed = self.gained + self.lost;
        let fewer = self.gained.min(self.lost);
        if changed == 0 || self.gained == self.lost {
            return 1.0;
        }
        // By symmetry the lower tail of the fewer is the upper one of the more.
        (2.0 * upper_tail(changed - fewer, changed, 0.5, mid)).min(1.0)
    }

    /// The ratio of the odds within pairs, gained over lost, with the interval of `1 - alpha` that
    /// belongs to the p-value: Clopper and Pearson's for the share of gains, or its mid-p version.
    ///
    /// # Errors
    /// [`Refusal::Other`] if no pair changed, or none in one of the two directions: the ratio is
    /// then undefined, 0 or infinite, and the text says what the p-value is.
    pub fn odds_ratio(&self, mid: bool, alpha: f64) -> Result<InvertedEstimate, Refusal> {
        crate::column::check_level(alpha)?;
        let changed = self.gained + self.lost;
        if changed == 0 {
            return Err(Refusal::Other(
                "the outcome is the same in both members of every pair: nothing is left to test"
                    .into(),
            ));
        }
        let p_value = self.p_value(mid);
        if self.gained == 0 || self.lost == 0 {
            let (which, size) = match self.lost {
                0 => ("gained", "infinite"),
                _ => ("lost", "0"),
            };
            let kind = if mid { "mid-p" } else { "exact" };
            return Err(Refusal::Other(format!(
                "all {changed} pairs that changed {which} the outcome, so that the odds ratio is \
                 {size} (the {kind} p-value of McNemar's test is {p_value:.3e})"
            )));
        }
        // The share of gains at which the tail on its side is alpha / 2, by its log odds.
        let share = |log: f64| 1.0 / (1.0 + (-log).exp());
        let tail_of = |successes: usize, log: f64| upper_tail(successes, changed, share(log), mid);
        let low = falling_root(-800.0, 800.0, |log| alpha / 2.0 - tail_of(self.gained, log));
        let high = -falling_root(-800.0, 800.0, |log| alpha / 2.0 - tail_of(self.lost, log));
        let (gained, lost) = (self.gained as f64, self.lost as f64);
        Ok(InvertedEstimate {
            value: gained / lost,
            interval: (low.exp(), high.exp()),
            p_value,
            statistic: None,
            standard_error: Some((1.0 / gained + 1.0 / lost).sqrt()),
        })
    }
}

/// The probability of at least `successes` of `trials`; with `mid`, half of that of just as many
/// is left out.
fn upper_tail(successes: usize, trials: usize, share: f64, mid: bool) -> f64 {
    let at_least = |successes: usize| {
        if successes == 0 {
            return 1.0;
        }
        if successes > trials {
            return 0.0;
        }
        // The incomplete beta function at (successes, failures + 1), as a tail of F.
        let (a, b) = (successes as f64, (trials - successes) as f64 + 1.0);
        tail::f_upper(a * (1.0 - share) / (b * share), 2.0 * b, 2.0 * a)
    };
    match mid {
        false => at_least(successes),
        true => 0.5 * (at_least(successes) + at_least(successes + 1)),
    }
}
