//! Linear mixed models: y = X β + Z b + ε with b ~ N(0, σ² Λ Λ') and ε ~ N(0, σ² I), where the
//! random effects b of several grouping factors may be nested, crossed or both.
//!
//! As lme4 does it (Bates, Mächler, Bolker and Walker, "Fitting linear mixed-effects models using
//! lme4", Journal of Statistical Software 67, 2015): Λ is a function of a few relative covariance
//! parameters θ; for given θ the best β, b and σ come out of one sparse Cholesky factor of
//! Λ'Z'ZΛ + I, and the profiled deviance (ML) or REML criterion is minimised over θ. `design` checks
//! the input, `products` holds what of the rows is needed (they are read once), `elimination` the
//! order in which groups are eliminated, `factor` the factor at a θ with `dense` for its last block,
//! `criterion` the function that `minimise` minimises, `degrees` Satterthwaite's degrees of freedom,
//! `fit` puts them together. `spectrum` has the eigenvalues of small matrices.

mod criterion;
mod degrees;
mod dense;
mod design;
mod elimination;
mod factor;
mod fit;
mod minimise;
mod products;
#[cfg(test)]
mod tests;

pub use design::RandomTerm;
pub use fit::{MixedFit, RandomCovariance, is_nested, mixed};
