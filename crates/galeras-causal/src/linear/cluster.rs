//! Sums within clusters: CR0 to CR3 and the degrees of freedom of CR2.
//!
//! In terms of the orthonormal basis Q of the design, the residual maker of cluster g is I - Q_g
//! Q_g', and its power p times the score is Q_g' (I - Q_g Q_g')^p u = (I - G)^p Q_g' u with G =
//! Q_g' Q_g. So no matrix is larger than k x k. If the trace of G, the sum of the cluster's
//! leverages, is small, the power is a short series in G. The traces sum to k, so only few clusters
//! need eigenvalues.

use super::fit::LinearFit;
use super::sandwich::Covariance;
use super::symmetric::{add_outer, apply, dot, eigen, mirror};
use crate::Refusal;
use crate::refusal::require;

/// The largest trace for which the series is used.
const SERIES_TRACE: f64 = 0.25;
/// Eigenvalues of I - G at or below this are zero, and so are their powers (a pseudo-inverse).
const SMALLEST_EIGENVALUE: f64 = 1e-12;

/// The rows of each cluster, or each row alone.
pub(crate) struct ClusterRows {
    /// Row numbers by cluster, in the order of the rows within each.
    order: Vec<usize>,
    /// The start of each cluster in `order`, and the end.
    starts: Vec<usize>,
}

impl ClusterRows {
    /// Groups rows by code. A code without rows is not a cluster.
    pub(crate) fn new(codes: &[u32]) -> ClusterRows {
        let mut order: Vec<usize> = (0..codes.len()).collect();
        order.sort_by_key(|row| codes[*row]);
        let mut starts: Vec<usize> = (0..order.len())
            .filter(|place| *place == 0 || codes[order[*place]] != codes[order[*place - 1]])
            .collect();
        starts.push(order.len());
        ClusterRows { order, starts }
    }

    /// Each of `rows` rows as a cluster.
    pub(crate) fn singletons(rows: usize) -> ClusterRows {
        ClusterRows { order: (0..rows).collect(), starts: (0..=rows).collect() }
    }

    pub(crate) fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// The rows of the cluster with the code at this position of the sorted codes.
    pub(crate) fn rows(&self, cluster: usize) -> &[usize] {
        &self.order[self.starts[cluster]..self.starts[cluster + 1]]
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = &[usize]> {
        (0..self.count()).map(|cluster| self.rows(cluster))
    }

    /// The covariance of the coordinates in the basis, before any small-sample factor.
    pub(super) fn meat(&self, fit: &LinearFit, kind: Covariance) -> Vec<f64> {
        let width = fit.width;
        let mut meat = vec![0.0; width * width];
        let mut score = vec![0.0; width];
        let mut cluster = Cluster::new(width);
        for rows in self.members() {
            score.fill(0.0);
            for row in rows {
                let residual = fit.residuals[*row] / fit.scale;
                for (sum, cell) in score.iter_mut().zip(basis_row(fit, *row)) {
                    *sum += residual * cell;
                }
            }
            let power = match kind {
                Covariance::Cr2 => Some(Power::InverseRoot),
                Covariance::Cr3 => Some(Power::Inverse),
                _ => None,
            };
            if let Some(power) = power {
                cluster.load(fit, rows);
                cluster.raise(fit, rows, power, &mut score);
            }
            add_outer(&mut meat, &score, 1.0);
        }
        mirror(&mut meat, width);
        meat
    }

    /// The degrees of freedom of CR2 for a contrast in coordinates of the basis: the squared trace
    /// of the quadratic form over the trace of its square, for equal variances.
    pub(super) fn satterthwaite(&self, fit: &LinearFit, contrast: &[f64]) -> Result<f64, Refusal> {
        let width = fit.width;
        let mut cluster = Cluster::new(width);
        let mut outer = vec![0.0; width * width];
        let (mut trace, mut squares) = (0.0, 0.0);
        let mut direction = vec![0.0; width];
        for rows in self.members() {
            cluster.load(fit, rows);
            // w = A Q_g l has |w|^2 = l' (I - G)^-1 G l, and z = Q_g' w = (I - G)^(-1/2) G l.
            direction.copy_from_slice(contrast);
            cluster.multiply(fit, rows, &mut direction);
            let mut inverse = direction.clone();
            cluster.raise(fit, rows, Power::Inverse, &mut inverse);
            let length = dot(contrast, &inverse);
            cluster.raise(fit, rows, Power::InverseRoot, &mut direction);
            let overlap = dot(&direction, &direction);
            trace += length - overlap;
            squares += length * length - 2.0 * length * overlap;
            add_outer(&mut outer, &direction, 1.0);
        }
        mirror(&mut outer, width);
        let degrees = trace * trace / (squares + dot(&outer, &outer));
        let defined = degrees.is_finite() && degrees > 0.0;
        require(defined, "the degrees of freedom of CR2 are not defined here")?;
        Ok(degrees)
    }
}

fn basis_row(fit: &LinearFit, row: usize) -> &[f64] {
    &fit.basis[row * fit.width..(row + 1) * fit.width]
}

#[derive(Clone, Copy)]
enum Power {
    InverseRoot,
    Inverse,
}

/// G = Q_g' Q_g of one cluster, in the form that is cheap.
struct Cluster {
    width: usize,
    trace: f64,
    /// G, unless the cluster has so few rows that multiplying by them twice is cheaper.
    gram: Option<Vec<f64>>,
    /// The eigenvalues and vectors of G, if the series would be long.
    spectrum: Option<(Vec<f64>, Vec<f64>)>,
    buffer: Vec<f64>,
}

impl Cluster {
    fn new(width: usize) -> Cluster {
        Cluster { width, trace: 0.0, gram: None, spectrum: None, buffer: vec![0.0; width] }
    }

