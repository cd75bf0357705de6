//! `sum` and `avg` (`mean`).
//!
//! Here: their formulas. Not here: sums of whole numbers (`wide`), and those of decimals, durations
//! and intervals, which stay DataFusion's.

use std::sync::Arc;

use datafusion::functions_aggregate::{average::avg_udaf, sum::sum_udaf};
use datafusion::logical_expr::AggregateUDF;

use super::accumulator::Finish;
use super::function::ExactFunction;
use super::moments::{Moments, mean};
use crate::functions::function_doc::{FunctionDoc, ONE_NUMBER};

/// The functions of this file.
pub(super) fn all() -> Vec<(FunctionDoc, Arc<AggregateUDF>)> {
    vec![
        (
            FunctionDoc {
                returns: "number",
                // The first version wrapped around.
                version: 2,
                ..FunctionDoc::aggregate(
                    "sum",
                    &[],
                    ONE_NUMBER,
                    "the sum",
                    "rows with a null do not count; null if there are none; an error if the sum of whole numbers exceeds 64 bits",
                    "sum(x)",
                )
            },
            sum(),
        ),
        (
            FunctionDoc {
                returns: "number",
                ..FunctionDoc::aggregate(
                    "avg",
                    &["mean"],
                    ONE_NUMBER,
                    "the mean",
                    "rows with a null do not count; null if there are none",
                    "avg(x)",
                )
            },
            avg(),
        ),
    ]
}

/// `sum(x)`: the exact sum of the non-null values, rounded once; null if there is none.
fn sum() -> Arc<AggregateUDF> {
    ExactFunction::udaf(sum_udaf(), Finish::Float(total))
}

/// `avg(x)`: the exact sum divided by the exact count, rounded once; null if there is none.
fn avg() -> Arc<AggregateUDF> {
    ExactFunction::udaf_of_integers(avg_udaf(), 1, Finish::Float(average))
}

fn total(m: &Moments<1>) -> Option<f64> {
    let [sum] = m.sums();
    (m.count() > 0).then(|| sum.value())
}

fn average(m: &Moments<1>) -> Option<f64> {
    let [sum] = m.sums();
    (m.count() > 0).then(|| mean(m.count(), sum))
}
