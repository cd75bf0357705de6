//! Shares studies with others: bundles and data sets.

pub mod sharing;
