//! [`Trust`]: all consent for a workflow.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::allowance::Allowance;
use super::ground::{Ground, settled};
use super::memory::TrustMemory;
use super::request::AccessRequest;
use super::words::phrase;
use galeras_base::terminal_escape::shell_word;
use galeras_operator::{Access, Consent, RefusedAccess};

/// All consent for a workflow: actions that need none, and consent of the command line, of earlier
/// runs, and of this one.
#[derive(Debug, Default)]
pub struct Trust {
    ground: Ground,
    allowed: Vec<Allowance>,
    everything: bool,
    memory: TrustMemory,
    agreed: Mutex<BTreeSet<Access>>,
    refused: Mutex<BTreeSet<Access>>,
}

impl Trust {
    /// The trust in the workflow with this ground and memory. `everything` allows all actions.
    pub fn new(
        ground: Ground,
        memory: TrustMemory,
        allowed: Vec<Allowance>,
        everything: bool,
    ) -> Self {
        Self { ground, memory, allowed, everything, ..Self::default() }
    }

    /// True if this is allowed; its paths are resolved.
    fn grants(&self, access: &Access) -> bool {
        self.everything
            || !self.ground.asks(access)
            || self.allowed.iter().any(|allowance| allowance.covers(access))
            || locked(&self.agreed).contains(access)
            || self.memory.knows(access)
    }

    /// The requests without consent.
    pub fn open(&self, requests: Vec<AccessRequest>) -> Vec<AccessRequest> {
        requests.into_iter().filter(|request| !self.grants(&request.access)).collect()
    }

    /// The actions refused since the last call: steps may ask before there is a plan.
    pub fn take_refused(&self) -> Vec<Access> {
        std::mem::take(&mut *locked(&self.refused)).into_iter().collect()
    }

    /// Records consent for this run and for later ones; returns the folder where it is stored.
    ///
    /// # Errors
    /// If it cannot be stored; it still counts for this run.
    pub fn agree<'a>(
        &self,
        accesses: impl IntoIterator<Item = &'a Access>,
    ) -> io::Result<Option<&Path>> {
        let mut folder = Ok(None);
        for access in accesses {
            locked(&self.agreed).insert(access.clone());
            if folder.is_ok() {
                folder = self.memory.remember(access).map(Some);
            }
        }
        folder
    }
}

impl Consent for Trust {
    fn refusal(&self, access: &Access) -> Option<RefusedAccess> {
        let access = settled(access);
        if self.grants(&access) {
            return None;
        }
        let flag = shell_word(&Allowance::of(&access).to_string());
        let refused = RefusedAccess {
            message: phrase(&access),
            help: format!("allow it with --allow {flag}"),
        };
        locked(&self.refused).insert(access);
        Some(refused)
    }
}

/// A thread that panicked leaves the set intact: entries are only added.
fn locked<T>(set: &Mutex<T>) -> MutexGuard<'_, T> {
    set.lock().unwrap_or_else(PoisonError::into_inner)
}
