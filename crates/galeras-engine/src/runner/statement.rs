//! Reports about money: the requests and their cost before a run sends them, and the spending at
//! its end.

use std::sync::{Arc, PoisonError};

use super::key::{StepManifests, step_key};
use super::lookup::{Lookup, lookup};
use super::run::Runner;
use super::spending::{limit_states, step_requests};
use super::wave::Wave;
use galeras_operator::event::{RunEvent, StepRequests};

impl Runner {
    /// The steps of a wave, which start now, in the order in which a stack takes them.
    pub(super) fn starts(&self, wave: &Arc<Wave>) -> Vec<usize> {
        let mut waves = self.waves.lock().unwrap_or_else(PoisonError::into_inner);
        waves.extend(wave.steps.iter().map(|step| (*step, Arc::clone(wave))));
        wave.steps.iter().rev().copied().collect()
    }

    /// Reports the requests of this step's wave once, before the first is sent.
    pub(super) async fn say_what_is_asked(&self, step: usize) {
        let wave = {
            let waves = self.waves.lock().unwrap_or_else(PoisonError::into_inner);
            waves.get(&step).cloned()
        };
        let Some(wave) = wave else { return };
        let say = || async {
            let mut steps = Vec::new();
            for step in &wave.steps {
                steps.extend(self.requests(*step).await);
            }
            if !steps.is_empty() {
                // Read errors are reported by the first request.
                let limits = limit_states(&self.plan, |step| wave.steps.contains(&step));
                let limits = limits.unwrap_or_default();
                self.env().events.send(RunEvent::Requests { steps, limits });
            }
        };
        wave.said.get_or_init(say).await;
    }

    /// The requests of a step; `None` if it sends none.
    async fn requests(&self, step: usize) -> Option<StepRequests> {
        let done = self.results.of(self.plan.steps[step].upstream());
        let (planned, forced) = (&self.plan.steps[step], self.options.force.contains(&step));
        if !forced
            && let Ok(key) = step_key(&self.plan, planned, &done)
            && let Ok(Lookup::Hit(manifest)) =
                lookup(&self.store, planned, &key.preimage.key()).await
            && manifest.retry_rows == 0
        {
            return None;
        }
        let asked = match step_requests(&self.plan, &self.store, step, &done, forced).await {
            Ok(asked) => asked,
            // An input cannot be read, and may be recomputed: the number of requests is unknown,
            // but not their target.
            Err(error) => {
                tracing::debug!("requests are not known: {error}");
                let nothing = vec![None; done.len()];
                step_requests(&self.plan, &self.store, step, &nothing, forced).await.ok()?
            }
        };
        asked.filter(|asked| asked.requests != Some(0))
    }

    /// Reports the spending, and updates the ledger; `done` has the results.
    pub(super) fn account(&self, done: &StepManifests) {
        if let Some(spent) = self.spending.spent(&self.plan) {
            self.env().events.send(spent);
        }
        if let Err(error) = tokio::task::block_in_place(|| self.spending.close(&self.plan, done)) {
            // The ledger has too much, never too little.
            self.warn(None, format!("what was spent is not written: {error}"));
        }
    }
}
