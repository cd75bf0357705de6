//! Two-stage least squares with tests of overidentification, and Anderson and Rubin's test and
//! confidence set, which stay valid for weak instruments.

use std::ops::Range;

use super::fit::LinearFit;
use super::sandwich::{ClusterRows, Covariance};
use super::symmetric::{add_outer, divide_rows, dot, mirror, upper_factor};
use crate::refusal::{at_least, require};
use crate::{ColumnRef, Estimate, Refusal, tail};

/// The result of two-stage least squares.
#[derive(Clone, Debug, PartialEq)]
pub struct TwoStage {
    /// The coefficient of the endogenous column.
    pub estimate: Estimate,
    /// The F statistic of all instruments in the first stage, for equal variances.
    pub first_stage_f: f64,
    /// The same for the variances of the estimate's kind: Wald's statistic of the instruments over
    /// their number. `None` if that covariance is undefined or singular.
    pub robust_first_stage_f: Option<f64>,
    /// Sargan's test; `None` with one instrument.
    pub sargan: Option<Overidentification>,
    /// Hansen's J by the estimate's kind, unless for one instrument, equal variances or singular
    /// weights.
    pub hansen: Option<Overidentification>,
}

/// The coefficient of `endogenous` in `outcome` ~ 1 + endogenous + exogenous, instrumented by
/// `instruments`; equals that of linearmodels' `IV2SLS`. Degrees of freedom and small-sample
/// factors are those of a regression, leverages those of the second stage. Errors are those of
/// [`adjusted`](super::adjusted), and instruments that are unrelated to the endogenous column, or
/// determine it.
pub fn two_stage(
    outcome: &[f64],
    endogenous: &[f64],
    instruments: &[&[f64]],
    exogenous: &[&[f64]],
    kind: Covariance,
    clusters: Option<&[u32]>,
) -> Result<TwoStage, Refusal> {
    at_least("instruments", instruments.len(), 1)?;
    let (found, rows) = (endogenous.len(), outcome.len());
    let reason = format!("the endogenous column has {found} rows and the outcome {rows}");
    require(found == rows, reason)?;
    let covariates = exogenous.len();
    // Exogenous columns come first in both stages.
    let first_stage = |columns: &[&[f64]]| {
        LinearFit::without_check(columns, endogenous).map_err(|refusal| {
            renamed(refusal, covariates, ColumnRef::Endogenous, ColumnRef::Instrument)
        })
    };
    let first = first_stage(&[exogenous, instruments].concat())?;
    let restricted = first_stage(exogenous)?;
    refuse_determined(&first)?;
    let count = instruments.len();
    // Residual sums have the same unit: both fits have the same outcome.
    let (full, part) = (first.residual_sum(), restricted.residual_sum());
    let explained = ((part - full) / count as f64).max(0.0);
    let first_stage_f = explained / (full / first.residual_degrees() as f64);

    let fitted: Vec<f64> =
        endogenous.iter().zip(&first.residuals).map(|(value, residual)| value - residual).collect();
    let second = LinearFit::without_check(&[exogenous, &[fitted.as_slice()]].concat(), outcome);
    let mut second = second.map_err(|refusal| {
        match renamed(refusal, covariates, ColumnRef::Outcome, |_| ColumnRef::Endogenous) {
            // The covariates alone passed the first stage. Noise in a constant column of fitted values
            // decides which column is called a combination of the others.
            Refusal::Collinear { .. } | Refusal::Constant(ColumnRef::Endogenous) => Refusal::Other(
                "the instruments do not move the treatment: the first stage fits nothing beyond \
                 the covariates"
                    .into(),
            ),
            other => other,
        }
    })?;
    let position = covariates + 1;
    let effect = second.coefficients[position];
    // The structural residuals belong to the endogenous column, not to its fitted values.
    for (residual, missed) in second.residuals.iter_mut().zip(&first.residuals) {
        *residual -= effect * missed;
    }
    second.refuse_perfect()?;
    let several = count > 1;
    let robust = wald(&first, position..first.width, kind, clusters).ok().flatten();
    Ok(TwoStage {
        estimate: second.estimate(position, kind, clusters)?,
        first_stage_f,
        robust_first_stage_f: robust.map(|wald| wald / count as f64),
        sargan: several.then(|| sargan(&first, &second, count)),
        hansen: several
            .then(|| hansen(&first, &second, endogenous, count, kind, clusters))
            .flatten(),
    })
}

