//! The effect of a treatment through observed mediators, by the front-door formula.

#[cfg(test)]
mod tests;

use crate::cholesky::Cholesky;
use crate::column::{ROWS, check_column, code_count, of_arm};
use crate::linear::ClusterRows;
use crate::refusal::{at_least, require};
use crate::{ColumnRef, Estimate, LinearFit, Refusal, compensated};

/// The least number of rows in an arm, and of clusters.
const FEWEST: usize = 10;
/// With fewer rows, intervals by a binary mediator cover too little (docs/coverage.md).
const FEWEST_ROWS: usize = 30;

/// The effect of `treated` on `outcome` if all of it runs through `mediators` and the confounders
/// of treatment and outcome affect none of them: Pearl's front-door formula, Σ_m [P(m | 1) - P(m |
/// 0)] Σ_t E[Y | m, t] P(t) (Pearl 2009, theorem 3.3.4), with E[Y | m, t] a linear function of the
/// mediators in each arm. For one binary mediator the estimate is the formula itself, with counted
/// shares. The standard error is the jackknife's; Student's t has n minus the coefficients, or
/// clusters minus one. Refuses fewer than 10 rows of an arm, 30 rows without clusters, or 10
/// clusters; a row ([`Refusal::Leverage`]) or cluster without which there is no estimate; an
/// estimate without variance.
pub fn front_door(
    treated: &[bool],
    mediators: &[&[f64]],
    outcome: &[f64],
    clusters: Option<&[u32]>,
) -> Result<Estimate, Refusal> {
    let rows = outcome.len();
    let same = treated.len() == rows && clusters.is_none_or(|codes| codes.len() == rows);
    require(same, "the columns differ in length")?;
    require(!mediators.is_empty(), "the front door needs a mediator")?;
    check_column(outcome, ColumnRef::Outcome, rows)?;
    for (at, mediator) in mediators.iter().enumerate() {
        check_column(mediator, ColumnRef::Covariate(at), rows)?;
    }
    let [control, treatment] = [false, true].map(|arm| Arm::new(arm, treated, mediators, outcome));
    let (control, treatment) = (control?, treatment?);
    let n = rows as f64;
    let share = treatment.rows as f64 / n;
    let width = mediators.len();
    let through = |at: usize| {
        (treatment.means[at] - control.means[at])
            * (share * treatment.slopes[at] + (1.0 - share) * control.slopes[at])
    };
    let value = (0..width).map(through).sum();
    let degrees = match clusters {
        None => {
            at_least("rows", rows, FEWEST_ROWS)?;
            n - 2.0 * (width as f64 + 1.0)
        }
        Some(codes) => {
            at_least("clusters", code_count(codes), FEWEST)?;
            code_count(codes) as f64 - 1.0
        }
    };
    let standard_error = jackknife(treated, mediators, outcome, clusters)?;
    require(standard_error > 0.0 && standard_error.is_finite(), "the estimate has no variance")?;
    Ok(Estimate { value, standard_error, degrees })
}

/// One arm: the means of the mediators, and the regression of the outcome on them.
struct Arm {
    rows: usize,
    means: Vec<f64>,
    slopes: Vec<f64>,
}

impl Arm {
    fn new(
        arm: bool,
        treated: &[bool],
        mediators: &[&[f64]],
        outcome: &[f64],
    ) -> Result<Self, Refusal> {
        let rows: Vec<usize> = (0..treated.len()).filter(|row| treated[*row] == arm).collect();
        at_least(ROWS[usize::from(!arm)], rows.len(), FEWEST)?;
        let gather = |column: &[f64]| -> Vec<f64> { rows.iter().map(|row| column[*row]).collect() };
        let columns: Vec<Vec<f64>> = mediators.iter().map(|column| gather(column)).collect();
        let slices: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        let means = columns.iter().map(|column| compensated::mean(column)).collect();
        let fit = LinearFit::fit(&slices, &gather(outcome))?;
        if let Some(row) = fit.leverages.iter().position(|leverage| *leverage > 1.0 - 1e-9) {
            return Err(Refusal::Leverage { row: rows[row], leverage: fit.leverages[row] });
        }
        Ok(Self { means, slopes: fit.coefficients[1..].to_vec(), rows: rows.len() })
    }
}

/// The share of a mediator's variance in an arm that the others must leave unexplained.
const DEPENDENT: f64 = 1e-10;

/// Sums of products over rows of one arm: of 1, the mediators and the outcome, row-major.
struct Moments {
    sums: Vec<f64>,
    width: usize,
}

impl Moments {
    fn new(width: usize) -> Self {
        Self { sums: vec![0.0; width * width], width }
    }

