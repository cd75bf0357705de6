//! Binary outcomes of two arms: proportions by score intervals, and McNemar's test of pairs.

#[cfg(test)]
mod tests;

use crate::column::{ROWS, check_level};
use crate::difference::{same_pairs, same_rows};
use crate::estimate::InvertedEstimate;
use crate::glm::check_binary;
use crate::refusal::{at_least, require};
use crate::root::falling_root;
use crate::{ColumnRef, Refusal, tail};

/// The comparison of two proportions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RiskMeasure {
    /// The difference.
    Difference,
    /// The ratio.
    Ratio,
    /// The ratio of the odds.
    OddsRatio,
}

/// Counts of a binary outcome in two arms, whose proportions are compared by the score test. An
/// interval has the values that the test does not reject, with the variance of the likeliest pair
/// of proportions with this value (Miettinen & Nurminen 1985, Statistics in Medicine 4:213, with
/// their factor N / (N - 1)). It keeps its coverage near 0 and 1. The p-value is the same for all
/// three measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FourfoldTable {
    /// Treated rows with the outcome, and all treated rows.
    pub treated: (usize, usize),
    /// Control rows with the outcome, and all control rows.
    pub control: (usize, usize),
}

impl FourfoldTable {
    /// Counts rows; `treated` and `outcome` (0 and 1) have one entry for each.
    pub fn of(treated: &[bool], outcome: &[f64]) -> Result<Self, Refusal> {
        same_rows(treated, outcome.len())?;
        check_binary(outcome)?;
        let count = |arm: bool| {
            let rows = treated.iter().zip(outcome).filter(|(t, _)| **t == arm);
            rows.fold((0, 0), |(events, all), (_, y)| (events + usize::from(*y == 1.0), all + 1))
        };
        Ok(Self { treated: count(true), control: count(false) })
    }

    /// The measure of the two proportions, with an interval of `1 - alpha`. Equals statsmodels'
    /// `confint_proportions_2indep` and `test_proportions_2indep` with `method="score"`. Refuses if
    /// no row or every row has the outcome, or a ratio is 0, infinite or undefined.
    pub fn compare(&self, measure: RiskMeasure, alpha: f64) -> Result<InvertedEstimate, Refusal> {
        check_level(alpha)?;
        let arms = [self.treated, self.control];
        ROWS.into_iter().zip(arms).try_for_each(|(what, (_, rows))| at_least(what, rows, 1))?;
        let which = |events: usize| if events == 0 { "no" } else { "every" };
        for ((events, rows), name) in arms.into_iter().zip(["treated", "control"]) {
            let full = events == rows && measure == RiskMeasure::OddsRatio;
            let reason = format!(
                "{} row of the {name} arm has the outcome: one cell of the table of arm and \
                 outcome is empty, so that the ratio is 0, infinite or undefined",
                which(events)
            );
            require(measure == RiskMeasure::Difference || (events > 0 && !full), reason)?;
        }
        let (events, rows) = (arms[0].0 + arms[1].0, arms[0].1 + arms[1].1);
        let varies = events > 0 && events < rows;
        require(varies, format!("{} row has the outcome", which(events)))?;
        Ok(self.by_score(measure, alpha))
    }

    /// Rows with the outcome (treated, control), all rows, and proportions.
    fn numbers(&self) -> [[f64; 2]; 3] {
        let arms = [self.treated, self.control];
        let (events, rows) = (arms.map(|arm| arm.0 as f64), arms.map(|arm| arm.1 as f64));
        [events, rows, [events[0] / rows[0], events[1] / rows[1]]]
    }

    fn by_score(&self, measure: RiskMeasure, alpha: f64) -> InvertedEstimate {
        let [[x1, x0], [n1, n0], [p1, p0]] = self.numbers();
        let odds = |p: f64| p / (1.0 - p);
        let (value, null, variance) = match measure {
            RiskMeasure::Difference => (p1 - p0, 0.0, p1 * (1.0 - p1) / n1 + p0 * (1.0 - p0) / n0),
            RiskMeasure::Ratio => (p1 / p0, 1.0, 1.0 / x1 - 1.0 / n1 + 1.0 / x0 - 1.0 / n0),
            RiskMeasure::OddsRatio => {
                (odds(p1) / odds(p0), 1.0, 1.0 / x1 + 1.0 / (n1 - x1) + 1.0 / x0 + 1.0 / (n0 - x0))
            }
        };
        let z = self.statistic(measure, null);
        let critical = tail::normal_quantile(1.0 - alpha / 2.0);
        // The statistic falls with the tested value.
        let interval = match measure {
            RiskMeasure::Difference => {
                let end = |low: f64, high: f64, z: f64| {
                    falling_root(low, high, |value| self.statistic(measure, value) - z)
                };
                (end(-1.0, value, critical), end(value, 1.0, -critical))
            }
            _ => {
                let end = |low: f64, high: f64, z: f64| {
                    falling_root(low, high, |log| self.statistic(measure, log.exp()) - z).exp()
                };
                let centre = value.ln();
                (end(centre - 200.0, centre, critical), end(centre, centre + 200.0, -critical))
            }
        };
        InvertedEstimate {
            value,
            interval,
            p_value: tail::normal_two_sided(z),
            statistic: Some(z),
            standard_error: Some(variance.sqrt()).filter(|error| *error > 0.0),
        }
    }

