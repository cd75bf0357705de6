//! A study for people: bundles and data sets, reports and pages.

pub mod sharing;
