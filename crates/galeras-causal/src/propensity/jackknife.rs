//! Jackknife standard errors of weighting and augmented weighting, which are valid with few rows
//! and few clusters. (With 20 rows the normal interval of the plain sandwich covers 84 %.)
//!
//! Each row (or cluster) is left out of the regressions of score and outcome and of the means, by
//! one Newton step of every estimating equation, which is exact for means and linear regressions
//! (Mancl and DeRouen 2001; MacKinnon, Nielsen and Webb 2023). Scores and weights do not depend on
//! the outcome, so both estimators and all changes are linear in it:
//!
//! Leaving out a group g changes an estimate c'y by a_g'y. The sum of these squares is too large if
//! a regression has few rows: for independent errors of variance s2 its mean is s2 sum(a_g'a_g),
//! while the estimate has the variance s2 c'c. So it is scaled by the ratio of both and compared
//! with Student's t. With clusters the degrees of freedom are Satterthwaite's for the same errors,
//! tr(AA')^2 / tr(AA'AA') with the a_g as the rows of A (Bell and McCaffrey 2002; Hansen 2022).
//! These assume that the estimate is independent of its variance. Without clusters it is not, and
//! such intervals cover 97 % with 20 rows. There the degrees are those of the squared coefficients,
//! minus the share of the estimated parameters, if that is more: 95 %.
//!
//! A is never formed: a_g has separate entries in the rows of its group, and elsewhere is in the
//! span of q vectors, as many as there are coefficients.

use super::design::{StandardisedDesign, dot};
use super::doubly_robust::{ArmModels, TreatedWeights, arm_model, residuals};
use super::logistic::Propensity;
use super::rows::{DEPENDENT, Equations, Rows, bounds, clipped, estimate};
use super::weighting::Estimand;
use crate::linear::ClusterRows;
use crate::{Estimate, Refusal};

/// With more groups than this for each coefficient the scale is 1 to three digits.
const MANY: usize = 1000;

/// An estimate as a linear function of the outcome, and its change when rows are left out.
trait LeaveOut {
    /// The number of estimated coefficients and means.
    fn parameters(&self) -> usize;

    /// The number of vectors that the changes share.
    fn shared(&self) -> usize;

    /// The entries of the shared vectors in a row.
    fn shared_entries(&self, row: usize, entries: &mut [f64]);

    /// The coefficient of a row's outcome in the estimate.
    fn coefficient(&self, row: usize) -> f64;

    /// The change without these rows, and its parts; `None` if there is no estimate.
    fn change(&self, members: &[usize], parts: &mut ChangeParts) -> Option<f64>;
}

struct ChangeParts {
    /// The coefficients of the rows that are left out.
    own: Vec<f64>,
    shared: Vec<f64>,
}

/// The estimate `value` with its standard error by leaving out each row, or each cluster.
fn jackknife(rows: &Rows<'_>, value: f64, estimator: &impl LeaveOut) -> Result<Estimate, Refusal> {
    let all = || ClusterRows::singletons(rows.treated.len());
    let groups = rows.clusters.map_or_else(all, ClusterRows::new);
    let clustered = rows.clusters.is_some();
    let count = groups.count();
    let exact = count <= MANY * estimator.parameters();
    let mut model = exact.then(|| WorkingModel::new(estimator, rows.treated.len()));
    let width = estimator.shared();
    let mut parts = ChangeParts { own: Vec::new(), shared: vec![0.0; width] };
    let (mut squares, mut trace, mut trace_of_squares) = (0.0, 0.0, 0.0);
    for members in groups.members() {
        let change = estimator.change(members, &mut parts).filter(|change| change.is_finite());
        let Some(change) = change else { return Err(depends_on_one(clustered)) };
        squares += change * change;
        let variance: f64 = members.iter().map(|row| estimator.coefficient(*row).powi(2)).sum();
        trace += variance;
        trace_of_squares += variance * variance;
        if let Some(model) = &mut model {
            model.add(estimator, members, &parts);
        }
    }
    let lost = estimator.parameters() as f64 / rows.treated.len() as f64;
    let of_coefficients = trace * trace / trace_of_squares * (1.0 - lost);
    let (scale, degrees) = match model {
        Some(model) if clustered => (trace / model.trace, model.degrees()),
        Some(model) => (trace / model.trace, of_coefficients.max(model.degrees())),
        None => ((count - 1) as f64 / count as f64, of_coefficients),
    };
    if !(degrees.is_finite() && degrees > 0.0 && scale.is_finite()) {
        return Err(depends_on_one(clustered));
    }
    Ok(Estimate { degrees, ..estimate(value, squares * scale, rows.outcome)? })
}

