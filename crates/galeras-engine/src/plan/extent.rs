//! Limits of the size of a plan.
//!
//! Files that embed one another twice double with every file: seventeen of them are a hundred
//! thousand steps. So a workflow that embeds others is walked before anything is bound, and its
//! steps are counted up to the limit.

use galeras_workflow::Span;

/// Upper bound of steps, including every cell of a matrix and embedded workflows.
pub(super) const MAX_STEPS: usize = 50_000;

/// Upper bound of embedded workflows, each use counted.
pub(super) const MAX_EMBEDDED: usize = 10_000;

pub(super) const MAX_DEPTH: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Extent {
    /// Steps are only counted, not bound.
    pub(super) measuring: bool,
    steps: usize,
    embedded: usize,
    /// The step of the top file that exceeded a limit.
    pub(super) beyond: Option<Span>,
}

impl Extent {
    pub(super) fn add_step(&mut self) {
        self.steps += 1;
    }

    pub(super) fn add_embedded(&mut self) {
        self.embedded += 1;
    }

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
