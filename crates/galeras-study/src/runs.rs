//! The recorded runs of a workflow, and two of them side by side: their params, and the result of
//! each step in both.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use galeras_base::digest::Digest;
use galeras_operator::event::{PortSummary, RunStatus, StepStatus, StepSummary};
use galeras_store::{RunRecord, Store, StoreError};

/// The runs of a workflow file that the store has recorded, newest first.
///
/// # Errors
/// If the store cannot be read.
pub async fn past_runs(file: &Path, store: &Store) -> Result<Vec<RunRecord>, StoreError> {
    let mut runs = store.recent_runs(usize::MAX).await?;
    runs.retain(|run| run.is_of(file));
    Ok(runs)
}

/// The outcome of a run in words; a run without an end was killed or still runs.
pub fn outcome(run: &RunRecord) -> &'static str {
    match run.status {
        Some(RunStatus::Ok) => "ok",
        Some(RunStatus::Failed) => "failed",
        Some(RunStatus::AssertFailed) => "assertion failed",
        Some(RunStatus::CacheFailed) => "store failed",
        Some(RunStatus::Interrupted) => "interrupted",
        None => "no end",
    }
}

/// One digest of a run's results: equal digests mean equal results.
pub fn results_digest(run: &RunRecord) -> Option<Digest> {
    let mut ports: BTreeMap<String, Digest> = BTreeMap::new();
    for step in &run.steps {
        let ended = matches!(step.status, StepStatus::Hit | StepStatus::Ran);
        for port in step.ports.iter().filter(|_| ended) {
            ports.insert(format!("{}.{}", step.step, port.port), port.digest);
        }
    }
    (!ports.is_empty()).then(|| Digest::of_json(&json!(ports)))
}

/// A string as it is; other values as JSON.
pub fn value_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

/// The params sorted by name: `seed=1, threshold=0.8`.
pub fn params_text(params: &Value) -> String {
    let params = params.as_object().into_iter().flatten();
    let texts = params.map(|(name, value)| format!("{name}={}", value_text(value)));
    texts.collect::<Vec<_>>().join(", ")
}

/// A step with its results in two runs.
pub struct StepPair<'a> {
    /// The step's name.
    pub name: &'a str,
    /// Its result in the first run.
    pub old: Option<&'a StepSummary>,
    /// Its result in the second run.
    pub new: Option<&'a StepSummary>,
}

/// The relation of a step in one run to that in the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Its tables are equal.
    Same,
    /// Its tables differ.
    Differs,
    /// Only the second run has the step.
    Added,
    /// Only the first run has it.
    Removed,
    /// One of the runs has no result of it.
    NoResult,
}

impl Verdict {
    /// The relation in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Differs => "differs",
            Self::Added => "added",
            Self::Removed => "removed",
            Self::NoResult => "no result",
        }
    }
}

impl StepPair<'_> {
    /// The relation of the results.
    pub fn verdict(&self) -> Verdict {
        let (old, new) = match (self.old, self.new) {
            (None, _) => return Verdict::Added,
            (_, None) => return Verdict::Removed,
            (Some(old), Some(new)) => (old, new),
        };
        if !has_result(old) || !has_result(new) {
            return Verdict::NoResult;
        }
        if digests(old) == digests(new) { Verdict::Same } else { Verdict::Differs }
    }

    /// The port in both runs; `None` for a run without it.
    pub fn port(&self, name: &str) -> [Option<&PortSummary>; 2] {
        [self.old, self.new].map(|step| step?.ports.iter().find(|port| port.port == name))
    }

    /// The ports whose tables differ, or that only one run has.
    pub fn differing_ports(&self) -> Vec<String> {
        let digests = |step: Option<&StepSummary>| step.map(digests).unwrap_or_default();
        let (old, new) = (digests(self.old), digests(self.new));
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        // Summaries show the main port first.
        let order = |name: &&String| {
            let ports = self.new.or(self.old).map(|step| step.ports.as_slice()).unwrap_or_default();
            ports.iter().position(|port| port.port == **name).unwrap_or(usize::MAX)
        };
        let differs = |name: &&String| old.get(*name) != new.get(*name);
        let mut names: Vec<&String> = names.into_iter().filter(differs).collect();
        names.sort_by_key(order);
        names.into_iter().cloned().collect()
    }
}

fn has_result(step: &StepSummary) -> bool {
    // A table that failed its tests still exists and can be compared.
    matches!(step.status, StepStatus::Hit | StepStatus::Ran) || !step.ports.is_empty()
}

fn digests(step: &StepSummary) -> BTreeMap<String, Digest> {
    step.ports.iter().map(|port| (port.port.clone(), port.digest)).collect()
}

/// The steps of both runs in the order of the second; those only in the first come last.
pub fn step_pairs<'a>(
    old: &'a RunRecord,
    new: &'a RunRecord,
    select: &[String],
) -> Vec<StepPair<'a>> {
    let by_name = |run: &'a RunRecord| -> BTreeMap<&'a str, &'a StepSummary> {
        run.steps.iter().map(|step| (step.step.as_str(), step)).collect()
    };
    let (first, second) = (by_name(old), by_name(new));
    let names = |run: &'a RunRecord| run.steps.iter().map(|step| step.step.as_str());
    let gone = names(old).filter(|name| !second.contains_key(name));
    names(new)
        .chain(gone)
        .filter(|name| select.is_empty() || select.iter().any(|chosen| is_part(name, chosen)))
        .map(|name| StepPair {
            name,
            old: first.get(name).copied(),
            new: second.get(name).copied(),
        })
        .collect()
}

/// The step is the named one, a cell of it, or within it.
fn is_part(name: &str, chosen: &str) -> bool {
    let chosen = chosen.strip_suffix("[*]").unwrap_or(chosen);
    name.strip_prefix(chosen)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('[') || rest.starts_with('/'))
}

/// The params that differ: name, old value, new value.
pub fn changed_params<'a>(
    old: &'a RunRecord,
    new: &'a RunRecord,
) -> Vec<(&'a str, Option<&'a Value>, Option<&'a Value>)> {
    let names = |run: &'a RunRecord| run.params.as_object().into_iter().flatten();
    let all: BTreeSet<&str> = names(old).chain(names(new)).map(|(name, _)| name.as_str()).collect();
    all.into_iter()
        .map(|name| (name, old.params.get(name), new.params.get(name)))
        .filter(|(_, old, new)| old != new)
        .collect()
}
