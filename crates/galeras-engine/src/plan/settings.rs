//! Settings of the command line for a workflow file.

use std::path::PathBuf;
use std::sync::Arc;

use galeras_operator::{Consent, FullConsent};

/// Settings of the command line for a workflow file.
#[derive(Clone, Debug)]
pub struct PlanSettings {
    /// Values of parameters, as typed: `--set name=value`.
    pub set: Vec<String>,
    /// The folder from which relative paths in `set` start: the current one, or that of the run
    /// whose settings these are.
    pub set_folder: PathBuf,
    /// The current folder.
    pub working_dir: PathBuf,
    /// The folder for fetched files.
    pub downloads: PathBuf,
    /// The folder from which the paths of outputs start.
    pub out: PathBuf,
    /// Folders of the store, which must not contain outputs.
    pub guarded: Vec<PathBuf>,
    /// The use of `galeras.lock`.
    pub lock: Locking,
    /// The user's consent, here for fetching a file at a URL to learn its schema.
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

/// The use of `galeras.lock`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Locking {
    /// Use pinned facts, and ask for the others.
    #[default]
    Pinned,
    /// Require that every fact is pinned.
    Frozen,
    /// Ignore it and ask for every fact.
    Ignored,
}
