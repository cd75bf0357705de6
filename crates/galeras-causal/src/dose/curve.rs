//! The effect of each dose against a reference dose, by regression on a natural cubic spline.

use super::spline::NaturalSpline;
use crate::linear::{Covariance, LinearFit};
use crate::{ColumnRef, Estimate, Refusal};

/// A dose on the curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DosePoint {
    /// The dose.
    pub dose: f64,
    /// The mean outcome at this dose less that at the reference, at equal covariates; `None` at the
    /// reference itself, where it is 0 by definition.
    pub effect: Option<Estimate>,
}

/// How the outcome changes with the dose.
#[derive(Clone, Debug, PartialEq)]
pub struct DoseCurve {
    /// The points asked for, in their order.
    pub points: Vec<DosePoint>,
    /// The knots of the spline.
    pub knots: Vec<f64>,
    /// Wald's F of all functions of the dose: whether the outcome changes with it at all.
    pub any: JointTest,
    /// The same of the functions beyond the straight line; none with two knots.
    pub nonlinear: Option<JointTest>,
}

/// A test of several coefficients at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JointTest {
    /// Wald's statistic over the number of coefficients.
    pub f: f64,
    /// The coefficients, and the degrees of freedom of the denominator.
    pub degrees: (usize, f64),
    /// The p-value by the F distribution.
    pub p_value: f64,
}

/// Least squares of `outcome` on 1, a natural cubic spline of `dose` with these knots, and
/// `covariates`; for each of `grid` the difference to `reference` with its standard error. Equals
/// statsmodels' `OLS` on patsy's `cr(dose, knots=…)` with the outer knots as bounds.
///
/// Columns have one entry for each of n rows; degrees of freedom are those of
/// [`LinearFit::estimate`], for the joint tests rows less coefficients, or clusters less one.
///
/// # Errors
/// As [`LinearFit::fit`] and [`LinearFit::estimate`]; [`ColumnRef::Treatment`] is a function of the
/// dose, [`ColumnRef::Covariate`] a position in `covariates`.
#[allow(clippy::too_many_arguments)]
pub fn dose_curve(
    dose: &[f64],
    outcome: &[f64],
    covariates: &[&[f64]],
    knots: &[f64],
    reference: f64,
    grid: &[f64],
    kind: Covariance,
    clusters: Option<&[u32]>,
) -> Result<DoseCurve, Refusal> {
    crate::column::check_column(dose, ColumnRef::Treatment, outcome.len())?;
    let spline = NaturalSpline::new(knots)?;
    let width = spline.width();
    let mut basis: Vec<Vec<f64>> = vec![Vec::with_capacity(dose.len()); width];
    for dose in dose {
        basis.iter_mut().zip(spline.at(*dose)).for_each(|(column, value)| column.push(value));
    }
    let mut columns: Vec<&[f64]> = basis.iter().map(Vec::as_slice).collect();
    columns.extend_from_slice(covariates);
    let fit = LinearFit::fit(&columns, outcome).map_err(|refusal| {
        refusal.map_covariate(|position| match position.checked_sub(width) {
            None => ColumnRef::Treatment,
            Some(covariate) => ColumnRef::Covariate(covariate),
        })
    })?;
    let origin = spline.at(reference);
    let points = grid.iter().map(|dose| {
        if *dose == reference {
            return Ok(DosePoint { dose: *dose, effect: None });
        }
        let mut gradient = vec![0.0; columns.len() + 1];
        let steps = spline.at(*dose).into_iter().zip(&origin).map(|(here, there)| here - there);
        gradient[1..].iter_mut().zip(steps).for_each(|(slope, step)| *slope = step);
        let value = gradient.iter().zip(fit.coefficients()).map(|(a, b)| a * b).sum();
        Ok(DosePoint { dose: *dose, effect: Some(fit.function(value, &gradient, kind, clusters)?) })
    });
    let points = points.collect::<Result<_, Refusal>>()?;
    let degrees = match clusters.filter(|_| kind.is_clustered()) {
        Some(codes) => {
            let mut sorted = codes.to_vec();
            sorted.sort_unstable();
            sorted.dedup();
            sorted.len() as f64 - 1.0
        }
        None => fit.residual_degrees() as f64,
    };
    let joint = |from: usize| fit.joint(from..width + 1, kind, clusters, degrees);
    Ok(DoseCurve {
        points,
        knots: knots.to_vec(),
        any: joint(1)?,
        nonlinear: if width > 1 { Some(joint(2)?) } else { None },
    })
}

impl LinearFit {
    /// Whether the coefficients at these positions are all zero, by Wald's F.
    fn joint(
        &self,
        tested: std::ops::Range<usize>,
        kind: Covariance,
        clusters: Option<&[u32]>,
        degrees: f64,
    ) -> Result<JointTest, Refusal> {
        let count = tested.len();
        let covariance = self.covariance(kind, clusters)?;
        let error: Vec<f64> = tested.clone().map(|at| covariance[at][at].sqrt()).collect();
        let correlation: Vec<f64> = tested
            .clone()
            .flat_map(|row| tested.clone().map(move |column| (row, column)))
            .map(|(row, column)| {
                let scale = error[row - tested.start] * error[column - tested.start];
                covariance[row][column] / scale
            })
            .collect();
        let factor = crate::cholesky::Cholesky::of_lower(&correlation, count, 1e-13);
        let undefined = || {
            Refusal::Other(format!(
                "the {kind} covariance of the curve is singular: too few rows or clusters for \
                 {count} coefficients"
            ))
        };
        let factor = factor.map_err(|_| undefined())?;
        let statistics: Vec<f64> = self.coefficients()[tested]
            .iter()
            .zip(&error)
            .map(|(value, error)| value / error)
            .collect();
        let solved = factor.solve(&statistics);
        let wald: f64 = statistics.iter().zip(&solved).map(|(a, b)| a * b).sum();
        let f = wald / count as f64;
        let p_value = crate::tail::f_upper(f, count as f64, degrees);
        if !(f.is_finite() && p_value.is_finite()) {
            return Err(undefined());
        }
        Ok(JointTest { f, degrees: (count, degrees), p_value })
    }
}
