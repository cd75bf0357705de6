//! `corr` and `regr_slope`, `regr_intercept`, `regr_count`, `regr_r2`, `regr_avgx`,
//! `regr_avgy`, `regr_sxx`, `regr_syy`, `regr_sxy`.
//!
//! Here: the formulas. With `Sxy = n Σxy - Σx Σy` and so on, all exact, each result is one
//! quotient (for `corr` the root of one) rounded once to the nearest double; a perfect
//! correlation is exactly 1. Not here: variances and covariances.

use std::sync::Arc;

use datafusion::functions_aggregate::{correlation::corr_udaf, regr};
use datafusion::logical_expr::AggregateUDF;

use super::accumulator::Finish;
use super::dyadic::Dyadic;
use super::function::ExactFunction;
use super::moments::{Moments, centred, mean};
use crate::functions::function_doc::{FunctionDoc, TWO_NUMBERS};

/// The functions of this file.
pub(super) fn all() -> Vec<(FunctionDoc, Arc<AggregateUDF>)> {
    let exact = |builtin, finish| ExactFunction::<5>::udaf_of_integers(builtin, 2, finish);
    let functions = [
        (
            FunctionDoc::aggregate(
                "corr",
                &[],
                TWO_NUMBERS,
                "Pearson's correlation",
                "pairs with a null do not count; null for fewer than two and for a constant argument",
                "corr(y, x)",
            ),
            exact(corr_udaf(), Finish::Float(corr)),
        ),
        (
            FunctionDoc::aggregate(
                "regr_slope",
                &[],
                TWO_NUMBERS,
                "the slope of the least-squares line",
                "pairs with a null do not count; null for fewer than two and for a constant x",
                "regr_slope(y, x)",
            ),
            exact(regr::regr_slope_udaf(), Finish::Float(slope)),
        ),
        (
            FunctionDoc::aggregate(
                "regr_intercept",
                &[],
                TWO_NUMBERS,
                "the intercept of the least-squares line",
                "pairs with a null do not count; null for fewer than two and for a constant x",
                "regr_intercept(y, x)",
            ),
            exact(regr::regr_intercept_udaf(), Finish::Float(intercept)),
        ),
        (
            FunctionDoc {
                returns: "unsigned integer",
                ..FunctionDoc::aggregate(
                    "regr_count",
                    &[],
                    TWO_NUMBERS,
                    "the number of pairs",
                    "pairs with a null do not count; never null",
                    "regr_count(y, x)",
                )
            },
            exact(regr::regr_count_udaf(), Finish::Count),
        ),
        (
            FunctionDoc::aggregate(
                "regr_r2",
                &[],
                TWO_NUMBERS,
                "the share of the variance of y that the line explains",
                "pairs with a null do not count; null for fewer than two and for a constant argument",
                "regr_r2(y, x)",
            ),
            exact(regr::regr_r2_udaf(), Finish::Float(r2)),
        ),
        (
            FunctionDoc::aggregate(
                "regr_avgx",
                &[],
                TWO_NUMBERS,
                "the mean of x",
                "pairs with a null do not count; null if there are none",
                "regr_avgx(y, x)",
            ),
            exact(regr::regr_avgx_udaf(), Finish::Float(avgx)),
        ),
        (
            FunctionDoc::aggregate(
                "regr_avgy",
                &[],
                TWO_NUMBERS,
                "the mean of y",
                "pairs with a null do not count; null if there are none",
                "regr_avgy(y, x)",
            ),
            exact(regr::regr_avgy_udaf(), Finish::Float(avgy)),
        ),
        (
            FunctionDoc::aggregate(
                "regr_sxx",
                &[],
                TWO_NUMBERS,
                "the sum of the squared deviations of x",
                "pairs with a null do not count; null if there are none",
                "regr_sxx(y, x)",
            ),
            exact(regr::regr_sxx_udaf(), Finish::Float(sxx)),
        ),
        (
            FunctionDoc::aggregate(
                "regr_syy",
                &[],
                TWO_NUMBERS,
                "the sum of the squared deviations of y",
                "pairs with a null do not count; null if there are none",
                "regr_syy(y, x)",
            ),
            exact(regr::regr_syy_udaf(), Finish::Float(syy)),
        ),
        (
            FunctionDoc::aggregate(
                "regr_sxy",
                &[],
                TWO_NUMBERS,
                "the sum of the products of the deviations of x and y",
                "pairs with a null do not count; null if there are none",
                "regr_sxy(y, x)",
            ),
            exact(regr::regr_sxy_udaf(), Finish::Float(sxy)),
        ),
    ];
    // The first version rounded whole numbers beyond 2^53, which changes no count.
    let version = |doc: &FunctionDoc| if doc.name == "regr_count" { 1 } else { 2 };
    functions
        .map(|(doc, function)| (FunctionDoc { version: version(&doc), ..doc }, function))
        .into()
}

