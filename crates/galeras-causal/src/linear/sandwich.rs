//! Kinds of standard errors, the covariance of coefficients, and the estimate of one coefficient.
//!
//! Sums within clusters: in terms of the orthonormal basis Q of the design, the residual maker of
//! cluster g is I - Q_g Q_g', and its power p times the score is Q_g' (I - Q_g Q_g')^p u = (I - G)^p
//! Q_g' u with G = Q_g' Q_g. So no matrix is larger than k x k. If the trace of G, the sum of the
//! cluster's leverages, is small, the power is a short series in G. The traces sum to k, so only few
//! clusters need eigenvalues.

use std::fmt;

use super::fit::LinearFit;
use super::symmetric::{add_outer, apply, dot, eigen, gram, mirror};
use crate::refusal::{at_least, require};
use crate::{Estimate, Refusal};

/// The estimator of the covariance of the coefficients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Covariance {
    /// Rows have equal variances.
    Classic,
    /// White (1980): the squared residuals.
    Hc0,
    /// HC0 times n / (n - k).
    Hc1,
    /// MacKinnon & White (1985): residuals divided by the root of 1 - leverage.
    Hc2,
    /// MacKinnon & White (1985): residuals divided by 1 - leverage.
    Hc3,
    /// Liang & Zeger (1986): sums within clusters.
    Cr0,
    /// CR0 times G / (G - 1) (n - 1) / (n - k).
    Cr1,
    /// Bell & McCaffrey (2002): unbiased if the rows have equal variances.
    Cr2,
    /// Bell & McCaffrey (2002): close to leaving out one cluster.
    Cr3,
}

impl Covariance {
    /// True for the kinds that sum rows within clusters.
    pub fn is_clustered(self) -> bool {
        matches!(self, Self::Cr0 | Self::Cr1 | Self::Cr2 | Self::Cr3)
    }

    pub(crate) fn needs_leverages(self) -> bool {
        matches!(self, Self::Hc2 | Self::Hc3 | Self::Cr2 | Self::Cr3)
    }
}

impl fmt::Display for Covariance {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Classic => "classic",
            Self::Hc0 => "HC0",
            Self::Hc1 => "HC1",
            Self::Hc2 => "HC2",
            Self::Hc3 => "HC3",
            Self::Cr0 => "CR0",
            Self::Cr1 => "CR1",
            Self::Cr2 => "CR2",
            Self::Cr3 => "CR3",
        })
    }
}

/// The residual of a row with more leverage is rounding.
const LARGEST_LEVERAGE: f64 = 1.0 - 1e-9;

impl LinearFit {
    /// The coefficient at this position of [`LinearFit::coefficients`] with its standard error and
    /// degrees of freedom: n - k for the classic and the HC kinds, G - 1 for CR0, CR1 and CR3, and
    /// those of Bell & McCaffrey (2002; Imbens & Kolesár 2016) for CR2. Refuses a row with a
    /// leverage of 1 (HC2 and HC3, [`Refusal::Leverage`]), a variance that is zero to rounding or
    /// overflows, and missing clusters.
    pub fn estimate(
        &self,
        coefficient: usize,
        kind: Covariance,
        clusters: Option<&[u32]>,
    ) -> Result<Estimate, Refusal> {
        let Some(value) = self.coefficients.get(coefficient).copied() else {
            return Err(Refusal::Other(format!("there is no coefficient {coefficient}")));
        };
        let row = &self.transform[coefficient * self.width..(coefficient + 1) * self.width];
        self.contrast_estimate(value, row, kind, clusters)
    }

    /// A function of the coefficients with its standard error by the delta method, from its value
    /// and its derivative by each coefficient, the intercept first.
    pub(crate) fn function(
        &self,
        value: f64,
        gradient: &[f64],
        kind: Covariance,
        clusters: Option<&[u32]>,
    ) -> Result<Estimate, Refusal> {
        self.contrast_estimate(value, &self.contrast(gradient), kind, clusters)
    }

    /// As [`LinearFit::function`] of a model that sets the variance of a residual to 1. The degrees
    /// of freedom are infinite for independent rows.
    pub(crate) fn likelihood_function(
        &self,
        value: f64,
        gradient: &[f64],
        kind: Covariance,
        clusters: Option<&[u32]>,
    ) -> Result<Estimate, Refusal> {
        if kind == Covariance::Classic {
            let contrast = self.contrast(gradient);
            let standard_error = dot(&contrast, &contrast).sqrt();
            return Ok(Estimate { value, standard_error, degrees: f64::INFINITY });
        }
        let estimate = self.function(value, gradient, kind, clusters)?;
        let degrees = if kind.is_clustered() { estimate.degrees } else { f64::INFINITY };
        Ok(Estimate { degrees, ..estimate })
    }

    /// Maps a derivative by the coefficients to one by the coordinates in the basis.
    fn contrast(&self, gradient: &[f64]) -> Vec<f64> {
        let mut contrast = vec![0.0; self.width];
        for (slope, row) in gradient.iter().zip(self.transform.chunks_exact(self.width)) {
            for (cell, part) in contrast.iter_mut().zip(row) {
                *cell += slope * part;
            }
        }
        contrast
    }

