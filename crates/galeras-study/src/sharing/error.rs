//! Errors of making and reading shared files.

use std::fmt::Display;
use std::path::Path;

use galeras_engine::runner::RunError;
use galeras_store::StoreError;

/// The reason why something cannot be shared, or a shared file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ShareError {
    /// It would reveal private values, would not work elsewhere, or is not a bundle.
    #[error("{0}")]
    Refused(String),
    /// A disk failed.
    #[error("{0}")]
    Disk(String),
    /// A result cannot be read.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl ShareError {
    /// The error of a file.
    pub(super) fn of(verb: &str, path: &Path, error: impl Display) -> Self {
        Self::Disk(format!("cannot {verb} {}: {error}", path.display()))
    }
}

impl From<StoreError> for ShareError {
    fn from(error: StoreError) -> Self {
        Self::Run(error.into())
    }
}

/// Errors of any kind from work on a file.
pub(super) trait AboutFile<T> {
    /// The error that the file cannot be read or written (`verb`).
    fn about(self, verb: &str, path: &Path) -> Result<T, ShareError>;
}

impl<T, E: Display> AboutFile<T> for Result<T, E> {
    fn about(self, verb: &str, path: &Path) -> Result<T, ShareError> {
        self.map_err(|error| ShareError::of(verb, path, error))
    }
}
