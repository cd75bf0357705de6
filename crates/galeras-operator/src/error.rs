//! Mistakes in arguments, which operators report before anything runs.

use std::ops::Range;
use std::path::{Path, PathBuf};

use galeras_base::terminal_escape::escape;
use galeras_workflow::code::Code;
use galeras_workflow::{did_you_mean, quote};

/// One mistake in a step's arguments or inputs, found when the workflow is planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgError {
    /// A path below `with:` such as `rules[2].check`; empty for the step as a whole.
    pub path: String,
    /// The input port, if the mistake is about one: then its place is that of the port's name.
    pub port: Option<String>,
    /// The kind of mistake, such as `unknown-column`.
    pub code: Code,
    /// The problem, in one sentence.
    pub message: String,
    /// The fix.
    pub help: Option<String>,
    /// The wrong bytes of the argument's text, if only a part is wrong.
    pub word: Option<Range<usize>>,
    /// The replacement for the word, or for the whole text, if the help names one.
    pub instead: Option<String>,
    /// The missing column, if that is the mistake.
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

    /// The mistake that the file or folder `name` is missing, whose path starts in the folder `base`
    /// of the workflow file. The help names the place.
    pub fn missing_file(
        path: impl Into<String>,
        message: impl Into<String>,
        base: &Path,
        name: &str,
    ) -> Self {
        // In full, unlike a quoted text.
        let place = escape(&place_of(&base.join(name)).display().to_string());
        let help = match Path::new(name).is_absolute() {
            _ if name.contains("://") => {
                "this is a URL, not a path: `read` fetches the file at its `url`".to_string()
            }
            _ if name.starts_with(['~', '$']) => {
                let home = "`~` and variables are not replaced in a path: write it in full";
                format!("{home}, or make it a param of type `path`")
            }
            _ if name.contains('*') => "a path names one file; patterns do not work".to_string(),
            true => format!("this is `{place}`"),
            false => format!("paths are relative to the workflow file: this is `{place}`"),
        };
        Self::new(path, Code::MissingFile, message).help(help)
    }

    /// Fails if there are mistakes.
    ///
    /// # Errors
    /// All of them.
    pub fn none(mistakes: Vec<Self>) -> Result<(), Vec<Self>> {
        if mistakes.is_empty() { Ok(()) } else { Err(mistakes) }
    }

    /// Adds advice.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Sets the wrong bytes of the argument's text.
    pub fn word(mut self, word: Range<usize>) -> Self {
        self.word = Some(word);
        self
    }

    /// Sets the text that was meant.
    pub fn instead(mut self, text: impl Into<String>) -> Self {
        self.instead = Some(text.into());
        self
    }

    /// The mistake that the argument at `path` names a column that the input lacks.
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

/// The absolute path without `..`, if the folder exists.
fn place_of(path: &Path) -> PathBuf {
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    match (folder, path.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()),
    }
}
