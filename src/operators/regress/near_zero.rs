//! Columns whose values are far from zero, measured from their least value.
//!
//! The sums of such columns round away what tells their rows apart: of doubles near 10^15 that
//! differ by 1, a mean keeps one digit. No difference and no slope depends on a constant that is
//! subtracted from a column, so they are estimated from columns without it. Does not live here:
//! what does depend on it, such as ratios of means.

/// The size of a column, as a multiple of its range, beyond which a constant is subtracted. A sum
/// of squares of the values themselves then has lost twelve of the sixteen digits of a double.
const FAR: f64 = 1e6;

/// The values less the least of them, if they are far from zero; none else. The differences are
/// exact, as each value is less than twice the least one (Sterbenz 1974), and do not depend on
/// the order of rows. A missing value stays missing.
pub(super) fn near_zero(values: &[f64]) -> Option<Vec<f64>> {
    let finite = values.iter().copied().filter(|value| value.is_finite());
    let (least, greatest) =
        finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
    let far = least < greatest && least.abs().max(greatest.abs()) > FAR * (greatest - least);
    far.then(|| values.iter().map(|value| value - least).collect())
}

/// The column, near zero if it was far from it.
pub(super) fn moved(values: Vec<f64>) -> Vec<f64> {
    near_zero(&values).unwrap_or(values)
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
