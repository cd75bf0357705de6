//! Cross-fitting: each row's score and expected outcome come from the other folds (Chernozhukov et
//! al. 2018, DML2). The caller draws the folds.

use super::design::StandardisedDesign;
use super::equations::clipped;
use super::logistic::{expit, range, solve};
use super::outcome_model::{OutcomeModel, pooled, residuals};
use super::rows::{Rows, arms, bounds, same_length};
use crate::column::indicator;
use crate::{Estimate, Refusal};

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

/// The result of the partially linear model.
#[derive(Clone, Debug, PartialEq)]
pub struct PartiallyLinear {
    /// The effect, assumed to be the same for all units, with the standard error of HC0.
    pub estimate: Estimate,
    /// The cross-fitted score of each row.
    pub scores: Vec<f64>,
}

/// The rows within and outside one fold.
struct Fold {
    training: Vec<usize>,
    held: Vec<usize>,
}

struct FoldColumns {
    training: Vec<Vec<f64>>,
    treatment: Vec<f64>,
    outcome: Vec<f64>,
    held: Vec<Vec<f64>>,
}

impl Fold {
    /// # Errors
    /// An arm has no row outside the fold.
    fn columns(
        &self,
        covariates: &[&[f64]],
        treated: &[bool],
        outcome: &[f64],
    ) -> Result<FoldColumns, Refusal> {
        let treated: Vec<bool> = self.training.iter().map(|row| treated[*row]).collect();
        arms(&treated)?;
        Ok(FoldColumns {
            training: gather(covariates, &self.training),
            treatment: indicator(&treated),
            outcome: self.training.iter().map(|row| outcome[*row]).collect(),
            held: gather(covariates, &self.held),
        })
    }
}

fn gather(columns: &[&[f64]], rows: &[usize]) -> Vec<Vec<f64>> {
    columns.iter().map(|column| rows.iter().map(|row| column[*row]).collect()).collect()
}

fn slices(columns: &[Vec<f64>]) -> Vec<&[f64]> {
    columns.iter().map(Vec::as_slice).collect()
}

/// The folds in the order of their codes.
///
/// # Errors
/// Fewer than two folds, or codes that are not dense.
fn split(folds: &[u32]) -> Result<Vec<Fold>, Refusal> {
    let count = folds.iter().max().map_or(0, |code| *code as usize + 1);
    if count > folds.len() {
        return Err(Refusal::Other("fold codes are not dense".into()));
    }
    let mut sizes = vec![0_usize; count];
    folds.iter().for_each(|code| sizes[*code as usize] += 1);
    let filled = sizes.iter().filter(|size| **size > 0).count();
    if filled < 2 {
        return Err(Refusal::TooFew { what: "folds", found: filled, needed: 2 });
    }
    let codes = (0..count).filter(|code| sizes[*code] > 0);
    Ok(codes
        .map(|code| {
            let (held, training) = (0..folds.len()).partition(|row| folds[*row] as usize == code);
            Fold { training, held }
        })
        .collect())
}

fn check(covariates: &[&[f64]], folds: &[u32], rows: usize) -> Result<(), Refusal> {
    same_length("fold codes", folds.len(), rows)?;
    covariates
        .iter()
        .try_for_each(|column| same_length("values of a covariate", column.len(), rows))
}

/// Scores of the held rows by a logistic regression on the training rows.
fn held_scores(
    training: &[&[f64]],
    treatment: &[f64],
    held: &[&[f64]],
    rows: usize,
    c: Option<f64>,
) -> Result<Vec<f64>, Refusal> {
    let design = StandardisedDesign::new(training, treatment.len())?;
    let solution = solve(&design, treatment, c)?;
    Ok(design.over(held, rows).predict(&solution.coefficients).into_iter().map(expit).collect())
}

