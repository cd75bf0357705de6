//! Augmented inverse-propensity weighting, also cross-fitted: the estimate is consistent if either
//! the scores or the linear models of the outcome are correct.

use super::design::StandardisedDesign;
use super::logistic::{Propensity, expit, solve};
use super::rows::{Equations, Rows, bounds, clipped, same_length};
use super::weighting::Weighting;
use crate::cholesky::Cholesky;
use crate::column::{UNITS, arm_sizes, code_count, indicator};
use crate::refusal::{at_least, require};
use crate::{Estimate, Refusal};

/// Augmented inverse-propensity weighting (Robins, Rotnitzky & Zhao 1994; Glynn & Quinn 2010);
/// equals statsmodels' `TreatmentEffect.aipw`. `covariates` are those of the propensity's fit and
/// also enter the linear outcome model of each arm. `clip` bounds the scores. With `clusters`
/// (codes from zero) influence is summed within clusters first. Refuses scores nearly all 0 or 1
/// ([`Refusal::NoOverlap`]), covariates that are dependent within an arm, a `clip` that is not an
/// interval within \[0, 1\], or an outcome that is explained without error.
pub fn aipw(
    covariates: &[&[f64]],
    treated: &[bool],
    outcome: &[f64],
    propensity: &Propensity,
    clip: (f64, f64),
    clusters: Option<&[u32]>,
) -> Result<Weighting, Refusal> {
    let rows = Rows::new(treated, outcome, clusters)?;
    bounds(clip)?;
    let n = treated.len();
    let design = StandardisedDesign::new(covariates, n)?;
    let equations = Equations::of_score(&design, treated, propensity)?;
    let models = ArmModels::fit(&design, treated, outcome)?;
    let [control, one] = models.predict(&design);
    let residual = residuals(treated, outcome, [&control, &one]);
    let share = (n as f64).recip();
    let (mut effect, mut slope) = (Vec::with_capacity(n), Vec::with_capacity(n));
    let (mut slope_control, mut slope_one) = (Vec::with_capacity(n), Vec::with_capacity(n));
    let mut control_mean = 0.0;
    for row in 0..n {
        let (e, derivative) = clipped(propensity.scores[row], clip);
        let u = residual[row];
        let (weight_one, weight_none) =
            if treated[row] { (e.recip(), 0.0) } else { (0.0, (1.0 - e).recip()) };
        effect.push(one[row] - control[row] + (weight_one - weight_none) * u);
        control_mean += control[row] + weight_none * u;
        let square = weight_one * weight_one + weight_none * weight_none;
        slope.push(if derivative > 0.0 { -square * u * derivative * share } else { 0.0 });
        slope_one.push((1.0 - weight_one) * share);
        slope_control.push(-(1.0 - weight_none) * share);
    }
    let value = effect.iter().sum::<f64>() * share;
    let mut influence: Vec<f64> = effect.iter().map(|psi| (psi - value) * share).collect();
    equations.correct(&slope, &mut influence);
    let along = models.along(&design, [&slope_control, &slope_one]);
    let along = treated.iter().enumerate().map(|(row, arm)| along[usize::from(*arm)][row]);
    for ((value, residual), along) in influence.iter_mut().zip(&residual).zip(along) {
        *value += residual * along;
    }
    Ok(Weighting {
        estimate: rows.estimate(value, &influence)?,
        control_mean: control_mean * share,
        clipped: propensity.scores.iter().filter(|e| **e < clip.0 || **e > clip.1).count(),
    })
}

