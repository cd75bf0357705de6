//! The kinds of standard errors.

use std::fmt;

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
