//! Formats scalars in names of cells, selections and messages.

use serde_json::Value;

/// A scalar without quotes.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(s) => s.clone(),
        other => other.to_string(),
    }
}