/// The effect on the treated by augmented weighting: the mean of their outcomes minus what a linear
/// model of the controls expects of them, corrected by the controls' residuals with the weights
/// e / (1 - e) (Robins, Rotnitzky & Zhao 1995; DoubleML's score for the ATTE, without cross-fitting).
/// Only controls need a model. Errors are those of [`aipw`].
pub fn aipw_treated(
    covariates: &[&[f64]],
    treated: &[bool],
    outcome: &[f64],
    propensity: &Propensity,
    clip: (f64, f64),
    clusters: Option<&[u32]>,
) -> Result<Weighting, Refusal> {
    let rows = Rows::new(treated, outcome, clusters)?;
    bounds(clip)?;
    let design = StandardisedDesign::new(covariates, treated.len())?;
    let equations = Equations::of_score(&design, treated, propensity)?;
    let (coefficients, factor) = arm_model(&design, treated, outcome, false)?;
    let expected = design.predict(&coefficients);
    let residual: Vec<f64> = outcome.iter().zip(&expected).map(|(y, m)| y - m).collect();
    let n_treated = treated.iter().filter(|treated| **treated).count() as f64;
    let weights = TreatedWeights::new(treated, propensity, clip);
    let sum: f64 = weights.signed.iter().zip(&residual).map(|(weight, u)| weight * u).sum();
    let value = sum / n_treated;
    let parts = weights.signed.iter().zip(&residual).zip(treated);
    let mut influence: Vec<f64> = parts
        .map(|((weight, u), t)| (weight * u - if *t { value } else { 0.0 }) / n_treated)
        .collect();
    let slopes = weights.derivative.iter().zip(&residual).map(|(slope, u)| slope * u / n_treated);
    equations.correct(&slopes.collect::<Vec<f64>>(), &mut influence);
    let by_model: Vec<f64> = weights.signed.iter().map(|weight| -weight / n_treated).collect();
    let along = design.predict(&factor.solve(&design.cross(&by_model)));
    for (row, along) in along.iter().enumerate().filter(|(row, _)| !treated[*row]) {
        influence[row] += residual[row] * along;
    }
    let of_treated = outcome.iter().zip(treated).filter(|(_, t)| **t).map(|(y, _)| y);
    Ok(Weighting {
        estimate: rows.estimate(value, &influence)?,
        control_mean: of_treated.sum::<f64>() / n_treated - value,
        clipped: propensity.scores.iter().filter(|e| **e < clip.0 || **e > clip.1).count(),
    })
}

/// The weights of residuals in the effect on the treated: 1 for them, -e / (1 - e) for controls.
pub(super) struct TreatedWeights {
    pub(super) signed: Vec<f64>,
    /// The derivative of each by the row's linear predictor.
    pub(super) derivative: Vec<f64>,
}

impl TreatedWeights {
    pub(super) fn new(treated: &[bool], propensity: &Propensity, clip: (f64, f64)) -> Self {
        let weight = |(e, treated): (&f64, &bool)| {
            let (e, slope) = clipped(*e, clip);
            match treated {
                true => (1.0, 0.0),
                // The slope is tested first: at a score of 1 it is zero, and the other is infinite.
                false if slope > 0.0 => (-e / (1.0 - e), -slope / ((1.0 - e) * (1.0 - e))),
                false => (-e / (1.0 - e), 0.0),
            }
        };
        let (signed, derivative) = propensity.scores.iter().zip(treated).map(weight).unzip();
        Self { signed, derivative }
    }
}

/// The result of cross-fitted augmented weighting.
#[derive(Clone, Debug, PartialEq)]
pub struct CrossFit {
    /// The average effect over all units, with the standard error of its influence function.
    pub estimate: Estimate,
    /// The cross-fitted score of each row, before clipping.
    pub scores: Vec<f64>,
    /// The number of scores outside the bounds.
    pub clipped: usize,
}

/// Cross-fitted augmented weighting (Chernozhukov et al. 2018, Econometrics Journal 21:C1, DML2):
/// each row's score and expected outcome come from the other `folds` (codes from zero), in which
/// rows of one cluster should be together. Errors are those of [`Propensity::fit`] and [`aipw`], on
/// the rows outside each fold.
pub fn cross_fit_aipw(
    covariates: &[&[f64]],
    treated: &[bool],
    outcome: &[f64],
    folds: &[u32],
    c: Option<f64>,
    clip: (f64, f64),
    clusters: Option<&[u32]>,
) -> Result<CrossFit, Refusal> {
    let rows = Rows::new(treated, outcome, clusters)?;
    let n = treated.len();
    same_length("fold codes", folds.len(), n)?;
    for column in covariates {
        same_length("values of a covariate", column.len(), n)?;
    }
    bounds(clip)?;
    let mut scores = vec![0.0; n];
    let mut effect = vec![0.0; n];
    let mut outside = 0;
    for (training, held) in split(folds)? {
        let gather = |column: &[f64], rows: &[usize]| -> Vec<f64> {
            rows.iter().map(|row| column[*row]).collect()
        };
        let gather_all = |rows: &[usize]| -> Vec<Vec<f64>> {
            covariates.iter().map(|column| gather(column, rows)).collect()
        };
        let arms: Vec<bool> = training.iter().map(|row| treated[*row]).collect();
        arm_sizes(&arms, UNITS, 1)?;
        let (columns, others) = (gather_all(&training), gather_all(&held));
        let columns: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        let others: Vec<&[f64]> = others.iter().map(Vec::as_slice).collect();
        let design = StandardisedDesign::new(&columns, training.len())?;
        let score = solve(&design, &indicator(&arms), c)?;
        let models = ArmModels::fit(&design, &arms, &gather(outcome, &training))?;
        let design = design.over(&others, held.len());
        let [control, one] = models.predict(&design);
        let fitted = design.predict(&score.coefficients).into_iter().map(expit);
        for ((row, e), (m0, m1)) in held.iter().zip(fitted).zip(control.iter().zip(&one)) {
            scores[*row] = e;
            outside += usize::from(e < clip.0 || e > clip.1);
            let (e, _) = clipped(e, clip);
            let (weight, mean) =
                if treated[*row] { (e.recip(), m1) } else { (-(1.0 - e).recip(), m0) };
            effect[*row] = m1 - m0 + weight * (outcome[*row] - mean);
        }
    }
    let share = (n as f64).recip();
    let value = effect.iter().sum::<f64>() * share;
    let influence: Vec<f64> = effect.iter().map(|psi| (psi - value) * share).collect();
    Ok(CrossFit { estimate: rows.estimate(value, &influence)?, scores, clipped: outside })
}

