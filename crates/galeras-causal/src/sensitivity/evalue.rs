//! E-values of risk ratios and of standardised mean differences.

use crate::balance::moments;
use crate::{ColumnRef, Refusal};

/// The factor from a standardised difference to the logarithm of an approximate risk ratio.
const LOG_RATIO: f64 = 0.91;
/// The same times the 97.5 % quantile of the normal distribution, as published with two digits.
const LOG_RATIO_INTERVAL: f64 = 1.78;

/// The strength of association, on the scale of risk ratios, that an unmeasured confounder would
/// need with both treatment and outcome to explain an effect away (VanderWeele and Ding 2017,
/// Annals of Internal Medicine 167:268).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EValue {
    /// The (approximate) risk ratio.
    pub ratio: f64,
    /// The 95 % interval of the risk ratio, if known.
    pub interval: Option<(f64, f64)>,
    /// The E-value of the risk ratio, at least 1.
    pub point: f64,
    /// The E-value of the limit of the interval that is closer to 1; 1 if it includes 1.
    pub limit: Option<f64>,
}

/// The E-value of a risk ratio, with the lower and upper limit of its 95 % interval if there is one
/// (VanderWeele and Ding 2017, equation 1: RR + sqrt(RR (RR - 1))).
///
/// # Errors
/// [`Refusal::Other`] if the ratio or a limit is not above zero and finite, or the ratio is not
/// between its limits.
pub fn evalue_ratio(ratio: f64, interval: Option<(f64, f64)>) -> Result<EValue, Refusal> {
    let (low, high) = interval.unwrap_or((ratio, ratio));
    if ![ratio, low, high].iter().all(|number| *number > 0.0 && number.is_finite()) {
        return Err(Refusal::Other("a risk ratio is not above zero and finite".to_owned()));
    }
    if low > ratio || ratio > high {
        return Err(Refusal::Other("the risk ratio is not within its interval".to_owned()));
    }
    // From the excess over 1, which is exact near 1.
    let of = |ratio: f64| {
        let ratio = ratio.max(1.0 / ratio);
        from_excess(ratio, ratio - 1.0)
    };
    let point = of(ratio);
    let limit = interval.map(|_| {
        if low <= 1.0 && 1.0 <= high {
            1.0
        } else if ratio > 1.0 {
            of(low)
        } else {
            of(high)
        }
    });
    finite(EValue { ratio, interval, point, limit })
}

/// The E-value of a mean difference, by the approximation of a risk ratio from the difference in
/// standard deviations of the outcome: exp(0.91 d), with the 95 % interval exp(0.91 d +- 1.78 SE)
/// (VanderWeele 2017, Annals of Internal Medicine 167:268, and Chinn 2000).
///
/// `deviation` is that of the outcome, as of [`pooled_deviation`], in the units of the estimate and
/// its standard error. For pairs the standard error is that of the mean difference, but the
/// deviation still that of the outcomes.
///
/// # Errors
/// [`Refusal::Other`] if a number is not finite, the standard error is below zero, the deviation is
/// not above zero, or the difference is hundreds of deviations.
pub fn evalue_difference(
    estimate: f64,
    standard_error: f64,
    deviation: f64,
) -> Result<EValue, Refusal> {
    let (difference, error) = (estimate / deviation, standard_error / deviation);
    let usable = deviation > 0.0 && deviation.is_finite() && standard_error >= 0.0;
    if !(usable && difference.is_finite() && error.is_finite()) {
        return Err(Refusal::Other(
            "an E-value needs a finite estimate, a standard error that is not negative and a \
             standard deviation above zero"
                .to_owned(),
        ));
    }
    let (middle, half) = (LOG_RATIO * difference, LOG_RATIO_INTERVAL * error);
    let (low, high) = (middle - half, middle + half);
    // exp_m1 keeps the digits of a ratio close to 1.
    let of = |log: f64| from_excess(log.abs().exp(), log.abs().exp_m1());
    let limit = if low <= 0.0 && 0.0 <= high {
        1.0
    } else if middle > 0.0 {
        of(low)
    } else {
        of(high)
    };
    finite(EValue {
        ratio: middle.exp(),
        interval: Some((low.exp(), high.exp())),
        point: of(middle),
        limit: Some(limit),
    })
}

/// The standard deviation as the unit of a difference of two arms, in units of the outcome: the
/// root of the mean of both variances (n - 1), for any sizes of the arms (Cohen 1988). `treated`
/// and `control` hold the outcomes of the arms, which may differ in length.
///
/// # Errors
/// [`Refusal::TooFew`] if an arm has fewer than two values; [`Refusal::Constant`] if neither
/// varies; [`Refusal::Other`] if the deviation is not finite.
pub fn pooled_deviation(treated: &[f64], control: &[f64]) -> Result<f64, Refusal> {
    let of = |values: &[f64]| {
        moments(values.iter().map(|value| (*value, 1.0))).deviation.ok_or(Refusal::TooFew {
            what: "outcomes in an arm",
            found: values.len(),
            needed: 2,
        })
    };
    let pooled = of(treated)?.hypot(of(control)?) / std::f64::consts::SQRT_2;
    // A maximum ignores NaN, but the sums do not.
    if !pooled.is_finite() || treated.iter().chain(control).any(|value| !value.is_finite()) {
        Err(Refusal::Other("the standard deviation is not finite".to_owned()))
    } else if pooled == 0.0 {
        Err(Refusal::Constant(ColumnRef::Outcome))
    } else {
        Ok(pooled)
    }
}

/// The E-value of a risk ratio that is at least 1, given its excess over 1.
fn from_excess(ratio: f64, excess: f64) -> f64 {
    // Two roots, because the product would overflow.
    ratio + ratio.sqrt() * excess.sqrt()
}

/// Refuses an overflow.
fn finite(evalue: EValue) -> Result<EValue, Refusal> {
    let (low, high) = evalue.interval.unwrap_or((evalue.ratio, evalue.ratio));
    let numbers = [evalue.ratio, evalue.point, evalue.limit.unwrap_or(1.0), low, high];
    if numbers.iter().all(|number| number.is_finite()) && evalue.ratio > 0.0 {
        Ok(evalue)
    } else {
        Err(Refusal::Other("the effect is too large for a risk ratio".to_owned()))
    }
}