/// Renames the columns of a regression on `exogenous` columns and then others.
fn renamed(
    refusal: Refusal,
    exogenous: usize,
    outcome: ColumnRef,
    other: impl Fn(usize) -> ColumnRef,
) -> Refusal {
    refusal.map_column(|column| match column {
        ColumnRef::Outcome => outcome,
        ColumnRef::Covariate(at) => at.checked_sub(exogenous).map_or(column, &other),
        column => column,
    })
}

fn refuse_determined(first_stage: &LinearFit) -> Result<(), Refusal> {
    let reason = "the instruments and covariates determine the treatment entirely";
    require(first_stage.refuse_perfect().is_ok(), reason)
}

/// Maps numbers with this covariance to independent ones of variance one; `None` if it is singular.
fn whitener(
    size: usize,
    covariance: impl Fn(usize, usize) -> f64,
) -> Option<impl Fn(&[f64]) -> Vec<f64>> {
    let error: Vec<f64> = (0..size).map(|at| covariance(at, at).sqrt()).collect();
    let correlation: Vec<f64> = (0..size * size)
        .map(|at| (at / size, at % size))
        .map(|(a, b)| covariance(a, b) / (error[a] * error[b]))
        .collect();
    let factor = upper_factor(&correlation, size, 1e-12).ok()?;
    Some(move |numbers: &[f64]| {
        let mut row: Vec<f64> = numbers.iter().zip(&error).map(|(value, e)| value / e).collect();
        divide_rows(&mut row, &factor, size);
        row
    })
}

/// Wald's statistic of the hypothesis that the coefficients at these positions are zero; `None` if
/// their covariance is singular.
pub(crate) fn wald(
    fit: &LinearFit,
    tested: Range<usize>,
    kind: Covariance,
    clusters: Option<&[u32]>,
) -> Result<Option<f64>, Refusal> {
    let covariance = fit.covariance(kind, clusters)?;
    let first = tested.start;
    let tested = &fit.coefficients[tested];
    let whiten = whitener(tested.len(), |a, b| covariance[first + a][first + b]);
    let statistic = whiten.map(|whiten| whiten(tested)).map(|row| dot(&row, &row));
    Ok(statistic.filter(|wald| wald.is_finite()))
}

/// A test that all instruments give one effect; those invalid in the same way pass it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overidentification {
    /// The statistic, chi-squared if the instruments are valid.
    pub chi_squared: f64,
    /// Its degrees of freedom: instruments minus one.
    pub degrees: usize,
    /// Its p-value.
    pub p: f64,
}

impl Overidentification {
    fn new(chi_squared: f64, instruments: usize) -> Self {
        let degrees = instruments - 1;
        Self { chi_squared, degrees, p: tail::chi_squared_upper(chi_squared, degrees as f64) }
    }
}

/// Sargan's test (1958): n times R squared of the structural residuals on the instruments.
fn sargan(first: &LinearFit, second: &LinearFit, instruments: usize) -> Overidentification {
    let projected = first.coordinates(&second.residuals, second.scale);
    let explained: f64 = projected.iter().map(|value| value * value).sum();
    let chi_squared = second.residuals.len() as f64 * explained / second.residual_sum();
    Overidentification::new(chi_squared, instruments)
}