    /// The score statistic of a value of the measure.
    fn statistic(&self, measure: RiskMeasure, value: f64) -> f64 {
        let [_, [n1, n0], [p1, p0]] = self.numbers();
        let (q1, q0) = self.constrained_risks(measure, value);
        let total = n1 + n0;
        let (v1, v0) = (q1 * (1.0 - q1) / n1, q0 * (1.0 - q0) / n0);
        let (distance, variance) = match measure {
            RiskMeasure::Difference => (p1 - p0 - value, v1 + v0),
            RiskMeasure::Ratio => (p1 - value * p0, v1 + value * value * v0),
            // n1 (p1 - q1) has the variance 1 / (1 / (n1 q1 (1 - q1)) + 1 / (n0 q0 (1 - q0))).
            RiskMeasure::OddsRatio => {
                let (w1, w0) = (n1 * n1 * v1, n0 * n0 * v0);
                (n1 * (p1 - q1), w1 / (1.0 + w1 / w0))
            }
        };
        // At the edge of the possible values nothing varies.
        if distance == 0.0 {
            return 0.0;
        }
        distance / (variance * total / (total - 1.0)).max(0.0).sqrt()
    }

    /// The likeliest proportions with this value of the measure.
    fn constrained_risks(&self, measure: RiskMeasure, value: f64) -> (f64, f64) {
        let [[x1, x0], [n1, n0], _] = self.numbers();
        let (total, events) = (n1 + n0, x1 + x0);
        let (q1, q0) = match measure {
            RiskMeasure::Difference => self.risks_at_difference(value),
            RiskMeasure::Ratio => {
                let a = total * value;
                let b = n1 * value + x1 + n0 + x0 * value;
                let root = (b * b - 4.0 * a * events).max(0.0).sqrt();
                // The smaller root, in the form that does not cancel.
                let q0 = 2.0 * events / (b + root);
                (q0 * value, q0)
            }
            RiskMeasure::OddsRatio => {
                let a = n0 * (value - 1.0);
                let b = n1 * value + n0 - events * (value - 1.0);
                let root = (b * b + 4.0 * a * events).max(0.0).sqrt();
                let q0 = match b >= 0.0 {
                    true => 2.0 * events / (b + root),
                    false => (root - b) / (2.0 * a),
                };
                // Both proportions have the events of the table; odds near 1 have lost digits.
                let q1 = match q0 > 0.5 {
                    true => (events - n0 * q0) / n1,
                    false => q0 * value / (1.0 + q0 * (value - 1.0)),
                };
                (q1, q0)
            }
        };
        (q1.clamp(0.0, 1.0), q0.clamp(0.0, 1.0))
    }

    /// The likeliest proportions with this difference. The equation of the control's is a cubic;
    /// bisection keeps digits that its closed form loses.
    fn risks_at_difference(&self, d: f64) -> (f64, f64) {
        let [[x1, x0], [n1, n0], _] = self.numbers();
        let (low, high) = ((-d).max(0.0), (1.0 - d).min(1.0));
        // The derivative of the log-likelihood falls along the possible control proportions.
        let slope = |q: f64| {
            let part = |x: f64, n: f64, q: f64| {
                let gain = if x > 0.0 { x / q } else { 0.0 };
                let loss = if x < n { (n - x) / (1.0 - q) } else { 0.0 };
                gain - loss
            };
            part(x1, n1, q + d) + part(x0, n0, q)
        };
        let q0 = falling_root(low, high, slope);
        (q0 + d, q0)
    }
}

/// Counts of pairs with a binary outcome, for McNemar's test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct McNemar {
    /// Pairs in which only the treated member has the outcome.
    pub gained: usize,
    /// Pairs in which only the control has it.
    pub lost: usize,
    /// Pairs in which both or neither have it.
    pub unchanged: usize,
}

/// Counts pairs; `treated` and `control` hold the outcome (0 and 1) of both members of each.
pub fn mcnemar(treated: &[f64], control: &[f64]) -> Result<McNemar, Refusal> {
    same_pairs(treated, control)?;
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
    /// The two-sided p-value of equal chances of gain and loss: the binomial test of the changed
    /// pairs (statsmodels' `mcnemar(exact=True)`). With `mid`, the observed count has half of its
    /// probability (Fagerland, Lydersen & Laake 2013, BMC Medical Research Methodology 13:91). 1 if
    /// no pair changed.
    pub fn p_value(&self, mid: bool) -> f64 {
        let changed = self.gained + self.lost;
        let fewer = self.gained.min(self.lost);
        if changed == 0 || self.gained == self.lost {
            return 1.0;
        }
        // By symmetry the lower tail of the smaller count is the upper tail of the larger.
        (2.0 * upper_tail(changed - fewer, changed, 0.5, mid)).min(1.0)
    }

    /// The ratio of the odds within pairs, gained over lost, with the interval of `1 - alpha` that
    /// belongs to the p-value: Clopper and Pearson's for the share of gains, or its mid-p version.
    /// Refuses if no pair changed, or none in one of the two directions; the text has the p-value.
    pub fn odds_ratio(&self, mid: bool, alpha: f64) -> Result<InvertedEstimate, Refusal> {
        check_level(alpha)?;
        let changed = self.gained + self.lost;
        let reason =
            "the outcome is the same in both members of every pair: there is nothing to test";
        require(changed > 0, reason)?;
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

/// The probability of at least `successes` of `trials`; with `mid`, exactly as many count half.
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
