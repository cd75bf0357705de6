//! What the command line adds to a workflow file.

use std::path::PathBuf;
use std::sync::Arc;

use galeras_operator::{Consent, FullConsent};

/// What the command line adds to a workflow file.
#[derive(Clone, Debug)]
pub struct PlanSettings {
    /// Values of parameters, as typed: `--set name=value`.
    pub set: Vec<String>,
    /// The folder from which relative paths in `set` start: the current one, or that of the run
    /// whose settings these are.
    pub set_folder: PathBuf,
    /// The current folder.
    pub working_dir: PathBuf,
    /// The folder for files that have to be fetched.
    pub downloads: PathBuf,
    /// The folder that the paths of outputs start from.
    pub out: PathBuf,
    /// Folders in which no output may be: those of the store.
    pub guarded: Vec<PathBuf>,
    /// What counts of `galeras.lock`.
    pub lock: Locking,
    /// What the user agreed to: a file behind a URL may be fetched in order to learn its schema.
    pub consent: Arc<dyn Consent>,
}

impl Default for PlanSettings {
    fn default() -> Self {
        Self {
            set: Vec::new(),
            set_folder: PathBuf::default(),
            working_dir: PathBuf::default(),
            downloads: PathBuf::default(),
            out: PathBuf::default(),
            guarded: Vec::new(),
            lock: Locking::default(),
            consent: Arc::new(FullConsent),
        }
    }
}

/// What counts of `galeras.lock`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Locking {
    /// What it pins is taken from it; of the rest the world is asked.
    #[default]
    Pinned,
    /// It must pin everything.
    Frozen,
    /// Nothing: the world is asked.
    Ignored,
}
