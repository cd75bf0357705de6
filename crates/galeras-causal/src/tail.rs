//! Tails and quantiles of the normal, Student's t, chi-squared, F and noncentral t distributions.
//!
//! Everything is a regularised incomplete gamma or beta function (DLMF 8.17, 8.9), evaluated as a
//! continued fraction in the small tail, so a p-value of 1e-300 has as many correct digits as one
//! of 0.05. The factor before the fraction is written with deviances and Stirling corrections,
//! which cancel less than logarithms of gamma functions (Loader 2000, "Fast and accurate
//! computation of binomial probabilities"). NaN, and degrees of freedom at or below zero, give NaN.
//!
//! The noncentral T is (Z + shift) / S, with a standard normal Z, and S the root of a chi-squared
//! variable over its degrees of freedom. One integral over S keeps its digits for any shift, unlike
//! the usual series (AS 243).

#[cfg(test)]
mod tests;

use std::f64::consts::{LN_2, PI};

use crate::root::crossing;

/// From here on Student's t is computed as the normal distribution of a transformed value: the
/// fraction would lose as many digits as the degrees of freedom have.
const LARGE_DEGREES: f64 = 1e5;
/// No fraction or series needs more steps for the degrees of freedom that occur (up to 1e10);
/// above, the result is NaN instead of a wrong number.
const MAX_STEPS: usize = 1_000_000;

/// The upper tail P(Z > z) of the standard normal distribution (DLMF 7.2: erfc(z / √2) / 2).
pub fn normal_upper(z: f64) -> f64 {
    t_upper(z, f64::INFINITY)
}

/// The two-sided p-value P(|Z| > |z|) of a standard normal statistic. NaN gives NaN.
pub fn normal_two_sided(z: f64) -> f64 {
    gamma_upper(0.5, 0.5 * z * z)
}

/// The quantile of the standard normal distribution at `p`: infinite for 0 and 1, NaN outside [0,
/// 1]. Equals `scipy.stats.norm.ppf`.
pub fn normal_quantile(p: f64) -> f64 {
    quantile(p, f64::INFINITY)
}

/// The upper tail P(T > t) of Student's t with `degrees` of freedom, which need not be whole;
/// infinite degrees give the normal distribution. NaN unless `degrees` > 0. Equals
/// `scipy.stats.t.sf`.
pub fn t_upper(t: f64, degrees: f64) -> f64 {
    let two_sided = t_two_sided(t, degrees);
    if t >= 0.0 { 0.5 * two_sided } else { 1.0 - 0.5 * two_sided }
}

/// The two-sided p-value P(|T| > |t|) of Student's t with `degrees` of freedom, as for [`t_upper`].
pub fn t_two_sided(t: f64, degrees: f64) -> f64 {
    if t.is_nan() || degrees.is_nan() || degrees <= 0.0 {
        return f64::NAN;
    }
    let t = t.abs();
    if t.is_infinite() {
        return 0.0;
    }
    if degrees.is_infinite() {
        return normal_two_sided(t);
    }
    if degrees >= LARGE_DEGREES {
        return wallace_two_sided(t, degrees);
    }
    if t > 1e100 {
        // The square of t might overflow; the tail is a power of t here, to full precision.
        let beta = Beta::new(0.5 * degrees, 0.5);
        let log_x = degrees.ln() - 2.0 * t.ln();
        return (beta.log_inverse + beta.a * log_x - beta.a.ln()).exp().clamp(0.0, 1.0);
    }
    f_upper(t * t, 1.0, degrees)
}

/// The quantile of Student's t with `degrees` of freedom at `p`: infinite for 0 and 1, NaN outside
/// [0, 1] and unless `degrees` > 0. Equals `scipy.stats.t.ppf`.
pub fn t_quantile(p: f64, degrees: f64) -> f64 {
    if degrees.is_nan() || degrees <= 0.0 {
        return f64::NAN;
    }
    if degrees >= LARGE_DEGREES && degrees.is_finite() {
        let z = normal_quantile(p);
        if z.is_nan() || z.is_infinite() {
            return z;
        }
        let z = z - wallace_correction(z, degrees);
        let square = degrees * (z * z / (degrees - 0.5)).exp_m1();
        return square.sqrt().copysign(z);
    }
    quantile(p, degrees)
}

/// The upper tail P(X > x) of the chi-squared distribution with `degrees` of freedom, which need
/// not be whole; NaN unless `degrees` > 0. Equals `scipy.stats.chi2.sf`.
pub fn chi_squared_upper(x: f64, degrees: f64) -> f64 {
    gamma_upper(0.5 * degrees, 0.5 * x)
}