/// The moments of the changes for independent errors of variance one.
struct WorkingModel {
    width: usize,
    /// M'M of the shared vectors.
    gram: Vec<f64>,
    /// The mean of the sum of squares, tr(AA').
    trace: f64,
    /// The contribution of the groups' own entries to tr(AA'AA').
    squares: f64,
    /// With AA' = diag(b) + PV' + VP': the sums V'V, P'P and P'V.
    products: [Vec<f64>; 3],
    /// The sum of a group's own entries times those of the shared vectors.
    across: Vec<f64>,
    entries: Vec<f64>,
}

impl WorkingModel {
    fn new(estimator: &impl LeaveOut, rows: usize) -> Self {
        let width = estimator.shared();
        let (mut gram, mut entries) = (vec![0.0; width * width], vec![0.0; width]);
        for row in 0..rows {
            estimator.shared_entries(row, &mut entries);
            add_product(&mut gram, &entries, &entries);
        }
        let empty = || vec![0.0; width * width];
        Self {
            width,
            gram,
            trace: 0.0,
            squares: 0.0,
            products: [empty(), empty(), empty()],
            across: vec![0.0; width],
            entries,
        }
    }

    fn add(&mut self, estimator: &impl LeaveOut, members: &[usize], parts: &ChangeParts) {
        self.across.fill(0.0);
        for (row, own) in members.iter().zip(&parts.own) {
            estimator.shared_entries(*row, &mut self.entries);
            self.across.iter_mut().zip(&self.entries).for_each(|(sum, entry)| *sum += own * entry);
        }
        let own: f64 = parts.own.iter().map(|own| own * own).sum();
        // p = M'b + M'M v / 2, so that a_g'a_h = b_g [g = h] + p_g'v_h + v_g'p_h.
        let half = self.gram.chunks_exact(self.width.max(1));
        for (sum, line) in self.across.iter_mut().zip(half) {
            *sum += 0.5 * dot(line, &parts.shared);
        }
        let (p, v) = (&self.across, &parts.shared);
        let shared = 2.0 * dot(p, v);
        self.trace += own + shared;
        self.squares += own * (own + 2.0 * shared);
        let [vv, pp, pv] = &mut self.products;
        add_product(vv, v, v);
        add_product(pp, p, p);
        add_product(pv, p, v);
    }

    fn degrees(&self) -> f64 {
        let [vv, pp, pv] = &self.products;
        // tr((PV' + VP')^2) = 2 tr(V'V P'P) + 2 tr(P'V P'V).
        let transposed = |at: usize| pv[at % self.width * self.width + at / self.width];
        let crossed: f64 = pv.iter().enumerate().map(|(at, cell)| cell * transposed(at)).sum();
        let squares = self.squares + 2.0 * (dot(vv, pp) + crossed);
        self.trace * self.trace / squares
    }
}

fn add_product(matrix: &mut [f64], left: &[f64], right: &[f64]) {
    let lines = matrix.chunks_exact_mut(right.len().max(1));
    for (line, left) in lines.zip(left).filter(|(_, left)| **left != 0.0) {
        line.iter_mut().zip(right).for_each(|(cell, right)| *cell += left * right);
    }
}

