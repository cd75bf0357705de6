//! Risk ratios of a binary outcome, with an interval on the scale of the logarithm, and E-values of
//! risk ratios and of standardised mean differences.

use crate::balance::moments;
use crate::column::{ROWS, indicator};
use crate::compensated::mean;
use crate::linear::treatment_first;
use crate::refusal::{at_least, require};
use crate::{ColumnRef, Covariance, LinearFit, Refusal, tail};

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
/// (VanderWeele and Ding 2017, equation 1: RR + sqrt(RR (RR - 1))). Refuses a number that is not
/// above zero and finite, or a ratio that is not between its limits.
pub fn evalue_ratio(ratio: f64, interval: Option<(f64, f64)>) -> Result<EValue, Refusal> {
    let (low, high) = interval.unwrap_or((ratio, ratio));
    let usable = [ratio, low, high].iter().all(|number| *number > 0.0 && number.is_finite());
    require(usable, "a risk ratio is not above zero and finite")?;
    require(low <= ratio && ratio <= high, "the risk ratio is not within its interval")?;
    // From the excess over 1, which is exact near 1.
    let of = |ratio: f64| {
        let ratio = ratio.max(1.0 / ratio);
        from_excess(ratio, ratio - 1.0)
    };
    let point = of(ratio);
    let limit = interval.map(|interval| limit(ratio, interval, 1.0, of));
    finite(EValue { ratio, interval, point, limit })
}

/// The E-value of a mean difference, by the approximation of a risk ratio from the difference in
/// standard deviations of the outcome: exp(0.91 d), with the 95 % interval exp(0.91 d +- 1.78 SE)
/// (VanderWeele 2017, Annals of Internal Medicine 167:268, and Chinn 2000). `deviation` is that of
/// the outcome, as of [`pooled_deviation`], also for pairs, whose standard error is that of the
/// mean difference. Refuses a number that is not finite, a negative standard error, a deviation
/// that is not above zero, or a difference of hundreds of deviations.
pub fn evalue_difference(
    estimate: f64,
    standard_error: f64,
    deviation: f64,
) -> Result<EValue, Refusal> {
    let (difference, error) = (estimate / deviation, standard_error / deviation);
    let usable = deviation > 0.0 && deviation.is_finite() && standard_error >= 0.0;
    let reason = "an E-value needs a finite estimate, a standard error that is not negative and a \
                  standard deviation above zero";
    require(usable && difference.is_finite() && error.is_finite(), reason)?;
    let (middle, half) = (LOG_RATIO * difference, LOG_RATIO_INTERVAL * error);
    let (low, high) = (middle - half, middle + half);
    // exp_m1 keeps the digits of a ratio close to 1.
    let of = |log: f64| from_excess(log.abs().exp(), log.abs().exp_m1());
    let limit = limit(middle, (low, high), 0.0, of);
    finite(EValue {
        ratio: middle.exp(),
        interval: Some((low.exp(), high.exp())),
        point: of(middle),
        limit: Some(limit),
    })
}

/// The standard deviation as the unit of a difference of two arms: the root of the mean of both
/// variances (n - 1), for any sizes of the arms (Cohen 1988).
pub fn pooled_deviation(treated: &[f64], control: &[f64]) -> Result<f64, Refusal> {
    let of = |values: &[f64]| {
        at_least("outcomes in an arm", values.len(), 2)?;
        Ok(moments(values.iter().map(|value| (*value, 1.0))).deviation.unwrap_or(0.0))
    };
    let pooled = of(treated)?.hypot(of(control)?) / std::f64::consts::SQRT_2;
    // A maximum ignores NaN, but the sums do not.
    let finite = pooled.is_finite() && treated.iter().chain(control).all(|y| y.is_finite());
    require(finite, "the standard deviation is not finite")?;
    if pooled == 0.0 { Err(Refusal::Constant(ColumnRef::Outcome)) } else { Ok(pooled) }
}

/// The E-value of the end of the interval that is closer to no effect; 1 if it includes that.
fn limit(effect: f64, (low, high): (f64, f64), none: f64, of: impl Fn(f64) -> f64) -> f64 {
    if low <= none && none <= high { 1.0 } else { of(if effect > none { low } else { high }) }
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
    let usable = numbers.iter().all(|number| number.is_finite()) && evalue.ratio > 0.0;
    require(usable, "the effect is too large for a risk ratio")?;
    Ok(evalue)
}

