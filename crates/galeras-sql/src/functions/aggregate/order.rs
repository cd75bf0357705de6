//! The aggregates of DataFusion 55 that no exact arithmetic can make independent of order.
//!
//! Here: the lists for a plan check, by canonical name. Not here: the check, and the
//! aggregates that are safe; a test proves that every default aggregate of DataFusion is
//! replaced, listed here or named in the test as safe.

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