/// n times the centred sum of x².
fn spread_x(m: &Moments<5>) -> Option<Dyadic> {
    let [x, _, _, xx, _] = m.sums();
    centred(m.count(), x, x, xx)
}

/// n times the centred sum of y².
fn spread_y(m: &Moments<5>) -> Option<Dyadic> {
    let [_, y, _, _, yy] = m.sums();
    centred(m.count(), y, y, yy)
}

/// n times the centred sum of xy.
fn spread_xy(m: &Moments<5>) -> Option<Dyadic> {
    let [x, y, xy, _, _] = m.sums();
    centred(m.count(), x, y, xy)
}

/// Null for fewer than two rows, if only one argument has a NaN, or if an argument is
/// constant; NaN if both have one or if a value is infinite (as DataFusion 55).
fn corr(m: &Moments<5>) -> Option<f64> {
    let [x, y, ..] = m.sums();
    let (nan_x, nan_y) = (x.value().is_nan(), y.value().is_nan());
    if nan_x && nan_y {
        return Some(f64::NAN);
    }
    if nan_x || nan_y || m.count() < 2 {
        return None;
    }
    let (sx, sy) = (spread_x(m), spread_y(m));
    if constant(&sx) || constant(&sy) {
        return None;
    }
    let (Some(sx), Some(sy), Some(sxy)) = (sx, sy, spread_xy(m)) else {
        return Some(f64::NAN);
    };
    let r = sxy.times(&sxy).root_of_quotient(&sx.times(&sy));
    Some(if sxy.is_negative() { -r } else { r })
}

fn constant(spread: &Option<Dyadic>) -> bool {
    spread.as_ref().is_some_and(Dyadic::is_zero)
}

/// `Sxy / Sxx`; null for fewer than two rows or a constant x.
fn slope(m: &Moments<5>) -> Option<f64> {
    let sx = line(m)?;
    let quotient = || Some(spread_xy(m)?.quotient(&sx?));
    Some(quotient().unwrap_or(f64::NAN))
}

/// `(Σy Sxx - Sxy Σx) / (n Sxx)`; null for fewer than two rows or a constant x.
fn intercept(m: &Moments<5>) -> Option<f64> {
    let sx = line(m)?;
    let [x, y, ..] = m.sums();
    let quotient = || {
        let (sx, sxy) = (sx?, spread_xy(m)?);
        let numerator = y.to_dyadic()?.times(&sx).minus(&sxy.times(&x.to_dyadic()?));
        Some(numerator.quotient(&sx.scaled(m.count())))
    };
    Some(quotient().unwrap_or(f64::NAN))
}

/// `Sxy² / (Sxx Syy)`; null for fewer than two rows or a constant argument.
fn r2(m: &Moments<5>) -> Option<f64> {
    let (sx, sy) = (line(m)?, spread_y(m));
    if constant(&sy) {
        return None;
    }
    let quotient = || {
        let sxy = spread_xy(m)?;
        Some(sxy.times(&sxy).quotient(&sx?.times(&sy?)))
    };
    Some(quotient().unwrap_or(f64::NAN))
}

/// The spread of x if a line through the rows is determined: `Some(None)` if x has a value
/// that is not finite.
#[allow(clippy::option_option, reason = "null and NaN are different results")]
fn line(m: &Moments<5>) -> Option<Option<Dyadic>> {
    let sx = spread_x(m);
    (m.count() >= 2 && !constant(&sx)).then_some(sx)
}

fn avgx(m: &Moments<5>) -> Option<f64> {
    let [x, ..] = m.sums();
    (m.count() > 0).then(|| mean(m.count(), x))
}

fn avgy(m: &Moments<5>) -> Option<f64> {
    let [_, y, ..] = m.sums();
    (m.count() > 0).then(|| mean(m.count(), y))
}

fn sxx(m: &Moments<5>) -> Option<f64> {
    centred_sum(m, spread_x)
}

fn syy(m: &Moments<5>) -> Option<f64> {
    centred_sum(m, spread_y)
}

fn sxy(m: &Moments<5>) -> Option<f64> {
    centred_sum(m, spread_xy)
}

fn centred_sum(m: &Moments<5>, spread: fn(&Moments<5>) -> Option<Dyadic>) -> Option<f64> {
    let n = Dyadic::integer(u128::from(m.count()));
    (m.count() > 0).then(|| spread(m).map_or(f64::NAN, |s| s.quotient(&n)))
}
