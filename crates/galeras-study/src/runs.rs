//! The recorded runs of a workflow.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use galeras_base::digest::Digest;
use galeras_operator::event::{RunStatus, StepStatus};
use galeras_store::{RunRecord, Store, StoreError};

/// The runs of a workflow file that the store has recorded, newest first.
///
/// # Errors
/// If the store cannot be read.
pub async fn past_runs(file: &Path, store: &Store) -> Result<Vec<RunRecord>, StoreError> {
    let mut runs = store.recent_runs(usize::MAX).await?;
    runs.retain(|run| is_of(run, file));
    Ok(runs)
}

/// The run is one of this file. If the recorded path cannot be found from here, because the run was
/// started in another folder, the file name decides.
fn is_of(run: &RunRecord, file: &Path) -> bool {
    let there = |path: &Path| path.canonicalize().ok();
    match (there(Path::new(&run.file)), there(file)) {
        (Some(one), Some(other)) => one == other,
        _ => {
            let recorded = Path::new(&run.file);
            recorded.file_name().is_some() && recorded.file_name() == file.file_name()
        }
    }
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
