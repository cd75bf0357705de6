//! Aggregates whose result does not depend on the order of the rows.
//!
//! DataFusion adds floats in the order in which batches arrive, so `sum(x)` may differ in its
//! last digits from run to run. The functions here replace its aggregates by name: they
//! accumulate exactly and round once, so that the result is a function of the multiset of
//! rows. All results are the exact real value of the statistic rounded to the nearest double.
//!
//! Layers inside: `exact` (sums) and `dyadic` (one-rounding quotients and roots), `moments`
//! (which sums a statistic needs), `accumulator` and `function` (DataFusion's traits), then
//! one file per family: `sum` (of whole numbers: `wide`), `variance`, `correlation`, `extremes`.
//! `order` lists what a plan check must refuse.
//!
//! Whole numbers have two ways in. A sum that is a whole number again is a decimal of 38 digits
//! (`wide`); what comes out as a double is computed from exact sums, into which those beyond 2^53
//! go as two doubles (`moments`).
//!
//! Only functions looked up by name are replaced. Rust code that calls
//! `datafusion::functions_aggregate::expr_fn::{sum, avg, …}` or `DataFrame::describe` gets
//! DataFusion's own; take the function from the session's registry instead.
//!
//! One rounding more: DataFusion's optimizer rule `single_distinct_aggregation_to_group_by`
//! rewrites `sum(x), sum(DISTINCT y)` in one query to a sum of sums per `y`. Each of them is
//! rounded, so the total may be off by more than half a unit, though it is still a function
//! of the multiset of rows. A session that leaves the rule out has no such case.

mod accumulator;
mod correlation;
mod dyadic;
mod exact;
mod extremes;
mod function;
mod moments;
mod order;
mod sum;
mod variance;
mod wide;

#[cfg(test)]
mod tests;

pub use exact::{ExactSum, MalformedSum};
pub use moments::whole_in_parts;
pub use order::{APPROXIMATE, ORDER_DEPENDENT};

use std::sync::Arc;

use datafusion::logical_expr::AggregateUDF;

use super::function_doc::FunctionDoc;

/// Every replacement with its description, to be registered over DataFusion's defaults
/// (`register_udaf`).
pub(super) fn all() -> Vec<(FunctionDoc, Arc<AggregateUDF>)> {
    [sum::all(), extremes::all(), variance::all(), correlation::all()]
        .into_iter()
        .flatten()
        .collect()
}
