//! Why something cannot be shared, or what was shared cannot be read.

use std::path::Path;

use galeras_engine::runner::RunError;
use galeras_store::StoreError;

/// Why something cannot be shared, or what was shared cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ShareError {
    /// It would say what is nobody's business, would not work elsewhere, or is not a bundle.
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

    /// Whether a store or a disk is to blame.
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
