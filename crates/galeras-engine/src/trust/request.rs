//! The actions that the steps and outputs of a plan request.

use std::path::Path;

use super::ground::settled;
use crate::plan::Plan;
use galeras_operator::Access;
use galeras_workflow::SourceSpan;

/// A requested action, its steps and outputs, and its place in the file.
#[derive(Clone, Debug)]
pub struct AccessRequest {
    /// The action. Links in its paths are resolved.
    pub access: Access,
    /// The steps and outputs that need it: ``step `a` ``.
    pub by: Vec<String>,
    /// The first place that requests it.
    pub place: SourceSpan,
}

/// The name for a workflow's remote in `by`.
const REMOTE: &str = "`remote`";

impl AccessRequest {
    /// True if results are read from there.
    pub fn is_remote(&self) -> bool {
        self.by.iter().any(|by| by == REMOTE)
    }
}

/// The actions of these steps of the plan, of outputs and of the remote. Outputs count if there is
/// a folder `out`. Each action occurs once, in the order of the plan.
pub fn requests(plan: &Plan, steps: &[usize], out: Option<&Path>) -> Vec<AccessRequest> {
    let mut found: Vec<AccessRequest> = Vec::new();
    let mut add = |access: &Access, by: String, place: SourceSpan| {
        let access = settled(access);
        match found.iter_mut().find(|request| request.access == access) {
            Some(request) => request.by.push(by),
            None => found.push(AccessRequest { access, by: vec![by], place }),
        }
    };
    for step in steps.iter().map(|at| &plan.steps[*at]) {
        for demand in step.step.demands() {
            let by = format!("step `{}`", step.name);
            add(&demand.access, by, step.span_of(&demand.at));
        }
    }
    let Some(out) = out else { return found };
    if let Some(remote) = &plan.remote {
        add(&remote.access, REMOTE.into(), remote.place.clone());
    }
    if let Some(signers) = &plan.allowed_signers {
        add(&signers.access(), REMOTE.into(), signers.place.clone());
    }
    for output in &plan.outputs {
        if output.input.tables.iter().all(|table| steps.contains(&table.step)) {
            let access = Access::Write { path: out.join(&output.path) };
            add(&access, format!("output `{}`", output.name), output.place.clone());
        }
    }
    found
}

/// The writing of the report, if the workflow names a path; relative paths start in `out`.
pub fn report_request(plan: &Plan, out: &Path) -> Option<AccessRequest> {
    let file = plan.report.file.as_ref()?;
    let access = settled(&Access::Write { path: out.join(&file.path) });
    Some(AccessRequest { access, by: vec!["`report`".into()], place: file.place.clone() })
}
