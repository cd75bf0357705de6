//! The exit codes of the program.

use galeras_operator::event::RunStatus;

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Everything was done.
    Done,
    /// A step failed.
    Failed,
    /// The command line or the workflow is invalid.
    Invalid,
    /// An assertion of severity error failed.
    Assertion,
    /// The cache, a disk or memory failed.
    Disk,
    /// Stopped by the user.
    Interrupted,
}

impl Exit {
    /// The exit code.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Invalid => 2,
            Self::Assertion => 3,
            Self::Disk => 4,
            Self::Interrupted => 130,
        }
    }
}

impl From<RunStatus> for Exit {
    fn from(status: RunStatus) -> Self {
        match status {
            RunStatus::Ok => Self::Done,
            RunStatus::Failed => Self::Failed,
            RunStatus::AssertFailed => Self::Assertion,
            RunStatus::CacheFailed => Self::Disk,
            RunStatus::Interrupted => Self::Interrupted,
        }
    }
}
