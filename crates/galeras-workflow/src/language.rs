//! The languages of arguments that are code, and the safe insertion of values into such code.

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

/// A text that is put together from parts of the file and values.
pub(super) trait Insertion {
    /// Adds a part of the file.
    fn code(&mut self, text: &str);

    /// Adds a value.
    fn value(&mut self, value: &Json) -> Result<(), Unfit>;

    /// The whole text.
    fn text(self: Box<Self>) -> String;
}

impl Language {
    pub(super) fn insertion(self) -> Box<dyn Insertion> {
        match self {
            Self::Sql => Box::new(SqlText::default()),
            Self::Shell => Box::new(ShellText::default()),
        }
    }
}

/// Text that is not code.
impl Insertion for String {
    fn code(&mut self, text: &str) {
        self.push_str(text);
    }

    fn value(&mut self, value: &Json) -> Result<(), Unfit> {
        match value {
            Json::String(text) => self.push_str(text),
            Json::Bool(_) | Json::Number(_) => self.push_str(&value.to_string()),
            Json::Null | Json::Array(_) | Json::Object(_) => return Err(Unfit::Type(kind(value))),
        }
        Ok(())
    }

    fn text(self: Box<Self>) -> String {
        *self
    }
}

/// The reason why a value cannot replace an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unfit {
    /// A value of this type has no form there.
    Type(&'static str),
    /// Quoting cannot keep a text from being read as code here.
    Place(&'static str),
}

/// A number or a boolean; these are the same in every language.
pub(super) fn plain_scalar(value: &Json) -> Option<String> {
    matches!(value, Json::Bool(_) | Json::Number(_)).then(|| value.to_string())
}

/// The error for a value that cannot be inserted into code.
pub(super) fn unfit_type(value: &Json) -> Unfit {
    Unfit::Type(match value {
        Json::Array(items) if items.is_empty() => "an empty list",
        _ => kind(value),
    })
}

/// The kind of a value, in a message.
pub(super) fn kind(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "a list",
        Json::Object(_) => "a mapping",
    }
}
