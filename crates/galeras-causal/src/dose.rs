//! Treatments with doses: the outcome along a natural cubic spline, and tests of a monotone trend.

#[cfg(test)]
mod tests;

use crate::column::check_column;
use crate::correlation::tie_corrected_excess;
use crate::glm::check_binary;
use crate::linear::{Covariance, LinearFit, wald};
use crate::refusal::{at_least, require};
use crate::{ColumnRef, Estimate, Refusal, compensated, rank, tail};

/// A dose on the curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DosePoint {
    /// The dose.
    pub dose: f64,
    /// The mean outcome at this dose minus that at the reference, at equal covariates; `None`
    /// there.
    pub effect: Option<Estimate>,
}

/// The outcome as a function of the dose.
#[derive(Clone, Debug, PartialEq)]
pub struct DoseCurve {
    /// The requested points, in their order.
    pub points: Vec<DosePoint>,
    /// The knots of the spline.
    pub knots: Vec<f64>,
    /// Wald's F for all functions of the dose: no change of the outcome with the dose.
    pub any: JointTest,
    /// Wald's F for the functions beyond the straight line; `None` with two knots.
    pub nonlinear: Option<JointTest>,
}

/// A test of several coefficients at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JointTest {
    /// Wald's statistic over the number of coefficients.
    pub f: f64,
    /// The number of coefficients, and the degrees of freedom of the denominator.
    pub degrees: (usize, f64),
    /// The p-value by the F distribution.
    pub p_value: f64,
}

/// Least squares of `outcome` on 1, a natural cubic spline of `dose` with these knots, and
/// `covariates`, with the difference of each of `grid` from `reference`. Equals statsmodels' `OLS`
/// on patsy's `cr(dose, knots=…)` with the outer knots as bounds. The joint tests have rows minus
/// coefficients, or clusters minus one, as degrees of freedom. Errors are those of
/// [`adjusted`](crate::adjusted), where [`ColumnRef::Treatment`] is a function of the dose.
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
    check_column(dose, ColumnRef::Treatment, outcome.len())?;
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
        let value = gradient.iter().zip(&fit.coefficients).map(|(a, b)| a * b).sum();
        Ok(DosePoint { dose: *dose, effect: Some(fit.function(value, &gradient, kind, clusters)?) })
    });
    let points = points.collect::<Result<_, Refusal>>()?;
    let degrees = fit.joint_degrees(kind, clusters)?;
    let joint = |from: usize| -> Result<JointTest, Refusal> {
        let count = width + 1 - from;
        let test = wald(&fit, from..width + 1, kind, clusters)?.map(|wald| {
            let f = wald / count as f64;
            let p_value = tail::f_upper(f, count as f64, degrees);
            JointTest { f, degrees: (count, degrees), p_value }
        });
        test.filter(|test| test.p_value.is_finite()).ok_or_else(|| {
            Refusal::Other(format!(
                "the {kind} covariance of the curve is singular: too few rows or clusters for \
                 {count} coefficients"
            ))
        })
    };
    Ok(DoseCurve {
        points,
        knots: knots.to_vec(),
        any: joint(1)?,
        nonlinear: if width > 1 { Some(joint(2)?) } else { None },
    })
}

/// The basis of natural cubic splines without the constant: the dose and a truncated-power term for
/// each knot but two (Harrell, Regression Modeling Strategies, 2.4.5). Such splines are cubic
/// between knots and straight beyond the outermost ones.
struct NaturalSpline {
    /// Ascending; two make a straight line.
    knots: Vec<f64>,
}

impl NaturalSpline {
    fn new(knots: &[f64]) -> Result<Self, Refusal> {
        let ascends = knots.is_sorted_by(|a, b| a < b) && knots.iter().all(|knot| knot.is_finite());
        let reason = "a spline needs two or more knots, ascending and without repetition";
        require(knots.len() >= 2 && ascends, reason)?;
        Ok(Self { knots: knots.to_vec() })
    }

    fn width(&self) -> usize {
        self.knots.len() - 1
    }

