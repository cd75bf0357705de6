//! The engine: plans a workflow specification and runs the plan.

pub mod plan;
pub mod runner;
pub mod trust;
