//! Schedules steps that may cost money in waves, so that their requests are reported together
//! before the first is sent.
//!
//! Such a step waits until the inputs of the others are done, unless those need answers themselves:
//! a judge of answers is in the next wave.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tokio::sync::OnceCell;

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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
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
