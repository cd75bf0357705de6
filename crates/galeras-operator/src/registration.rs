//! What was registered of an analysis before there were results: preregistration, as an operator
//! sees it.
//!
//! Here: the facts that `galeras.lock` holds of one step. Not here: how they are written and
//! compared with the steps of a plan (`plan`), which estimates they cover (the operator).

use serde::Serialize;
use serde_json::Value;

/// The registrations of a step that the workflow's `prereg` names, the oldest first; none if it was
/// not locked yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Registration {
    /// Each time that it was registered.
    pub analyses: Vec<RegisteredAnalysis>,
}

/// An analysis as it was registered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RegisteredAnalysis {
    /// When, RFC 3339 in UTC.
    pub at: String,
    /// Whether there was no result yet that it is about.
    pub before_results: bool,
    /// The arguments, as [`BoundStep::args`](super::BoundStep::args) gave them without a
    /// registration.
    pub args: Value,
    /// What has changed since in the steps before this one, in words; empty if nothing has.
    pub changed_steps: Vec<String>,
}

/// The key of [`BoundStep::args`](super::BoundStep::args) under which the registration is found.
pub const REGISTRATION: &str = "registration";
