//! Inverse-propensity weighting for four populations, with the error of the estimated scores.

use super::design::StandardisedDesign;
use super::logistic::Propensity;
use super::rows::{Equations, Rows, bounds, clipped};
use crate::{Estimate, Refusal};

/// The population over which an effect is averaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimand {
    /// All units.
    Ate,
    /// The treated units.
    Att,
    /// The control units.
    Atc,
    /// The units that could have been in either arm (overlap weights).
    Ato,
}

/// The result of weighting, plain or augmented.
#[derive(Clone, Debug, PartialEq)]
pub struct Weighting {
    /// The effect, with the standard error of the sandwich of the stacked estimating equations; no
    /// small-sample factor.
    pub estimate: Estimate,
    /// The (augmented) weighted mean of the controls' outcomes.
    pub control_mean: f64,
    /// The number of scores outside the bounds.
    pub clipped: usize,
}

impl Estimand {
    /// The weight of a row with the score `e` and this arm (Li, Morgan & Zaslavsky 2018, table 1).
    /// Infinite if it divides by zero.
    pub fn weight(self, e: f64, treated: bool) -> f64 {
        match (self, treated) {
            (Self::Ate, true) => 1.0 / e,
            (Self::Ate, false) => 1.0 / (1.0 - e),
            (Self::Att, true) | (Self::Atc, false) => 1.0,
            (Self::Att, false) => e / (1.0 - e),
            (Self::Atc, true) => (1.0 - e) / e,
            (Self::Ato, true) => 1.0 - e,
            (Self::Ato, false) => e,
        }
    }

    /// The derivative of that weight by the score.
    pub(super) fn slope(self, e: f64, treated: bool) -> f64 {
        match (self, treated) {
            (Self::Ate | Self::Atc, true) => -1.0 / (e * e),
            (Self::Ate | Self::Att, false) => 1.0 / ((1.0 - e) * (1.0 - e)),
            (Self::Att, true) | (Self::Atc, false) => 0.0,
            (Self::Ato, true) => -1.0,
            (Self::Ato, false) => 1.0,
        }
    }
}

/// Weights each arm to the population of the estimand and compares the means; the error is the
/// sandwich of Lunceford & Davidian (2004). Over all units it equals statsmodels'
/// `TreatmentEffect.ipw`. `clip` holds the bounds of the scores in the weights; a score outside of
/// them does not change with the coefficients, so its derivative in the sandwich is zero. With
/// `clusters` (codes from zero) influence is summed within clusters first. A constant score gives
/// the difference in means. Errors are those of [`aipw`](super::aipw), and [`Refusal::NoOverlap`]
/// if a score is 0 or 1 and not clipped.
pub fn weighting(
    covariates: &[&[f64]],
    treated: &[bool],
    outcome: &[f64],
    propensity: &Propensity,
    estimand: Estimand,
    clip: (f64, f64),
    clusters: Option<&[u32]>,
) -> Result<Weighting, Refusal> {
    let rows = Rows::new(treated, outcome, clusters)?;
    bounds(clip)?;
    let design = StandardisedDesign::new(covariates, treated.len())?;
    let equations = Equations::of_score(&design, treated, propensity)?;
    let n = treated.len() as f64;
    // Outcomes are centred so that weighted sums do not cancel.
    let centre = outcome.iter().sum::<f64>() / n;
    let (mut totals, mut sums, mut matching, mut outside) = ([0.0_f64; 2], [0.0; 2], [0.0; 2], 0);
    for ((e, t), y) in propensity.scores.iter().zip(treated).zip(outcome) {
        outside += usize::from(*e < clip.0 || *e > clip.1);
        let (e, _) = clipped(*e, clip);
        let (arm, weight) = (usize::from(*t), estimand.weight(e, *t));
        totals[arm] += weight;
        sums[arm] += weight * (y - centre);
        // Not a number if the row's weight for another estimand is infinite.
        matching[arm] += e.min(1.0 - e) * Estimand::Ate.weight(e, *t);
    }
    let means = [0, 1].map(|arm| sums[arm] / totals[arm]);
    let signed = [-totals[0].recip(), totals[1].recip()];
    let mut influence = Vec::with_capacity(treated.len());
    let mut slope = Vec::with_capacity(treated.len());
    for ((e, t), y) in propensity.scores.iter().zip(treated).zip(outcome) {
        let (e, derivative) = clipped(*e, clip);
        let arm = usize::from(*t);
        let part = signed[arm] * (y - centre - means[arm]);
        influence.push(estimand.weight(e, *t) * part);
        // The derivative is tested first: at a score of 0 or 1 the weight's slope is infinite.
        slope.push(if derivative > 0.0 { estimand.slope(e, *t) * derivative * part } else { 0.0 });
    }
    equations.correct(&slope, &mut influence);
    if !matching.iter().all(|total| *total > 0.0) {
        return Err(Refusal::NoOverlap(
            "a propensity score is 0 or 1, so that a weight is infinite; clip the scores".into(),
        ));
    }
    Ok(Weighting {
        estimate: rows.estimate(means[1] - means[0], &influence)?,
        control_mean: means[0] + centre,
        clipped: outside,
    })
}
