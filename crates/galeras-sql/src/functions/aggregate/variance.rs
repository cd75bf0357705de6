//! `var`, `var_pop`, `stddev`, `stddev_pop`, `covar_samp`, `covar_pop` and their aliases.
//!
//! Each is a quotient of exact integers, `(n Σxy - Σx Σy) / (n (n - 1))` for a sample and `/ n²` for
//! a population, rounded once to the nearest double, so that even a large mean costs no digit; a
//! deviation is the root of that quotient, again rounded once.

use super::accumulator::Finish;
use super::dyadic::Dyadic;
use super::exact::ExactSum;
use super::function::{Documented, PAIR, documented};
use super::moments::{Moments, centred};
use crate::functions::function_doc::FunctionDoc;

/// The functions of this file.
pub(super) fn all() -> Vec<Documented> {
    // The first version rounded whole numbers beyond 2^53.
    let base = FunctionDoc { version: 2, ..FunctionDoc::AGGREGATE };
    let of_one =
        |name, aliases: &'static [_], summary, nulls, finish: fn(&Moments<2>) -> Option<f64>| {
            documented(
                FunctionDoc { name, aliases, summary, nulls, ..base },
                Some(Finish::Float(finish)),
            )
        };
    let of_pairs =
        |name, aliases: &'static [_], summary, nulls, finish: fn(&Moments<3>) -> Option<f64>| {
            let doc = FunctionDoc { name, aliases, arguments: PAIR, summary, nulls, ..base };
            documented(doc, Some(Finish::Float(finish)))
        };
    vec![
        of_one(
            "var",
            &["var_sample", "var_samp"],
            "the variance of a sample",
            "rows with a null do not count; null for fewer than two",
            |m| variance(m, 1, Dyadic::quotient),
        ),
        of_one(
            "var_pop",
            &["var_population"],
            "the variance of a population",
            "rows with a null do not count; null if there are none",
            |m| variance(m, 0, Dyadic::quotient),
        ),
        of_one(
            "stddev",
            &["stddev_samp"],
            "the standard deviation of a sample",
            "rows with a null do not count; null for fewer than two",
            |m| variance(m, 1, Dyadic::root_of_quotient),
        ),
        of_one(
            "stddev_pop",
            &[],
            "the standard deviation of a population",
            "rows with a null do not count; null if there are none",
            |m| variance(m, 0, Dyadic::root_of_quotient),
        ),
        of_pairs(
            "covar_samp",
            &["covar"],
            "the covariance of a sample",
            "pairs with a null do not count; null for fewer than two",
            |m| covariance(m, 1),
        ),
        of_pairs(
            "covar_pop",
            &[],
            "the covariance of a population",
            "pairs with a null do not count; null if there are none",
            |m| covariance(m, 0),
        ),
    ]
}

fn variance(m: &Moments<2>, lost: u64, finish: fn(&Dyadic, &Dyadic) -> f64) -> Option<f64> {
    let [x, xx] = &m.sums;
    second_moment(m.count, lost, [x, x, xx], finish)
}

fn covariance(m: &Moments<3>, lost: u64) -> Option<f64> {
    let [x, y, xy] = &m.sums;
    second_moment(m.count, lost, [x, y, xy], Dyadic::quotient)
}

/// `finish(n Σxy - Σx Σy, n (n - lost))`; null without a degree of freedom, NaN if a value
/// is not finite.
fn second_moment(
    n: u64,
    lost: u64,
    [x, y, xy]: [&ExactSum; 3],
    finish: fn(&Dyadic, &Dyadic) -> f64,
) -> Option<f64> {
    if n <= lost {
        return None;
    }
    let freedom = Dyadic::integer(u128::from(n) * u128::from(n - lost));
    Some(centred(n, x, y, xy).map_or(f64::NAN, |moment| finish(&moment, &freedom)))
}
