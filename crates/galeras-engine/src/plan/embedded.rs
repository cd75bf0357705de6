//! Removes embedded steps that the top file does not need.
//!
//! An embedded workflow is planned completely, so that all its mistakes are found; then unneeded
//! steps are dropped. A step with `uses` that nothing reads runs completely, like any other step.

use std::collections::BTreeMap;
use std::ops::Range;

use super::input::Input;
use super::model::{ExpandedPlan, PlannedStep, StepTarget};

/// The planned steps that came from steps with `uses` of the top file.
#[derive(Debug, Default)]
pub(super) struct EmbeddedSteps {
    /// Positions in the plan by the name of the step, one range per cell.
    ranges: BTreeMap<String, Vec<Range<usize>>>,
}

impl EmbeddedSteps {
    pub(super) fn add(&mut self, step: &str, range: Range<usize>) {
        self.ranges.entry(step.to_string()).or_default().push(range);
    }

    /// Removes the embedded steps that the top file does not need.
    pub(super) fn keep_needed(self, plan: &mut ExpandedPlan) {
        let ExpandedPlan { steps, outputs, report, limits, scopes, .. } = plan;
        if self.ranges.is_empty() {
            return;
        }
        let mut needed = vec![true; steps.len()];
        for range in self.ranges.values().flatten() {
            needed[range.clone()].fill(false);
        }
        let tables = |input: &Input| input.tables.iter().map(|t| t.step).collect::<Vec<_>>();
        let shown = report.inputs();
        for input in outputs.iter().map(|output| &output.input).chain(shown) {
            tables(input).into_iter().for_each(|at| needed[at] = true);
        }
        close(steps, &mut needed);
        for ranges in self.ranges.values() {
            if !ranges.iter().cloned().flatten().any(|at| needed[at]) {
                ranges.iter().cloned().flatten().for_each(|at| needed[at] = true);
            }
        }
        close(steps, &mut needed);
        let mut places = Vec::with_capacity(needed.len());
        let mut kept = 0;
        for needed in &needed {
            places.push(kept);
            kept += usize::from(*needed);
        }
        let mut at = 0..;
        steps.retain(|_| at.next().is_some_and(|at: usize| needed[at]));
        let inputs = steps.iter_mut().flat_map(|step| &mut step.inputs);
        let inputs = inputs.chain(outputs.iter_mut().map(|output| &mut output.input));
        let inputs = inputs.chain(report.inputs_mut());
        for table in inputs.flat_map(|input| &mut input.tables) {
            table.step = places[table.step];
        }
        for limit in limits {
            limit.steps.retain(|at| needed[*at]);
            limit.steps.iter_mut().for_each(|at| *at = places[*at]);
        }
        for scope in scopes.values_mut() {
            for cells in scope.values_mut() {
                cells.retain_mut(|(_, target)| match target {
                    StepTarget::Step(at) if !needed[*at] => false,
                    StepTarget::Step(at) => {
                        *at = places[*at];
                        true
                    }
                    StepTarget::Embedded(outputs) => {
                        outputs.retain(|_, input| input.tables.iter().all(|t| needed[t.step]));
                        let tables = outputs.values_mut().flat_map(|input| &mut input.tables);
                        tables.for_each(|table| table.step = places[table.step]);
                        true
                    }
                    StepTarget::Outline(_) | StepTarget::Broken => true,
                });
            }
            scope.retain(|_, cells| !cells.is_empty());
        }
    }
}

/// Adds the steps that needed steps read; every step comes after its inputs.
fn close(steps: &[PlannedStep], needed: &mut [bool]) {
    for at in (0..steps.len()).rev() {
        if needed[at] {
            steps[at].upstream().for_each(|upstream| needed[upstream] = true);
        }
    }
}
