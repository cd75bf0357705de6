//! Why a step runs: its key's pre-image against the one of its last result.

use std::collections::HashMap;

use serde_json::Value;
use tokio::sync::OnceCell;

use super::key::StepKey;
use crate::digest::Digest;
use crate::event::{Reason, StepStatus};
use crate::plan::PlannedStep;
use crate::store::{Manifest, RunRecord, Store};

/// Runs that are looked at for the last result of a step.
const RECENT_RUNS: usize = 30;

/// The earlier runs of a workflow, read from the store when they are first needed.
pub(crate) struct RunHistory {
    store: Store,
    workflow: String,
    runs: OnceCell<Vec<PastRun>>,
}

/// An earlier run, whose steps are found by name.
struct PastRun {
    killed: bool,
    steps: HashMap<String, (StepStatus, Option<Digest>)>,
}

impl PastRun {
    fn new(run: RunRecord) -> Self {
        let mut steps = HashMap::with_capacity(run.steps.len());
        for step in run.steps {
            steps.entry(step.step).or_insert((step.status, step.key));
        }
        Self { killed: run.status.is_none(), steps }
    }
}

/// What a step's last run left.
enum LastRun {
    /// It left this result.
    Result(Box<Manifest>),
    /// It left a result that is no longer in the store.
    Gone,
    /// It failed, or was never reached because the run was interrupted.
    Failed(&'static str),
    /// There was none.
    None,
}

impl RunHistory {
    pub(crate) fn new(store: &Store, workflow: &str) -> Self {
        Self { store: store.clone(), workflow: workflow.to_string(), runs: OnceCell::new() }
    }

    async fn runs(&self) -> &[PastRun] {
        let load = || async {
            let runs = self.store.recent_runs(RECENT_RUNS).await.unwrap_or_default();
            let runs = runs.into_iter().filter(|run| run.workflow == self.workflow);
            runs.map(PastRun::new).collect()
        };
        self.runs.get_or_init(load).await
    }

    async fn last(&self, step: &str) -> LastRun {
        let mut interrupted = None;
        for run in self.runs().await {
            match run.steps.get(step) {
                None => {
                    if run.killed {
                        interrupted = Some("the last run was killed before this step was done");
                    }
                }
                Some((status, key)) => match (status, key) {
                    (StepStatus::Hit | StepStatus::Ran, Some(key)) => {
                        return match self.store.manifest(key).await {
                            Ok(Some(manifest)) => LastRun::Result(Box::new(manifest)),
                            _ => LastRun::Gone,
                        };
                    }
                    (StepStatus::Failed, _) => {
                        interrupted.get_or_insert("it failed in the last run");
                    }
                    _ => {
                        interrupted.get_or_insert("the last run stopped before this step");
                    }
                },
            }
        }
        interrupted.map_or(LastRun::None, LastRun::Failed)
    }

    /// Why `step` has no result under its present key, and the details in words.
    pub(crate) async fn explain(
        &self,
        step: &PlannedStep,
        now: &StepKey,
    ) -> (Reason, Option<String>) {
        match self.last(&step.name).await {
            LastRun::None => (Reason::New, None),
            LastRun::Failed(why) => (Reason::PrevFailed, Some(why.to_string())),
            LastRun::Gone => {
                (Reason::BlobMissing, Some("the last result is no longer in the store".into()))
            }
            LastRun::Result(before) => compare(step, &before, now),
        }
    }
}

fn compare(step: &PlannedStep, before: &Manifest, now: &StepKey) -> (Reason, Option<String>) {
    let (old, new) = (&before.preimage, &now.preimage);
    if old.operator != new.operator {
        let detail = format!("operator {} → {}", old.operator, new.operator);
        return (Reason::OpChanged, Some(detail));
    }
    if old.version != new.version || old.format != new.format {
        let detail = format!("{} version {} → {}", new.operator, old.version, new.version);
        return (Reason::OpChanged, Some(detail));
    }
    let mut changes = Vec::new();
    differences("", &old.args, &new.args, &mut changes);
    if !changes.is_empty() {
        let lines = changes.iter().map(|(path, old, new)| {
            format!("with.{path}: {} → {} ({})", shown(old), shown(new), step.place_of(path))
        });
        return (Reason::ArgChanged, Some(lines.collect::<Vec<_>>().join("; ")));
    }
    if old.files != new.files {
        let changed = now
            .files
            .iter()
            .filter(|f| !old.files.contains(&f.digest))
            .map(|f| f.name.as_str())
            .collect::<Vec<_>>();
        let detail = match changed.as_slice() {
            [] => "the list of files changed".to_string(),
            names => format!("{} changed", names.join(", ")),
        };
        return (Reason::SourceMoved, Some(detail));
    }
    let changed: Vec<String> = new
        .inputs
        .iter()
        .filter(|(port, digest)| old.inputs.get(*port) != Some(digest))
        .map(|(port, digest)| match old.inputs.get(port) {
            Some(old) => format!("{port}: {} → {}", old.short(), digest.short()),
            None => format!("{port} is new"),
        })
        .collect();
    if !changed.is_empty() || old.inputs.len() != new.inputs.len() {
        return (Reason::InputChanged, Some(changed.join("; ")));
    }
    (Reason::BlobMissing, Some("the last result is no longer complete".into()))
}

/// The paths at which two values differ, with both values.
fn differences(path: &str, old: &Value, new: &Value, out: &mut Vec<(String, Value, Value)>) {
    match (old, new) {
        (Value::Object(a), Value::Object(b)) => {
            let names = a.keys().chain(b.keys().filter(|k| !a.contains_key(*k)));
            for name in names {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                let of = |map: &serde_json::Map<String, Value>| {
                    map.get(name).cloned().unwrap_or(Value::Null)
                };
                differences(&path, &of(a), &of(b), out);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (at, (a, b)) in a.iter().zip(b).enumerate() {
                differences(&format!("{path}[{at}]"), a, b, out);
            }
        }
        _ if old == new => {}
        _ => out.push((path.to_string(), old.clone(), new.clone())),
    }
}

/// A value short enough for a line.
fn shown(value: &Value) -> String {
    const WIDTH: usize = 60;
    let text = value.to_string();
    if text.chars().count() <= WIDTH {
        return text;
    }
    let head: String = text.chars().take(WIDTH).collect();
    format!("{head}…")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn differences_name_the_deepest_place() {
        let mut changes = Vec::new();
        let old = json!({"rules": [{"name": "a", "check": "x"}], "n": 1});
        let new = json!({"rules": [{"name": "a", "check": "y"}], "n": 1, "m": 2});
        differences("", &old, &new, &mut changes);
        let paths: Vec<&str> = changes.iter().map(|c| c.0.as_str()).collect();
        assert_eq!(paths, ["rules[0].check", "m"]);
    }
}