/// The upper tail P(X > f) of the F distribution with `numerator` and `denominator` degrees of
/// freedom, which need not be whole and may be infinite; NaN unless both are above 0. Equals
/// `scipy.stats.f.sf`.
pub fn f_upper(f: f64, numerator: f64, denominator: f64) -> f64 {
    let unusable = |degrees: f64| degrees.is_nan() || degrees <= 0.0;
    if f.is_nan() || unusable(numerator) || unusable(denominator) {
        return f64::NAN;
    }
    if f <= 0.0 {
        return 1.0;
    }
    match (numerator.is_finite(), denominator.is_finite()) {
        (true, false) => return gamma_upper(0.5 * numerator, 0.5 * numerator * f),
        (false, true) => return 1.0 - gamma_upper(0.5 * denominator, 0.5 * denominator / f),
        (false, false) => return if f < 1.0 { 1.0 } else { 0.0 },
        (true, true) => {}
    }
    if f.is_infinite() {
        return 0.0;
    }
    if numerator == 1.0 && denominator >= LARGE_DEGREES {
        return wallace_two_sided(f.sqrt(), denominator);
    }
    let tail = FTail::at(f, numerator, denominator);
    let upper = if tail.upper_is_direct() { tail.upper() } else { 1.0 - tail.lower() };
    upper.clamp(0.0, 1.0)
}

/// The F distribution at one value, as the incomplete beta function I_x(a, b).
struct FTail {
    /// Half the degrees of freedom of the denominator.
    a: f64,
    /// Half the degrees of freedom of the numerator.
    b: f64,
    x: f64,
    /// 1 - x without cancellation.
    y: f64,
    /// ln(x^a y^b / B(a, b)).
    log_factor: f64,
}

impl FTail {
    fn at(f: f64, numerator: f64, denominator: f64) -> FTail {
        let (a, b) = (0.5 * denominator, 0.5 * numerator);
        let ratio = f * (numerator / denominator);
        let (x, y) = (1.0 / (1.0 + ratio), 1.0 / (1.0 + 1.0 / ratio));
        let beta = Beta::new(a, b);
        // Relative distances of x and y from the mean of the beta distribution.
        let u = b / a * (1.0 - f) * x;
        let v = (f - 1.0) * x;
        let log_factor = if u.abs() < 0.5 && v.abs() < 0.5 {
            // a u + b v is zero, so the first order drops out instead of cancelling.
            beta.log_centre() + a * log1p_minus(u) + b * log1p_minus(v)
        } else {
            beta.log_inverse - a * ratio.ln_1p() - b * (1.0 / ratio).ln_1p()
        };
        FTail { a, b, x, y, log_factor }
    }

    /// True if the fraction of the upper tail converges fast, rather than that of the lower.
    fn upper_is_direct(&self) -> bool {
        self.x < (self.a + 1.0) / (self.a + self.b + 2.0)
    }

    fn upper(&self) -> f64 {
        (self.log_factor - self.a.ln()).exp() * beta_fraction(self.a, self.b, self.x)
    }

    fn lower(&self) -> f64 {
        (self.log_factor - self.b.ln()).exp() * beta_fraction(self.b, self.a, self.y)
    }
}

/// The beta function's logarithm, in the two forms that do not cancel.
struct Beta {
    a: f64,
    b: f64,
    /// -ln B(a, b).
    log_inverse: f64,
    correction: f64,
}

impl Beta {
    fn new(a: f64, b: f64) -> Beta {
        let correction =
            stirling_correction(a + b) - stirling_correction(a) - stirling_correction(b);
        let mut beta = Beta { a, b, log_inverse: 0.0, correction };
        beta.log_inverse = beta.log_centre() + a * (b / a).ln_1p() + b * (a / b).ln_1p();
        beta
    }

    /// ln(x^a y^b / B(a, b)) at x = a / (a + b).
    fn log_centre(&self) -> f64 {
        let (a, b) = (self.a, self.b);
        0.5 * (a.min(b) / (1.0 + a.min(b) / a.max(b)) / (2.0 * PI)).ln() + self.correction
    }
}

/// ln Γ(x) minus Stirling's (x - 1/2) ln x - x + ln(2π)/2, for x above zero.
fn stirling_correction(x: f64) -> f64 {
    const SHIFT: f64 = 16.0;
    let mut x = x;
    let mut sum = 0.0;
    if x < 1e-300 {
        // ln Γ(x) is -ln x; the reciprocal of x might overflow.
        return -0.5 * x.ln() - 0.5 * (2.0 * PI).ln();
    }
    while x < SHIFT {
        sum += (x + 0.5) * (1.0 / x).ln_1p() - 1.0;
        x += 1.0;
    }
    let r = 1.0 / (x * x);
    let series = 1.0 / 12.0
        - r * (1.0 / 360.0
            - r * (1.0 / 1260.0
                - r * (1.0 / 1680.0 - r * (1.0 / 1188.0 - r * (691.0 / 360_360.0 - r / 156.0)))));
    sum + series / x
}