/// Hansen's J (1982): the minimum of the moments of two-step efficient GMM, whose weights are the
/// products of instruments and two-stage residuals, summed within clusters if there are any; equals
/// linearmodels' `IVGMM` with `weight_type="robust"` or `"clustered"`. `None` for the classic kind,
/// and if the weights are singular (as with no more clusters than instruments). Only the part of
/// the instruments that covariates do not explain matters: the last columns of the basis.
fn hansen(
    first: &LinearFit,
    second: &LinearFit,
    endogenous: &[f64],
    instruments: usize,
    kind: Covariance,
    clusters: Option<&[u32]>,
) -> Option<Overidentification> {
    if kind == Covariance::Classic {
        return None;
    }
    let from = first.width - instruments;
    let row = |at: usize| &first.basis[at * first.width + from..(at + 1) * first.width];
    let residual = |at: usize| second.residuals[at] / second.scale;
    let groups = match kind.is_clustered() {
        true => ClusterRows::new(clusters?),
        false => ClusterRows::singletons(second.residuals.len()),
    };
    if groups.count() <= instruments {
        return None;
    }
    let mut weights = vec![0.0; instruments * instruments];
    let mut moment = vec![0.0; instruments];
    for rows in groups.members() {
        let mut score = vec![0.0; instruments];
        for at in rows {
            score.iter_mut().zip(row(*at)).for_each(|(sum, cell)| *sum += cell * residual(*at));
        }
        add_outer(&mut weights, &score, 1.0);
        moment.iter_mut().zip(&score).for_each(|(sum, part)| *sum += part);
    }
    mirror(&mut weights, instruments);
    let whitened = whitener(instruments, |a, b| weights[a * instruments + b])?;
    let moment = whitened(&moment);
    let slopes = whitened(&first.coordinates(endogenous, first.scale)[from..]);
    // The moments at the efficient estimate of the effect.
    let step = dot(&slopes, &moment) / dot(&slopes, &slopes);
    let left: f64 = moment.iter().zip(&slopes).map(|(m, s)| (m - step * s).powi(2)).sum();
    Some(left).filter(|j| j.is_finite()).map(|j| Overidentification::new(j, instruments))
}

/// The number of effects, spread over a half circle, at which the test is evaluated with several
/// instruments. The set of one instrument has a closed form.
const PLACES: usize = 4096;

/// The effects that Anderson and Rubin's (1949) test does not reject.
#[derive(Clone, Debug, PartialEq)]
pub struct AndersonRubin {
    /// The p-value of an effect of zero.
    pub p_zero: f64,
    /// The intervals of the set, from low to high, with infinite ends if it is unbounded. Empty if
    /// every effect is rejected, which is evidence against the instruments.
    pub set: Vec<(f64, f64)>,
}

impl AndersonRubin {
    /// The ends of the set; `None` if it is empty or unbounded.
    pub fn bounds(&self) -> Option<(f64, f64)> {
        let (low, high) = (self.set.first()?.0, self.set.last()?.1);
        (low.is_finite() && high.is_finite()).then_some((low, high))
    }
}

/// At each effect e, Wald's test that the instruments have no coefficients in a regression of
/// `outcome` - e `endogenous` on 1, `exogenous` and the instruments, with the variances of `kind`
/// and Student's or Fisher's distribution. The set has the effects with p >= `alpha`. `near` is a
/// centre and a width for the search: an estimate and its standard error. Degrees of freedom are
/// those of [`LinearFit::estimate`] with one instrument, otherwise n - k, or clusters minus one.
/// Errors are those of [`two_stage`], and a `near` that is not finite.
#[allow(clippy::too_many_arguments)]
pub fn anderson_rubin(
    outcome: &[f64],
    endogenous: &[f64],
    instruments: &[&[f64]],
    exogenous: &[&[f64]],
    kind: Covariance,
    clusters: Option<&[u32]>,
    near: (f64, f64),
    alpha: f64,
) -> Result<AndersonRubin, Refusal> {
    at_least("instruments", instruments.len(), 1)?;
    let (centre, width) = near;
    let usable = centre.is_finite() && width > 0.0 && width.is_finite();
    require(usable, "the estimate to search around is not finite")?;
    let design = [exogenous, instruments].concat();
    let from = exogenous.len() + 1;
    let fit = |target: &[f64], name: ColumnRef| {
        LinearFit::without_check(&design, target)
            .map_err(|refusal| renamed(refusal, exogenous.len(), name, ColumnRef::Instrument))
    };
    // Regressions of (outcome minus the central effect) and of the treatment, both in units of
    // their residuals, so that their covariance follows from that of their sum.
    let shifted: Vec<f64> = outcome.iter().zip(endogenous).map(|(y, d)| y - centre * d).collect();
    let left = fit(&shifted, ColumnRef::Outcome)?;
    let right = fit(endogenous, ColumnRef::Endogenous)?;
    left.refuse_perfect()?;
    refuse_determined(&right)?;
    let unit =
        |fit: &LinearFit| (fit.residual_sum() / fit.residuals.len() as f64).sqrt() * fit.scale;
    let (left_unit, right_unit) = (unit(&left), unit(&right));
    let sum: Vec<f64> =
        shifted.iter().zip(endogenous).map(|(a, b)| a / left_unit + b / right_unit).collect();
    let both = fit(&sum, ColumnRef::Outcome)?;
    let block = |fit: &LinearFit, unit: f64| -> Result<Vec<f64>, Refusal> {
        let covariance = fit.covariance(kind, clusters)?;
        let tested = covariance[from..].iter().flat_map(|row| row[from..].to_vec());
        Ok(tested.map(|cell| cell / unit / unit).collect())
    };
    let (aa, bb) = (block(&left, left_unit)?, block(&right, right_unit)?);
    let cross: Vec<f64> =
        block(&both, 1.0)?.iter().zip(&aa).zip(&bb).map(|((all, a), b)| all - a - b).collect();
    let coefficients = |fit: &LinearFit, unit: f64| -> Vec<f64> {
        fit.coefficients[from..].iter().map(|value| value / unit).collect()
    };
    let (a, b) = (coefficients(&left, left_unit), coefficients(&right, right_unit));
    let line = Line { a, b, aa, cross, bb };
    // Effects are centre + t units of this.
    let scale = left_unit / right_unit;
    let (degrees, inside) = if instruments.len() == 1 {
        let degrees = left.estimate(from, kind, clusters)?.degrees;
        (degrees, line.closed(tail::t_quantile(1.0 - alpha / 2.0, degrees).powi(2)))
    } else {
        let degrees = left.joint_degrees(kind, clusters)?;
        (degrees, line.searched(width / scale, degrees, alpha))
    };
    let ends = |(low, high): (f64, f64)| (centre + scale * low, centre + scale * high);
    Ok(AndersonRubin {
        p_zero: line.p(1.0, -centre / scale, degrees),
        set: inside.into_iter().map(ends).collect(),
    })
}

