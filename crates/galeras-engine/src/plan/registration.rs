//! Preregistration: the steps that a workflow's `prereg` names, their analyses in `galeras.lock`,
//! and the comparison of both.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::expander::Expander;
use super::model::{Input, Plan, PlannedStep, with_ancestors};
use galeras_operator::{REGISTRATION, RegisteredAnalysis, Registration};
use galeras_workflow::code::Code;
use galeras_workflow::{Diagnostic, StepKind, StepSpec, Workflow, quote};

/// Upper bound of named changed steps; more would hide the message.
const NAMED: usize = 3;

/// A registered analysis, with everything that determines its rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedAnalysis {
    /// The file of the workflow.
    pub workflow: String,
    /// The full name of the step.
    pub step: String,
    /// The time of registration, RFC 3339 in UTC.
    pub at: String,
    /// True if the store had no results for it yet.
    pub before_results: bool,
    /// The arguments of the step.
    pub with: Value,
    /// The steps that it depends on, sorted by name.
    pub rests_on: Vec<LockedStep>,
}

/// A step that an analysis depends on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedStep {
    /// Its full name.
    pub step: String,
    /// Its operator.
    pub op: String,
    /// Its arguments, with their defaults.
    pub with: Value,
}

impl LockedAnalysis {
    /// The analysis of a step of the current plan.
    pub fn of(plan: &Plan, step: usize, at: String, before_results: bool) -> Self {
        let upstream = plan.with_ancestors(&[step]).into_iter().filter(|other| *other != step);
        let planned = &plan.steps[step];
        Self {
            workflow: plan.file_name(),
            step: planned.name.clone(),
            at,
            before_results,
            with: own_args(planned),
            rests_on: steps_below(upstream.map(|other| &plan.steps[other])),
        }
    }

    /// True if both describe the same step in the same way.
    pub fn agrees_with(&self, other: &Self) -> bool {
        let about = |one: &Self| (one.workflow.clone(), one.step.clone());
        about(self) == about(other) && self.with == other.with && self.rests_on == other.rests_on
    }

    /// Descriptions of the differences in the steps that it depends on.
    pub(super) fn changed_steps(&self, now: &[LockedStep]) -> Vec<String> {
        let by_name = |steps: &[LockedStep]| -> BTreeMap<String, LockedStep> {
            steps.iter().map(|step| (step.step.clone(), step.clone())).collect()
        };
        let (then, now) = (by_name(&self.rests_on), by_name(now));
        let mut changed = Vec::new();
        for (name, was) in &then {
            match now.get(name) {
                None => changed.push(format!("step `{name}` is gone")),
                Some(is) if is.op != was.op => {
                    changed.push(format!("step `{name}` is `{}`, not `{}`", is.op, was.op));
                }
                Some(is) => {
                    let keys = changed_keys(&was.with, &is.with);
                    if !keys.is_empty() {
                        changed.push(format!("step `{name}` has another {}", keys.join(", ")));
                    }
                }
            }
        }
        let new = now.keys().filter(|name| !then.contains_key(*name));
        changed.extend(new.map(|name| format!("step `{name}` is new")));
        if changed.len() > NAMED {
            let more = changed.len() - NAMED;
            changed.truncate(NAMED);
            changed.push(format!("{more} more steps differ"));
        }
        changed
    }
}

/// The arguments of a step without those from the lock file.
fn own_args(step: &PlannedStep) -> Value {
    let mut args = step.step.args();
    if let Some(args) = args.as_object_mut() {
        args.remove(REGISTRATION);
    }
    args
}

pub(super) fn steps_below<'a>(steps: impl Iterator<Item = &'a PlannedStep>) -> Vec<LockedStep> {
    let mut below: Vec<LockedStep> = steps
        .map(|step| LockedStep {
            step: step.name.clone(),
            op: step.operator.descriptor().name.to_string(),
            with: own_args(step),
        })
        .collect();
    below.sort_by(|a, b| a.step.cmp(&b.step));
    below
}

fn changed_keys(one: &Value, other: &Value) -> Vec<String> {
    let (Some(a), Some(b)) = (one.as_object(), other.as_object()) else {
        return if one == other { Vec::new() } else { vec!["`with`".to_string()] };
    };
    let mut keys: Vec<&String> = a.keys().chain(b.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    let differs = keys.into_iter().filter(|key| a.get(*key) != b.get(*key));
    differs.map(|key| format!("`{key}`")).collect()
}

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
        let named = self.prereg.iter().any(|text| text.value == family);
        if !named || operator != ANALYSIS {
            return None;
        }
        let read = inputs.iter().flat_map(|input| input.tables.iter().map(|table| table.step));
        let below = with_ancestors(&self.steps, read);
        let now = steps_below(below.into_iter().map(|at| &self.steps[at]));
        let locked = self.locked.iter().filter(|locked| locked.step == name);
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
        for (at, text) in self.prereg.iter().enumerate() {
            let name = &text.value;
            let source = &workflow.source;
            if self.prereg[..at].iter().any(|before| before.value == *name) {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn step(name: &str, op: &str, with: Value) -> LockedStep {
        LockedStep { step: name.into(), op: op.into(), with }
    }

    fn analysis(rests_on: Vec<LockedStep>) -> LockedAnalysis {
        LockedAnalysis {
            workflow: "w.yaml".into(),
            step: "effect".into(),
            at: "2026-01-01T00:00:00Z".into(),
            before_results: true,
            with: json!({}),
            rests_on,
        }
    }

    #[test]
    fn changes_are_said_by_step_and_argument() {
        let then = analysis(vec![
            step("valid", "validate", json!({"rules": [1], "seed": 1})),
            step("cut", "cut", json!({})),
            step("gone", "sql", json!({})),
        ]);
        let now = [
            step("valid", "validate", json!({"rules": [2], "seed": 1, "more": 1})),
            step("cut", "sample", json!({})),
            step("new", "sql", json!({})),
        ];
        assert_eq!(
            then.changed_steps(&now),
            [
                "step `cut` is `sample`, not `cut`",
                "step `gone` is gone",
                "step `valid` has another `more`, `rules`",
                "1 more steps differ",
            ]
        );
        assert!(then.changed_steps(&then.rests_on.clone()).is_empty());
    }

    #[test]
    fn a_registration_agrees_whenever_it_was_made() {
        let one = analysis(Vec::new());
        let later = LockedAnalysis { at: "2027".into(), before_results: false, ..one.clone() };
        assert!(one.agrees_with(&later));
        let other = LockedAnalysis { with: json!({"alpha": 0.1}), ..one.clone() };
        assert!(!one.agrees_with(&other));
        let elsewhere = LockedAnalysis { step: "effect2".into(), ..one.clone() };
        assert!(!one.agrees_with(&elsewhere));
    }
}
