//! The share of positives as an imperfect classifier finds it, corrected for its errors.

use crate::agreement::Z;

/// The verdicts of a classifier on items whose truth is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConfusionCounts {
    /// Positives that it calls positive.
    pub true_positives: usize,
    /// Positives that it calls negative.
    pub false_negatives: usize,
    /// Negatives that it calls positive.
    pub false_positives: usize,
    /// Negatives that it calls negative.
    pub true_negatives: usize,
}

/// A corrected share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CorrectedShare {
    /// The share, within 0 to 1.
    pub share: f64,
    /// Its 95 % interval. `None` if the smoothed counts are not better than chance.
    pub interval: Option<(f64, f64)>,
}

impl ConfusionCounts {
    /// Counts an item.
    pub fn add(&mut self, verdict: bool, truth: bool) {
        *match (verdict, truth) {
            (true, true) => &mut self.true_positives,
            (false, true) => &mut self.false_negatives,
            (true, false) => &mut self.false_positives,
            (false, false) => &mut self.true_negatives,
        } += 1;
    }

    fn positives(&self) -> usize {
        self.true_positives + self.false_negatives
    }

    fn negatives(&self) -> usize {
        self.false_positives + self.true_negatives
    }

    /// The share of positives that it calls positive. `None` if there are none.
    pub fn sensitivity(&self) -> Option<f64> {
        let all = self.positives();
        (all > 0).then(|| self.true_positives as f64 / all as f64)
    }

    /// The share of negatives that it calls negative. `None` if there are none.
    pub fn specificity(&self) -> Option<f64> {
        let all = self.negatives();
        (all > 0).then(|| self.true_negatives as f64 / all as f64)
    }

    /// The share of positives among `all` items, `positive` of which the classifier calls positive
    /// (Rogan and Gladen 1978). The interval has the uncertainty of that share, of the sensitivity
    /// and of the specificity (Lang and Reiczigel 2014, for judges Lee et al. 2025).
    ///
    /// `None` if there are no items, if one of sensitivity and specificity is unknown, or if the
    /// classifier is not better than chance.
    pub fn corrected_share(&self, positive: usize, all: usize) -> Option<CorrectedShare> {
        let (sensitivity, specificity) = (self.sensitivity()?, self.specificity()?);
        let youden = sensitivity + specificity - 1.0;
        if all == 0 || youden <= 0.0 {
            return None;
        }
        let found = positive as f64 / all as f64;
        let share = ((found + specificity - 1.0) / youden).clamp(0.0, 1.0);
        Some(CorrectedShare { share, interval: self.interval(positive, all) })
    }

    fn interval(&self, positive: usize, all: usize) -> Option<(f64, f64)> {
        let smoothed = |count: usize, all: usize, more: f64| {
            let all = all as f64 + more;
            let share = (count as f64 + more / 2.0) / all;
            (share, share * (1.0 - share) / all)
        };
        let (found, found_variance) = smoothed(positive, all, Z * Z);
        let (sensitivity, sensitivity_variance) =
            smoothed(self.true_positives, self.positives(), 2.0);
        let (specificity, specificity_variance) =
            smoothed(self.true_negatives, self.negatives(), 2.0);
        let youden = sensitivity + specificity - 1.0;
        if youden <= 0.0 {
            return None;
        }
        let share = (found + specificity - 1.0) / youden;
        let rest = 1.0 - share;
        let shift = 2.0 * Z * Z * (share * sensitivity_variance - rest * specificity_variance);
        let variance = found_variance
            + rest * rest * specificity_variance
            + share * share * sensitivity_variance;
        let half = Z * variance.sqrt() / youden;
        let end = |value: f64| value.clamp(0.0, 1.0);
        Some((end(share + shift - half), end(share + shift + half)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of the published formulas, from `tests/reference/judge.py`.
    const REFERENCE: &str = include_str!("../../../tests/reference/judge.json");

    #[test]
    fn numbers_are_those_of_the_reference() {
        let cases: Vec<serde_json::Value> = serde_json::from_str(REFERENCE).unwrap();
        assert!(cases.len() > 8);
        for case in &cases {
            let count = |name: &str| case[name].as_u64().unwrap() as usize;
            let counts = ConfusionCounts {
                true_positives: count("tp"),
                false_negatives: count("fn"),
                false_positives: count("fp"),
                true_negatives: count("tn"),
            };
            let found = counts.corrected_share(count("positive"), count("all"));
            let interval = found.and_then(|found| found.interval);
            for (name, found) in [
                ("sensitivity", counts.sensitivity()),
                ("specificity", counts.specificity()),
                ("share", found.map(|found| found.share)),
                ("low", interval.map(|interval| interval.0)),
                ("high", interval.map(|interval| interval.1)),
            ] {
                match (found, case[name].as_f64()) {
                    (Some(found), Some(wanted)) => {
                        assert!((found - wanted).abs() < 1e-12, "{name} {found} of {case}");
                    }
                    (found, wanted) => assert_eq!(found, wanted, "{name} of {case}"),
                }
            }
        }
    }

    #[test]
    fn labels_of_all_items_give_the_share_of_their_positives() {
        let mut counts = ConfusionCounts::default();
        for (verdict, truth, n) in
            [(true, true, 30), (false, true, 10), (true, false, 9), (false, false, 51)]
        {
            (0..n).for_each(|_| counts.add(verdict, truth));
        }
        let found = counts.corrected_share(39, 100).unwrap();
        assert!((found.share - 0.4).abs() < 1e-12, "{found:?}");
    }
}
