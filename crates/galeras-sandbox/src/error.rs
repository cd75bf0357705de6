//! The error of everything that keeps a program from being run.

use thiserror::Error;

/// A reason why a program was not run, or why its end is unknown. How a program that ran has ended is
/// an [`Ending`](crate::Ending), never an error.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SandboxError {
    /// This machine cannot confine programs as asked.
    #[error("{0}")]
    Refused(String),
    /// The specification is wrong: a path outside the scratch folder, a readable folder that holds
    /// secrets.
    #[error("{0}")]
    Invalid(String),
    /// The program could not be started: it does not exist, or must not be executed.
    #[error("cannot start {program}: {reason}")]
    NotStarted {
        /// The program's name, as in the command.
        program: String,
        /// The error of the operating system.
        reason: String,
    },
    /// The caller cancelled the run.
    #[error("cancelled")]
    Cancelled,
    /// The machine failed: no more processes, no more memory, a full disk, a killed launcher.
    #[error("the sandbox failed: {step}: {reason}")]
    Machine {
        /// The step that failed.
        step: String,
        /// The error of the operating system.
        reason: String,
    },
}

impl SandboxError {
    pub(crate) fn machine(step: impl Into<String>, reason: impl ToString) -> Self {
        Self::Machine { step: step.into(), reason: reason.to_string() }
    }
}

/// A result of running a program in a sandbox.
pub type Result<T, E = SandboxError> = std::result::Result<T, E>;