/// The coefficients a - t b of the instruments as a function of the effect t, and the covariance
/// aa - t cross + t^2 bb, row by row.
struct Line {
    a: Vec<f64>,
    b: Vec<f64>,
    aa: Vec<f64>,
    cross: Vec<f64>,
    bb: Vec<f64>,
}

impl Line {
    /// The p-value of no coefficients at the effect t = y / x, which may be infinite: x = 0.
    fn p(&self, x: f64, y: f64, degrees: f64) -> f64 {
        let count = self.a.len();
        let covariance: Vec<f64> = (self.aa.iter().zip(&self.cross).zip(&self.bb))
            .map(|((aa, cross), bb)| x * x * aa - x * y * cross + y * y * bb)
            .collect();
        let Some(whiten) = whitener(count, |a, b| covariance[a * count + b]) else { return 0.0 };
        let coefficients: Vec<f64> =
            self.a.iter().zip(&self.b).map(|(a, b)| x * a - y * b).collect();
        let row = whiten(&coefficients);
        let wald = dot(&row, &row);
        let p = tail::f_upper(wald / count as f64, count as f64, degrees);
        if p.is_nan() { 0.0 } else { p }
    }

    /// The solutions of (a - t b)^2 <= critical (aa - t cross + t^2 bb), for one instrument.
    fn closed(&self, critical: f64) -> Vec<(f64, f64)> {
        let (a, b) = (self.a[0], self.b[0]);
        let square = b * b - critical * self.bb[0];
        let slope = 2.0 * a * b - critical * self.cross[0];
        let constant = a * a - critical * self.aa[0];
        let all = (f64::NEG_INFINITY, f64::INFINITY);
        let discriminant = slope * slope - 4.0 * square * constant;
        // square t^2 - slope t + constant <= 0.
        if discriminant < 0.0 {
            // The estimate is never rejected, so the set has every effect rather than none.
            return vec![all];
        }
        // The root of larger magnitude first, the other from their product: no digits cancel.
        let far = slope + discriminant.sqrt().copysign(slope);
        let (one, other) = (far / (2.0 * square), 2.0 * constant / far);
        let (low, high) = (one.min(other), one.max(other));
        if square > 0.0 {
            vec![(low, high)]
        } else if square < 0.0 {
            vec![(all.0, low), (high, all.1)]
        } else if slope > 0.0 {
            vec![(constant / slope, all.1)]
        } else if slope < 0.0 {
            vec![(all.0, constant / slope)]
        } else {
            vec![all]
        }
    }