/// The refusal of an estimate that depends on one group.
fn depends_on_one(clustered: bool) -> Refusal {
    let what = if clustered { "cluster" } else { "row" };
    Refusal::Other(format!(
        "the estimate rests on one {what}: without it the scores, the regressions or the mean of \
         an arm cannot be estimated, so its error is unknown"
    ))
}

/// The effect of [`weighting`](super::weighting) with the standard error of the jackknife and
/// Student's t. The variance is the sum of squared changes, scaled to have the right mean for
/// independent errors of equal variance; with over a thousand rows or clusters for each coefficient
/// the scale is (G - 1) / G for G of them. Errors are those of [`weighting`](super::weighting), and
/// scores or means that cannot be estimated without one of the rows or clusters.
pub fn jackknifed_weighting(
    covariates: &[&[f64]],
    treated: &[bool],
    outcome: &[f64],
    propensity: &Propensity,
    estimand: Estimand,
    clip: (f64, f64),
    clusters: Option<&[u32]>,
) -> Result<Estimate, Refusal> {
    let rows = Rows::new(treated, outcome, clusters)?;
    bounds(clip)?;
    let n = treated.len();
    let design = StandardisedDesign::new(covariates, n)?;
    let score = Equations::of_score(&design, treated, propensity)?;
    let centre = outcome.iter().sum::<f64>() / n as f64;
    let mut totals = [0.0; 2];
    let mut means = [0.0; 2];
    let (mut weight, mut derivative) = (Vec::with_capacity(n), Vec::with_capacity(n));
    for ((e, t), y) in propensity.scores.iter().zip(treated).zip(outcome) {
        let (e, slope) = clipped(*e, clip);
        let of_row = estimand.weight(e, *t);
        weight.push(of_row);
        derivative.push(if slope > 0.0 { estimand.slope(e, *t) * slope } else { 0.0 });
        totals[usize::from(*t)] += of_row;
        means[usize::from(*t)] += of_row * (y - centre);
    }
    let means = [0, 1].map(|arm| means[arm] / totals[arm]);
    let residual: Vec<f64> =
        (0..n).map(|row| outcome[row] - centre - means[usize::from(treated[row])]).collect();
    let of_arm = |arm: bool, values: &dyn Fn(usize) -> f64| {
        let own =
            |row: usize| if treated[row] == arm { derivative[row] * values(row) } else { 0.0 };
        design.cross(&(0..n).map(own).collect::<Vec<f64>>())
    };
    let slopes = [false, true].map(|arm| of_arm(arm, &|row| residual[row]));
    let sums = [false, true].map(|arm| of_arm(arm, &|_| 1.0));
    let value = means[1] - means[0];
    let estimator = WeightedMeans {
        treated,
        design: &design,
        score,
        weight,
        derivative,
        totals,
        residual,
        slopes,
        sums,
    };
    jackknife(&rows, value, &estimator)
}

/// Weighted means of two arms. The shared vectors are, for each arm: its derivatives by the score's
/// coefficients, and its weights over their total.
struct WeightedMeans<'a> {
    treated: &'a [bool],
    design: &'a StandardisedDesign<'a>,
    score: Equations<'a>,
    weight: Vec<f64>,
    /// The derivative of each row's weight by its linear predictor.
    derivative: Vec<f64>,
    totals: [f64; 2],
    /// The outcome minus the mean of the arm.
    residual: Vec<f64>,
    /// The derivative of each arm's weighted sum of residuals by the score's coefficients.
    slopes: [Vec<f64>; 2],
    /// The same for its sum of weights.
    sums: [Vec<f64>; 2],
}

const SIGNS: [f64; 2] = [-1.0, 1.0];

