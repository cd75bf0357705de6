//! From a specification to a plan, and from a plan to results.

pub mod plan;
pub mod runner;
pub mod trust;
