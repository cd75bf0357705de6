//! How many decimals numbers with a standard error have: in sentences, tables and pages alike.

/// The most decimals; numbers that need more are written with an exponent.
const MOST: usize = 9;

/// The decimals that show a standard error with two significant digits; none for an error that is
/// zero or not finite, or that needs an exponent.
fn decimals_by_error(error: f64) -> Option<usize> {
    if !(error > 0.0 && error.is_finite()) {
        return None;
    }
    // Rounded first: 0.0996 is 0.10, and has as many decimals.
    let text = format!("{error:.1e}");
    let exponent: i32 = text.split_once('e')?.1.parse().ok()?;
    usize::try_from((1 - exponent).max(0)).ok().filter(|decimals| *decimals <= MOST)
}

/// The decimals of an estimate and of the ends of its interval, by a quarter of the interval's width:
/// about the standard error of an interval of 95 %. None where one end is more than 20 times the other,
/// as of ratios, whose lower end such decimals would hide.
pub fn decimals_by_interval((low, high): (f64, f64)) -> Option<usize> {
    decimals_by_error(0.25 * (high - low)).filter(|_| spread((low, high)) <= 20.0)
}

/// How many times one end of an interval is the other; 0 if zero is between them.
fn spread((low, high): (f64, f64)) -> f64 {
    let (near, far) = (low.abs().min(high.abs()), low.abs().max(high.abs()));
    if low * high > 0.0 { far / near } else { 0.0 }
}

/// The decimals that show both ends of a wide interval, as of a ratio or of a small mean: those of
/// the smaller end.
fn decimals_by_ends((low, high): (f64, f64)) -> Option<usize> {
    let is_wide = (20.0..=1000.0).contains(&spread((low, high)));
    decimals_by_error(low.abs().min(high.abs())).filter(|_| is_wide)
}

/// Columns on the scale of an estimate, which have the decimals of its row.
const ESTIMATES: &[&str] = &[
    "estimate",
    "effect",
    "mean",
    "coefficient",
    "value",
    "standard_error",
    "ci_low",
    "ci_high",
    "simultaneous_low",
    "simultaneous_high",
];

/// Columns that show the error of an estimate.
pub const ERRORS: [&str; 3] = ["ci_low", "ci_high", "standard_error"];

/// A table's column of this name has the decimals of [`row_decimals`].
pub fn is_estimate(column: &str) -> bool {
    ESTIMATES.contains(&column)
}

/// The decimals of the estimates in each row of a table, by the [`ERRORS`] of the row: those of the
/// smallest error, unless errors differ much, as those of scores and sizes do. `number` has the
/// number in a column and a row, if there is one.
pub fn row_decimals(
    rows: usize,
    number: impl Fn(&str, usize) -> Option<f64>,
) -> Vec<Option<usize>> {
    let [low, high, error] = ERRORS;
    let of = |row| match (number(low, row), number(high, row)) {
        (Some(low), Some(high)) => {
            decimals_by_interval((low, high)).or_else(|| decimals_by_ends((low, high)))
        }
        _ => decimals_by_error(number(error, row)?),
    };
    let own: Vec<Option<usize>> = (0..rows).map(of).collect();
    let known = || own.iter().flatten().copied();
    match (known().min(), known().max()) {
        (Some(least), Some(most)) if most - least <= 1 => vec![Some(most); rows],
        _ => own,
    }
}

/// The decimals of a column of numbers without errors, by their sizes: the largest has four
/// significant digits, and the smallest three, or fewer if none needs as many. None if one number is
/// more than a thousand times another.
pub fn column_decimals(sizes: &[f64]) -> Option<usize> {
    let sizes = || sizes.iter().copied().filter(|size| size.is_finite() && *size > 0.0);
    let (least, most) = (sizes().fold(f64::INFINITY, f64::min), sizes().fold(0.0, f64::max));
    if most > 1000.0 * least {
        return None;
    }
    // A column of zeros has no decimals.
    let places = |size: f64| if size > 0.0 { size.log10().floor() as i32 + 1 } else { 4 };
    let digits = (4 - places(most)).max(3 - places(if most > 0.0 { least } else { 0.0 }));
    let digits = usize::try_from(digits).unwrap_or(0).min(9);
    let needed = |size: f64| {
        let text = format!("{size:.digits$}");
        text.split_once('.').map_or(0, |(_, part)| part.trim_end_matches('0').len())
    };
    Some(sizes().map(needed).max().unwrap_or(0))
}

/// A number with so many decimals; a zero has no sign. Numbers that doubles do not resolve to one have
/// an exponent.
pub fn fixed(x: f64, decimals: usize) -> String {
    if x.is_finite() && x.abs() >= 1e15 {
        return format!("{x:.3e}");
    }
    let text = format!("{x:.decimals$}");
    let is_zero = text.parse() == Ok(0.0);
    if is_zero { text.trim_start_matches('-').to_string() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_digits_of_the_error_decide() {
        for (error, decimals) in [
            (0.002_03, Some(4)),
            (0.0995, Some(2)),
            (0.0994, Some(3)),
            (8.8, Some(1)),
            (88.0, Some(0)),
            (12_345.0, Some(0)),
            (1e-12, None),
            (0.0, None),
            (f64::INFINITY, None),
            (f64::NAN, None),
        ] {
            assert_eq!(decimals_by_error(error), decimals, "{error}");
        }
        assert_eq!(decimals_by_interval((-0.001_226, 0.006_727)), Some(4));
        assert_eq!(decimals_by_interval((0.02, 400.0)), None);
        let ends = [(0.000_349, 0.007_34), (-8.0, -0.02), (0.02, 400.0), (0.5, 0.5), (0.1, 0.2)];
        assert_eq!(ends.map(decimals_by_ends), [Some(5), Some(3), None, None, None]);
        // Errors of about one size share their decimals; a row without an error has them, too.
        let of = |errors: &[f64]| {
            row_decimals(errors.len(), |name, row| {
                (name == "standard_error").then(|| errors[row]).filter(|error| *error > 0.0)
            })
        };
        assert_eq!(of(&[0.0098, 0.0103, 0.0]), [Some(4); 3]);
        assert_eq!(of(&[0.0098, 8.8]), [Some(4), Some(1)]);
        assert_eq!([-0.000_02, -0.0123, 2.5].map(|x| fixed(x, 3)), ["0.000", "-0.012", "2.500"]);
        assert_eq!([1e300, -f64::INFINITY].map(|x| fixed(x, 3)), ["1.000e300", "-inf"]);
    }
}
