//! Recomputes steps to verify the store: from their stored inputs, into a separate empty store.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::compute::compute;
use super::context::{StepContext, StepTask};
use super::error::RunError;
use super::input::input_size;
use super::key::{StepManifests, artifact, step_key};
use super::spending::RunSpending;
use super::spread::Embedded;
use crate::plan::Plan;
use galeras_base::id::keyed_hash;
use galeras_operator::{Access, Lowering, RunEnv};
use galeras_store::{CopyError, Manifest, Store};

/// The inputs of a recomputation.
pub struct Recomputation<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The store that has the results.
    pub store: &'a Store,
    /// The results, by position in the plan.
    pub done: &'a StepManifests,
    /// The environment of the steps.
    pub env: RunEnv,
}

impl Recomputation<'_> {
    /// The reason why a step is not recomputed, in words that follow its name; `None` if it can be.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn objection(&self, at: usize) -> Result<Option<String>, RunError> {
        let step = &self.plan.steps[at];
        match self.done.get(at).and_then(Option::as_ref) {
            None => return Ok(Some("is not computed yet".into())),
            Some(manifest) if manifest.retry_rows > 0 => {
                return Ok(Some("has rows that failed and are tried again".into()));
            }
            Some(_) => {}
        }
        match step.step.lowering() {
            Lowering::Paid(_) => return Ok(Some("asks a model".into())),
            Lowering::FanOut(_) => return Ok(Some("fetches what it reads".into())),
            Lowering::Row(_) | Lowering::Table(_) => {}
        }
        for demand in step.step.demands() {
            if matches!(demand.access, Access::Host { .. } | Access::Variable { .. }) {
                return Ok(Some("needs a network".into()));
            }
            if let Some(refused) = self.env.consent.refusal(&demand.access) {
                return Ok(Some(refused.message));
            }
        }
        for table in step.inputs.iter().flat_map(|input| &input.tables) {
            let name = &self.plan.steps[table.step].name;
            let Some(port) = artifact(self.done, table.step, table.port) else {
                return Ok(Some(format!("reads `{name}`, which is not computed yet")));
            };
            if !self.store.has_blob(&port.blob, port.bytes).await? {
                return Ok(Some(format!("reads `{name}`, whose table is not here")));
            }
        }
        Ok(None)
    }

    /// Computes a step from its stored inputs into `scratch`, without reuse. The result has the key
    /// of the stored one, and should have its digests.
    ///
    /// # Errors
    /// If the step fails, an input is damaged, or a disk fails.
    pub async fn compute(&self, at: usize, scratch: &Store) -> Result<Manifest, RunError> {
        let step = &self.plan.steps[at];
        for table in step.inputs.iter().flat_map(|input| &input.tables) {
            let Some(port) = artifact(self.done, table.step, table.port) else { continue };
            let copied = self.store.copy_table(scratch, port, None).await;
            copied.map_err(|(CopyError::From(error) | CopyError::To(error))| error)?;
        }
        let key = step_key(self.plan, step, self.done)?;
        let cx = self.context(at, scratch)?;
        compute(self.plan, at, &key, self.done, (&cx, &Embedded), self.turn().await?).await
    }

    /// The context of a step that is computed into `scratch`.
    pub(super) fn context(&self, at: usize, scratch: &Store) -> Result<StepContext, RunError> {
        let step = &self.plan.steps[at];
        let spending = RunSpending::new(self.plan);
        let bytes = input_size(step, self.done).map(|(_, bytes)| bytes);
        let task = StepTask::of(self.plan, step);
        StepContext::new(&task, scratch, &self.env, spending.budget(at), bytes, true)
    }

    /// Nothing else is computed at the same time.
    pub(super) async fn turn(&self) -> Result<OwnedSemaphorePermit, RunError> {
        let turn = Arc::new(Semaphore::new(1)).acquire_owned().await;
        turn.map_err(|_| RunError::Interrupted)
    }
}

/// The steps in random order by a seed. The order depends on their keys, so that their places in
/// the file do not matter.
pub fn drawn(steps: &[usize], done: &StepManifests, seed: i64) -> Vec<usize> {
    let mut steps = steps.to_vec();
    steps.sort_by_cached_key(|at| {
        let key = done.get(*at).and_then(Option::as_ref).map(|manifest| manifest.key.to_string());
        (keyed_hash(seed, "recompute", key.unwrap_or_default().as_bytes()), *at)
    });
    steps
}
