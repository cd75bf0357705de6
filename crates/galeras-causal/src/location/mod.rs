//! Robust location of paired differences, and effects relative to the control arm.
//!
//! Here: [`location()`] with medians, trimmed mean and the shape of the differences,
//! [`relative`]. In `hodges_lehmann`: the median of all pairwise averages; in `signs`: the
//! Wilcoxon signed-rank test and the sign test. The mean difference with its t is in `paired`.

mod hodges_lehmann;
mod signs;
#[cfg(test)]
mod tests;

pub(crate) use self::hodges_lehmann::select as walsh_sum;

use super::{column::check_column, column_ref::ColumnRef, compensated, quantile, refusal::Refusal};

/// Where paired differences lie, by estimators that few extreme pairs cannot move, with tests
/// of no shift and the shape that shows why they may differ from the mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RobustLocation {
    /// The median difference, in units of the outcome.
    pub median: f64,
    /// The pseudomedian: the median of the averages of all pairs of differences, each
    /// difference with itself included (J. L. Hodges & E. L. Lehmann 1963).
    pub hodges_lehmann: f64,
    /// The mean without the smallest and the largest tenth (each rounded down to whole
    /// differences).
    pub trimmed_mean: f64,
    /// Wilcoxon's W: the smaller one of the sums of the ranks of |difference| over the positive
    /// and over the negative differences; zero differences are dropped, ties share ranks.
    pub wilcoxon_statistic: f64,
    /// W in standard errors from its expectation, with the correction for ties and without one
    /// for continuity; never above zero. Zero if all differences are zero.
    pub wilcoxon_z: f64,
    /// The two-sided p-value of W: exact (given the ties) with at most 50 differences other
    /// than zero, else from `wilcoxon_z`.
    pub wilcoxon_p: f64,
    /// The two-sided p-value of the exact sign test; zero differences are dropped.
    pub sign_p: f64,
    /// The number of differences above zero.
    pub positive: usize,
    /// The number of differences below zero.
    pub negative: usize,
    /// The number of differences that are zero.
    pub zero: usize,
    /// The third moment over the cube of the standard deviation, both with the divisor n;
    /// `None` if all differences are equal.
    pub skewness: Option<f64>,
    /// The fourth moment over the squared variance, both with the divisor n, minus 3; `None`
    /// if all differences are equal.
    pub excess_kurtosis: Option<f64>,
}

/// An effect relative to the control arm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RelativeEffect {
    /// The mean of the treated outcomes divided by that of the control outcomes.
    pub ratio_of_means: f64,
    /// The standard error of the logarithm of that ratio by the delta method, with the
    /// covariance of the arms of a pair.
    pub log_ratio_standard_error: f64,
    /// The mean of ln(1 + treated) - ln(1 + control); `None` if an outcome is -1 or below.
    pub mean_log1p_difference: Option<f64>,
}

/// The robust location of paired differences (treated less control, in units of the outcome), one
/// value for each pair. W and its normal approximation equal those of `scipy.stats.wilcoxon`.
/// O(n log n) in time and O(n) in memory.
///
/// # Errors
/// [`Refusal::TooFew`] without a difference; [`Refusal::UnusableColumn`] if one is not finite.
pub fn location(differences: &[f64]) -> Result<RobustLocation, Refusal> {
    let n = differences.len();
    check_column(differences, ColumnRef::Differences, n)?;
    if n == 0 {
        return Err(Refusal::TooFew { what: "pairs", found: 0, needed: 1 });
    }
    let mut sorted = differences.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let negative = sorted.partition_point(|&value| value < 0.0);
    let zero = sorted[negative..].partition_point(|&value| value == 0.0);
    let positive = n - negative - zero;
    let cut = (0.1 * n as f64) as usize;
    let signed_rank = signs::signed_rank(&sorted);
    let shape = shape(&sorted);
    Ok(RobustLocation {
        median: quantile::quantile(&sorted, 1, 2),
        hodges_lehmann: hodges_lehmann::pseudomedian(&sorted),
        trimmed_mean: compensated::mean(&sorted[cut..n - cut]),
        wilcoxon_statistic: signed_rank.statistic,
        wilcoxon_z: signed_rank.z,
        wilcoxon_p: signed_rank.p_value,
        sign_p: signs::sign_test(positive, negative),
        positive,
        negative,
        zero,
        skewness: shape.map(|(skewness, _)| skewness),
        excess_kurtosis: shape.map(|(_, kurtosis)| kurtosis),
    })
}

/// Skewness and excess kurtosis, which do not depend on the scale of the column.
fn shape(values: &[f64]) -> Option<(f64, f64)> {
    let column = compensated::centred(values, ColumnRef::Differences).ok()?;
    let n = column.len() as f64;
    let moment = |power: i32| compensated::sum(column.iter().map(|v| v.powi(power))).high / n;
    let variance = moment(2);
    Some((moment(3) / variance.powf(1.5), moment(4) / (variance * variance) - 3.0))
}

/// The effect relative to the control arm of outcomes in pairs: `treated` and `control` have
/// one value for each of the same n pairs.
///
/// # Errors
/// [`Refusal::UnusableColumn`] if `control` has not as many values as `treated` or a value is not
/// finite; [`Refusal::TooFew`] below 2 pairs; [`Refusal::Other`] if a mean is zero or below (a
/// ratio of such means says nothing), or the ratio or its standard error overflows.
pub fn relative(treated: &[f64], control: &[f64]) -> Result<RelativeEffect, Refusal> {
    let n = treated.len();
    check_column(treated, ColumnRef::TreatedOutcome, n)?;
    check_column(control, ColumnRef::ControlOutcome, n)?;
    if n < 2 {
        return Err(Refusal::TooFew { what: "pairs", found: n, needed: 2 });
    }
    let means = [compensated::mean(treated), compensated::mean(control)];
    let ratio = means[0] / means[1];
    if !(means.iter().all(|&mean| mean > 0.0) && ratio > 0.0 && ratio.is_finite()) {
        let [treated, control] = means;
        return Err(Refusal::Other(format!(
            "the means of the arms are {treated} and {control}: a ratio needs means above zero"
        )));
    }
    let pairs = || treated.iter().zip(control);
    let parts: Vec<f64> = pairs().map(|(t, c)| t / means[0] - c / means[1]).collect();
    let centre = compensated::mean(&parts);
    let squares = compensated::sum(parts.iter().map(|part| (part - centre).powi(2))).high;
    let error = (squares / (n as f64 - 1.0) / n as f64).sqrt();
    if !error.is_finite() {
        let text = "the outcomes are too far from their mean for a standard error of the ratio";
        return Err(Refusal::Other(text.to_owned()));
    }
    let logs = || pairs().map(|(t, c)| t.ln_1p() - c.ln_1p());
    let log = compensated::sum(logs()).high / n as f64;
    Ok(RelativeEffect {
        ratio_of_means: ratio,
        log_ratio_standard_error: error,
        mean_log1p_difference: pairs().all(|(&t, &c)| t > -1.0 && c > -1.0).then_some(log),
    })
}
