//! The results of a run so far, shared by the tasks of its steps.
//!
//! A step gets only those that it reads: copying the whole list for every step would take quadratic
//! time and memory.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::key::StepManifests;
use galeras_store::Manifest;

/// The results that may be passed on, by position in the plan.
pub(super) struct RunResults(Mutex<Vec<Option<Arc<Manifest>>>>);

impl RunResults {
    /// No results yet, for this number of steps.
    pub(super) fn new(steps: usize) -> Self {
        Self(Mutex::new(vec![None; steps]))
    }

    fn list(&self) -> MutexGuard<'_, Vec<Option<Arc<Manifest>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn put(&self, step: usize, result: Option<Arc<Manifest>>) {
        self.list()[step] = result;
    }

    /// The results of these steps, by position in the plan, and `None` elsewhere.
    pub(super) fn of(&self, steps: impl Iterator<Item = usize>) -> Vec<Option<Arc<Manifest>>> {
        let list = self.list();
        let mut found = vec![None; list.len()];
        steps.for_each(|step| found[step].clone_from(&list[step]));
        found
    }

    /// `known`, completed with these results.
    pub(super) fn beside(&self, known: &StepManifests) -> Vec<Option<Arc<Manifest>>> {
        let list = self.list();
        known
            .iter()
            .zip(list.iter())
            .map(|(known, stored)| known.clone().or_else(|| stored.clone()))
            .collect()
    }

    pub(super) fn take(&self) -> Vec<Option<Arc<Manifest>>> {
        std::mem::take(&mut *self.list())
    }
}