/// The risks of both arms and their ratio with its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RiskRatio {
    /// The risk under the treatment, above 0 and at most 1.
    pub treated: f64,
    /// The risk under control, above 0 and at most 1.
    pub control: f64,
    /// The risk under the treatment over that under control.
    pub ratio: f64,
    /// The standard error of the logarithm of the ratio.
    pub log_error: f64,
    /// Degrees of freedom of Student's t; infinite for the normal distribution.
    pub degrees: f64,
}

impl RiskRatio {
    /// The ratio of two independent shares: events and rows of the treatment, then of control. The
    /// error is Katz's (1978, Biometrics 34:469), sqrt(1/a - 1/n + 1/b - 1/m), with the normal
    /// distribution; equals statsmodels' `confint_proportions_2indep(compare="ratio",
    /// method="log")`.
    pub fn of_counts(treated: (usize, usize), control: (usize, usize)) -> Result<Self, Refusal> {
        at_least(ROWS[0], treated.1, 1)?;
        at_least(ROWS[1], control.1, 1)?;
        let share = |(events, rows): (usize, usize)| events as f64 / rows as f64;
        // (n - a) / (a n) is 1/a - 1/n without the difference of two close numbers.
        let part = |(events, rows): (usize, usize)| {
            rows.saturating_sub(events) as f64 / (events as f64 * rows as f64)
        };
        let (one, zero) = (share(treated), share(control));
        usable(one, zero)?;
        Self::new(one, zero, (part(treated) + part(control)).sqrt(), f64::INFINITY)
    }

    /// The ratio of two risks of an estimator, whose logarithm has this standard error with these
    /// degrees of freedom. Refuses a risk that is not above 0 and at most 1, or an error that is
    /// not above zero and finite.
    pub fn new(treated: f64, control: f64, log_error: f64, degrees: f64) -> Result<Self, Refusal> {
        usable(treated, control)?;
        let reason = "the standard error of the risk ratio is not above zero and finite";
        require(log_error > 0.0 && log_error.is_finite(), reason)?;
        Ok(Self { treated, control, ratio: treated / control, log_error, degrees })
    }

    /// The interval that covers the ratio with probability `1 - alpha`.
    pub fn interval(&self, alpha: f64) -> (f64, f64) {
        let half = tail::t_quantile(1.0 - alpha / 2.0, self.degrees) * self.log_error;
        (self.ratio * (-half).exp(), self.ratio * half.exp())
    }
}

/// The risks of the whole sample under either arm, by a linear regression of the outcome (0 or 1)
/// on the treatment and the covariates: its mean predictions with all rows treated and with none.
/// The error of their ratio is by the delta method from the covariance of `kind`, for fixed
/// covariates; degrees of freedom are those of the effect. Errors are those of
/// [`adjusted`](crate::adjusted) and [`RiskRatio::new`].
pub fn standardised_risks(
    treated: &[bool],
    outcome: &[f64],
    covariates: &[&[f64]],
    kind: Covariance,
    clusters: Option<&[u32]>,
) -> Result<RiskRatio, Refusal> {
    // With centred covariates the intercept is the mean prediction for all rows as controls.
    let centred: Vec<Vec<f64>> = covariates
        .iter()
        .map(|column| {
            let mean = mean(column);
            column.iter().map(|value| value - mean).collect()
        })
        .collect();
    let (arm, centred) = (indicator(treated), centred.iter().map(Vec::as_slice));
    let columns = treatment_first(&arm, &centred.collect::<Vec<&[f64]>>());
    let fit = LinearFit::fit(&columns, outcome).map_err(Refusal::after_treatment)?;
    let (control, effect) = (fit.coefficients[0], fit.coefficients[1]);
    let one = control + effect;
    usable(one, control)?;
    let covariance = fit.covariance(kind, clusters)?;
    let slopes = [1.0 / one - 1.0 / control, 1.0 / one];
    let variance: f64 =
        (0..4).map(|at| slopes[at / 2] * slopes[at % 2] * covariance[at / 2][at % 2]).sum();
    let degrees = fit.estimate(1, kind, clusters)?.degrees;
    RiskRatio::new(one, control, variance.sqrt(), degrees)
}

/// Refuses risks whose ratio has no interval.
fn usable(treated: f64, control: f64) -> Result<(), Refusal> {
    for (arm, risk) in [("the treatment", treated), ("control", control)] {
        // A complete share is 1 to rounding.
        let shown = if risk.abs() < 1e-12 { 0.0 } else { risk };
        let reason = format!(
            "there is no risk ratio: the risk under {arm} is {shown:.4}, and must be above 0 and \
             at most 1"
        );
        require(risk > 1e-12 && risk <= 1.0 + 1e-9, reason)?;
    }
    Ok(())
}