    fn add(&mut self, row: &[f64]) {
        for (line, value) in self.sums.chunks_exact_mut(self.width).zip(row) {
            line.iter_mut().zip(row).for_each(|(sum, other)| *sum += value * other);
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

    /// The slopes of the outcome on the mediators; `None` if these do not vary.
    fn slopes(&self) -> Option<Vec<f64>> {
        let mediators = self.width - 2;
        if self.rows() < self.width as f64 - 0.5 {
            return None;
        }
        let product = |i: usize, j: usize| {
            self.sums[i * self.width + j] - self.sums[i] * self.sums[j] / self.rows()
        };
        // The rest of a column that is constant among these rows is rounding.
        let least = |i: usize| DEPENDENT * self.sums[i * self.width + i];
        let varies = |at: usize, pivot: f64| pivot > least(at + 1) && pivot.is_finite();
        let factor = Cholesky::new(mediators, |i, j| product(i + 1, j + 1), varies).ok()?;
        let right: Vec<f64> = (0..mediators).map(|at| product(at + 1, self.width - 1)).collect();
        Some(factor.solve(&right))
    }
}

/// The estimate from the moments of control and treatment, in which mediators are distances from
/// the means of their arm. `steps` are the distances between those means.
fn estimate(steps: &[f64], control: &Moments, treatment: &Moments) -> Option<f64> {
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

/// The jackknife's standard error, in units of the outcome: the root of (g - 1) / g times the sum
/// of squared changes when each of g rows or clusters is left out. Equals the influence function's
/// in a large sample, and stays right in a small one, where a product of two slopes is far from
/// normal (MacKinnon, Nielsen and Webb 2023).
fn jackknife(
    treated: &[bool],
    mediators: &[&[f64]],
    outcome: &[f64],
    clusters: Option<&[u32]>,
) -> Result<f64, Refusal> {
    let (mut columns, mut steps) = (Vec::new(), Vec::new());
    for (at, mediator) in mediators.iter().enumerate() {
        let within = arm_centred(treated, mediator, ColumnRef::Covariate(at))?;
        steps.push((within.means[1] - within.means[0]) / within.scale);
        columns.push(within.distances);
    }
    let ArmCentredColumn { distances, scale, .. } =
        arm_centred(treated, outcome, ColumnRef::Outcome)?;
    columns.push(distances);
    let width = columns.len() + 1;
    let mut place = Vec::with_capacity(width);
    let mut moments = |rows: &mut dyn Iterator<Item = usize>| {
        let mut arms = [Moments::new(width), Moments::new(width)];
        for row in rows {
            place.clear();
            place.push(1.0);
            place.extend(columns.iter().map(|column| column[row]));
            arms[usize::from(treated[row])].add(&place);
        }
        arms
    };
    let [control, treatment] = moments(&mut (0..treated.len()));
    let alone = || {
        let what = if clusters.is_some() { "cluster" } else { "row" };
        Refusal::Other(format!(
            "without one {what} an arm has too few rows or a mediator that does not vary: there is \
             no standard error"
        ))
    };
    let whole = estimate(&steps, &control, &treatment).ok_or_else(alone)?;
    let all = || ClusterRows::singletons(treated.len());
    let groups = clusters.map_or_else(all, ClusterRows::new);
    let (mut squares, count) = (0.0, groups.count());
    for rows in groups.members() {
        let [of_control, of_treatment] = moments(&mut rows.iter().copied());
        let (control, treatment) = (control.without(&of_control), treatment.without(&of_treatment));
        squares += (estimate(&steps, &control, &treatment).ok_or_else(alone)? - whole).powi(2);
    }
    Ok((squares * (count as f64 - 1.0) / count as f64).sqrt() * scale)
}

/// A column as distances from the means of the arms, in units of their root mean square.
struct ArmCentredColumn {
    distances: Vec<f64>,
    means: [f64; 2],
    scale: f64,
}

fn arm_centred(
    treated: &[bool],
    column: &[f64],
    reference: ColumnRef,
) -> Result<ArmCentredColumn, Refusal> {
    let means = [false, true].map(|arm| compensated::mean(&of_arm(arm, treated, column)));
    let rows = treated.iter().zip(column);
    let mut distances: Vec<f64> =
        rows.map(|(arm, value)| value - means[usize::from(*arm)]).collect();
    let most = compensated::largest(&distances);
    let squares: f64 = distances.iter().map(|distance| (distance / most).powi(2)).sum();
    let scale = most * (squares / column.len() as f64).sqrt();
    if !(scale > 0.0 && scale.is_finite()) {
        return Err(Refusal::Constant(reference));
    }
    distances.iter_mut().for_each(|distance| *distance /= scale);
    Ok(ArmCentredColumn { distances, means, scale })
}
