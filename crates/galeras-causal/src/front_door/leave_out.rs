//! The jackknife of the front door: the estimate without each row, or each cluster, from the sums of
//! products that are left. It does what the influence function does of a large sample, and keeps its
//! size in a small one, where a product of two slopes is far from normal (MacKinnon, Nielsen and
//! Webb 2023, "Leverage, influence, and the jackknife in clustered regression models").

use crate::cholesky::Cholesky;
use crate::compensated;
use crate::{ColumnRef, Refusal};

/// The share of a mediator's variance in an arm that the others must leave unexplained.
const DEPENDENT: f64 = 1e-10;

/// Sums of products over rows of one arm: of 1, the mediators and the outcome, row-major.
#[derive(Clone)]
struct Moments {
    sums: Vec<f64>,
    width: usize,
}

impl Moments {
    fn new(width: usize) -> Self {
        Self { sums: vec![0.0; width * width], width }
    }

    /// Adds a row so many times.
    fn add(&mut self, row: &[f64], times: f64) {
        for (line, value) in self.sums.chunks_exact_mut(self.width).zip(row) {
            line.iter_mut().zip(row).for_each(|(sum, other)| *sum += times * value * other);
        }
    }

    fn without(&self, other: &Self) -> Self {
        let sums = self.sums.iter().zip(&other.sums).map(|(all, part)| all - part).collect();
        Self { sums, width: self.width }
    }

    fn rows(&self) -> f64 {
        self.sums[0]
    }

    fn mean(&self, at: usize) -> f64 {
        self.sums[at] / self.rows()
    }

    /// The slopes of the outcome on the mediators; none if these do not vary.
    fn slopes(&self) -> Option<Vec<f64>> {
        let mediators = self.width - 2;
        if self.rows() < self.width as f64 - 0.5 {
            return None;
        }
        let product = |i: usize, j: usize| {
            self.sums[i * self.width + j] - self.sums[i] * self.sums[j] / self.rows()
        };
        // A column that is constant in what is left has a rest of rounding only.
        let least = |i: usize| DEPENDENT * self.sums[i * self.width + i];
        let varies = |at: usize, pivot: f64| pivot > least(at + 1) && pivot.is_finite();
        let factor = Cholesky::new(mediators, |i, j| product(i + 1, j + 1), varies).ok()?;
        let right: Vec<f64> = (0..mediators).map(|at| product(at + 1, self.width - 1)).collect();
        Some(factor.solve(&right))
    }
}

/// The estimate by the moments of the control and the treatment, in which mediators are distances
/// from the means of their arm, which are `steps` apart.
fn estimate(steps: &[f64], [control, treatment]: [&Moments; 2]) -> Option<f64> {
    let (of_control, of_treatment) = (control.slopes()?, treatment.slopes()?);
    let share = treatment.rows() / (treatment.rows() + control.rows());
    let slopes = of_control.iter().zip(&of_treatment).enumerate();
    let value = slopes
        .map(|(at, (zero, one))| {
            let step = steps[at] + treatment.mean(at + 1) - control.mean(at + 1);
            step * (share * one + (1.0 - share) * zero)
        })
        .sum::<f64>();
    value.is_finite().then_some(value)
}

/// The standard error of the front door's estimate, in units of the outcome: the root of
/// (g - 1) / g times the sum of squared changes when each of g rows or clusters is left out.
///
/// # Errors
/// [`Refusal::Other`] if there is no estimate without one of them.
pub(super) fn jackknife(
    treated: &[bool],
    mediators: &[&[f64]],
    outcome: &[f64],
    clusters: Option<&[u32]>,
) -> Result<f64, Refusal> {
    let (mut columns, mut steps) = (Vec::new(), Vec::new());
    for (at, mediator) in mediators.iter().enumerate() {
        let within = within_arms(treated, mediator, ColumnRef::Covariate(at))?;
        steps.push((within.means[1] - within.means[0]) / within.scale);
        columns.push(within.distances);
    }
    let WithinArms { distances, scale, .. } = within_arms(treated, outcome, ColumnRef::Outcome)?;
    columns.push(distances);
    let width = columns.len() + 1;
    let fill = |row: usize, place: &mut Vec<f64>| {
        place.clear();
        place.push(1.0);
        place.extend(columns.iter().map(|column| column[row]));
    };
    let mut place = Vec::with_capacity(width);
    let mut all = [Moments::new(width), Moments::new(width)];
    for (row, arm) in treated.iter().enumerate() {
        fill(row, &mut place);
        all[usize::from(*arm)].add(&place, 1.0);
    }
    let alone = || {
        let what = if clusters.is_some() { "cluster" } else { "row" };
        Refusal::Other(format!(
            "without one {what} an arm has too few rows or a mediator that does not vary: there is \
             no standard error"
        ))
    };
    let [control, treatment] = &all;
    let whole = estimate(&steps, [control, treatment]).ok_or_else(alone)?;
    let (mut squares, count) = (0.0, clusters.map_or(treated.len(), cluster_count));
    match clusters {
        None => {
            for (row, arm) in treated.iter().enumerate() {
                fill(row, &mut place);
                let mut left = all[usize::from(*arm)].clone();
                left.add(&place, -1.0);
                let rest = if *arm { [control, &left] } else { [&left, treatment] };
                squares += (estimate(&steps, rest).ok_or_else(alone)? - whole).powi(2);
            }
        }
        Some(codes) => {
            let mut parts = vec![[Moments::new(width), Moments::new(width)]; count];
            for (row, (arm, code)) in treated.iter().zip(codes).enumerate() {
                fill(row, &mut place);
                parts[*code as usize][usize::from(*arm)].add(&place, 1.0);
            }
            for [of_control, of_treatment] in &parts {
                let rest = [&control.without(of_control), &treatment.without(of_treatment)];
                squares += (estimate(&steps, rest).ok_or_else(alone)? - whole).powi(2);
            }
        }
    }
    Ok((squares * (count as f64 - 1.0) / count as f64).sqrt() * scale)
}

/// How many clusters there are; every code occurs.
pub(super) fn cluster_count(codes: &[u32]) -> usize {
    codes.iter().max().map_or(0, |last| *last as usize + 1)
}

/// A column by its distances from the means of the arms, in units of their root mean square.
struct WithinArms {
    distances: Vec<f64>,
    /// Of the control and the treatment.
    means: [f64; 2],
    scale: f64,
}

fn within_arms(
    treated: &[bool],
    column: &[f64],
    reference: ColumnRef,
) -> Result<WithinArms, Refusal> {
    let means = [false, true].map(|arm| {
        let rows = treated.iter().zip(column).filter(|(treated, _)| **treated == arm);
        compensated::mean(&rows.map(|(_, value)| *value).collect::<Vec<f64>>())
    });
    let rows = treated.iter().zip(column);
    let mut distances: Vec<f64> =
        rows.map(|(arm, value)| value - means[usize::from(*arm)]).collect();
    let most = distances.iter().fold(0.0_f64, |most, distance| most.max(distance.abs()));
    let squares: f64 = distances.iter().map(|distance| (distance / most).powi(2)).sum();
    let scale = most * (squares / column.len() as f64).sqrt();
    if !(scale > 0.0 && scale.is_finite()) {
        return Err(Refusal::Constant(reference));
    }
    distances.iter_mut().for_each(|distance| *distance /= scale);
    Ok(WithinArms { distances, means, scale })
}
