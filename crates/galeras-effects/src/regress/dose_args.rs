//! The arguments of a treatment that is a dose.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The spline of a treatment that is a number.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DoseArgs {
    /// The number of knots of the natural cubic spline, at Harrell's quantiles of the doses. With no
    /// more different doses than knots there is one at each.
    #[serde(default = "knots")]
    #[schemars(range(min = 3, max = 7))]
    pub(super) knots: usize,
    /// The doses at which the effect is given; if absent the doses there are, up to 20, else 20 from
    /// the 2.5 % to the 97.5 % quantile.
    #[serde(default)]
    pub(super) at: Vec<f64>,
}

fn knots() -> usize {
    4
}