/// ln(1 + u) - u without cancellation.
pub(crate) fn log1p_minus(u: f64) -> f64 {
    if !(-0.5..=0.5).contains(&u) {
        return u.ln_1p() - u;
    }
    // ln(1 + u) = 2 artanh(s) with s = u / (2 + u), and 2 s - u = -u s.
    let s = u / (2.0 + u);
    let square = s * s;
    let (mut power, mut sum, mut odd) = (2.0 * s, 0.0, 1.0);
    loop {
        power *= square;
        odd += 2.0;
        let term = power / odd;
        sum += term;
        if term.abs() <= 1e-18 * (u * s).abs() || odd > 200.0 {
            return sum - u * s;
        }
    }
}

/// The fraction of I_x(a, b), DLMF 8.17.22, by the modified Lentz algorithm.
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    let mut lentz = Lentz::new(1.0);
    lentz.step(-(a + b) / (a + 1.0) * x, 1.0);
    for m in 1..MAX_STEPS {
        let m = m as f64;
        let two = a + 2.0 * m;
        lentz.step(m * (b - m) * x / ((two - 1.0) * two), 1.0);
        if lentz.step(-(a + m) / two * ((a + b + m) / (two + 1.0)) * x, 1.0) {
            return 1.0 / lentz.value;
        }
    }
    f64::NAN
}

/// The regularised upper incomplete gamma function Q(a, x).
fn gamma_upper(a: f64, x: f64) -> f64 {
    if a.is_nan() || x.is_nan() || a <= 0.0 || a.is_infinite() {
        return f64::NAN;
    }
    if x <= 0.0 {
        return 1.0;
    }
    if x.is_infinite() {
        return 0.0;
    }
    if x < a + 1.0 {
        return (1.0 - gamma_lower_series(a, x)).clamp(0.0, 1.0);
    }
    let mut lentz = Lentz::new(x + 1.0 - a);
    for i in 1..MAX_STEPS {
        let i = i as f64;
        if lentz.step(-i * (i - a), x + 2.0 * i + 1.0 - a) {
            return (gamma_log_factor(a, x).exp() / lentz.value).clamp(0.0, 1.0);
        }
    }
    f64::NAN
}

/// P(a, x) by its power series, for x below a + 1.
fn gamma_lower_series(a: f64, x: f64) -> f64 {
    let (mut term, mut sum) = (1.0 / a, 1.0 / a);
    for i in 1..MAX_STEPS {
        term *= x / (a + i as f64);
        sum += term;
        if term < 1e-17 * sum {
            return gamma_log_factor(a, x).exp() * sum;
        }
    }
    f64::NAN
}

/// ln(x^a e^-x / Γ(a)).
fn gamma_log_factor(a: f64, x: f64) -> f64 {
    let u = (x - a) / a;
    let deviance = if u.abs() < 0.5 { a * log1p_minus(u) } else { a * (x.ln() - a.ln()) - (x - a) };
    0.5 * (a / (2.0 * PI)).ln() + deviance - stirling_correction(a)
}

/// The modified Lentz evaluation of a continued fraction b0 + a1/(b1 + a2/(b2 + ...)).
struct Lentz {
    value: f64,
    c: f64,
    d: f64,
}

impl Lentz {
    fn new(b0: f64) -> Lentz {
        let b0 = if b0 == 0.0 { f64::MIN_POSITIVE } else { b0 };
        Lentz { value: b0, c: b0, d: 0.0 }
    }

    /// Adds one level; returns true if the value has converged.
    fn step(&mut self, a: f64, b: f64) -> bool {
        let guard = |v: f64| if v == 0.0 { f64::MIN_POSITIVE } else { v };
        self.d = 1.0 / guard(b + a * self.d);
        self.c = guard(b + a / self.c);
        let change = self.c * self.d;
        self.value *= change;
        // NaN also ends the loop.
        change.is_nan() || (change - 1.0).abs() <= 1e-16
    }
}

/// The two-sided tail of Student's t for many degrees of freedom.
///
/// With s^2 = v ln(1 + t^2/v) the density becomes exp(-s^2/2) sqrt(w / (1 - exp(-w))), w = s^2/v
/// (Wallace 1959). The root is exp(w/4 - w^2/48 + w^4/5760 - ...): the first term rescales s, the
/// second is integrated, and the others stay below 1e-10 for any p of a double.
fn wallace_two_sided(t: f64, degrees: f64) -> f64 {
    let z = ((degrees - 0.5) * (t / degrees * t).ln_1p()).sqrt();
    let density = (-0.5 * z * z).exp() / (2.0 * PI).sqrt();
    if density == 0.0 {
        return 0.0;
    }
    (normal_two_sided(z) - 2.0 * wallace_correction(z, degrees) * density).clamp(0.0, 1.0)
}

