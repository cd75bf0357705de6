//! What a value looks like in every language, and why it may not stand at a place.

use serde_json::Value as Json;

/// Why a value cannot stand where an expression is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unfit {
    /// A value of this type has no form there.
    Type(&'static str),
    /// Nothing keeps a text from being read as code at this place.
    Place(&'static str),
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
