//! Power: the smallest effect that a design would detect, given the standard error it attains; in
//! `study`, what a design would attain before it is run.

mod study;
#[cfg(test)]
mod tests;

pub use study::{Pilot, StudyDesign, VarianceComponents, pilot};

use super::{Refusal, tail};

/// What pairing gains in power.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DetectableEffects {
    /// The minimum detectable effect of the paired design, in units of the outcome.
    pub paired: f64,
    /// The minimum detectable effect if the pairing were ignored.
    pub unpaired: f64,
    /// The variance of the unpaired over that of the paired estimate: by what factor more units
    /// an unpaired design needs.
    pub variance_ratio: f64,
}

/// The smallest true effect for which a two-sided test at level `alpha` rejects with probability
/// `power`, by the normal approximation: (z(1 - alpha/2) + z(power)) x standard error (Bloom
/// 1995, Evaluation Review 19:547), in units of the standard error's outcome. The chance of
/// rejecting on the wrong side is left out.
///
/// # Errors
///
/// [`Refusal::Other`] if the standard error is not above zero and finite, or not
/// 0 < `alpha` < `power` < 1.
pub fn minimum_detectable(standard_error: f64, alpha: f64, power: f64) -> Result<f64, Refusal> {
    if !(standard_error > 0.0 && standard_error.is_finite()) {
        return Err(Refusal::Other("the standard error is not above zero and finite".to_owned()));
    }
    if !(alpha > 0.0 && alpha < power && power < 1.0) {
        return Err(Refusal::Other(format!(
            "a test at level {alpha} with power {power} does not exist: \
             the level must be above 0 and below the power, and the power below 1"
        )));
    }
    // The lower tail keeps its digits where 1 - alpha/2 would be rounded to 1.
    let effect =
        (tail::normal_quantile(power) - tail::normal_quantile(alpha / 2.0)) * standard_error;
    if effect.is_finite() {
        Ok(effect)
    } else {
        Err(Refusal::Other("the minimum detectable effect is not finite".to_owned()))
    }
}

/// Compares the minimum detectable effects with and without regard to the pairing, from the
/// standard errors of the mean paired difference and of the difference in means (Welch), both in
/// units of the outcome. `alpha` and `power` are as for [`minimum_detectable`].
///
/// # Errors
///
/// As [`minimum_detectable`]; also [`Refusal::Other`] if the ratio of the variances overflows.
pub fn paired_gain(
    paired: f64,
    unpaired: f64,
    alpha: f64,
    power: f64,
) -> Result<DetectableEffects, Refusal> {
    let variance_ratio = (unpaired / paired).powi(2);
    let effects = DetectableEffects {
        paired: minimum_detectable(paired, alpha, power)?,
        unpaired: minimum_detectable(unpaired, alpha, power)?,
        variance_ratio,
    };
    if variance_ratio.is_finite() {
        Ok(effects)
    } else {
        Err(Refusal::Other("the ratio of the variances is not finite".to_owned()))
    }
}