    /// The set with p >= alpha for several instruments, by search at points that are dense near t =
    /// 0, in steps of `width`, and reach infinity on both sides.
    fn searched(&self, width: f64, degrees: f64, alpha: f64) -> Vec<(f64, f64)> {
        let at = |angle: f64| {
            let (sine, cosine) = angle.sin_cos();
            self.p(cosine, width * sine, degrees)
        };
        let half = std::f64::consts::FRAC_PI_2;
        let place = |index: usize| half * (2.0 * index as f64 / PLACES as f64 - 1.0);
        let value = |angle: f64| width * angle.tan();
        let boundary = |mut outer: f64, mut inner: f64| {
            for _ in 0..100 {
                let middle = 0.5 * (outer + inner);
                if at(middle) >= alpha { inner = middle } else { outer = middle }
            }
            value(inner)
        };
        let mut values: Vec<f64> = (0..=PLACES).map(|index| at(place(index))).collect();
        // Both ends are the same effect, infinity.
        values[PLACES] = values[0];
        let mut found: Vec<(f64, f64)> = Vec::new();
        let mut open = (values[0] >= alpha).then_some(f64::NEG_INFINITY);
        for (index, value) in values.iter().enumerate().skip(1) {
            match (open, *value >= alpha) {
                (None, true) => open = Some(boundary(place(index - 1), place(index))),
                (Some(low), false) => {
                    found.push((low, boundary(place(index), place(index - 1))));
                    open = None;
                }
                _ => {}
            }
        }
        if let Some(low) = open {
            found.push((low, f64::INFINITY));
        }
        if found.is_empty() {
            // A set narrower than the distance of the points is around the best one.
            found.extend(narrow(&values, &at, &place, &boundary, alpha));
        }
        found
    }
}

/// The set around the point with the largest p, if it is not empty.
fn narrow(
    values: &[f64],
    at: &impl Fn(f64) -> f64,
    place: &impl Fn(usize) -> f64,
    boundary: &impl Fn(f64, f64) -> f64,
    alpha: f64,
) -> Option<(f64, f64)> {
    let best = (1..PLACES).max_by(|a, b| values[*a].total_cmp(&values[*b]))?;
    let (mut low, mut high) = (place(best - 1), place(best + 1));
    let share = 0.5 * (5.0f64.sqrt() - 1.0);
    for _ in 0..80 {
        let (left, right) = (high - share * (high - low), low + share * (high - low));
        if at(left) > at(right) { high = right } else { low = left }
    }
    let middle = 0.5 * (low + high);
    (at(middle) >= alpha)
        .then(|| (boundary(place(best - 1), middle), boundary(place(best + 1), middle)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: &[(f64, f64)], expected: &[(f64, f64)]) {
        assert_eq!(found.len(), expected.len(), "{found:?} {expected:?}");
        for (found, expected) in found.iter().zip(expected) {
            for (found, expected) in [(found.0, expected.0), (found.1, expected.1)] {
                let same = found == expected || (found - expected).abs() <= 1e-9 * expected.abs();
                assert!(same, "{found} is not {expected}");
            }
        }
    }

    #[test]
    fn the_search_equals_the_closed_form() {
        for (a, b, cross, parts) in [
            // A strong instrument; a weak one, whose set has no end; two rays; a narrow set.
            (0.3, 2.0, 0.004, 1),
            (0.01, 0.01, 0.0, 1),
            (0.5, 0.1, 0.01, 2),
            (0.0, 500.0, 0.0, 1),
        ] {
            let line =
                Line { a: vec![a], b: vec![b], aa: vec![0.01], cross: vec![cross], bb: vec![0.01] };
            let degrees = 40.0;
            let closed = line.closed(tail::t_quantile(0.975, degrees).powi(2));
            assert_eq!(closed.len(), parts, "{closed:?}");
            close(&line.searched(0.1, degrees, 0.05), &closed);
        }
    }

    #[test]
    fn a_set_between_two_places_is_found() {
        // In steps of 1e6, all points except that of the estimate are far outside.
        let line =
            Line { a: vec![3.0], b: vec![2.0], aa: vec![0.01], cross: vec![0.0], bb: vec![0.01] };
        let closed = line.closed(tail::t_quantile(0.975, 40.0).powi(2));
        close(&line.searched(1e4, 40.0, 0.05), &closed);
    }
}
