//! Kinds of standard errors, the covariance of coefficients, and the estimate of one coefficient.

use std::fmt;

use super::cluster::ClusterRows;
use super::fit::LinearFit;
use super::symmetric::{apply, dot, gram};
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

    fn groups(
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
    fn meat(&self, kind: Covariance, groups: Option<&ClusterRows>) -> Result<Vec<f64>, Refusal> {
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
