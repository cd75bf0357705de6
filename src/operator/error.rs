//! What an operator reports: errors in arguments, found before anything runs, and errors of
//! a running step.

use std::fmt;

use datafusion::error::DataFusionError;

use crate::code::Code;
use crate::workflow::did_you_mean;

/// One mistake in a step's arguments or inputs, found when the workflow is planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgError {
    /// Where: a path below `with:` such as `rules[2].check`; empty for the step as a whole.
    pub path: String,
    /// The kind of mistake, such as `unknown-column`.
    pub code: Code,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl ArgError {
    /// A mistake at `path`.
    pub fn new(path: impl Into<String>, code: Code, message: impl Into<String>) -> Self {
        Self { path: path.into(), code, message: message.into(), help: None }
    }

    /// The same with advice.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The argument at `path` names a column that the input does not have.
    pub fn unknown_column<'a>(
        path: impl Into<String>,
        column: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        let error = Self::new(path, Code::UnknownColumn, format!("there is no column `{column}`"));
        match did_you_mean(column, known.iter().copied()) {
            Some(name) => error.help(format!("did you mean `{name}`?")),
            None if known.is_empty() => error.help("the step has no input columns"),
            None => error.help(format!("the columns are {}", known.join(", "))),
        }
    }
}

/// Why a running step stopped.
#[derive(Debug)]
pub struct StepError {
    message: String,
    help: Option<String>,
}

impl StepError {
    /// An error in the operator's own words.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), help: None }
    }

    /// The same with advice.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// What to do about it.
    pub fn advice(&self) -> Option<&str> {
        self.help.as_deref()
    }
}

impl fmt::Display for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for StepError {}

impl From<DataFusionError> for StepError {
    fn from(error: DataFusionError) -> Self {
        Self::new(plain_message(&error))
    }
}

impl From<arrow::error::ArrowError> for StepError {
    fn from(error: arrow::error::ArrowError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<std::io::Error> for StepError {
    fn from(error: std::io::Error) -> Self {
        Self::new(error.to_string())
    }
}

/// DataFusion's message without its wrappers, back traces and layer names.
pub fn plain_message(error: &DataFusionError) -> String {
    let text = error.find_root().strip_backtrace();
    let text = text.strip_prefix("Error during planning: ").unwrap_or(&text);
    let text = text.strip_prefix("Schema error: ").unwrap_or(text);
    let text = text.strip_prefix("Execution error: ").unwrap_or(text);
    text.strip_prefix("External error: ").unwrap_or(text).trim().to_string()
}
