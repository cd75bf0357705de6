//! Linear models of the outcome for augmented weighting and regression adjustment: one per arm, or
//! one with an additive effect.

use super::design::StandardisedDesign;
use crate::cholesky::Cholesky;
use crate::{ColumnRef, Refusal};

/// The share 1 - R² of a column below which the others explain it.
const DEPENDENT: f64 = 1e-10;

/// Least squares on a design: standardised coefficients, and the factor of the Gram matrix.
struct Fit {
    coefficients: Vec<f64>,
    factor: Cholesky,
}

pub(super) struct OutcomeModel<'a> {
    design: StandardisedDesign<'a>,
    /// For controls and treated, or one for both with the treatment as the last column.
    fits: Vec<Fit>,
    additive: bool,
}

impl<'a> OutcomeModel<'a> {
    /// Fits the outcome on the covariates: within each arm, or with the treatment as a further
    /// column of one regression.
    ///
    /// # Errors
    /// Covariates that are constant or dependent, also within an arm; fewer rows than coefficients;
    /// a treatment that is a linear combination of the covariates.
    pub(super) fn fit(
        covariates: &[&'a [f64]],
        treatment: &'a [f64],
        outcome: &[f64],
        additive: bool,
    ) -> Result<Self, Refusal> {
        let rows = treatment.len();
        if additive {
            let mut columns = covariates.to_vec();
            columns.push(treatment);
            let design = StandardisedDesign::new(&columns, rows)?;
            let last = covariates.len();
            let fit =
                Fit::new(&design, &vec![1.0; rows], outcome).map_err(|refusal| match refusal {
                    Refusal::Collinear { column } if column == ColumnRef::Covariate(last) => {
                        Refusal::NoOverlap(
                            "the treatment is a linear combination of the covariates".into(),
                        )
                    }
                    other => other,
                })?;
            return Ok(Self { design, fits: vec![fit], additive });
        }
        let design = StandardisedDesign::new(covariates, rows)?;
        let rest: Vec<f64> = treatment.iter().map(|t| 1.0 - t).collect();
        let fits = vec![Fit::new(&design, &rest, outcome)?, Fit::new(&design, treatment, outcome)?];
        Ok(Self { design, fits, additive })
    }

    /// The expected outcomes of rows without and with the treatment.
    pub(super) fn predict(&self, covariates: &[&[f64]], rows: usize) -> (Vec<f64>, Vec<f64>) {
        match self.fits.as_slice() {
            [control, treated] => {
                let design = self.design.over(covariates, rows);
                (design.predict(&control.coefficients), design.predict(&treated.coefficients))
            }
            fits => {
                let zeros = vec![0.0; rows];
                let mut columns = covariates.to_vec();
                columns.push(&zeros);
                let design = self.design.over(&columns, rows);
                let coefficients = fits.first().map_or(&[][..], |fit| &fit.coefficients);
                let control = design.predict(coefficients);
                let effect = self.effect();
                let treated = control.iter().map(|m| m + effect).collect();
                (control, treated)
            }
        }
    }

    /// The coefficient of the treatment in an additive model, in units of the outcome.
    fn effect(&self) -> f64 {
        let last = self.design.width() - 1;
        match self.fits.as_slice() {
            [fit] if self.additive => fit.coefficients[last] / self.design.standard(last - 1).1,
            _ => 0.0,
        }
    }

    /// Adds the contribution of the estimated coefficients to each row's influence.
    ///
    /// `residual` is the outcome minus the expectation under the row's arm; the slopes are the
    /// derivatives of the estimate by each row's expectation without and with treatment.
    pub(super) fn correct(
        &self,
        treatment: &[f64],
        residual: &[f64],
        slopes: (&[f64], &[f64]),
        influence: &mut [f64],
    ) {
        match self.fits.as_slice() {
            [control, treated] => {
                let one = self.design.predict(&treated.factor.solve(&self.design.cross(slopes.1)));
                let none = self.design.predict(&control.factor.solve(&self.design.cross(slopes.0)));
                for (row, value) in influence.iter_mut().enumerate() {
                    let t = treatment[row];
                    *value += residual[row] * (t * one[row] + (1.0 - t) * none[row]);
                }
            }
            fits => {
                let Some(fit) = fits.first() else { return };
                let sum: Vec<f64> = slopes.0.iter().zip(slopes.1).map(|(a, b)| a + b).collect();
                let mut derivative = self.design.cross(&sum);
                // The column of the treatment differs between the two expectations.
                let last = derivative.len() - 1;
                let (mean, scale) = self.design.standard(last - 1);
                derivative[last] = (slopes.1.iter().sum::<f64>() * (1.0 - mean)
                    - slopes.0.iter().sum::<f64>() * mean)
                    / scale;
                let along = self.design.predict(&fit.factor.solve(&derivative));
                for ((value, residual), along) in influence.iter_mut().zip(residual).zip(along) {
                    *value += residual * along;
                }
            }
        }
    }
}

impl Fit {
    /// Least squares over the rows with weight one; the other rows have weight zero.
    fn new(
        design: &StandardisedDesign<'_>,
        weights: &[f64],
        outcome: &[f64],
    ) -> Result<Self, Refusal> {
        let width = design.width();
        let rows: f64 = weights.iter().sum();
        if rows < (width + 1) as f64 {
            return Err(Refusal::TooFew {
                what: "rows for a regression",
                found: rows as usize,
                needed: width + 1,
            });
        }
        let factor =
            Cholesky::of_lower(&design.gram(weights), width, DEPENDENT).map_err(|column| {
                Refusal::Collinear { column: ColumnRef::Covariate(column.saturating_sub(1)) }
            })?;
        let mut coefficients = vec![0.0; width];
        coefficients[0] =
            weights.iter().zip(outcome).map(|(weight, y)| weight * y).sum::<f64>() / rows;
        // The second solution fits the residuals of the first, which removes the rounding errors of
        // the normal equations.
        for _ in 0..2 {
            let predicted = design.predict(&coefficients);
            let residual: Vec<f64> = predicted
                .iter()
                .zip(outcome)
                .zip(weights)
                .map(|((m, y), weight)| weight * (y - m))
                .collect();
            let change = factor.solve(&design.cross(&residual));
            coefficients.iter_mut().zip(change).for_each(|(g, d)| *g += d);
        }
        Ok(Self { coefficients, factor })
    }
}

/// The expected outcomes of held rows by one regression on the training rows of both arms.
///
/// # Errors
/// Covariates that are constant or dependent, or fewer rows than coefficients.
pub(super) fn pooled(
    training: &[&[f64]],
    outcome: &[f64],
    held: &[&[f64]],
    rows: usize,
) -> Result<Vec<f64>, Refusal> {
    let design = StandardisedDesign::new(training, outcome.len())?;
    let fit = Fit::new(&design, &vec![1.0; outcome.len()], outcome)?;
    Ok(design.over(held, rows).predict(&fit.coefficients))
}

pub(super) fn residuals(
    treatment: &[f64],
    outcome: &[f64],
    control: &[f64],
    treated: &[f64],
) -> Vec<f64> {
    treatment
        .iter()
        .zip(outcome)
        .zip(control.iter().zip(treated))
        .map(|((t, y), (m0, m1))| y - if *t > 0.5 { m1 } else { m0 })
        .collect()
}
