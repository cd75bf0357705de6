//! Checks, before anything runs, that steps have the environment they need.

use super::mistake::diagnostic_of;
use super::model::Plan;
use galeras_workflow::{Diagnostics, Span};

/// The missing requirements of these steps, each at its place in the file.
pub fn preflight(plan: &Plan, steps: impl IntoIterator<Item = usize>) -> Diagnostics {
    let mut diagnostics = Diagnostics::default();
    for step in steps.into_iter().map(|at| &plan.steps[at]) {
        for error in step.step.missing() {
            let fallback = Span::new(step.place.start, step.place.end());
            let arguments = step.arguments.as_ref().map(|node| (node, None));
            let problem = diagnostic_of(&error, &step.source, arguments, fallback);
            diagnostics.push(problem);
        }
    }
    diagnostics
}