impl LeaveOut for WeightedMeans<'_> {
    fn parameters(&self) -> usize {
        self.design.width() + 1
    }

    fn shared(&self) -> usize {
        2 * (self.design.width() + 1)
    }

    fn shared_entries(&self, row: usize, entries: &mut [f64]) {
        let (width, arm) = (self.design.width(), usize::from(self.treated[row]));
        entries.fill(0.0);
        let of_arm = &mut entries[arm * (width + 1)..][..width + 1];
        self.design.row(row, of_arm);
        of_arm.iter_mut().for_each(|x| *x *= self.derivative[row]);
        of_arm[width] = self.weight[row] / self.totals[arm];
    }

    fn coefficient(&self, row: usize) -> f64 {
        self.weight[row] / self.totals[usize::from(self.treated[row])]
    }

    fn change(&self, members: &[usize], parts: &mut ChangeParts) -> Option<f64> {
        let width = self.design.width();
        let mut x = vec![0.0; width];
        let moved = self.score.without(members, &mut x)?;
        let mut left = self.totals;
        members.iter().for_each(|row| left[usize::from(self.treated[*row])] -= self.weight[*row]);
        if (0..2).any(|arm| left[arm] <= DEPENDENT * self.totals[arm]) {
            return None;
        }
        let scale = [0, 1].map(|arm| SIGNS[arm] / left[arm]);
        let mut change = 0.0;
        for (arm, scale) in scale.iter().enumerate() {
            change += scale * dot(&self.slopes[arm], &moved);
            let of_arm = &mut parts.shared[arm * (width + 1)..][..width + 1];
            for (part, moved) in of_arm.iter_mut().zip(&moved) {
                *part = scale * moved;
            }
            of_arm[width] = -scale * dot(&self.sums[arm], &moved);
        }
        parts.own.clear();
        for row in members {
            let arm = usize::from(self.treated[*row]);
            self.design.row(*row, &mut x);
            let own = -scale[arm] * (self.weight[*row] + self.derivative[*row] * dot(&x, &moved));
            change += own * self.residual[*row];
            parts.shared[arm * (width + 1) + width] -= own;
            parts.own.push(own);
        }
        Some(change)
    }
}

/// The effect of [`aipw`](super::aipw) with the standard error of the jackknife and Student's t, as
/// for [`jackknifed_weighting`]. Errors are those of [`aipw`](super::aipw), and regressions that
/// cannot be estimated without one of the rows or clusters.
pub fn jackknifed_aipw(
    covariates: &[&[f64]],
    treated: &[bool],
    outcome: &[f64],
    propensity: &Propensity,
    clip: (f64, f64),
    clusters: Option<&[u32]>,
) -> Result<Estimate, Refusal> {
    let rows = Rows::new(treated, outcome, clusters)?;
    bounds(clip)?;
    let n = treated.len();
    let design = StandardisedDesign::new(covariates, n)?;
    let score = Equations::of_score(&design, treated, propensity)?;
    let [control, one] = ArmModels::fit(&design, treated, outcome)?.predict(&design);
    let residual = residuals(treated, outcome, [&control, &one]);
    let own = |arm: bool, values: &[f64]| -> Vec<f64> {
        let rows = treated.iter().zip(values);
        rows.map(|(treated, value)| if *treated == arm { *value } else { 0.0 }).collect()
    };
    let ones = vec![1.0; n];
    let of_arm = |arm: bool| {
        let weights = own(arm, &ones);
        Equations::new(&design, design.gram(&weights), weights, own(arm, &residual))
    };
    let models = [of_arm(false)?, of_arm(true)?];
    let (mut signed, mut derivative) = (Vec::with_capacity(n), Vec::with_capacity(n));
    for (e, treated) in propensity.scores.iter().zip(treated) {
        let (e, slope) = clipped(*e, clip);
        let inverse = if *treated { e.recip() } else { (1.0 - e).recip() };
        signed.push(if *treated { inverse } else { -inverse });
        derivative.push(-inverse * inverse * slope);
    }
    let predicted: Vec<f64> = control.iter().zip(&one).map(|(zero, one)| one - zero).collect();
    let size = n as f64;
    let sum: f64 = (0..n).map(|row| predicted[row] + signed[row] * residual[row]).sum();
    let value = sum / size;
    let of_scores: Vec<f64> = (0..n).map(|row| derivative[row] * residual[row]).collect();
    let weighed = [false, true].map(|arm| design.cross(&own(arm, &signed)));
    let curvature =
        [false, true].map(|arm| symmetric(design.gram(&own(arm, &derivative)), design.width()));
    let slope = design.cross(&of_scores);
    let all = design.cross(&ones);
    // The derivative of the sum of effects by the coefficients of each arm's model.
    let totals = [0, 1].map(|arm| {
        let pairs = all.iter().zip(&weighed[arm]);
        pairs.map(|(all, weighed)| SIGNS[arm] * all - weighed).collect::<Vec<f64>>()
    });
    let along = [0, 1].map(|arm| design.predict(&models[arm].solve(&totals[arm])));
    let coefficients =
        (0..n).map(|row| (signed[row] + along[usize::from(treated[row])][row]) / size).collect();
    let estimator = AugmentedEffect {
        treated,
        design: &design,
        score,
        models,
        signed,
        derivative,
        residual,
        predicted,
        value,
        coefficients,
        totals,
        all,
        weighed,
        curvature,
        slope,
    };
    jackknife(&rows, value, &estimator)
}

