//! The argument `missing` of the operators that compute statistics.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is done about rows without a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MissingValues {
    /// The result is refused and says how many there are.
    #[default]
    Refuse,
    /// They are left out, and the result says how many.
    Drop,
}
