//! `var`, `var_pop`, `stddev`, `stddev_pop`, `covar_samp`, `covar_pop` and their aliases.
//!
//! Here: the formulas. Each is a quotient of exact integers,
//! `(n Σxy - Σx Σy) / (n (n - 1))` for a sample and `/ n²` for a population, rounded once to
//! the nearest double, so that even a large mean costs no digit; a deviation is the root of
//! that quotient, again rounded once. Not here: correlation and regression.

use std::sync::Arc;

use datafusion::functions_aggregate::{covariance, stddev, variance};
use datafusion::logical_expr::AggregateUDF;

use super::accumulator::Finish;
use super::dyadic::Dyadic;
use super::exact::ExactSum;
use super::function::ExactFunction;
use super::moments::{Moments, centred};
use crate::functions::function_doc::{FunctionDoc, ONE_NUMBER, TWO_NUMBERS};

/// The functions of this file.
pub(super) fn all() -> Vec<(FunctionDoc, Arc<AggregateUDF>)> {
    let functions = [
        (
            FunctionDoc::aggregate(
                "var",
                &["var_sample", "var_samp"],
                ONE_NUMBER,
                "the variance of a sample",
                "rows with a null do not count; null for fewer than two",
                "var(x)",
            ),
            ExactFunction::udaf_of_integers(
                variance::var_samp_udaf(),
                1,
                Finish::Float(var_sample),
            ),
        ),
        (
            FunctionDoc::aggregate(
                "var_pop",
                &["var_population"],
                ONE_NUMBER,
                "the variance of a population",
                "rows with a null do not count; null if there are none",
                "var_pop(x)",
            ),
            ExactFunction::udaf_of_integers(
                variance::var_pop_udaf(),
                1,
                Finish::Float(var_population),
            ),
        ),
        (
            FunctionDoc::aggregate(
                "stddev",
                &["stddev_samp"],
                ONE_NUMBER,
                "the standard deviation of a sample",
                "rows with a null do not count; null for fewer than two",
                "stddev(x)",
            ),
            ExactFunction::udaf_of_integers(stddev::stddev_udaf(), 1, Finish::Float(stddev_sample)),
        ),
        (
            FunctionDoc::aggregate(
                "stddev_pop",
                &[],
                ONE_NUMBER,
                "the standard deviation of a population",
                "rows with a null do not count; null if there are none",
                "stddev_pop(x)",
            ),
            ExactFunction::udaf_of_integers(
                stddev::stddev_pop_udaf(),
                1,
                Finish::Float(stddev_population),
            ),
        ),
        (
            FunctionDoc::aggregate(
                "covar_samp",
                &["covar"],
                TWO_NUMBERS,
                "the covariance of a sample",
                "pairs with a null do not count; null for fewer than two",
                "covar_samp(y, x)",
            ),
            ExactFunction::udaf_of_integers(
                covariance::covar_samp_udaf(),
                2,
                Finish::Float(covar_sample),
            ),
        ),
        (
            FunctionDoc::aggregate(
                "covar_pop",
                &[],
                TWO_NUMBERS,
                "the covariance of a population",
                "pairs with a null do not count; null if there are none",
                "covar_pop(y, x)",
            ),
            ExactFunction::udaf_of_integers(
                covariance::covar_pop_udaf(),
                2,
                Finish::Float(covar_population),
            ),
        ),
    ];
    // The first version rounded whole numbers beyond 2^53.
    functions.map(|(doc, function)| (FunctionDoc { version: 2, ..doc }, function)).into()
}

fn var_sample(m: &Moments<2>) -> Option<f64> {
    let [x, xx] = m.sums();
    second_moment(m.count(), 1, x, x, xx, Dyadic::quotient)
}

fn var_population(m: &Moments<2>) -> Option<f64> {
    let [x, xx] = m.sums();
    second_moment(m.count(), 0, x, x, xx, Dyadic::quotient)
}

fn stddev_sample(m: &Moments<2>) -> Option<f64> {
    let [x, xx] = m.sums();
    second_moment(m.count(), 1, x, x, xx, Dyadic::root_of_quotient)
}

fn stddev_population(m: &Moments<2>) -> Option<f64> {
    let [x, xx] = m.sums();
    second_moment(m.count(), 0, x, x, xx, Dyadic::root_of_quotient)
}

fn covar_sample(m: &Moments<3>) -> Option<f64> {
    let [x, y, xy] = m.sums();
    second_moment(m.count(), 1, x, y, xy, Dyadic::quotient)
}

fn covar_population(m: &Moments<3>) -> Option<f64> {
    let [x, y, xy] = m.sums();
    second_moment(m.count(), 0, x, y, xy, Dyadic::quotient)
}

/// `finish(n Σxy - Σx Σy, n (n - lost))`; null without a degree of freedom, NaN if a value
/// is not finite.
fn second_moment(
    n: u64,
    lost: u64,
    x: &ExactSum,
    y: &ExactSum,
    xy: &ExactSum,
    finish: fn(&Dyadic, &Dyadic) -> f64,
) -> Option<f64> {
    if n <= lost {
        return None;
    }
    let freedom = Dyadic::integer(u128::from(n) * u128::from(n - lost));
    Some(centred(n, x, y, xy).map_or(f64::NAN, |moment| finish(&moment, &freedom)))
}
