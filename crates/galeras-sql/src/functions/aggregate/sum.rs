//! `sum`, `avg`, `min` and `max`.
//!
//! Sums of whole numbers are in `wide`; those of decimals, durations and intervals stay DataFusion's.
//! So do `min` and `max`, but floats always go through the accumulators of single groups, which use
//! the total order of IEEE 754 (-NaN < -inf < -0.0 < 0.0 < inf < NaN). Those of many groups
//! (DataFusion 55) compare floats with `partial_cmp`: a NaN replaces the value before it and is
//! replaced by the next one, `-0.0` and `0.0` tie, and the largest finite double replaces infinity.

use super::accumulator::Finish;
use super::function::{Documented, documented};
use super::moments::mean;
use crate::functions::function_doc::FunctionDoc;

const NULLS: &str = "rows with a null do not count; null if there are none";

/// The functions of this file.
pub(super) fn all() -> Vec<Documented> {
    let sum = FunctionDoc {
        name: "sum",
        // The first version wrapped around.
        version: 2,
        returns: "number",
        summary: "the sum",
        nulls: "rows with a null do not count; null if there are none; an error if the sum of whole numbers exceeds 64 bits",
        ..FunctionDoc::AGGREGATE
    };
    let avg = FunctionDoc {
        name: "avg",
        aliases: &["mean"],
        returns: "number",
        summary: "the mean",
        nulls: NULLS,
        ..FunctionDoc::AGGREGATE
    };
    let extreme = |name, summary| {
        let arguments = &[("x", "any")];
        let returns = "the type of x";
        let doc = FunctionDoc {
            name,
            arguments,
            returns,
            summary,
            nulls: NULLS,
            ..FunctionDoc::AGGREGATE
        };
        documented::<1>(doc, None)
    };
    vec![
        documented::<1>(sum, Some(Finish::Float(|m| (m.count > 0).then(|| m.sums[0].value())))),
        documented::<1>(avg, Some(Finish::Float(|m| mean(m, 0)))),
        extreme("min", "the least value; floats are in the total order of IEEE 754"),
        extreme("max", "the greatest value; floats are in the total order of IEEE 754"),
    ]
}
