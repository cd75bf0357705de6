//! Causal inference on columns of numbers: estimators, graphs, refuters and diagnostics.
//!
//! Everything is arithmetic over slices; random numbers are derived from a seed. Rows come in the
//! order of their keys and every sum runs in that order, so results depend on the rows alone.
//!
//! A column is a slice with one entry for each row, and several columns are a slice of such slices.
//! Effects, means and standard errors are in units of the outcome. A number that cannot be
//! estimated becomes a [`Refusal`], which names columns by [`ColumnRef`]; the caller knows their
//! names. Every function refuses columns of other lengths, values that are not finite or too large,
//! constant and collinear columns, empty arms, and too few rows or clusters, and levels `alpha`
//! that are not between 0 and 1. Its own text names what else it refuses.

mod absorbed;
mod attrition;
mod balance;
mod cholesky;
mod column;
mod compensated;
mod correlation;
mod difference;
mod dose;
mod effect_size;
mod estimate;
mod front_door;
mod glm;
mod graph;
mod linear;
mod location;
mod mixed;
mod modification;
mod multiplicity;
mod newton;
mod ordinal;
mod power;
mod propensity;
mod proportion;
mod rank;
mod ranked;
mod refusal;
mod refute;
mod risk;
mod root;
mod sensitivity;
pub mod tail;
#[cfg(test)]
mod tests;

pub use absorbed::{AbsorbedEffect, absorbed};
pub use attrition::{AttritionBounds, ObservedArm, lee_bounds, worst_case, worst_case_pairs};
pub use balance::{Balance, CRUMP, Overlap, balance, in_overlap, overlap};
pub use column::ColumnRef;
pub use correlation::{
    Correlation, CorrelationMethod, clustered_correlation, correlation, partial,
};
pub use difference::{difference_in_means, paired};
pub use dose::{
    DoseCurve, DosePoint, JointTest, TrendTest, cochran_armitage, dose_curve, jonckheere_terpstra,
    natural_knots,
};
pub use effect_size::{
    Dominance, Standardised, dominance, dominance_within, standardised_difference,
    standardised_pairs,
};
pub use estimate::{Estimate, InvertedEstimate, OneSided};
pub use front_door::front_door;
pub use glm::{CountEffect, LogisticEffects, logistic, negative_binomial, poisson};
pub use graph::{
    CausalGraph, GraphError, Identification, IdentificationReport, Independence, Independencies,
    Instrument, Instruments, QueryError, VariableSets, identify,
};
pub use linear::{
    AdjustedEffect, AndersonRubin, Covariance, LinearFit, Overidentification, RowDesign, RowEffect,
    TwoStage, WildClusters, adjusted, adjusted_by_design, anderson_rubin,
    difference_in_differences, interacted, two_stage, wild_weights,
};
pub use location::{RelativeEffect, RobustLocation, location, relative};
pub use mixed::{
    MixedFamily, MixedFit, RandomCovariance, RandomTerm, is_nested, mixed, mixed_binary,
};
pub use modification::{
    Modification, ModifierGroup, interaction, modification, overlap_interaction,
};
pub use multiplicity::{Adjustment, Influence, adjust, max_t};
pub use ordinal::{OrdinalEffect, proportional_odds};
pub use power::{
    DetectableEffects, Pilot, StudyDesign, VarianceComponents, minimum_detectable, paired_gain,
    pilot,
};
pub use propensity::{
    CrossFit, Estimand, Matching, Propensity, Stratification, Weighting, aipw, aipw_treated,
    cross_fit_aipw, jackknifed_aipw, jackknifed_aipw_treated, jackknifed_weighting, matching,
    stratification, weighting,
};
pub use proportion::{
    clustered_interval, exact_clustered_interval, exact_interval, logit_interval, wilson_interval,
};
pub use ranked::{FriedmanTest, RankSum, SignedRankShift, friedman, rank_sum, signed_rank_shift};
pub use refusal::Refusal;
pub use refute::{RefutationDesign, Refuter, Resample, Resampler, as_large, dense, refutation_p};
pub use risk::{FourfoldTable, McNemar, RiskMeasure, mcnemar};
pub use sensitivity::{
    Benchmarks, ConfounderStrength, EValue, InstrumentRobustness, RiskRatio, Robustness,
    SignedRanks, evalue_difference, evalue_ratio, instrument_robustness, pooled_deviation,
    robustness, standardised_risks, with_confounder,
};
