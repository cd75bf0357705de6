//! Errors of making and reading shared files.

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
    pub(super) fn of(verb: &str, path: &Path, error: impl std::fmt::Display) -> Self {
        Self::Disk(format!("cannot {verb} {}: {error}", path.display()))
    }

    /// A store or a disk caused the error.
    pub fn blames_disk(&self) -> bool {
        match self {
            Self::Refused(_) => false,
            Self::Disk(_) => true,
            Self::Run(error) => error.blames_disk(),
        }
    }
}

impl From<StoreError> for ShareError {
    fn from(error: StoreError) -> Self {
        Self::Run(error.into())
    }
}
