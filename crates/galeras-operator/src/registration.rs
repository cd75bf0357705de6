//! The preregistration of an analysis, in the form that an operator gets. The lock file has them in
//! `plan`.

use serde::Serialize;
use serde_json::Value;

/// The registrations of a step that the workflow's `prereg` names, the oldest first; empty if it
/// was not locked yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Registration {
    /// All registrations.
    pub analyses: Vec<RegisteredAnalysis>,
}

/// An analysis as it was registered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RegisteredAnalysis {
    /// The time of registration, RFC 3339 in UTC.
    pub at: String,
    /// True if there was no result for it yet.
    pub before_results: bool,
    /// The arguments, as [`BoundStep::args`](super::BoundStep::args) returned them without a
    /// registration.
    pub args: Value,
    /// Descriptions of later changes in the steps before this one; empty if there are none.
    pub changed_steps: Vec<String>,
}

/// The key of the registration in [`BoundStep::args`](super::BoundStep::args).
pub const REGISTRATION: &str = "registration";
