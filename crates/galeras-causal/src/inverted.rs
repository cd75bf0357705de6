//! An estimate whose interval holds the values that a test does not reject: not symmetric, and
//! right where a standard error says little.

/// A point estimate with the interval and the p-value of one and the same test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InvertedEstimate {
    /// The point estimate, on the scale of its measure: a ratio is a ratio and not its logarithm.
    pub value: f64,
    /// The ends of the interval, on the same scale.
    pub interval: (f64, f64),
    /// The two-sided p-value of no effect.
    pub p_value: f64,
    /// The statistic of the test, if it has one that is judged by the normal distribution.
    pub statistic: Option<f64>,
    /// The standard error of large samples, if there is one; of the logarithm of a ratio.
    pub standard_error: Option<f64>,
}

/// The root of a function that falls along `low` to `high`, to the last digit or so. The ends are
/// given where the function does not change its sign between them.
pub(super) fn falling_root(mut low: f64, mut high: f64, function: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if function(middle) > 0.0 { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}
