//! Schedules steps that may cost money in waves, so that their requests are reported together
//! before the first is sent, and reports the spending at the end.
//!
//! Such a step waits until the inputs of the others are done, unless those need answers themselves:
//! a judge of answers is in the next wave.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tokio::sync::OnceCell;

use super::key::{StepManifests, step_key};
use super::lookup::{Lookup, lookup};
use super::run::Runner;
use super::spending::{limit_states, step_requests};
use crate::locked;
use galeras_operator::event::{RunEvent, StepRequests};

pub(super) struct Wave {
    pub(super) steps: Vec<usize>,
    /// Set when their requests were reported.
    pub(super) said: OnceCell<()>,
}

/// The progress of a step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Open,
    Done,
    /// It failed: its dependents do not run.
    Failed,
}

/// The steps that may cost money, and their dependencies.
pub(super) struct Waves {
    /// Each of them, with all steps that it needs.
    needs: HashMap<usize, Vec<usize>>,
    waiting: HashSet<usize>,
    /// Those of them that could start.
    parked: HashSet<usize>,
    progress: Vec<Progress>,
}

impl Waves {
    /// For these steps, each with all steps that it needs, of a plan with `steps` steps.
    pub(super) fn new(steps: usize, needs: HashMap<usize, Vec<usize>>) -> Self {
        let waiting = needs.keys().copied().collect();
        Self { needs, waiting, parked: HashSet::new(), progress: vec![Progress::Open; steps] }
    }

    /// Keeps a step that could start; false if it need not wait.
    pub(super) fn park(&mut self, step: usize) -> bool {
        self.waiting.contains(&step) && self.parked.insert(step)
    }

    pub(super) fn ended(&mut self, step: usize, failed: bool) {
        self.progress[step] = if failed { Progress::Failed } else { Progress::Done };
    }

    /// The next wave, if all its steps could start. They need not wait any longer.
    pub(super) fn release(&mut self) -> Option<Arc<Wave>> {
        if self.parked.is_empty() {
            return None;
        }
        let mut steps: Vec<usize> = Vec::new();
        for step in self.waiting.iter().filter(|step| self.is_next(**step)) {
            if !self.parked.contains(step) {
                return None;
            }
            steps.push(*step);
        }
        for step in &steps {
            self.waiting.remove(step);
            self.parked.remove(step);
        }
        steps.sort_unstable();
        Some(Arc::new(Wave { steps, said: OnceCell::new() }))
    }

    /// True if nothing that the step needs has failed or is an unfinished step that may cost money.
    fn is_next(&self, step: usize) -> bool {
        self.needs[&step].iter().all(|need| match self.progress[*need] {
            Progress::Done => true,
            Progress::Open => !self.needs.contains_key(need),
            Progress::Failed => false,
        })
    }
}

impl Runner {
    /// The steps of a wave, which start now, in the order in which a stack takes them.
    pub(super) fn starts(&self, wave: &Arc<Wave>) -> Vec<usize> {
        let mut waves = locked(&self.waves);
        waves.extend(wave.steps.iter().map(|step| (*step, Arc::clone(wave))));
        wave.steps.iter().rev().copied().collect()
    }

    /// Reports the requests of this step's wave once, before the first is sent.
    pub(super) async fn say_what_is_asked(&self, step: usize) {
        let wave = locked(&self.waves).get(&step).cloned();
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
        let done = self.inputs_of(step);
        let (planned, forced) = (&self.plan.steps[step], self.options.force.contains(&step));
        if !forced
            && let Ok(key) = step_key(&self.plan, planned, &done)
            && let Ok(Lookup::Hit(_)) = lookup(&self.store, planned, &key.preimage.key()).await
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps 0 and 1 make prompts for 2 and 3; 4 judges the answers of 2; 5 scores them.
    fn waves() -> Waves {
        let needs = [(2, vec![0]), (3, vec![1]), (4, vec![0, 2])];
        Waves::new(6, needs.into_iter().collect())
    }

    #[test]
    fn steps_start_together_when_all_of_them_could() {
        let mut waves = waves();
        assert!(!waves.park(0) && waves.release().is_none());
        waves.ended(0, false);
        assert!(waves.park(2));
        assert!(waves.release().is_none(), "the prompts of 3 are not there");
        waves.ended(1, false);
        assert!(waves.release().is_none(), "3 is not parked yet");
        assert!(waves.park(3));
        assert_eq!(waves.release().unwrap().steps, [2, 3]);
        assert!(!waves.park(2), "it starts now");
        assert!(waves.release().is_none());
        waves.ended(2, false);
        assert!(waves.park(4));
        assert_eq!(waves.release().unwrap().steps, [4]);
    }

    #[test]
    fn what_cannot_run_is_not_waited_for() {
        let mut waves = waves();
        waves.ended(0, false);
        assert!(waves.park(2));
        waves.ended(1, true);
        assert_eq!(waves.release().unwrap().steps, [2]);
    }
}
