//! Anderson and Rubin's test and confidence set of an effect by instruments, which stay valid for
//! weak instruments.

use super::fit::LinearFit;
use super::sandwich::Covariance;
use super::symmetric::{divide_rows, upper_factor};
use crate::{ColumnRef, Refusal, tail};

/// The number of effects, spread over a half circle, at which the test is evaluated with several
/// instruments. The set of one instrument has a closed form.
const PLACES: usize = 4096;

/// The effects that Anderson and Rubin's (1949) test does not reject.
#[derive(Clone, Debug, PartialEq)]
pub struct AndersonRubin {
    /// The p-value of an effect of zero.
    pub p_zero: f64,
    /// The intervals of the set, from low to high, with infinite ends if it is unbounded; in units
    /// of the outcome per unit of the treatment. Empty if every effect is rejected, which is
    /// evidence against the instruments.
    pub set: Vec<(f64, f64)>,
}

impl AndersonRubin {
    /// The ends of the set; `None` if it is empty or unbounded.
    pub fn bounds(&self) -> Option<(f64, f64)> {
        let (low, high) = (self.set.first()?.0, self.set.last()?.1);
        (low.is_finite() && high.is_finite()).then_some((low, high))
    }
}

/// At each effect e, tests that the instruments have no coefficients in a regression of `outcome` -
/// e `endogenous` on 1, `exogenous` and the instruments: Wald's test with the variances of `kind`
/// and Student's or Fisher's distribution. The set has the effects with p >= `alpha`.
///
/// `near` is a centre and a width on the scale of effects for the search: an estimate and its
/// standard error. Degrees of freedom are those of [`LinearFit::estimate`] with one instrument,
/// otherwise n - k, or clusters minus one.
///
/// # Errors
/// As [`LinearFit::fit`] and [`LinearFit::covariance`], with the columns of
/// [`two_stage`](super::two_stage); [`Refusal::Other`] if `near` is not finite.
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
    if instruments.is_empty() {
        return Err(Refusal::TooFew { what: "instruments", found: 0, needed: 1 });
    }
    let (centre, width) = near;
    if !(centre.is_finite() && width > 0.0 && width.is_finite()) {
        return Err(Refusal::Other("the estimate to search around is not finite".into()));
    }
    let mut design: Vec<&[f64]> = exogenous.to_vec();
    design.extend_from_slice(instruments);
    let from = exogenous.len() + 1;
    let fit = |target: &[f64], name: ColumnRef| {
        LinearFit::without_check(&design, target).map_err(|refusal| {
            refusal.map_column(|column| match column {
                ColumnRef::Outcome => name,
                ColumnRef::Covariate(at) => match at.checked_sub(exogenous.len()) {
                    None => ColumnRef::Covariate(at),
                    Some(instrument) => ColumnRef::Instrument(instrument),
                },
                column => column,
            })
        })
    };
    // Regressions of (outcome minus the central effect) and of the treatment, both in units of
    // their residuals, so that their covariance follows from that of their sum.
    let shifted: Vec<f64> = outcome.iter().zip(endogenous).map(|(y, d)| y - centre * d).collect();
    let left = fit(&shifted, ColumnRef::Outcome)?;
    let right = fit(endogenous, ColumnRef::Endogenous)?;
    left.refuse_perfect()?;
    right.refuse_perfect().map_err(|_| {
        Refusal::Other("the instruments and covariates determine the treatment entirely".into())
    })?;
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
        fit.coefficients()[from..].iter().map(|value| value / unit).collect()
    };
    let line = Line {
        a: coefficients(&left, left_unit),
        b: coefficients(&right, right_unit),
        aa,
        cross,
        bb,
    };
    let count = instruments.len();
    let degrees = match (count, kind.is_clustered()) {
        (1, _) => left.estimate(from, kind, clusters)?.degrees,
        (_, false) => left.residual_degrees() as f64,
        (_, true) => left.clusters(kind, clusters)?.map_or(f64::NAN, |n| n as f64 - 1.0),
    };
    // Effects are centre + t units of this.
    let scale = left_unit / right_unit;
    let p = |t: f64| line.p(1.0, t, degrees);
    let inside = match count {
        1 => line.closed(tail::t_quantile(1.0 - alpha / 2.0, degrees).powi(2)),
        _ => line.searched(width / scale, degrees, alpha),
    };
    Ok(AndersonRubin {
        p_zero: p(-centre / scale),
        set: inside
            .into_iter()
            .map(|(low, high)| (centre + scale * low, centre + scale * high))
            .collect(),
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
        let error = |at: usize| covariance[at * count + at].sqrt();
        let correlation: Vec<f64> = (0..count * count)
            .map(|at| covariance[at] / (error(at / count) * error(at % count)))
            .collect();
        let Ok(factor) = upper_factor(&correlation, count, 1e-12) else { return 0.0 };
        let mut row: Vec<f64> =
            (0..count).map(|at| (x * self.a[at] - y * self.b[at]) / error(at)).collect();
        divide_rows(&mut row, &factor, count);
        let wald: f64 = row.iter().map(|value| value * value).sum();
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
        // The root of larger magnitude first, the other from their product, so that no digits
        // cancel.
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
