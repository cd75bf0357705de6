//! Why a number is withheld. Every estimator returns one of these instead of a wrong number.

use thiserror::Error;

/// The reason for which an estimate is not given. Its text can be pasted into a paper.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Refusal {
    /// Every unit has the same propensity, so that scores tell nobody from anybody.
    #[error(
        "every propensity score is {score:.4}: the confounders do not predict the treatment, \
             so the score cannot tell which units are alike"
    )]
    ConstantPropensity {
        /// The score that all units have.
        score: f64,
    },
    /// A column is a linear combination of those before it.
    #[error("`{column}` is a linear combination of the other covariates")]
    Collinear {
        /// The position of the column in the design, resolved to a name by the caller.
        column: String,
    },
    /// The treatment of some rows can be told from the covariates without error, or nearly so.
    #[error("no overlap: {0}")]
    NoOverlap(String),
    /// The treatment of every row can be told from the covariates: the arms have nothing in
    /// common, and any adjusted comparison of them is an extrapolation.
    #[error(
        "no overlap: the covariates tell all treated units from all controls without error \
             (complete separation), so that no unit has its like in the other arm"
    )]
    Separated,
    /// There are too few rows, units, clusters or strata.
    #[error("too few {what}: {found}, at least {needed} are needed")]
    TooFew {
        /// What is counted, in the plural.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many are needed.
        needed: usize,
    },
    /// A column has one value only.
    #[error("`{0}` has one value only")]
    Constant(String),
    /// A row's leverage is 1, so that its residual is 0 whatever its outcome is.
    #[error(
        "a row has a leverage of 1: no other row is like it in the covariates, so that its \
             residual is zero whatever its outcome is, and HC2 and HC3 are not defined (HC0, HC1 and \
             classic are)"
    )]
    Leverage {
        /// The position of the row.
        row: usize,
        /// Its leverage.
        leverage: f64,
    },
    /// Anything else, in its own words.
    #[error("{0}")]
    Other(String),
}
