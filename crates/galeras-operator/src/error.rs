//! What an operator reports before anything runs: mistakes in arguments.

use std::ops::Range;

use galeras_base::visible::escape;
use galeras_workflow::code::Code;
use galeras_workflow::{did_you_mean, quote};

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
    /// The bytes of the argument's text that it is about, if that is not all of it.
    pub word: Option<Range<usize>>,
    /// What belongs in the place of the word, or of the whole text, if the help says so.
    pub instead: Option<String>,
    /// The column that was not found, if that is the mistake.
    pub column: Option<String>,
}

impl ArgError {
    /// A mistake at `path`.
    pub fn new(path: impl Into<String>, code: Code, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            port: None,
            code,
            message: message.into(),
            help: None,
            word: None,
            instead: None,
            column: None,
        }
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

    /// The same, about these bytes of the argument's text.
    pub fn word(mut self, word: Range<usize>) -> Self {
        self.word = Some(word);
        self
    }

    /// The same, where `text` is what was meant.
    pub fn instead(mut self, text: impl Into<String>) -> Self {
        self.instead = Some(text.into());
        self
    }

    /// The argument at `path` names a column that the input does not have.
    pub fn unknown_column<'a>(
        path: impl Into<String>,
        column: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        let message = format!("there is no column {}", quote(column));
        let mut error = Self::new(path, Code::UnknownColumn, message);
        error.column = Some(column.to_owned());
        match did_you_mean(column, known.iter().copied()) {
            Some(name) => error.help(format!("did you mean {}?", quote(name))).instead(name),
            None if known.is_empty() => error.help("the step has no input columns"),
            None => {
                let names: Vec<_> = known.iter().map(|name| escape(name)).collect();
                error.help(format!("the columns are {}", names.join(", ")))
            }
        }
    }
}