/// Cross-fitted augmented weighting (Chernozhukov et al. 2018, Econometrics Journal 21:C1).
///
/// `covariates` are columns of n values; `treated`, `outcome`, `folds` and `clusters` have n
/// entries, and the effect is in units of the outcome. `folds` holds each row's fold, codes from
/// zero; `c` is as for [`Propensity::fit`](super::Propensity::fit), `additive` as for
/// [`aipw`](super::aipw); `clip` holds the lower and the upper bound of the scores. Influence is
/// summed within `clusters`; rows of one cluster should share a fold.
///
/// # Errors
/// [`Refusal::TooFew`] if an arm has no row outside a fold, or there are fewer than two folds or
/// clusters; [`Refusal::UnusableColumn`] if an outcome is not finite; [`Refusal::Other`] if lengths
/// differ, codes have gaps, `clip` is not an interval within \[0, 1\], or the standard error is
/// zero or overflows; and the refusals of both fits on the rows outside each fold.
#[expect(clippy::too_many_arguments, reason = "each is a column or a choice of the estimator")]
pub fn cross_fit_aipw(
    covariates: &[&[f64]],
    treated: &[bool],
    outcome: &[f64],
    folds: &[u32],
    c: Option<f64>,
    additive: bool,
    clip: (f64, f64),
    clusters: Option<&[u32]>,
) -> Result<CrossFit, Refusal> {
    let rows = Rows::new(treated, outcome, clusters)?;
    check(covariates, folds, treated.len())?;
    bounds(clip)?;
    let n = treated.len();
    let treatment = indicator(treated);
    let mut scores = vec![0.0; n];
    let mut effect = vec![0.0; n];
    let mut outside = 0;
    for fold in split(folds)? {
        let columns = fold.columns(covariates, treated, outcome)?;
        let (training, held) = (slices(&columns.training), slices(&columns.held));
        let new = gather(&[&treatment, outcome], &fold.held);
        let size = fold.held.len();
        let fitted = held_scores(&training, &columns.treatment, &held, size, c)?;
        let model = OutcomeModel::fit(&training, &columns.treatment, &columns.outcome, additive)?;
        let (control, one) = model.predict(&held, size);
        let residual = residuals(&new[0], &new[1], &control, &one);
        for (place, row) in fold.held.iter().enumerate() {
            let e = fitted[place];
            scores[*row] = e;
            outside += usize::from(e < clip.0 || e > clip.1);
            let (e, _) = clipped(e, clip);
            let weight = if treated[*row] { e.recip() } else { -(1.0 - e).recip() };
            effect[*row] = one[place] - control[place] + weight * residual[place];
        }
    }
    let share = (n as f64).recip();
    let value = effect.iter().sum::<f64>() * share;
    let influence: Vec<f64> = effect.iter().map(|psi| (psi - value) * share).collect();
    Ok(CrossFit { estimate: rows.estimate(value, &influence)?, scores, clipped: outside })
}

/// The partially linear model: the residual of the outcome given the covariates, regressed on that
/// of the treatment (Robinson 1988), cross-fitted.
///
/// The outcome is predicted by a linear regression on the covariates, the treatment by the logistic
/// regression with `c`; the last regression has no intercept. Arguments are as for
/// [`cross_fit_aipw`].
///
/// # Errors
/// As [`cross_fit_aipw`], without those about `clip`.
pub fn partially_linear(
    covariates: &[&[f64]],
    treated: &[bool],
    outcome: &[f64],
    folds: &[u32],
    c: Option<f64>,
    clusters: Option<&[u32]>,
) -> Result<PartiallyLinear, Refusal> {
    let rows = Rows::new(treated, outcome, clusters)?;
    check(covariates, folds, treated.len())?;
    let n = treated.len();
    let treatment = indicator(treated);
    let mut scores = vec![0.0; n];
    let mut rest = vec![0.0; n];
    for fold in split(folds)? {
        let columns = fold.columns(covariates, treated, outcome)?;
        let (training, held) = (slices(&columns.training), slices(&columns.held));
        let size = fold.held.len();
        let fitted = held_scores(&training, &columns.treatment, &held, size, c)?;
        let expected = pooled(&training, &columns.outcome, &held, size)?;
        for (place, row) in fold.held.iter().enumerate() {
            scores[*row] = fitted[place];
            rest[*row] = outcome[*row] - expected[place];
        }
    }
    let moved: Vec<f64> = treatment.iter().zip(&scores).map(|(t, e)| t - e).collect();
    let spread: f64 = moved.iter().map(|v| v * v).sum();
    let value = moved.iter().zip(&rest).map(|(v, u)| v * u).sum::<f64>() / spread;
    let influence: Vec<f64> =
        moved.iter().zip(&rest).map(|(v, u)| v * (u - value * v) / spread).collect();
    Ok(PartiallyLinear { estimate: rows.estimate(value, &influence)?, scores })
}

impl CrossFit {
    /// The least and the greatest score; infinite and reversed without rows.
    pub fn range(&self) -> (f64, f64) {
        range(&self.scores)
    }
}
