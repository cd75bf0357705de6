//! The form of values that is common to all languages, and the reasons why a value cannot be
//! inserted.

use serde_json::Value as Json;

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

/// The error for a value that cannot be inserted into a text.
pub(super) fn unfit_type(value: &Json) -> Unfit {
    Unfit::Type(match value {
        Json::Array(items) if items.is_empty() => "an empty list",
        Json::Array(_) => "a list",
        Json::Object(_) => "a mapping",
        _ => "null",
    })
}