/// The full matrix of a lower triangle.
fn symmetric(mut matrix: Vec<f64>, width: usize) -> Vec<f64> {
    for row in 0..width {
        for column in 0..row {
            matrix[column * width + row] = matrix[row * width + column];
        }
    }
    matrix
}

/// Augmented weighting. The shared vectors are: the derivatives of residuals' weights by the
/// score's coefficients, the weights of residuals, the coefficients of both arms' models.
struct AugmentedEffect<'a> {
    treated: &'a [bool],
    design: &'a StandardisedDesign<'a>,
    score: Equations<'a>,
    models: [Equations<'a>; 2],
    /// The inverse probability of each row's arm, negative for controls.
    signed: Vec<f64>,
    /// Its derivative by the linear predictor.
    derivative: Vec<f64>,
    residual: Vec<f64>,
    /// The effect that the models predict.
    predicted: Vec<f64>,
    value: f64,
    /// The coefficient of each row's outcome in the estimate.
    coefficients: Vec<f64>,
    /// The derivative of the sum of effects by the coefficients of each arm's model.
    totals: [Vec<f64>; 2],
    /// The sum of all rows of the design.
    all: Vec<f64>,
    /// The sum of each arm's rows, by `signed`.
    weighed: [Vec<f64>; 2],
    /// The sum of each arm's x x', by `derivative`.
    curvature: [Vec<f64>; 2],
    /// The derivative of the sum of effects by the score's coefficients.
    slope: Vec<f64>,
}