    fn load(&mut self, fit: &LinearFit, rows: &[usize]) {
        self.trace = rows.iter().map(|row| fit.leverages[*row]).sum();
        self.spectrum = None;
        let is_small = self.trace <= SERIES_TRACE;
        if is_small && rows.len() * 2 <= self.width {
            self.gram = None;
            return;
        }
        let mut gram = self.gram.take().unwrap_or_else(|| vec![0.0; self.width * self.width]);
        gram.fill(0.0);
        for row in rows {
            add_outer(&mut gram, basis_row(fit, *row), 1.0);
        }
        mirror(&mut gram, self.width);
        if !is_small {
            // Without convergence the variance is NaN, and the estimate is refused.
            let unknown = || (vec![f64::NAN; self.width], gram.clone());
            self.spectrum = Some(eigen(&gram, self.width).unwrap_or_else(unknown));
        }
        self.gram = Some(gram);
    }

    fn multiply(&mut self, fit: &LinearFit, rows: &[usize], vector: &mut [f64]) {
        if let Some(gram) = &self.gram {
            for (cell, line) in self.buffer.iter_mut().zip(gram.chunks_exact(self.width)) {
                *cell = dot(line, vector);
            }
        } else {
            self.buffer.fill(0.0);
            for row in rows {
                let row = basis_row(fit, *row);
                let along = dot(row, vector);
                for (cell, value) in self.buffer.iter_mut().zip(row) {
                    *cell += along * value;
                }
            }
        }
        vector.copy_from_slice(&self.buffer);
    }

    /// Replaces `vector` by the power of I - G times it.
    fn raise(&mut self, fit: &LinearFit, rows: &[usize], power: Power, vector: &mut [f64]) {
        if let Some((values, vectors)) = &self.spectrum {
            let coordinates = apply(vectors, vector);
            vector.fill(0.0);
            for ((value, line), along) in
                values.iter().zip(vectors.chunks_exact(self.width)).zip(coordinates)
            {
                let left = 1.0 - value;
                let factor = match power {
                    _ if left <= SMALLEST_EIGENVALUE => 0.0,
                    Power::InverseRoot => 1.0 / left.sqrt(),
                    Power::Inverse => 1.0 / left,
                };
                for (cell, part) in vector.iter_mut().zip(line) {
                    *cell += factor * along * part;
                }
            }
            return;
        }
        // (1 - x)^-1 has coefficients 1, (1 - x)^(-1/2) has binom(2j, j) / 4^j.
        let mut term = vector.to_vec();
        let (mut coefficient, mut bound) = (1.0, 1.0);
        for j in 1..100 {
            bound *= self.trace;
            if bound < 1e-18 {
                break;
            }
            self.multiply(fit, rows, &mut term);
            if let Power::InverseRoot = power {
                coefficient *= (2 * j - 1) as f64 / (2 * j) as f64;
            }
            for (cell, part) in vector.iter_mut().zip(&term) {
                *cell += coefficient * part;
            }
        }
    }
}
