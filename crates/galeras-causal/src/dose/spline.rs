//! Natural cubic splines: cubic between knots, smooth to the second derivative, straight beyond the
//! outermost ones.

use crate::{Refusal, quantile};

/// The basis of natural cubic splines with these knots, without the constant: the dose itself and a
/// truncated-power term for each knot but two (Harrell, Regression Modeling Strategies, 2.4.5).
pub(super) struct NaturalSpline {
    /// Ascending; two make a straight line.
    knots: Vec<f64>,
}

impl NaturalSpline {
    /// # Errors
    /// [`Refusal::Other`] with fewer than two knots, or knots that do not ascend.
    pub(super) fn new(knots: &[f64]) -> Result<Self, Refusal> {
        let ascends = knots.is_sorted_by(|a, b| a < b) && knots.iter().all(|knot| knot.is_finite());
        if knots.len() < 2 || !ascends {
            return Err(Refusal::Other(
                "a spline needs two or more knots, ascending and without repetition".into(),
            ));
        }
        Ok(Self { knots: knots.to_vec() })
    }

    /// How many functions there are.
    pub(super) fn width(&self) -> usize {
        self.knots.len() - 1
    }

    /// The functions at a dose.
    pub(super) fn at(&self, dose: f64) -> Vec<f64> {
        let (first, last) = (self.knots[0], self.knots[self.knots.len() - 1]);
        let before_last = self.knots[self.knots.len() - 2];
        // On the range of the knots as unit, so that cubes stay of the size of the dose.
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

/// Where `count` knots lie by Harrell's quantiles of the doses (3 to 7 knots), or at the doses
/// themselves where there are no more different ones than knots.
///
/// # Errors
/// [`Refusal::Other`] unless `count` is 3 to 7; [`Refusal::TooFew`] below two different doses, or
/// where quantiles coincide so that fewer than two knots are left.
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
    let mut sorted: Vec<f64> = doses.iter().map(|dose| dose + 0.0).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let mut distinct = sorted.clone();
    distinct.dedup();
    if distinct.len() < 2 {
        return Err(Refusal::TooFew { what: "different doses", found: distinct.len(), needed: 2 });
    }
    if distinct.len() <= count {
        return Ok(distinct);
    }
    let mut knots: Vec<f64> =
        places.iter().map(|place| quantile::quantile(&sorted, *place, 1000)).collect();
    knots.dedup();
    if knots.len() < 2 {
        return Err(Refusal::TooFew { what: "different knots", found: knots.len(), needed: 2 });
    }
    Ok(knots)
}
