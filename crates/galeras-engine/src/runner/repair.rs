//! Recomputes results with damaged files, and everything computed from them.

use std::sync::Arc;

use super::error::RunError;
use super::lookup::UnsoundFiles;
use super::run::{Attempt, Runner};
use galeras_base::digest::Digest;
use galeras_operator::event::StepStatus;
use galeras_store::{Manifest, VerifyLevel};

impl Runner {
    /// The manifests of a step's inputs, after those with damaged files were recomputed; `None` if
    /// no file is damaged.
    pub(super) async fn repaired_inputs(
        &self,
        i: usize,
        done: &[Option<Arc<Manifest>>],
    ) -> Result<Option<Vec<Option<Arc<Manifest>>>>, RunError> {
        // The inputs' own inputs are also needed.
        let mut done = self.results.beside(done);
        let mut repaired = false;
        for upstream in self.plan.steps[i].upstream() {
            let Some(manifest) = done[upstream].clone() else { continue };
            let unsound = self.store.unsound_blobs(&manifest, VerifyLevel::Hashed).await?;
            if unsound.is_empty() {
                continue;
            }
            let name = self.plan.steps[upstream].name.clone();
            let unsound = UnsoundFiles::of(unsound);
            self.warn(Some(name.clone()), format!("{unsound}; computing again"));
            self.store.forget(&manifest.key).await?;
            self.forget_descendants(&name, &unsound.damaged).await?;
            let mut again = Attempt::new(self.summary(upstream, StepStatus::Ran));
            done[upstream] =
                Some(Arc::new(Box::pin(self.manifest(upstream, &done, &mut again)).await?));
            repaired = true;
        }
        Ok(repaired.then_some(done))
    }

    /// Removes everything ever computed from these damaged files, as the damage may be old.
    pub(super) async fn forget_descendants(
        &self,
        step: &str,
        damaged: &[Digest],
    ) -> Result<(), RunError> {
        if damaged.is_empty() {
            return Ok(());
        }
        let forgotten = self.store.forget_descendants(damaged).await?;
        if !forgotten.steps.is_empty() {
            let steps = forgotten.steps.join(", ");
            let message = format!("what was computed from damaged files is forgotten: {steps}");
            self.warn(Some(step.to_string()), message);
        }
        Ok(())
    }
}
