//! Causal inference on columns of numbers: estimators, graphs, refuters and diagnostics.
//!
//! Everything here is arithmetic over slices: no Arrow, no DataFusion, no random state that is
//! not derived from a seed. Rows come in the order of their keys, and every sum runs in that
//! order, so a result depends on the rows and nothing else.
//!
//! Columns are slices with one entry for each row, lists of columns slices of such slices; there
//! are no row-major matrices. Effects, means and standard errors are in units of the outcome. What
//! cannot be estimated gives a [`Refusal`] and never a wrong number; a refusal names columns by
//! [`ColumnRef`], for which the caller has the names. Does not live here: how rows are read, which
//! estimators a user may ask for, and how a result is worded.

mod balance;
mod cholesky;
mod column;
mod column_ref;
mod compensated;
mod correlation;
mod difference;
mod estimate;
mod friedman;
mod front_door;
mod graph;
mod lanes;
mod linear;
mod location;
mod mixed;
mod modification;
mod multiplicity;
mod overlap;
mod paired;
#[cfg(test)]
mod paired_tests;
mod power;
mod propensity;
mod quantile;
mod rank;
mod refusal;
mod refute;
mod sensitivity;
pub mod tail;
#[cfg(test)]
mod tail_tests;

pub use balance::{Balance, balance};
pub use column_ref::ColumnRef;
pub use correlation::{Correlation, CorrelationMethod, correlation, partial};
pub use difference::{MeanDifference, difference_in_means};
pub use estimate::Estimate;
pub use friedman::{FriedmanTest, friedman};
pub use front_door::{FrontDoor, front_door};
pub use graph::{
    CausalGraph, GraphError, Identification, IdentificationReport, Independence, Independencies,
    Instrument, Instruments, QueryError, VariableSets, identify,
};
pub use linear::{
    AdjustedEffect, Covariance, LinearFit, Sargan, TwoStage, adjusted, interacted, two_stage,
};
pub use location::{RelativeEffect, RobustLocation, location, relative};
pub use mixed::{MixedFit, RandomCovariance, RandomTerm, is_nested, mixed};
pub use modification::{Modification, ModifierGroup, interaction, modification};
pub use multiplicity::{Adjustment, adjust};
pub use overlap::{Overlap, overlap};
pub use paired::{PairedDifference, paired};
pub use power::{DetectableEffects, minimum_detectable, paired_gain};
pub use propensity::{
    CrossFit, DoublyRobust, Estimand, Matching, PartiallyLinear, Propensity, RegressionAdjustment,
    Stratification, Weighting, aipw, cross_fit_aipw, matching, partially_linear,
    regression_adjustment, stratification, weighting,
};
pub use rank::{Ranks, average_ranks};
pub use refusal::Refusal;
pub use refute::{RefutationDesign, Refuter, Resample, Resampler, dense, refutation_p};
pub use sensitivity::{
    Benchmarks, ConfounderStrength, EValue, Robustness, SignedRanks, evalue_difference,
    evalue_ratio, pooled_deviation, robustness, with_confounder,
};