impl LeaveOut for AugmentedEffect<'_> {
    fn parameters(&self) -> usize {
        2 * self.design.width()
    }

    fn shared(&self) -> usize {
        3 * self.design.width() + 1
    }

    fn shared_entries(&self, row: usize, entries: &mut [f64]) {
        let (width, arm) = (self.design.width(), usize::from(self.treated[row]));
        entries.fill(0.0);
        self.design.row(row, &mut entries[..width]);
        let of_model = self.models[arm].solve(&entries[..width]);
        entries[..width].iter_mut().for_each(|x| *x *= self.derivative[row]);
        entries[width] = self.signed[row] / self.treated.len() as f64;
        entries[(arm + 1) * width + 1..][..width].copy_from_slice(&of_model);
    }

    fn coefficient(&self, row: usize) -> f64 {
        self.coefficients[row]
    }

    fn change(&self, members: &[usize], parts: &mut ChangeParts) -> Option<f64> {
        let (width, n) = (self.design.width(), self.treated.len());
        let rest = n.checked_sub(members.len()).filter(|rest| *rest > 0)? as f64;
        let (share, size) = (members.len() as f64 / n as f64, members.len() as f64);
        let mut x = vec![0.0; width];
        let moved = self.score.without(members, &mut x)?;
        // The derivative of the other rows' effects by the coefficients of each arm's model.
        let (mut left, mut sum) = (self.totals.clone(), vec![0.0; width]);
        for row in members {
            self.design.row(*row, &mut x);
            let own = usize::from(self.treated[*row]);
            for (arm, left) in left.iter_mut().enumerate() {
                let signed = if arm == own { self.signed[*row] } else { 0.0 };
                let slope = SIGNS[arm] - signed;
                left.iter_mut().zip(&x).for_each(|(left, x)| *left -= slope * x);
            }
            sum.iter_mut().zip(&x).for_each(|(sum, x)| *sum += x);
        }
        let steps = [
            self.models[0].solve_without(members, &left[0], &mut x)?,
            self.models[1].solve_without(members, &left[1], &mut x)?,
        ];
        parts.shared[..width].copy_from_slice(&moved);
        parts.shared[width] = size;
        for (arm, sign) in SIGNS.iter().enumerate() {
            let of_model = &mut parts.shared[(arm + 1) * width + 1..][..width];
            for (at, part) in of_model.iter_mut().enumerate() {
                let bent = dot(&self.curvature[arm][at * width..][..width], &moved);
                let apart = sign * (share * self.all[at] - sum[at]);
                *part = apart - share * self.weighed[arm][at] - bent;
            }
        }
        let mut change = dot(&self.slope, &moved);
        parts.own.clear();
        for row in members {
            let arm = usize::from(self.treated[*row]);
            self.design.row(*row, &mut x);
            let own =
                -dot(&x, &steps[arm]) - self.derivative[*row] * dot(&x, &moved) - self.signed[*row];
            change += own * self.residual[*row] + self.value - self.predicted[*row];
            let of_model = &mut parts.shared[(arm + 1) * width + 1..][..width];
            of_model.iter_mut().zip(&x).for_each(|(part, x)| *part -= own * x);
            parts.own.push(own / rest);
        }
        parts.shared.iter_mut().for_each(|part| *part /= rest);
        Some(change / rest)
    }
}

/// The effect of [`aipw_treated`](super::aipw_treated) with the standard error of the jackknife and
/// Student's t, as for [`jackknifed_aipw`]. Errors are those of these.
pub fn jackknifed_aipw_treated(
    covariates: &[&[f64]],
    treated: &[bool],
    outcome: &[f64],
    propensity: &Propensity,
    clip: (f64, f64),
    clusters: Option<&[u32]>,
) -> Result<Estimate, Refusal> {
    let rows = Rows::new(treated, outcome, clusters)?;
    bounds(clip)?;
    let design = StandardisedDesign::new(covariates, treated.len())?;
    let score = Equations::of_score(&design, treated, propensity)?;
    let (coefficients, _) = arm_model(&design, treated, outcome, false)?;
    let expected = design.predict(&coefficients);
    let residual: Vec<f64> = outcome.iter().zip(&expected).map(|(y, m)| y - m).collect();
    let controls: Vec<f64> = treated.iter().map(|t| if *t { 0.0 } else { 1.0 }).collect();
    let own = controls.iter().zip(&residual).map(|(control, u)| control * u).collect();
    let model = Equations::new(&design, design.gram(&controls), controls, own)?;
    let weights = TreatedWeights::new(treated, propensity, clip);
    let n_treated = treated.iter().filter(|treated| **treated).count() as f64;
    let sum: f64 = weights.signed.iter().zip(&residual).map(|(weight, u)| weight * u).sum();
    let value = sum / n_treated;
    let of_scores: Vec<f64> =
        weights.derivative.iter().zip(&residual).map(|(slope, u)| slope * u).collect();
    let totals = design.cross(&weights.signed);
    let along = design.predict(&model.solve(&totals));
    let coefficients = (0..treated.len()).map(|row| {
        let of_model = if treated[row] { 0.0 } else { along[row] };
        (weights.signed[row] - of_model) / n_treated
    });
    let estimator = AugmentedTreated {
        treated,
        design: &design,
        score,
        model,
        residual,
        value,
        n_treated,
        coefficients: coefficients.collect(),
        totals,
        curvature: symmetric(design.gram(&weights.derivative), design.width()),
        slope: design.cross(&of_scores),
        weights,
    };
    jackknife(&rows, value, &estimator)
}