/// The rows outside and within a fold.
type Fold = (Vec<usize>, Vec<usize>);

/// The folds in the order of the codes.
fn split(folds: &[u32]) -> Result<Vec<Fold>, Refusal> {
    let count = code_count(folds);
    require(count <= folds.len(), "fold codes are not dense")?;
    let parts = (0..count as u32).map(|code| (0..folds.len()).partition(|row| folds[*row] != code));
    let parts: Vec<Fold> = parts.filter(|(_, held): &Fold| !held.is_empty()).collect();
    at_least("folds", parts.len(), 2)?;
    Ok(parts)
}

/// Linear models of the outcome in both arms: coefficients and factors of the Gram matrix.
pub(super) struct ArmModels([(Vec<f64>, Cholesky); 2]);

impl ArmModels {
    pub(super) fn fit(
        design: &StandardisedDesign<'_>,
        treated: &[bool],
        outcome: &[f64],
    ) -> Result<Self, Refusal> {
        let model = |arm| arm_model(design, treated, outcome, arm);
        Ok(Self([model(false)?, model(true)?]))
    }

    /// The expected outcomes of rows without and with the treatment.
    pub(super) fn predict(&self, design: &StandardisedDesign<'_>) -> [Vec<f64>; 2] {
        self.0.each_ref().map(|(coefficients, _)| design.predict(coefficients))
    }

    /// The contribution of each row's residual, in either arm, to an estimate whose derivatives by
    /// each row's expectation without and with treatment are `slopes`.
    fn along(&self, design: &StandardisedDesign<'_>, slopes: [&[f64]; 2]) -> [Vec<f64>; 2] {
        [0, 1].map(|arm| design.predict(&self.0[arm].1.solve(&design.cross(slopes[arm]))))
    }
}

/// The linear model of the outcome in one arm: coefficients and the factor of its Gram matrix.
pub(super) fn arm_model(
    design: &StandardisedDesign<'_>,
    treated: &[bool],
    outcome: &[f64],
    arm: bool,
) -> Result<(Vec<f64>, Cholesky), Refusal> {
    let width = design.width();
    // Least squares over the rows with weight one; the other rows have weight zero.
    let weights: Vec<f64> =
        treated.iter().map(|treated| f64::from(u8::from(*treated == arm))).collect();
    let rows: f64 = weights.iter().sum();
    at_least("rows for a regression", rows as usize, width + 1)?;
    let factor = Cholesky::of_gram(&design.gram(&weights), width)?;
    let mut coefficients = vec![0.0; width];
    coefficients[0] = weights.iter().zip(outcome).map(|(weight, y)| weight * y).sum::<f64>() / rows;
    // The second solution fits the residuals of the first, which removes rounding errors.
    for _ in 0..2 {
        let predicted = design.predict(&coefficients);
        let rows = predicted.iter().zip(outcome).zip(&weights);
        let residual: Vec<f64> = rows.map(|((m, y), weight)| weight * (y - m)).collect();
        let change = factor.solve(&design.cross(&residual));
        coefficients.iter_mut().zip(change).for_each(|(g, d)| *g += d);
    }
    Ok((coefficients, factor))
}

/// The outcome minus its expectation under the row's arm.
pub(super) fn residuals(treated: &[bool], outcome: &[f64], expected: [&[f64]; 2]) -> Vec<f64> {
    let rows = treated.iter().zip(outcome).enumerate();
    rows.map(|(row, (arm, y))| y - expected[usize::from(*arm)][row]).collect()
}
