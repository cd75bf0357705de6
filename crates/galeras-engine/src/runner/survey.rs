//! The state of every step of the present workflow in the store; nothing is computed.

use std::sync::Arc;

use super::error::RunError;
use super::history::RunHistory;
use super::key::{StepKey, step_key};
use super::lookup::{Lookup, lookup, reason_to_run, retry_reason, unfit};
use super::remote::Remote;
use crate::plan::Plan;
use galeras_base::digest::Digest;
use galeras_operator::event::Reason;
use galeras_store::{Manifest, Offer, Preimage, Store};

/// The expected outcome of a step in a run.
pub enum Forecast {
    /// The result is stored.
    Hit,
    /// The remote has the result.
    RemoteHit,
    /// The step would run, for this reason.
    Runs {
        /// The reason.
        reason: Reason,
        /// A description of the change.
        detail: Option<String>,
    },
    /// A step that it reads would run; its result decides if this one runs.
    Waits {
        /// The positions of those steps in the plan.
        on: Vec<usize>,
    },
    /// Its key cannot be computed, for this reason.
    Broken(String),
}

impl Forecast {
    /// True if there is a result, here or in the remote.
    pub fn is_hit(&self) -> bool {
        matches!(self, Self::Hit | Self::RemoteHit)
    }
}

/// A step's state with its stored result and the pre-image of its key, if known.
pub struct StepState {
    /// The expected outcome.
    pub forecast: Forecast,
    /// The stored result.
    pub manifest: Option<Arc<Manifest>>,
    /// The pre-image of its key.
    pub preimage: Option<Preimage>,
}

/// The state of every step, in plan order. Reads manifests, including those of a remote; hashes
/// side files, and stored files that were not checked before.
///
/// # Errors
/// If the store cannot be read.
pub async fn survey(
    plan: &Plan,
    store: &Store,
    remote: Option<&Remote>,
) -> Result<Vec<StepState>, RunError> {
    let history = RunHistory::new(store, plan);
    let mut states: Vec<StepState> = Vec::with_capacity(plan.steps.len());
    let mut done: Vec<Option<Arc<Manifest>>> = Vec::with_capacity(plan.steps.len());
    let unknown = |forecast| StepState { forecast, manifest: None, preimage: None };
    for (at, step) in plan.steps.iter().enumerate() {
        let mut on: Vec<usize> = step.upstream().filter(|u| done[*u].is_none()).collect();
        on.dedup();
        let state = if on.is_empty() {
            match step_key(plan, step, &done) {
                Ok(key) => {
                    let mut state = stored(&history, step, store, key).await?;
                    if let (Some(remote), false) = (remote, state.forecast.is_hit()) {
                        state = offered(remote, plan, at, state).await;
                    }
                    state
                }
                Err(error) => unknown(Forecast::Broken(error.to_string())),
            }
        } else {
            unknown(Forecast::Waits { on })
        };
        done.push(state.manifest.clone());
        states.push(state);
    }
    Ok(states)
}

/// The state of a step that would run, unless the remote has its result.
async fn offered(remote: &Remote, plan: &Plan, at: usize, state: StepState) -> StepState {
    let Some(key) = state.preimage.as_ref().map(Preimage::key) else { return state };
    match remote.manifest(plan, at, &key, None).await {
        Some(manifest) => {
            StepState { forecast: Forecast::RemoteHit, manifest: Some(manifest), ..state }
        }
        None => state,
    }
}

async fn stored(
    history: &RunHistory,
    step: &crate::plan::PlannedStep,
    store: &Store,
    key: StepKey,
) -> Result<StepState, RunError> {
    let (forecast, manifest) = match lookup(store, step, &key.preimage.key()).await? {
        Lookup::Retry(manifest) => {
            let (reason, detail) = (Reason::PrevFailed, Some(retry_reason(&manifest)));
            (Forecast::Runs { reason, detail }, Some(Arc::new(*manifest)))
        }
        Lookup::Hit(manifest) => (Forecast::Hit, Some(Arc::new(*manifest))),
        Lookup::Incomplete(files) => {
            let detail = Some(files.to_string());
            (Forecast::Runs { reason: Reason::BlobMissing, detail }, None)
        }
        Lookup::Unfit(cause) => {
            let detail = Some(unfit(&cause));
            (Forecast::Runs { reason: Reason::BlobMissing, detail }, None)
        }
        Lookup::Miss => {
            let (reason, detail) = reason_to_run(history, step, &key).await;
            (Forecast::Runs { reason, detail }, None)
        }
    };
    Ok(StepState { forecast, manifest, preimage: Some(key.preimage) })
}

/// The state of a step's result in the store.
#[derive(Clone, Debug)]
pub enum StoredResult {
    /// A result, whose tables may be missing or damaged.
    Found(Arc<Manifest>),
    /// An entry with this key that is not a result, for this reason.
    Damaged(Digest, String),
    /// No entry with this key.
    Missing(Digest),
    /// The key is unknown, for this reason.
    Unknown(String),
}

impl StoredResult {
    /// The result, if there is one.
    pub fn manifest(&self) -> Option<&Arc<Manifest>> {
        match self {
            Self::Found(manifest) => Some(manifest),
            Self::Damaged(..) | Self::Missing(_) | Self::Unknown(_) => None,
        }
    }
}

/// The stored result of each step, in plan order. Reads manifests and hashes side files, but reads
/// no table.
///
/// # Errors
/// If the store cannot be read.
pub async fn stored_results(plan: &Plan, store: &Store) -> Result<Vec<StoredResult>, RunError> {
    let mut found: Vec<StoredResult> = Vec::with_capacity(plan.steps.len());
    let mut done: Vec<Option<Arc<Manifest>>> = Vec::with_capacity(plan.steps.len());
    for step in &plan.steps {
        let lacking = step.upstream().find(|upstream| done[*upstream].is_none());
        let result = match lacking.map(|upstream| &plan.steps[upstream].name) {
            Some(upstream) => StoredResult::Unknown(format!("it rests on `{upstream}`")),
            None => match step_key(plan, step, &done) {
                Err(error) => StoredResult::Unknown(error.to_string()),
                Ok(key) => {
                    let key = key.preimage.key();
                    match store.offer(&key).await? {
                        Offer::Manifest(manifest) => {
                            StoredResult::Found(Arc::new(manifest.manifest))
                        }
                        Offer::Nothing => StoredResult::Missing(key),
                        Offer::Unusable(cause) => StoredResult::Damaged(key, cause),
                    }
                }
            },
        };
        done.push(result.manifest().cloned());
        found.push(result);
    }
    Ok(found)
}
