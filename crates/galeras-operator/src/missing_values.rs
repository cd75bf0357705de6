//! The argument `missing` of the operators that compute statistics.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The treatment of rows without a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MissingValues {
    /// An error reports how many there are.
    #[default]
    Refuse,
    /// They are left out, and the result reports how many.
    Drop,
}
