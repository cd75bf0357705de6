//! Linear mixed models: y = X β + Z b + ε with b ~ N(0, σ² Λ Λ') and ε ~ N(0, σ² I), where the
//! random effects b of several grouping factors may be nested, crossed or both.
//!
//! As in lme4 (Bates, Mächler, Bolker and Walker, "Fitting linear mixed-effects models using lme4",
//! Journal of Statistical Software 67, 2015): Λ is a function of a few relative covariance
//! parameters θ; for given θ the best β, b and σ follow from one sparse Cholesky factor of Λ'Z'ZΛ +
//! I, and the profiled deviance (ML) or REML criterion is minimised over θ. The rows are read once.
//!
//! For outcomes of yes and no the same effects are on the scale of log odds (`binary`).

mod binary;
mod criterion;
mod degrees;
mod dense;
mod design;
mod elimination;
mod factor;
mod fit;
mod minimise;
#[cfg(test)]
mod tests;

pub use binary::mixed_binary;
pub use design::RandomTerm;
pub use fit::{MixedFamily, MixedFit, RandomCovariance, is_nested, mixed};
