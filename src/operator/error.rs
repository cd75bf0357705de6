//! What an operator reports before anything runs: mistakes in arguments.

use crate::code::Code;
use crate::workflow::did_you_mean;

/// One mistake in a step's arguments or inputs, found when the workflow is planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgError {
    /// Where: a path below `with:` such as `rules[2].check`; empty for the step as a whole.
    pub path: String,
    /// The input port that it is about, if it is about one: then its place is that of the name.
    pub port: Option<String>,
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
        Self { path: path.into(), port: None, code, message: message.into(), help: None }
    }

    /// A mistake in the table that the workflow gives to the input port `port`.
    pub fn at_port(port: impl Into<String>, code: Code, message: impl Into<String>) -> Self {
        Self { port: Some(port.into()), ..Self::new("", code, message) }
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
