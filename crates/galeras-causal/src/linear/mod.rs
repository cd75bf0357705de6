//! Linear regression of an outcome on a treatment and covariates, with the standard errors that
//! the literature knows. Least squares itself lives in `fit`, variances in `sandwich` and
//! `cluster`, Lin's interacted regression in `interacted`, instruments in `two_stage`.

mod cluster;
mod fit;
mod interacted;
#[cfg(test)]
mod parity_tests;
mod sandwich;
mod symmetric;
#[cfg(test)]
mod tests;
mod two_stage;

use std::fmt;

use super::{ColumnRef, Estimate, Refusal};
pub use fit::LinearFit;
pub use interacted::interacted;
pub use two_stage::{Sargan, TwoStage, two_stage};

/// How the covariance of the coefficients is estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Covariance {
    /// Equal variances of all rows.
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
    /// Bell & McCaffrey (2002): unbiased where the rows are alike.
    Cr2,
    /// Bell & McCaffrey (2002): close to leaving one cluster out.
    Cr3,
}

impl Covariance {
    /// Whether rows are summed within clusters.
    pub fn is_clustered(self) -> bool {
        matches!(self, Self::Cr0 | Self::Cr1 | Self::Cr2 | Self::Cr3)
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

/// The effect of a binary treatment in a linear regression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdjustedEffect {
    /// The coefficient of the treatment.
    pub estimate: Estimate,
    /// The rows that were treated.
    pub treated: usize,
    /// The rows that were not.
    pub control: usize,
    /// The largest leverage of a row, between 0 and 1.
    pub max_leverage: f64,
    /// The coefficient divided by its classic standard error: what Cinelli & Hazlett (2020)
    /// derive robustness values from, whatever standard error the estimate carries.
    pub classic_statistic: f64,
    /// Rows less coefficients.
    pub residual_degrees: usize,
}

/// The coefficient of `treated` in y ~ 1 + treated + covariates, by ordinary least squares.
///
/// `covariates` are columns of as many rows as `outcome`; `clusters` names each row's cluster
/// and is needed by the clustered kinds only.
///
/// # Errors
///
/// A refusal where the design is collinear, where a covariate or the outcome is constant, where
/// nothing is left to judge the error by, or where the kind is not defined. `#2` in it is
/// `covariates[2]`.
pub fn adjusted(
    treated: &[bool],
    outcome: &[f64],
    covariates: &[&[f64]],
    kind: Covariance,
    clusters: Option<&[u32]>,
) -> Result<AdjustedEffect, Refusal> {
    let indicator = treatment_column(treated, outcome.len())?;
    let mut columns = vec![indicator.as_slice()];
    columns.extend_from_slice(covariates);
    let fit = LinearFit::fit(&columns, outcome).map_err(|refusal| {
        refusal.map_covariate(|position| match position.checked_sub(1) {
            None => ColumnRef::Treatment,
            Some(covariate) => ColumnRef::Covariate(covariate),
        })
    })?;
    judge(&fit, treated, kind, clusters)
}

/// The first slope of a fit as the effect of the treatment.
fn judge(
    fit: &LinearFit,
    treated: &[bool],
    kind: Covariance,
    clusters: Option<&[u32]>,
) -> Result<AdjustedEffect, Refusal> {
    let estimate = fit.estimate(1, kind, clusters)?;
    let classic = fit.estimate(1, Covariance::Classic, None)?;
    let count = treated.iter().filter(|treated| **treated).count();
    Ok(AdjustedEffect {
        estimate,
        treated: count,
        control: treated.len() - count,
        max_leverage: fit.max_leverage(),
        classic_statistic: classic.statistic(),
        residual_degrees: fit.residual_degrees(),
    })
}

/// The treatment as a column of zeros and ones, of which there must be both.
fn treatment_column(treated: &[bool], rows: usize) -> Result<Vec<f64>, Refusal> {
    if treated.len() != rows {
        return Err(Refusal::Other(format!(
            "the treatment has {} rows and the outcome {rows}",
            treated.len()
        )));
    }
    let count = treated.iter().filter(|treated| **treated).count();
    for (what, found) in [("treated rows", count), ("control rows", rows - count)] {
        if found == 0 {
            return Err(Refusal::TooFew { what, found, needed: 1 });
        }
    }
    Ok(treated.iter().map(|treated| f64::from(u8::from(*treated))).collect())
}
