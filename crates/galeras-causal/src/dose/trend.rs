//! Tests of a monotone trend of the outcome along the dose.

use crate::column::check_column;
use crate::compensated;
use crate::correlation::tie_corrected_excess;
use crate::glm::check_binary;
use crate::{ColumnRef, Refusal, tail};

/// A test of no trend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrendTest {
    /// The statistic, standard normal without a trend; positive if the outcome rises with the dose.
    pub z: f64,
    /// Its two-sided p-value.
    pub p_value: f64,
}

/// The Cochran-Armitage test of a linear trend of a proportion along the dose, with the doses as
/// scores (Armitage 1955, Biometrics 11:375; R's `prop.trend.test`). `outcome` is 0 and 1; both
/// have one entry for each row.
///
/// # Errors
/// [`Refusal::UnusableColumn`] for values that are not finite, or an outcome that is not 0 or 1;
/// [`Refusal::Constant`] if either has one value only.
pub fn cochran_armitage(dose: &[f64], outcome: &[f64]) -> Result<TrendTest, Refusal> {
    check_column(dose, ColumnRef::Treatment, outcome.len())?;
    check_binary(outcome)?;
    let doses = compensated::centred(dose, ColumnRef::Treatment)?;
    let outcomes = compensated::centred(outcome, ColumnRef::Outcome)?;
    let n = dose.len() as f64;
    // Scales cancel: z is the root of n times Pearson's correlation.
    let product = compensated::dot(&doses, &outcomes).high;
    let squares = [&doses, &outcomes].map(|column| compensated::dot(column, column).high);
    let z = n.sqrt() * product / squares[0].sqrt() / squares[1].sqrt();
    Ok(TrendTest { z, p_value: tail::normal_two_sided(z) })
}

/// The Jonckheere-Terpstra test of outcomes that are ordered as the doses are (Jonckheere 1954,
/// Biometrika 41:133), in O(n log n), with the variance for ties in both (Hollander & Wolfe, section
/// 6.2) and the normal approximation. The statistic is a linear function of Kendall's concordant
/// less discordant pairs, so that the p-value equals that of
/// `scipy.stats.kendalltau(method="asymptotic")`.
///
/// # Errors
/// [`Refusal::UnusableColumn`] for values that are not finite; [`Refusal::Constant`] if either has
/// one value only; [`Refusal::TooFew`] below three rows.
pub fn jonckheere_terpstra(dose: &[f64], outcome: &[f64]) -> Result<TrendTest, Refusal> {
    check_column(dose, ColumnRef::Treatment, outcome.len())?;
    check_column(outcome, ColumnRef::Outcome, outcome.len())?;
    compensated::centred(dose, ColumnRef::Treatment)?;
    compensated::centred(outcome, ColumnRef::Outcome)?;
    if dose.len() < 3 {
        return Err(Refusal::TooFew { what: "rows", found: dose.len(), needed: 3 });
    }
    let z = tie_corrected_excess(dose, outcome);
    Ok(TrendTest { z, p_value: tail::normal_two_sided(z).min(1.0) })
}
