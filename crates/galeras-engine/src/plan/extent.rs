//! How large a plan may get, and how large it is going to be.
//!
//! Files that embed one another twice double with every file: seventeen of them are a hundred
//! thousand steps. So a workflow that embeds others is walked before anything is bound, which
//! counts its steps and stops at the limit.

use galeras_workflow::Span;

/// The most steps of a plan, every cell of a matrix and all of embedded workflows included.
pub(super) const MAX_STEPS: usize = 50_000;

/// The most times that a plan embeds a workflow.
pub(super) const MAX_EMBEDDED: usize = 10_000;

/// Workflows embed one another at most this deep.
pub(super) const MAX_DEPTH: usize = 64;

/// What has been counted of a plan.
#[derive(Debug, Default)]
pub(super) struct Extent {
    /// Whether steps are only counted, and nothing is bound.
    pub(super) measuring: bool,
    steps: usize,
    embedded: usize,
    /// The step of the top file that went beyond a limit.
    pub(super) beyond: Option<Span>,
}

impl Extent {
    /// Counts a step.
    pub(super) fn add_step(&mut self) {
        self.steps += 1;
    }

    /// Counts an embedded workflow.
    pub(super) fn add_embedded(&mut self) {
        self.embedded += 1;
    }

    /// What is too much, if anything is.
    pub(super) fn excess(&self) -> Option<String> {
        if self.embedded > MAX_EMBEDDED {
            return Some(format!("the plan would embed more than {MAX_EMBEDDED} workflows"));
        }
        (self.steps > MAX_STEPS).then(|| format!("the plan would have more than {MAX_STEPS} steps"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_may_have_as_many_as_the_limits_say_and_no_more() {
        let mut extent = Extent::default();
        (0..MAX_EMBEDDED).for_each(|_| extent.add_embedded());
        (0..MAX_STEPS).for_each(|_| extent.add_step());
        assert_eq!(extent.excess(), None);
        extent.add_step();
        assert_eq!(extent.excess().as_deref(), Some("the plan would have more than 50000 steps"));
        extent.add_embedded();
        assert!(extent.excess().is_some_and(|what| what.contains("embed more than 10000")));
    }
}
