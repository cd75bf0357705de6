//! The languages of arguments that are code, and how a value enters such a text: as what it is,
//! never as code.

use serde_json::Value as Json;

use super::shell_text::ShellText;
use super::sql_text::SqlText;

/// The language of an argument that is code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum Language {
    /// A query or an expression.
    Sql,
    /// A command for `sh`.
    Shell,
}

/// Why a value cannot stand where an expression is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unfit {
    /// A value of this type has no form there.
    Type(&'static str),
    /// Nothing keeps a text from being read as code at this place.
    Place(&'static str),
}

/// A text of a language, as far as it is written.
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

    /// Adds what the author wrote.
    pub(super) fn code(&mut self, text: &str) {
        match self {
            Self::Sql(sql) => sql.code(text),
            Self::Shell(shell) => shell.code(text),
        }
    }

    /// Adds a value.
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

/// A number or a boolean as it is written; these are the same in every language.
pub(super) fn plain_scalar(value: &Json) -> Option<String> {
    matches!(value, Json::Bool(_) | Json::Number(_)).then(|| value.to_string())
}

/// What a value is that cannot stand in a text.
pub(super) fn unfit_type(value: &Json) -> Unfit {
    Unfit::Type(match value {
        Json::Array(items) if items.is_empty() => "an empty list",
        Json::Array(_) => "a list",
        Json::Object(_) => "a mapping",
        _ => "null",
    })
}
