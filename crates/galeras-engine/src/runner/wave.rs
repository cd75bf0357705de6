//! When steps that may cost money start: together, so that what they ask is said once for all of
//! them before the first request.
//!
//! Such a step waits until everything is done that the others need, unless that is itself answers
//! of such a step: a judge of answers is in the next wave.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tokio::sync::OnceCell;

/// Steps that start together.
pub(super) struct Wave {
    /// Their positions in the plan.
    pub(super) steps: Vec<usize>,
    /// Set when it was said what they ask.
    pub(super) said: OnceCell<()>,
}

/// How far a step is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Open,
    Done,
    /// It failed: what needs it does not run.
    Failed,
}

/// The steps that may cost money, and what they wait for.
pub(super) struct Waves {
    /// All of them, with all that each needs.
    needs: HashMap<usize, Vec<usize>>,
    /// Those that have not started.
    waiting: HashSet<usize>,
    /// Those of them that could.
    parked: HashSet<usize>,
    progress: Vec<Progress>,
}

impl Waves {
    /// For these steps, each with all that it needs, of a plan of so many steps.
    pub(super) fn new(steps: usize, needs: HashMap<usize, Vec<usize>>) -> Self {
        let waiting = needs.keys().copied().collect();
        Self { needs, waiting, parked: HashSet::new(), progress: vec![Progress::Open; steps] }
    }

    /// Keeps a step that could start; false if it need not wait.
    pub(super) fn park(&mut self, step: usize) -> bool {
        self.waiting.contains(&step) && self.parked.insert(step)
    }

    /// Notes that a step ended.
    pub(super) fn ended(&mut self, step: usize, failed: bool) {
        self.progress[step] = if failed { Progress::Failed } else { Progress::Done };
    }

    /// The next wave, if all of its steps could start. They need not wait any more.
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

    /// Whether nothing that the step needs failed, or is a step of an earlier wave.
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
        assert!(waves.release().is_none(), "nobody has asked for 3 yet");
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