/// Augmented weighting for the treated. The shared vectors are: the derivatives of residuals' weights
/// by the score's coefficients, the weights of residuals, the coefficients of the controls' model.
struct AugmentedTreated<'a> {
    treated: &'a [bool],
    design: &'a StandardisedDesign<'a>,
    score: Equations<'a>,
    model: Equations<'a>,
    weights: TreatedWeights,
    residual: Vec<f64>,
    value: f64,
    n_treated: f64,
    /// The coefficient of each row's outcome in the estimate.
    coefficients: Vec<f64>,
    /// The sum of all rows, by their weights.
    totals: Vec<f64>,
    /// The sum of x x', by the derivatives of weights.
    curvature: Vec<f64>,
    /// The derivative of the weighted sum of residuals by the score's coefficients.
    slope: Vec<f64>,
}

impl LeaveOut for AugmentedTreated<'_> {
    fn parameters(&self) -> usize {
        2 * self.design.width()
    }

    fn shared(&self) -> usize {
        2 * self.design.width() + 1
    }

    fn shared_entries(&self, row: usize, entries: &mut [f64]) {
        let width = self.design.width();
        entries.fill(0.0);
        self.design.row(row, &mut entries[..width]);
        if !self.treated[row] {
            let of_model = self.model.solve(&entries[..width]);
            entries[width + 1..].copy_from_slice(&of_model);
        }
        entries[..width].iter_mut().for_each(|x| *x *= self.weights.derivative[row]);
        entries[width] = self.weights.signed[row] / self.n_treated;
    }

    fn coefficient(&self, row: usize) -> f64 {
        self.coefficients[row]
    }

    fn change(&self, members: &[usize], parts: &mut ChangeParts) -> Option<f64> {
        let width = self.design.width();
        let left_out = members.iter().filter(|row| self.treated[**row]).count() as f64;
        let rest = self.n_treated - left_out;
        if rest <= 0.0 {
            return None;
        }
        let mut x = vec![0.0; width];
        let moved = self.score.without(members, &mut x)?;
        let mut left = self.totals.clone();
        for row in members {
            self.design.row(*row, &mut x);
            let weight = self.weights.signed[*row];
            left.iter_mut().zip(&x).for_each(|(left, x)| *left -= weight * x);
        }
        let step = self.model.solve_without(members, &left, &mut x)?;
        parts.shared[..width].copy_from_slice(&moved);
        parts.shared[width] = left_out;
        let of_model = &mut parts.shared[width + 1..];
        let lines = self.curvature.chunks_exact(width).zip(&self.totals);
        for (part, (line, total)) in of_model.iter_mut().zip(lines) {
            *part = -dot(line, &moved) - left_out / self.n_treated * total;
        }
        let mut change = dot(&self.slope, &moved) + self.value * left_out;
        parts.own.clear();
        for row in members {
            self.design.row(*row, &mut x);
            let of_step = if self.treated[*row] { 0.0 } else { dot(&x, &step) };
            let own = of_step
                - self.weights.signed[*row]
                - self.weights.derivative[*row] * dot(&x, &moved);
            change += own * self.residual[*row];
            let of_model = &mut parts.shared[width + 1..];
            of_model.iter_mut().zip(&x).for_each(|(part, x)| *part -= own * x);
            parts.own.push(own / rest);
        }
        parts.shared.iter_mut().for_each(|part| *part /= rest);
        Some(change / rest)
    }
}