    fn at(&self, dose: f64) -> Vec<f64> {
        let (first, last) = (self.knots[0], self.knots[self.knots.len() - 1]);
        let before_last = self.knots[self.knots.len() - 2];
        // In units of the range of the knots, so that cubes have the size of the dose.
        let range = last - first;
        let cube = |knot: f64| ((dose - knot) / range).max(0.0).powi(3);
        let mut values = vec![(dose - first) / range];
        values.extend(self.knots[..self.knots.len() - 2].iter().map(|knot| {
            let (left, right) = (last - knot, before_last - knot);
            let gap = last - before_last;
            cube(*knot) - cube(before_last) * left / gap + cube(last) * right / gap
        }));
        values
    }
}

/// `count` knots at Harrell's quantiles of the doses, or at the distinct doses if these are no
/// more. Refuses a `count` that is not 3 to 7; quantiles with fewer than two knots.
pub fn natural_knots(doses: &[f64], count: usize) -> Result<Vec<f64>, Refusal> {
    // Harrell, table 2.3, in thousandths.
    let places: &[usize] = match count {
        3 => &[100, 500, 900],
        4 => &[50, 350, 650, 950],
        5 => &[50, 275, 500, 725, 950],
        6 => &[50, 230, 410, 590, 770, 950],
        7 => &[25, 183, 342, 500, 658, 817, 975],
        _ => return Err(Refusal::Other(format!("{count} knots: a spline has 3 to 7"))),
    };
    let doses: Vec<f64> = doses.iter().map(|dose| dose + 0.0).collect();
    let sorted = rank::ascending(&doses);
    let mut distinct = sorted.clone();
    distinct.dedup();
    at_least("different doses", distinct.len(), 2)?;
    if distinct.len() <= count {
        return Ok(distinct);
    }
    let mut knots: Vec<f64> =
        places.iter().map(|place| rank::quantile(&sorted, *place, 1000)).collect();
    knots.dedup();
    at_least("different knots", knots.len(), 2)?;
    Ok(knots)
}

/// A test of no trend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrendTest {
    /// The statistic, standard normal without a trend; positive if the outcome rises with the dose.
    pub z: f64,
    /// Its two-sided p-value.
    pub p_value: f64,
}

/// The Cochran-Armitage test of a linear trend of a proportion along the dose, with the doses as
/// scores (Armitage 1955, Biometrics 11:375; R's `prop.trend.test`). `outcome` is 0 or 1.
pub fn cochran_armitage(dose: &[f64], outcome: &[f64]) -> Result<TrendTest, Refusal> {
    check_column(dose, ColumnRef::Treatment, outcome.len())?;
    check_binary(outcome)?;
    let doses = compensated::centred(dose, ColumnRef::Treatment)?;
    let outcomes = compensated::centred(outcome, ColumnRef::Outcome)?;
    let n = dose.len() as f64;
    // Scales cancel: z is the root of n times Pearson's correlation.
    let product = compensated::dot(&doses, &outcomes).high;
    let squares = [&doses, &outcomes].map(|column| compensated::dot(column, column).high);
    let z = n.sqrt() * product / squares[0].sqrt() / squares[1].sqrt();
    Ok(TrendTest { z, p_value: tail::normal_two_sided(z) })
}

/// The Jonckheere-Terpstra test that outcomes are ordered as the doses are (Jonckheere 1954,
/// Biometrika 41:133), in O(n log n), with the variance for ties in both columns (Hollander &
/// Wolfe, section 6.2) and the normal approximation. The p-value equals that of
/// `scipy.stats.kendalltau(method="asymptotic")`, of whose numerator the statistic is a linear
/// function.
pub fn jonckheere_terpstra(dose: &[f64], outcome: &[f64]) -> Result<TrendTest, Refusal> {
    check_column(dose, ColumnRef::Treatment, outcome.len())?;
    check_column(outcome, ColumnRef::Outcome, outcome.len())?;
    compensated::centred(dose, ColumnRef::Treatment)?;
    compensated::centred(outcome, ColumnRef::Outcome)?;
    at_least("rows", dose.len(), 3)?;
    let z = tie_corrected_excess(dose, outcome);
    Ok(TrendTest { z, p_value: tail::normal_two_sided(z).min(1.0) })
}
