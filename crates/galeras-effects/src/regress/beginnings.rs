//! The shares of answers by what they begin with (the column `begins` of `score`), under both arms of
//! a contrast. Scores of what follows a given text rest on where that text ends in an answer: where the
//! arms differ in this, a part of an effect may be one of form.

use super::comparison::Contrast;
use super::frame::AnalysisFrame;

/// The column with what an answer begins with.
pub(super) const BEGINS: &str = "begins";

/// A smaller difference of shares is not worth a warning.
const SMALL: f64 = 0.05;
/// The normal quantile beyond which a difference is not chance: one in a thousand, two-sided.
const NOT_CHANCE: f64 = 3.29;

/// The shares of a contrast.
pub(super) struct BeginningShares {
    pub(super) contrast: Contrast,
    /// Each beginning with its share under the treatment and under the control.
    shares: Vec<(String, [f64; 2])>,
    sizes: [f64; 2],
}

impl BeginningShares {
    /// `None` without the column, or without a row under one of the arms.
    pub(super) fn new(frame: &AnalysisFrame, contrast: &Contrast) -> Option<Self> {
        let (codes, levels) = (frame.numbers.get(BEGINS)?, frame.levels.get(BEGINS)?);
        let arms = [frame.arms.code(&contrast.treatment)?, frame.arms.code(&contrast.control)?];
        let mut counts = vec![[0.0; 2]; levels.len()];
        for (row, code) in codes.iter().enumerate().filter(|(_, code)| !code.is_nan()) {
            if let Some(arm) = arms.iter().position(|arm| *arm == frame.arms.rows[row]) {
                counts[*code as usize][arm] += 1.0;
            }
        }
        let sizes = [0, 1].map(|arm| counts.iter().map(|count| count[arm]).sum::<f64>());
        if sizes.contains(&0.0) {
            return None;
        }
        let share = |count: &[f64; 2]| [count[0] / sizes[0], count[1] / sizes[1]];
        let named = levels.iter().cloned().zip(counts.iter().map(share));
        let mut shares: Vec<_> = named.filter(|(_, shares)| *shares != [0.0, 0.0]).collect();
        shares.sort_by(|a, b| a.0.cmp(&b.0));
        Some(Self { contrast: contrast.clone(), shares, sizes })
    }

    /// The shares as the end of a sentence.
    pub(super) fn clause(&self) -> String {
        let percent = |share: f64| format!("{} %", (100.0 * share).round());
        let one = |(name, [treated, control]): &(String, [f64; 2])| {
            format!("{name} {} (control {})", percent(*treated), percent(*control))
        };
        let all: Vec<String> = self.shares.iter().map(one).collect();
        format!("; beginnings of answers: {}", all.join(", "))
    }

    /// The warning that the arms differ.
    pub(super) fn warning(&self) -> Option<String> {
        let [treated, control] = self.sizes;
        let differs = |(_, [a, b]): &&(String, [f64; 2])| {
            let pooled = (a * treated + b * control) / (treated + control);
            let error = (pooled * (1.0 - pooled) * (treated.recip() + control.recip())).sqrt();
            (a - b).abs() >= SMALL && (a - b).abs() > NOT_CHANCE * error
        };
        let different: Vec<String> = self
            .shares
            .iter()
            .filter(differs)
            .map(|(name, [a, b])| {
                format!("`{name}` {} and {} %", (100.0 * a).round(), (100.0 * b).round())
            })
            .collect();
        let Contrast { treatment, control } = &self.contrast;
        (!different.is_empty()).then(|| {
            format!(
                "answers under {treatment} and {control} begin differently ({}): look at the \
                 answers whose `{BEGINS}` is `other`, which are scored whole, and estimate again \
                 without them",
                different.join(", ")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(shares: &[(&str, [f64; 2])], n: f64) -> BeginningShares {
        let contrast = Contrast { treatment: "T1".into(), control: "control".into() };
        let shares = shares.iter().map(|(name, shares)| ((*name).to_owned(), *shares)).collect();
        BeginningShares { contrast, shares, sizes: [n, n] }
    }

    #[test]
    fn arms_that_begin_differently_are_reported() {
        let found = shares(&[("changed", [0.4, 0.02]), ("verbatim", [0.6, 0.98])], 100.0);
        assert_eq!(
            found.clause(),
            "; beginnings of answers: changed 40 % (control 2 %), verbatim 60 % (control 98 %)"
        );
        let warning = found.warning().unwrap();
        assert!(warning.contains("(`changed` 40 and 2 %, `verbatim` 60 and 98 %)"), "{warning}");
        // Few rows, or a small difference.
        assert!(shares(&[("changed", [0.4, 0.1])], 10.0).warning().is_none());
        assert!(shares(&[("changed", [0.04, 0.0])], 10_000.0).warning().is_none());
    }
}
