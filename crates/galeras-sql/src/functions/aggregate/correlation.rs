//! `corr` and `regr_slope`, `regr_intercept`, `regr_count`, `regr_r2`, `regr_avgx`,
//! `regr_avgy`, `regr_sxx`, `regr_syy`, `regr_sxy`.
//!
//! With `Sxy = n Σxy - Σx Σy` and so on, all exact, each result is one quotient (for `corr` the root
//! of one) rounded once to the nearest double; a perfect correlation is exactly 1.

use super::accumulator::Finish;
use super::dyadic::Dyadic;
use super::function::{Documented, PAIR, documented};
use super::moments::{Moments, centred, mean};
use crate::functions::function_doc::FunctionDoc;

const CONSTANT: &str =
    "pairs with a null do not count; null for fewer than two and for a constant argument";
const CONSTANT_X: &str =
    "pairs with a null do not count; null for fewer than two and for a constant x";
const NONE: &str = "pairs with a null do not count; null if there are none";

/// The functions of this file.
pub(super) fn all() -> Vec<Documented> {
    let of = |name, summary, nulls, finish: fn(&Moments<5>) -> Option<f64>| {
        // The first version rounded whole numbers beyond 2^53.
        let doc = FunctionDoc {
            name,
            version: 2,
            arguments: PAIR,
            summary,
            nulls,
            ..FunctionDoc::AGGREGATE
        };
        documented(doc, Some(Finish::Float(finish)))
    };
    let count = FunctionDoc {
        name: "regr_count",
        arguments: PAIR,
        returns: "unsigned integer",
        summary: "the number of pairs",
        nulls: "pairs with a null do not count; never null",
        ..FunctionDoc::AGGREGATE
    };
    let products = "the sum of the products of the deviations of x and y";
    let explained = "the share of the variance of y that the line explains";
    vec![
        of("corr", "Pearson's correlation", CONSTANT, corr),
        of("regr_slope", "the slope of the least-squares line", CONSTANT_X, slope),
        of("regr_intercept", "the intercept of the least-squares line", CONSTANT_X, intercept),
        documented(count, Some(Finish::<5>::Count)),
        of("regr_r2", explained, CONSTANT, r2),
        of("regr_avgx", "the mean of x", NONE, |m| mean(m, 0)),
        of("regr_avgy", "the mean of y", NONE, |m| mean(m, 1)),
        of("regr_sxx", "the sum of the squared deviations of x", NONE, |m| total(m, spread_x)),
        of("regr_syy", "the sum of the squared deviations of y", NONE, |m| total(m, spread_y)),
        of("regr_sxy", products, NONE, |m| total(m, spread_xy)),
    ]
}

/// n times the centred sum of x².
fn spread_x(m: &Moments<5>) -> Option<Dyadic> {
    let [x, _, _, xx, _] = &m.sums;
    centred(m.count, x, x, xx)
}

/// n times the centred sum of y².
fn spread_y(m: &Moments<5>) -> Option<Dyadic> {
    let [_, y, _, _, yy] = &m.sums;
    centred(m.count, y, y, yy)
}

/// n times the centred sum of xy.
fn spread_xy(m: &Moments<5>) -> Option<Dyadic> {
    let [x, y, xy, _, _] = &m.sums;
    centred(m.count, x, y, xy)
}

/// Null for fewer than two rows, if only one argument has a NaN, or if an argument is
/// constant; NaN if both have one or if a value is infinite (as DataFusion 55).
fn corr(m: &Moments<5>) -> Option<f64> {
    let [x, y, ..] = &m.sums;
    let (nan_x, nan_y) = (x.value().is_nan(), y.value().is_nan());
    if nan_x && nan_y {
        return Some(f64::NAN);
    }
    if nan_x || nan_y || m.count < 2 {
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
    let [x, y, ..] = &m.sums;
    let quotient = || {
        let (sx, sxy) = (sx?, spread_xy(m)?);
        let numerator = y.to_dyadic()?.times(&sx).minus(&sxy.times(&x.to_dyadic()?));
        Some(numerator.quotient(&sx.scaled(m.count)))
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
    (m.count >= 2 && !constant(&sx)).then_some(sx)
}

/// A sum of centred products; null without rows.
fn total(m: &Moments<5>, spread: fn(&Moments<5>) -> Option<Dyadic>) -> Option<f64> {
    let n = Dyadic::integer(u128::from(m.count));
    (m.count > 0).then(|| spread(m).map_or(f64::NAN, |s| s.quotient(&n)))
}
