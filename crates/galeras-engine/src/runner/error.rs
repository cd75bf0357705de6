//! The reason why a step, or the whole run, stopped.

use galeras_operator::{StepError, StepErrorKind};
use galeras_sql::session::{ShapeError, StoreTableError};
use galeras_store::StoreError;

/// Advice about a file at the path of an output.
pub(super) const OVERWRITE_HELP: &str = "move the file away, choose another path or another folder \
    with --out, or replace it with --overwrite";

/// An error of a running step.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The operator failed on its input.
    #[error(transparent)]
    Step(#[from] StepError),
    /// The store or a disk failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A table does not have the rows that an output needs.
    #[error("{0}")]
    Rows(String),
    /// An output would replace a file from elsewhere: the file and its owner.
    #[error("it would replace {0}")]
    Occupied(String),
    /// The run was interrupted.
    #[error("interrupted")]
    Interrupted,
}

impl RunError {
    /// True if the store or a disk failed, and not the data.
    pub fn blames_disk(&self) -> bool {
        match self {
            Self::Store(_) => true,
            Self::Step(error) => matches!(
                error.kind(),
                StepErrorKind::DiskFull | StepErrorKind::ReadOnlyDisk | StepErrorKind::Store
            ),
            Self::Rows(_) | Self::Occupied(_) | Self::Interrupted => false,
        }
    }

    /// True if the run was interrupted without a failure.
    pub fn is_interruption(&self) -> bool {
        match self {
            Self::Interrupted => true,
            Self::Step(error) => error.kind() == StepErrorKind::Interrupted,
            Self::Store(_) | Self::Rows(_) | Self::Occupied(_) => false,
        }
    }

    /// The error with advice.
    pub fn explained(&self) -> String {
        let help = match self {
            Self::Step(error) => error.advice(),
            Self::Store(error) => error.help(),
            Self::Occupied(_) => Some(OVERWRITE_HELP),
            Self::Rows(_) | Self::Interrupted => None,
        };
        match help {
            Some(help) => format!("{self}\nhelp: {help}"),
            None => self.to_string(),
        }
    }
}

impl From<StoreTableError> for RunError {
    fn from(error: StoreTableError) -> Self {
        match error {
            StoreTableError::Step(error) => Self::Step(error),
            StoreTableError::Store(error) => Self::Store(error),
        }
    }
}

impl From<datafusion::error::DataFusionError> for RunError {
    fn from(error: datafusion::error::DataFusionError) -> Self {
        Self::Step(error.into())
    }
}

impl From<ShapeError> for RunError {
    fn from(error: ShapeError) -> Self {
        match error {
            ShapeError::Rows(message) => Self::Rows(message),
            ShapeError::Query(error) => error.into(),
        }
    }
}

impl From<arrow::error::ArrowError> for RunError {
    fn from(error: arrow::error::ArrowError) -> Self {
        Self::Step(error.into())
    }
}

impl From<parquet::errors::ParquetError> for RunError {
    fn from(error: parquet::errors::ParquetError) -> Self {
        Self::Step(error.into())
    }
}

impl From<std::io::Error> for RunError {
    fn from(error: std::io::Error) -> Self {
        Self::Step(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_is_known_by_its_kind_and_never_by_words() {
        let full = || std::io::Error::from_raw_os_error(28);
        let spilled = datafusion::error::DataFusionError::from(full()).context("while sorting");
        assert!(RunError::from(spilled).blames_disk());
        assert!(RunError::from(parquet::errors::ParquetError::from(full())).blames_disk());
        let quoted = StepError::new("the program said: No space left on device (os error 28)");
        assert!(!RunError::from(quoted).blames_disk());
    }
}