/// The part of the tail that the term w^2/48 subtracts, relative to the normal density.
fn wallace_correction(z: f64, degrees: f64) -> f64 {
    (z * z * z + 3.0 * z) / degrees / degrees / 48.0
}

/// The quantile of Student's t, or of the normal for infinite degrees of freedom.
fn quantile(p: f64, degrees: f64) -> f64 {
    if p.is_nan() || !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    if p == 0.5 {
        return 0.0;
    }
    if p < 0.5 {
        return -upper_quantile(p, 0.5 - p, degrees);
    }
    upper_quantile(1.0 - p, p - 0.5, degrees)
}

/// The t > 0 with P(T > t) = `upper` and P(0 < T < t) = `central`.
///
/// Newton's method on logarithms of both the probability and t: either logarithm is concave in ln
/// t, so the method converges from any start. It uses the smaller probability, because the other
/// one hardly changes.
fn upper_quantile(upper: f64, central: f64, degrees: f64) -> f64 {
    if upper <= 0.0 {
        return f64::INFINITY;
    }
    let by_centre = central < 0.25;
    // A start on the left for the centre, and a coarse normal quantile for the tail.
    let mut log_t = if by_centre {
        (central * (2.0 * PI).sqrt()).ln()
    } else {
        0.5 * (2.0 * (-upper.ln() - LN_2)).max(0.25).ln()
    };
    for _ in 0..200 {
        let t = log_t.exp();
        let (low, high, log_density) = both_tails(t, degrees);
        // d ln P / d ln t is t f(t) / P, with the sign of the tail.
        let step = if by_centre {
            (low / central).ln() / (log_density.exp() / low)
        } else {
            -(high / upper).ln() / (log_density.exp() / high)
        };
        if !step.is_finite() {
            return if t.is_finite() { t } else { f64::INFINITY };
        }
        log_t -= step;
        if step.abs() < 4e-16 {
            break;
        }
    }
    log_t.exp()
}

/// P(0 < T < t), P(T > t) and ln(t f(t)) for t above zero.
fn both_tails(t: f64, degrees: f64) -> (f64, f64, f64) {
    if degrees.is_finite() && t < 1e100 {
        let tail = FTail::at(t * t, 1.0, degrees);
        return if tail.upper_is_direct() {
            let upper = 0.5 * tail.upper();
            (0.5 - upper, upper, tail.log_factor)
        } else {
            let lower = 0.5 * tail.lower();
            (lower, 0.5 - lower, tail.log_factor)
        };
    }
    if degrees.is_finite() {
        // A pure power law: t f(t) is the degrees of freedom times the tail.
        let upper = 0.5 * t_two_sided(t, degrees);
        return (0.5 - upper, upper, (upper * degrees).ln());
    }
    let half_square = 0.5 * t * t;
    let log_density = t.ln() - half_square - 0.5 * (2.0 * PI).ln();
    if half_square < 1.5 {
        let lower = 0.5 * gamma_lower_series(0.5, half_square);
        (lower, 0.5 - lower, log_density)
    } else {
        let upper = 0.5 * gamma_upper(0.5, half_square);
        (0.5 - upper, upper, log_density)
    }
}

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
pub(crate) fn over_deviation(degrees: f64, sharp: f64, of: impl Fn(f64) -> f64) -> f64 {
    over_deviation_to(degrees, sharp, f64::INFINITY, of)
}

/// The same for a function that is `of` for S up to `end` and zero above: a step or a bend inside a
/// panel would cost digits.
pub(crate) fn over_deviation_to(
    degrees: f64,
    sharp: f64,
    end: f64,
    of: impl Fn(f64) -> f64,
) -> f64 {
    // Here S is 1 to nine digits, and what it adds to the variance of T is below the last.
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
pub(crate) fn noncentral_t_upper(t: f64, degrees: f64, shift: f64) -> f64 {
    over_deviation(degrees, t, |s| normal_upper(t * s - shift))
}

/// The lower tail P(T < t), as [`noncentral_t_upper`].
pub(crate) fn noncentral_t_lower(t: f64, degrees: f64, shift: f64) -> f64 {
    over_deviation(degrees, t, |s| normal_upper(shift - t * s))
}

/// The noncentralities for which a statistic `t` is in neither tail of `alpha / 2`: the interval of
/// the shift (J. H. Steiger and R. T. Fouladi 1997).
pub(crate) fn shift_interval(t: f64, degrees: f64, alpha: f64) -> (f64, f64) {
    let (tail, width) = (0.5 * alpha, (1.0 + 0.5 * t * t / degrees).sqrt());
    // Both tails as ascending functions of the shift.
    let low = crossing(t, -width, |shift| noncentral_t_upper(t, degrees, shift) - tail);
    let high = crossing(t, width, |shift| tail - noncentral_t_lower(t, degrees, shift));
    (low, high)
}
