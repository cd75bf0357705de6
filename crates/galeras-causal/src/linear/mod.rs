//! Linear regression on a treatment and covariates, with standard errors by HC and CR kinds.

mod adjusted;
mod fit;
mod instruments;
mod sandwich;
mod symmetric;
#[cfg(test)]
mod tests;
mod two_way;
mod weighted;
mod wild;

pub use adjusted::{
    AdjustedEffect, RowDesign, RowEffect, adjusted, adjusted_by_design, difference_in_differences,
    interacted,
};
pub(crate) use adjusted::{treatment_column, treatment_first};
pub use fit::LinearFit;
pub(crate) use instruments::wald;
pub use instruments::{AndersonRubin, Overidentification, TwoStage, anderson_rubin, two_stage};
pub(crate) use sandwich::ClusterRows;
pub use sandwich::Covariance;
pub use wild::{WildClusters, wild_weights};
