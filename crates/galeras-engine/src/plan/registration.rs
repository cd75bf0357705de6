//! Preregistration: the steps that a workflow's `prereg` names, and their registrations.

use std::sync::Arc;

use super::expander::Expander;
use super::input::Input;
use super::locked_analysis::steps_below;
use super::model::with_ancestors;
use galeras_operator::{RegisteredAnalysis, Registration};
use galeras_workflow::code::Code;
use galeras_workflow::{Diagnostic, StepKind, StepSpec, Workflow, quote};

const ANALYSIS: &str = "regress";

impl Expander {
    /// The registration of a step, if `prereg` names it by `family`, its name without cells. Its
    /// inputs are already planned.
    pub(super) fn registration(
        &self,
        family: &str,
        name: &str,
        operator: &str,
        inputs: &[Input],
    ) -> Option<Arc<Registration>> {
        let named = self.registered.names.iter().any(|text| text.value == family);
        if !named || operator != ANALYSIS {
            return None;
        }
        let read = inputs.iter().flat_map(|input| input.tables.iter().map(|table| table.step));
        let below = with_ancestors(&self.steps, read);
        let now = steps_below(below.into_iter().map(|at| &self.steps[at]));
        let locked = self.registered.locked.iter().filter(|locked| locked.step == name);
        let analyses = locked.map(|locked| RegisteredAnalysis {
            at: locked.at.clone(),
            before_results: locked.before_results,
            args: locked.with.clone(),
            changed_steps: locked.changed_steps(&now),
        });
        Some(Arc::new(Registration { analyses: analyses.collect() }))
    }

    pub(super) fn check_prereg(&mut self, workflow: &Workflow) {
        let mut problems = Vec::new();
        for (at, text) in self.registered.names.iter().enumerate() {
            let name = &text.value;
            let source = &workflow.source;
            if self.registered.names[..at].iter().any(|before| before.value == *name) {
                let message = format!("{} is named twice", quote(name));
                problems.push(Diagnostic::error(Code::WrongValue, message, source, text.span));
                continue;
            }
            let own = workflow.step(name).and_then(operator_of);
            let operators = self
                .steps
                .iter()
                .filter(|step| step.family == *name)
                .map(|step| step.operator.descriptor().name);
            match operators.chain(own).next() {
                Some(ANALYSIS) => {}
                Some(other) => {
                    let message = format!("step {} is `{other}`", quote(name));
                    let problem = Diagnostic::error(Code::WrongValue, message, source, text.span);
                    let help = format!("`prereg` registers analyses: steps of `{ANALYSIS}`");
                    problems.push(problem.with_help(help));
                }
                // A step with mistakes in an embedded workflow is not planned.
                None if name.contains('/') && self.diagnostics.has_errors() => {}
                None => {
                    let message = format!("there is no step {}", quote(name));
                    let analyses: Vec<&str> = workflow
                        .steps
                        .iter()
                        .filter(|step| operator_of(step) == Some(ANALYSIS))
                        .map(|step| step.name.value.as_str())
                        .chain(
                            self.steps
                                .iter()
                                .filter(|step| step.operator.descriptor().name == ANALYSIS)
                                .map(|step| step.family.as_str()),
                        )
                        .collect();
                    let problem = Diagnostic::error(Code::UnknownStep, message, source, text.span);
                    problems.push(problem.with_suggestion(name, analyses));
                }
            }
        }
        problems.into_iter().for_each(|problem| self.diagnostics.push(problem));
    }
}

fn operator_of(step: &StepSpec) -> Option<&str> {
    match &step.kind {
        StepKind::Op(name) => Some(&name.value),
        StepKind::Uses(_) | StepKind::Invalid => None,
    }
}
