//! The exit codes of the program, and the one error type of its verbs.

use std::io;
use std::path::Path;

use super::screen::note;
use galeras_base::terminal_escape::escape;
use galeras_engine::runner::RunError;
use galeras_operator::event::RunStatus;
use galeras_store::StoreError;
use galeras_study::TableError;
use galeras_study::sharing::ShareError;

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

/// The reason why a verb ended early. `perform` prints it.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) exit: Exit,
    /// `None` if the user was already told, for example by diagnostics.
    message: Option<String>,
}

pub(super) fn fail(message: impl Into<String>, exit: Exit) -> Failure {
    Failure { exit, message: Some(message.into()) }
}

pub(super) fn failed(error: impl ToString) -> Failure {
    fail(error.to_string(), Exit::Failed)
}

/// The failure to write a file or folder.
pub(super) fn cannot_write(path: &Path) -> impl Fn(io::Error) -> Failure {
    move |error| {
        let path = escape(&path.display().to_string());
        fail(format!("cannot write {path}: {error}"), Exit::Disk)
    }
}

impl Failure {
    /// Prints the message.
    pub(super) fn show(self) -> Exit {
        if let Some(message) = self.message {
            note(&format!("error: {message}"));
        }
        self.exit
    }
}

/// Both values, or the failures of both.
pub(super) fn both<A, B>(
    one: Result<A, Failure>,
    other: Result<B, Failure>,
) -> Result<(A, B), Failure> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok((one, other)),
        (Err(one), Err(other)) => {
            let mut messages: Vec<String> = one.message.into_iter().chain(other.message).collect();
            messages.dedup();
            Err(fail(messages.join("\nerror: "), one.exit))
        }
        (Err(failure), _) | (_, Err(failure)) => Err(failure),
    }
}

impl From<Exit> for Failure {
    fn from(exit: Exit) -> Self {
        Self { exit, message: None }
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        let exit = if error.blames_disk() { Exit::Disk } else { Exit::Failed };
        fail(error.explained(), exit)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        RunError::from(error).into()
    }
}

impl From<TableError> for Failure {
    fn from(error: TableError) -> Self {
        match error {
            TableError::Unknown(message) => fail(message, Exit::Invalid),
            TableError::NotComputed(message) => failed(message),
        }
    }
}

impl From<ShareError> for Failure {
    fn from(error: ShareError) -> Self {
        match error {
            ShareError::Run(error) => error.into(),
            ShareError::Refused(why) => fail(escape(&why), Exit::Invalid),
            ShareError::Disk(why) => fail(escape(&why), Exit::Disk),
        }
    }
}
