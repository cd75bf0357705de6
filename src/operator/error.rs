//! What an operator reports before anything runs: mistakes in arguments.

/// One mistake in a step's arguments or inputs, found when the workflow is planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgError {
    /// Where: a path below `with:` such as `rules[2].check`; empty for the step as a whole.
    pub path: String,
    /// A stable code such as `unknown-column`.
    pub code: &'static str,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl ArgError {
    /// A mistake at `path`.
    pub fn new(path: impl Into<String>, code: &'static str, message: impl Into<String>) -> Self {
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
        let error = Self::new(path, "unknown-column", format!("there is no column `{column}`"));
        let near = known
            .iter()
            .map(|name| (strsim::jaro_winkler(&column.to_lowercase(), &name.to_lowercase()), name))
            .filter(|(score, _)| *score > 0.8)
            .max_by(|a, b| a.0.total_cmp(&b.0));
        match near {
            Some((_, name)) => error.help(format!("did you mean `{name}`?")),
            None if known.is_empty() => error.help("the step has no input columns"),
            None => error.help(format!("the columns are {}", known.join(", "))),
        }
    }
}
