//! The noncentral t distribution, by quadrature over the estimated standard deviation.
//!
//! T = (Z + shift) / S, where Z is standard normal and S is the root of a chi-squared variable over
//! its degrees of freedom. Given S the tail of T is one of Z, which leaves one integral of a smooth
//! function. It keeps its digits for any shift, unlike the usual series (AS 243).

#[cfg(test)]
mod tests;

use super::root::crossing;
use super::tail;

/// Half of the nodes of Gauss and Legendre's rule with 16 nodes on [-1, 1], and their weights.
const NODES: [(f64, f64); 8] = [
    (0.095_012_509_837_637_44, 0.189_450_610_455_068_5),
    (0.281_603_550_779_258_9, 0.182_603_415_044_923_6),
    (0.458_016_777_657_227_4, 0.169_156_519_395_002_54),
    (0.617_876_244_402_643_7, 0.149_595_988_816_576_73),
    (0.755_404_408_355_003, 0.124_628_971_255_533_87),
    (0.865_631_202_387_831_7, 0.095_158_511_682_492_78),
    (0.944_575_023_073_232_6, 0.062_253_523_938_647_89),
    (0.989_400_934_991_649_9, 0.027_152_459_411_754_095),
];
/// The reach of the integral to either side, in standard deviations of S.
const REACH: f64 = 12.0;

/// The mean of `of` over S, the root of a chi-squared variable with `degrees` (1 or more) over
/// them; with infinite degrees S is 1. `sharp` is the largest slope of `of`: it makes the steps
/// finer.
pub(super) fn over_deviation(degrees: f64, sharp: f64, of: impl Fn(f64) -> f64) -> f64 {
    over_deviation_to(degrees, sharp, f64::INFINITY, of)
}

/// The same for a function that is `of` for S up to `end` and zero above: a step or a bend inside a
/// panel would cost digits.
pub(super) fn over_deviation_to(
    degrees: f64,
    sharp: f64,
    end: f64,
    of: impl Fn(f64) -> f64,
) -> f64 {
    // Here S is 1 to nine digits, and its contribution to the variance of T is below the last
    // digit.
    if degrees > 1e17 {
        return if end < 1.0 { 0.0 } else { of(1.0) };
    }
    let spread = 1.0 / (2.0 * degrees).sqrt();
    let low = (1.0 - REACH * spread).max(0.0);
    let high = 1.0 + REACH * spread;
    let steps = (REACH * (1.0 + sharp.abs() * spread)).ceil().min(4096.0);
    // The logarithm of the density minus that at 1; dividing by the total cancels the factor.
    let density = |s: f64| ((degrees - 1.0) * s.ln() - 0.5 * degrees * (s * s - 1.0)).exp();
    let total = integral(low, high, steps, density);
    let weighted = integral(low, high.min(end), steps, |s| density(s) * of(s));
    weighted / total
}

/// The integral from `low` to `high` by the Gauss-Legendre rule in panels; zero for an empty range.
fn integral(low: f64, high: f64, steps: f64, of: impl Fn(f64) -> f64) -> f64 {
    let half = 0.5 * (high - low) / steps;
    let mut total = 0.0;
    if half > 0.0 {
        for step in 0..steps as usize {
            let middle = low + half * (2.0 * step as f64 + 1.0);
            for (node, weight) in NODES {
                total += weight * (of(middle - half * node) + of(middle + half * node));
            }
        }
    }
    half * total
}

/// The upper tail P(T > t) of the noncentral t distribution with `degrees` of freedom (1 or more,
/// or infinite) and noncentrality `shift`, to 1e-12 absolute. Equals `scipy.stats.nct.sf`.
pub fn noncentral_t_upper(t: f64, degrees: f64, shift: f64) -> f64 {
    over_deviation(degrees, t, |s| tail::normal_upper(t * s - shift))
}

/// The lower tail P(T < t), as [`noncentral_t_upper`].
pub fn noncentral_t_lower(t: f64, degrees: f64, shift: f64) -> f64 {
    over_deviation(degrees, t, |s| tail::normal_upper(shift - t * s))
}

/// The noncentralities for which a statistic `t` is in neither tail of `alpha / 2`: the interval of
/// the shift (J. H. Steiger and R. T. Fouladi 1997).
pub(super) fn shift_interval(t: f64, degrees: f64, alpha: f64) -> (f64, f64) {
    let (tail, width) = (0.5 * alpha, (1.0 + 0.5 * t * t / degrees).sqrt());
    // Both tails as ascending functions of the shift.
    let low = crossing(t, -width, |shift| noncentral_t_upper(t, degrees, shift) - tail);
    let high = crossing(t, width, |shift| tail - noncentral_t_lower(t, degrees, shift));
    (low, high)
}
