//! Aggregates whose result does not depend on the order of the rows.
//!
//! DataFusion adds floats in the order in which batches arrive, so `sum(x)` may differ in its
//! last digits from run to run. The functions here replace its aggregates by name: they
//! accumulate exactly and round once, so that the result is a function of the multiset of
//! rows. All results are the exact real value of the statistic rounded to the nearest double.
//!
//! Whole numbers have two ways in. A sum that is a whole number again is a decimal of 38 digits
//! (`wide`); what comes out as a double is computed from exact sums, into which those beyond 2^53
//! go as two doubles (`moments`).
//!
//! Only functions looked up by name are replaced. Rust code that calls
//! `datafusion::functions_aggregate::expr_fn::{sum, avg, …}` or `DataFrame::describe` gets
//! DataFusion's own; take the function from the session's registry instead.

mod accumulator;
mod correlation;
mod dyadic;
mod exact;
mod function;
mod moments;
mod percentile;
mod sum;
mod variance;
mod wide;

#[cfg(test)]
mod tests;

pub use exact::ExactSum;
pub use moments::whole_in_parts;

use std::sync::Arc;

use datafusion::logical_expr::AggregateUDF;

use super::function_doc::FunctionDoc;

/// Aggregates whose value is decided by the order in which rows arrive. A plan may use them
/// only with an `ORDER BY` inside the call (for `array_agg(DISTINCT x ORDER BY x)` too), and
/// that order should be total: rows that tie are again taken as they arrive.
pub const ORDER_DEPENDENT: &[&str] =
    &["array_agg", "first_value", "last_value", "nth_value", "string_agg"];

/// Aggregates that a plan may not use at all.
///
/// The `approx_*` ones merge t-digests, whose centroids depend on how rows were batched and
/// partitioned; use `median` and `percentile_cont`, which are exact. `any_value` takes the first
/// row to arrive and ignores an `ORDER BY`; use `first_value(x ORDER BY …)`. (`approx_distinct` may
/// stay: its HyperLogLog registers are maxima of a hash with a fixed seed.)
pub const APPROXIMATE: &[&str] =
    &["any_value", "approx_median", "approx_percentile_cont", "approx_percentile_cont_with_weight"];

/// Every replacement with its description, to be registered over DataFusion's defaults
/// (`register_udaf`).
pub(super) fn all() -> Vec<(FunctionDoc, Arc<AggregateUDF>)> {
    let all = [sum::all(), variance::all(), correlation::all(), percentile::all()];
    all.into_iter().flatten().flatten().collect()
}
