//! Errors in files of ratings, with their places.

use std::fmt;

use galeras_base::terminal_escape::escape;

/// An error in ratings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RatingsError {
    /// The file's name; empty for the folder.
    pub file: String,
    /// The line, from 1, if it is about one.
    pub line: Option<usize>,
    /// The problem, in one sentence.
    pub message: String,
    /// The fix.
    pub help: Option<String>,
}

impl RatingsError {
    pub(super) fn of_file(file: &str, message: impl Into<String>) -> Self {
        Self { file: file.to_string(), line: None, message: message.into(), help: None }
    }

    pub(super) fn at(file: &str, line: usize, message: impl Into<String>) -> Self {
        Self { line: Some(line), ..Self::of_file(file, message) }
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for RatingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            _ if self.file.is_empty() => {}
            Some(line) => write!(f, "{}, line {line}: ", escape(&self.file))?,
            None => write!(f, "{}: ", escape(&self.file))?,
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for RatingsError {}
