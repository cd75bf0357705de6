//! Standard errors for rows that are correlated within the clusters of two crossed columns, such as
//! the model and the problem of an answer.

use std::collections::HashMap;

use super::symmetric::{apply, dot};
use super::{Covariance, LinearFit};
use crate::refusal::require;
use crate::{Estimate, Refusal};

impl LinearFit {
    /// As [`LinearFit::estimate`], with two codes for each row: V = V1 + V2 - V12, of the clusters of
    /// each column and of those of both (Cameron, Gelbach & Miller 2011, Journal of Business and
    /// Economic Statistics 29:238), each with its own factor. Student's t has one degree of freedom
    /// less than the column with fewer clusters. CR0 and CR1 equal statsmodels' with two columns of
    /// groups; CR3 is for few clusters (MacKinnon, Nielsen & Webb 2024, arXiv:2406.08880). Refuses the
    /// kinds without clusters, CR2, which is not defined for a difference of matrices, and a variance
    /// that is not above zero.
    pub fn two_way_estimate(
        &self,
        coefficient: usize,
        kind: Covariance,
        clusters: [&[u32]; 2],
    ) -> Result<Estimate, Refusal> {
        let defined = matches!(kind, Covariance::Cr0 | Covariance::Cr1 | Covariance::Cr3);
        let reason = format!("{kind} is not defined for two-way clusters: use CR0, CR1 or CR3");
        require(defined, reason)?;
        let Some(value) = self.coefficients.get(coefficient).copied() else {
            return Err(Refusal::Other(format!("there is no coefficient {coefficient}")));
        };
        let row = &self.transform[coefficient * self.width..(coefficient + 1) * self.width];
        // The contrast in units of its largest cell, so that no square overflows.
        let unit = row.iter().fold(0.0f64, |largest, cell| largest.max(cell.abs()));
        let contrast: Vec<f64> = row.iter().map(|cell| cell / unit).collect();
        let [first, second] = clusters;
        let both = crossed(first, second);
        let (mut variance, mut largest, mut fewest) = (0.0_f64, 0.0_f64, usize::MAX);
        for (sign, codes) in [(1.0, first), (1.0, second), (-1.0, both.as_slice())] {
            let groups = self.groups(kind, Some(codes))?;
            fewest = fewest.min(groups.as_ref().map_or(0, |groups| groups.count()));
            let part = dot(&contrast, &apply(&self.meat(kind, groups.as_ref())?, &contrast));
            variance += sign * part;
            largest = largest.max(part);
        }
        let reason = format!(
            "the {kind} variance of two-way clusters is not above zero: the rows of both clusters \
             vary more than those of either; use one of the two columns"
        );
        require(variance.is_finite() && variance > 1e-14 * largest, reason)?;
        let standard_error = variance.sqrt() * unit * self.scale;
        let usable = standard_error > 0.0 && standard_error.is_finite() && value.is_finite();
        require(usable, "the coefficient or its standard error is beyond the range of a double")?;
        Ok(Estimate { value, standard_error, degrees: (fewest - 1) as f64 })
    }
}

/// The combination of two codes of each row, as a code.
fn crossed(first: &[u32], second: &[u32]) -> Vec<u32> {
    let mut known = HashMap::new();
    let code = |pair: (&u32, &u32)| {
        let next = known.len() as u32;
        *known.entry((*pair.0, *pair.1)).or_insert(next)
    };
    first.iter().zip(second).map(code).collect()
}
