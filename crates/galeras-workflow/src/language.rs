//! The languages of arguments that are code, and the safe insertion of values into such code.

use serde_json::Value as Json;

use super::shell_text::ShellText;
use super::sql_text::SqlText;
use super::unfit::Unfit;

/// The language of an argument that is code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum Language {
    /// A query or an expression.
    Sql,
    /// A command for `sh`.
    Shell,
}

#[derive(Debug)]
pub(super) enum CodeText {
    Sql(SqlText),
    Shell(ShellText),
}

impl CodeText {
    pub(super) fn new(language: Language) -> Self {
        match language {
            Language::Sql => Self::Sql(SqlText::default()),
            Language::Shell => Self::Shell(ShellText::default()),
        }
    }

    pub(super) fn code(&mut self, text: &str) {
        match self {
            Self::Sql(sql) => sql.code(text),
            Self::Shell(shell) => shell.code(text),
        }
    }

    pub(super) fn value(&mut self, value: &Json) -> Result<(), Unfit> {
        match self {
            Self::Sql(sql) => sql.value(value),
            Self::Shell(shell) => shell.value(value),
        }
    }

    pub(super) fn finish(self) -> String {
        match self {
            Self::Sql(sql) => sql.finish(),
            Self::Shell(shell) => shell.finish(),
        }
    }
}