    /// The estimate of a linear function of the coordinates in the basis.
    fn contrast_estimate(
        &self,
        value: f64,
        row: &[f64],
        kind: Covariance,
        clusters: Option<&[u32]>,
    ) -> Result<Estimate, Refusal> {
        // The contrast in units of its largest cell, so that no square overflows.
        let unit = row.iter().fold(0.0f64, |largest, cell| largest.max(cell.abs()));
        let contrast: Vec<f64> = row.iter().map(|cell| cell / unit).collect();
        let groups = self.groups(kind, clusters)?;
        let meat = self.meat(kind, groups.as_ref())?;
        let variance = dot(&contrast, &apply(&meat, &contrast));
        let classic =
            self.residual_sum() / self.residual_degrees() as f64 * dot(&contrast, &contrast);
        // Scores that cancel within every cluster leave only rounding.
        let reason = format!(
            "the {kind} variance is zero: the rows or clusters leave no variation to judge by"
        );
        require(variance.is_finite() && variance > 1e-14 * classic, reason)?;
        let degrees = match (kind, &groups) {
            (Covariance::Cr2, Some(groups)) => groups.satterthwaite(self, &contrast)?,
            (_, Some(groups)) => (groups.count() - 1) as f64,
            (_, None) => self.residual_degrees() as f64,
        };
        let standard_error = variance.sqrt() * unit * self.scale;
        let usable = standard_error > 0.0 && standard_error.is_finite() && value.is_finite();
        require(usable, "the coefficient or its standard error is beyond the range of a double")?;
        Ok(Estimate { value, standard_error, degrees })
    }

    /// The covariance of all k coefficients, the intercept first: k rows of k cells, in products of
    /// the coefficients' units. Errors are those of [`LinearFit::estimate`], but a variance of zero
    /// is returned.
    pub fn covariance(
        &self,
        kind: Covariance,
        clusters: Option<&[u32]>,
    ) -> Result<Vec<Vec<f64>>, Refusal> {
        let groups = self.groups(kind, clusters)?;
        let meat = self.meat(kind, groups.as_ref())?;
        let rows: Vec<&[f64]> = self.transform.chunks_exact(self.width).collect();
        let half: Vec<Vec<f64>> = rows.iter().map(|row| apply(&meat, row)).collect();
        let square = self.scale * self.scale;
        Ok(half
            .iter()
            .map(|left| rows.iter().map(|right| dot(left, right) * square).collect())
            .collect())
    }

    /// The degrees of freedom of a joint test: rows minus coefficients, or clusters minus one.
    pub(crate) fn joint_degrees(
        &self,
        kind: Covariance,
        clusters: Option<&[u32]>,
    ) -> Result<f64, Refusal> {
        let groups = self.groups(kind, clusters)?;
        Ok(groups.map_or(self.residual_degrees(), |groups| groups.count() - 1) as f64)
    }

    pub(super) fn groups(
        &self,
        kind: Covariance,
        clusters: Option<&[u32]>,
    ) -> Result<Option<ClusterRows>, Refusal> {
        if !kind.is_clustered() {
            return Ok(None);
        }
        let Some(codes) = clusters else {
            return Err(Refusal::Other(format!("{kind} needs clusters")));
        };
        let (found, rows) = (codes.len(), self.residuals.len());
        require(found == rows, format!("{found} rows have a cluster, of {rows}"))?;
        let groups = ClusterRows::new(codes);
        at_least("clusters", groups.count(), 2)?;
        Ok(Some(groups))
    }

    /// The covariance of the coordinates in the orthonormal basis, in units of `scale` squared.
    pub(super) fn meat(
        &self,
        kind: Covariance,
        groups: Option<&ClusterRows>,
    ) -> Result<Vec<f64>, Refusal> {
        let residual = |row: usize| self.residuals[row] / self.scale;
        let leverage = |row: usize| self.leverages[row];
        let rows = self.residuals.len() as f64;
        let degrees = self.residual_degrees() as f64;
        if matches!(kind, Covariance::Hc2 | Covariance::Hc3)
            && let Some(row) = self.leverages.iter().position(|one| *one > LARGEST_LEVERAGE)
        {
            return Err(Refusal::Leverage { row, leverage: leverage(row) });
        }
        let sum = |weight: &dyn Fn(usize) -> f64| gram(&self.basis, self.width, weight);
        let mut meat = match kind {
            Covariance::Classic => {
                let mut identity = vec![0.0; self.width * self.width];
                let variance = self.residual_sum() / degrees;
                identity.iter_mut().step_by(self.width + 1).for_each(|cell| *cell = variance);
                identity
            }
            Covariance::Hc0 | Covariance::Hc1 => sum(&residual),
            Covariance::Hc2 => sum(&|row| residual(row) / (1.0 - leverage(row)).sqrt()),
            Covariance::Hc3 => sum(&|row| residual(row) / (1.0 - leverage(row))),
            Covariance::Cr0 | Covariance::Cr1 | Covariance::Cr2 | Covariance::Cr3 => {
                groups.map_or_else(Vec::new, |groups| groups.meat(self, kind))
            }
        };
        let factor = match (kind, groups) {
            (Covariance::Hc1, _) => rows / degrees,
            (Covariance::Cr1, Some(groups)) => {
                let count = groups.count() as f64;
                count / (count - 1.0) * (rows - 1.0) / degrees
            }
            _ => 1.0,
        };
        meat.iter_mut().for_each(|cell| *cell *= factor);
        Ok(meat)
    }
}

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
    fn meat(&self, fit: &LinearFit, kind: Covariance) -> Vec<f64> {
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
    fn satterthwaite(&self, fit: &LinearFit, contrast: &[f64]) -> Result<f64, Refusal> {
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
