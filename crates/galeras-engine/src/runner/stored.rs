//! Finds the stored results of the present workflow by their keys. The files of the tables are not
//! checked.

use std::sync::Arc;

use super::error::RunError;
use super::key::step_key;
use crate::plan::Plan;
use galeras_base::digest::Digest;
use galeras_store::{Manifest, Offer, Store};

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
                            StoredResult::Found(Arc::new(manifest.into_manifest()))
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
