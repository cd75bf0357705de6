//! How many decimals numbers with a standard error have: in sentences, tables and pages alike.

/// The most decimals; numbers that need more are written with an exponent.
const MOST: usize = 9;

/// The decimals that show a standard error with two significant digits; none for an error that is
/// zero or not finite, or that needs an exponent.
pub fn decimals_by_error(error: f64) -> Option<usize> {
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
    let (near, far) = (low.abs().min(high.abs()), low.abs().max(high.abs()));
    let is_ratio = low * high > 0.0 && far > 20.0 * near;
    decimals_by_error(0.25 * (high - low)).filter(|_| !is_ratio)
}

/// A number with so many decimals; a zero has no sign.
pub fn fixed(x: f64, decimals: usize) -> String {
    let text = format!("{x:.decimals$}");
    match text.strip_prefix('-') {
        Some(zero) if !zero.contains(|c: char| ('1'..='9').contains(&c)) => zero.to_string(),
        _ => text,
    }
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
        assert_eq!([-0.000_02, -0.0123, 2.5].map(|x| fixed(x, 3)), ["0.000", "-0.012", "2.500"]);
    }
}
