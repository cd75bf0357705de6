//! Named checks: the verification steps of the Galeras paper as ready-made conditions.
//!
//! A named check is a name, its arguments, and the SQL that it stands for, so that a reader of
//! a reject sees the condition itself. Does not live here: how conditions are checked
//! (`super`).

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::functions::moment;
use crate::operator::ArgError;

/// The named checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum NamedCheck {
    /// The commit's date lies in the window: from `since` on, before `until`.
    CommitInWindow,
    /// The commit really changed the method: its code differs from what it was before, or it
    /// was not there before.
    MethodChanged,
    /// The commit's message says something: without prefixes, references and links its first
    /// line has at least `min_words` words, and no tool wrote it.
    MessageMeaningful,
}

impl NamedCheck {
    /// The name, which is the rule's name, too, if it has none of its own.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::CommitInWindow => "commit_in_window",
            Self::MethodChanged => "method_changed",
            Self::MessageMeaningful => "message_meaningful",
        }
    }
}

/// A named check with its arguments.
#[derive(Clone, Debug)]
pub(super) enum Named {
    CommitInWindow(CommitInWindow),
    MethodChanged(MethodChanged),
    MessageMeaningful(MessageMeaningful),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CommitInWindow {
    /// The first moment: a date, or a date with time and zone.
    since: String,
    /// The first moment after it.
    until: String,
    /// The column with the date.
    #[serde(default = "commit_time")]
    column: String,
}

fn commit_time() -> String {
    "commit_time".into()
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct MethodChanged {
    /// Whether a change of nothing but white space is none.
    ignore_whitespace: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct MessageMeaningful {
    /// The least number of words.
    min_words: u32,
    /// The column with the message.
    column: String,
}

impl Default for MessageMeaningful {
    fn default() -> Self {
        Self { min_words: 3, column: "commit_message".into() }
    }
}

impl Named {
    /// The check with these arguments, or what is wrong with them.
    pub(super) fn new(check: NamedCheck, with: Map<String, Value>) -> Result<Self, String> {
        fn read<T: DeserializeOwned>(with: Map<String, Value>) -> Result<T, String> {
            serde_json::from_value(Value::Object(with)).map_err(|error| error.to_string())
        }
        Ok(match check {
            NamedCheck::CommitInWindow => Self::CommitInWindow(read(with)?),
            NamedCheck::MethodChanged => Self::MethodChanged(read(with)?),
            NamedCheck::MessageMeaningful => Self::MessageMeaningful(read(with)?),
        })
    }

    /// The condition; mistakes in arguments are reported at `path`.
    pub(super) fn sql(&self, path: &str) -> Result<String, ArgError> {
        match self {
            Self::CommitInWindow(CommitInWindow { since, until, column }) => {
                let moment = |name: &str, text: &str| match moment(text) {
                    Some((_, canonical)) => Ok(canonical),
                    None => {
                        let message = format!("`{text}` is no date");
                        let error = ArgError::new(format!("{path}.{name}"), "wrong-type", message);
                        Err(error.help("write 2022-01-31, or 2022-01-31T12:00:00Z"))
                    }
                };
                let (since, until) = (moment("since", since)?, moment("until", until)?);
                let column = identifier(column);
                let at = |moment: &str| {
                    format!("arrow_cast('{moment}', 'Timestamp(Microsecond, Some(\"UTC\"))')")
                };
                Ok(format!("{column} >= {} AND {column} < {}", at(&since), at(&until)))
            }
            Self::MethodChanged(MethodChanged { ignore_whitespace: false }) => {
                Ok("code_before IS NULL OR code_before <> code".into())
            }
            Self::MethodChanged(MethodChanged { ignore_whitespace: true }) => {
                let dense = |column: &str| format!("regexp_replace({column}, '\\s+', '', 'g')");
                let (before, after) = (dense("code_before"), dense("code"));
                Ok(format!("code_before IS NULL OR {before} <> {after}"))
            }
            Self::MessageMeaningful(MessageMeaningful { min_words, column }) => {
                Ok(format!("message_words({}) >= {min_words}", identifier(column)))
            }
        }
    }
}

/// A column name as SQL writes it.
fn identifier(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if plain { name.to_string() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}
