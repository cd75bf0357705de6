//! The jackknife's standard error, calibrated under errors of equal variance.
//!
//! Leaving out a group g (a row, or the rows of a cluster) changes an estimate c'y, which is linear
//! in the outcome, by a_g'y. The sum of these squares is too large if a regression has few rows:
//! for independent errors of variance s2 its mean is s2 sum(a_g'a_g), while the estimate has the
//! variance s2 c'c. So it is scaled by the ratio of both and compared with Student's t. With
//! clusters the degrees of freedom are Satterthwaite's for the same errors, tr(AA')^2 / tr(AA'AA')
//! with the a_g as the rows of A (Bell and McCaffrey 2002 for clustered least squares; Hansen 2022,
//! "Jackknife standard errors for clustered regression"). These assume that the estimate is
//! independent of its variance. Without clusters it is not (weights leave residuals in the
//! estimate), and such intervals cover 97 % with 20 rows. There the degrees are those of the
//! squared coefficients, minus the share of the estimated parameters, if that is more: 95 %.
//!
//! A is never formed: a_g has separate entries in the rows of its group, and elsewhere is in the
//! span of q vectors, as many as there are coefficients.

use super::design::dot;
use super::rows::{Rows, estimate};
use crate::linear::ClusterRows;
use crate::{Estimate, Refusal};

/// With more groups than this for each coefficient the scale is 1 to three digits.
const MANY: usize = 1000;

/// An estimate as a linear function of the outcome, and its change when rows are left out.
pub(super) trait LeaveOut {
    /// The number of estimated coefficients and means.
    fn parameters(&self) -> usize;

    /// The number of vectors that the changes share.
    fn shared(&self) -> usize;

    /// The entries of the shared vectors in a row.
    fn shared_entries(&self, row: usize, entries: &mut [f64]);

    /// The coefficient of a row's outcome in the estimate.
    fn coefficient(&self, row: usize) -> f64;

    /// The change if these rows are left out, and its parts; `None` if there is no estimate without
    /// them.
    fn change(&self, members: &[usize], parts: &mut ChangeParts) -> Option<f64>;
}

pub(super) struct ChangeParts {
    /// The coefficients of the rows that are left out.
    pub(super) own: Vec<f64>,
    pub(super) shared: Vec<f64>,
}

/// The estimate `value` with its standard error by leaving out each row, or each cluster.
///
/// # Errors
/// [`Refusal::Other`] if there is no estimate without one of them, or the standard error is zero or
/// overflows.
pub(super) fn jackknife(
    rows: &Rows<'_>,
    value: f64,
    estimator: &impl LeaveOut,
) -> Result<Estimate, Refusal> {
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
