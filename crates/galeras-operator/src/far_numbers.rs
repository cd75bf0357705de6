//! Columns for which doubles are too coarse: those far from zero are shifted to their least value,
//! and those whose values became equal are refused.
//!
//! Sums of a column far from zero lose the differences between its rows: of doubles near 10^15 that
//! differ by 1, a mean keeps one digit. A constant subtracted from a column changes no difference
//! and no slope, so these are estimated without it. Other statistics, such as ratios of means, need
//! the original values.

use galeras_base::prose::{count, four_digits};

/// The size of a column, as a multiple of its range, beyond which a constant is subtracted. A sum
/// of squares of the values themselves then has lost twelve of the sixteen digits of a double.
const FAR: f64 = 1e6;

/// Integers from here on are not all doubles: 2^53.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A column that varies by less than this share of its size is constant to a regression.
pub const LEAST_RANGE: f64 = 4.0 * f64::EPSILON;

/// The least and the greatest value.
fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let finite = values.filter(|value| value.is_finite());
    finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)))
}

/// True if a column between these ends is far from zero.
pub fn is_far(least: f64, greatest: f64) -> bool {
    least.abs().max(greatest.abs()) > FAR * (greatest - least)
}

/// The least value if the values are far from zero.
pub fn least_if_far(values: &[f64]) -> Option<f64> {
    let (least, greatest) = ends(values.iter().copied());
    (least < greatest && is_far(least, greatest)).then_some(least)
}

/// The values minus the least of them if they are far from zero, otherwise `None`. The differences
/// are exact, as each value is less than twice the least one (Sterbenz 1974), and do not depend on
/// the order of rows. A missing value stays missing.
pub fn near_zero(values: &[f64]) -> Option<Vec<f64>> {
    least_if_far(values).map(|least| values.iter().map(|value| value - least).collect())
}

/// The column, shifted if it is far from zero.
pub fn moved(values: Vec<f64>) -> Vec<f64> {
    near_zero(&values).unwrap_or(values)
}

/// The reason why the values of a column, as doubles, are not those of the file or are all equal.
/// `whole` is true if they were 64-bit integers.
pub fn lost_digits(
    name: &str,
    whole: bool,
    values: impl Iterator<Item = f64> + Clone,
    least_range: f64,
) -> Option<String> {
    let beyond = |value: &f64| value.is_finite() && value.abs() >= EXACT;
    let beyond = if whole { values.clone().filter(beyond).count() } else { 0 };
    if beyond > 0 {
        return Some(format!(
            "`{name}` has integers of 2^53 or more in {}, which a double does not tell apart: \
             subtract a constant from the column, or divide it, before",
            count(beyond, "row", "rows")
        ));
    }
    let (low, high) = ends(values);
    let largest = low.abs().max(high.abs());
    (low < high && high - low <= least_range * largest).then(|| {
        format!(
            "`{name}` varies by {} only, at a size of {}, which is lost in the rounding of \
             doubles: subtract a constant from the column before",
            four_digits(high - low),
            four_digits(largest)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_columns_far_from_zero_are_moved_and_exactly() {
        let values = [1e15 + 0.625, f64::NAN, 1e15 + 0.125, 1e15 + 0.875];
        let near = near_zero(&values).unwrap();
        assert_eq!([near[0], near[2], near[3]], [0.5, 0.0, 0.75]);
        assert!(near[1].is_nan() && near_zero(&near).is_none());
        let below = near_zero(&[-1e15 + 0.5, -1e15]).unwrap();
        assert_eq!(below, [0.5, 0.0]);
        // Scores, timestamps of a year in seconds, a constant and an empty column stay.
        for values in [&[0.1, 0.9][..], &[1.7e9, 1.73e9], &[4.0, 4.0], &[]] {
            assert_eq!(near_zero(values), None, "{values:?}");
        }
    }
}
