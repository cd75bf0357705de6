//! Why a step, or the run as a whole, stopped.

use crate::operator::StepError;
use crate::session::Stored;
use crate::store::{StoreError, StoreErrorKind};

/// An error of a running step.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The operator failed on its input.
    #[error(transparent)]
    Step(#[from] StepError),
    /// The store or a disk failed.
    #[error(transparent)]
    Cache(#[from] StoreError),
    /// A result has not the rows that an output needs.
    #[error("{0}")]
    Rows(String),
    /// The run was interrupted.
    #[error("interrupted")]
    Interrupted,
}

impl RunError {
    /// Whether the disk, and not the data, is to blame.
    pub fn is_cache(&self) -> bool {
        match self {
            Self::Cache(_) => true,
            Self::Step(error) => full_disk(&error.to_string()),
            Self::Rows(_) | Self::Interrupted => false,
        }
    }

    /// The error with what can be done about it.
    pub fn explained(&self) -> String {
        let help = match self {
            Self::Step(error) => error.advice(),
            Self::Cache(error) => error.help(),
            Self::Rows(_) | Self::Interrupted => None,
        };
        match help {
            Some(help) => format!("{self}\nhelp: {help}"),
            None => self.to_string(),
        }
    }

    /// The kind of a store's failure.
    pub fn cache_kind(&self) -> Option<StoreErrorKind> {
        match self {
            Self::Cache(error) => Some(error.kind()),
            _ => None,
        }
    }
}

/// An encoder reports a full disk as text only.
fn full_disk(message: &str) -> bool {
    message.contains("os error 28") || message.contains("os error 30")
}

impl From<Stored> for RunError {
    fn from(error: Stored) -> Self {
        match error {
            Stored::Step(error) => Self::Step(error),
            Stored::Cache(error) => Self::Cache(error),
        }
    }
}

impl From<datafusion::error::DataFusionError> for RunError {
    fn from(error: datafusion::error::DataFusionError) -> Self {
        Self::Step(error.into())
    }
}

impl From<arrow::error::ArrowError> for RunError {
    fn from(error: arrow::error::ArrowError) -> Self {
        Self::Step(error.into())
    }
}

impl From<std::io::Error> for RunError {
    fn from(error: std::io::Error) -> Self {
        Self::Step(error.into())
    }
}
