//! Effect modification: does the effect of the treatment depend on a covariate? A regression on
//! the standardised covariate with an HC3 standard error, and the effect in each of its fifths.
//! Adjusting p-values for the number of modifiers is the caller's business.

#[cfg(test)]
mod tests;

use super::balance::{Moments, moments};
use super::quantile::quantile;
use super::{Estimate, Refusal};

/// Fewer units than this are refused.
const MINIMUM: usize = 10;
/// How many groups the modifier is cut into.
const FIFTHS: usize = 5;

/// How an effect depends on a covariate.
#[derive(Clone, Debug, PartialEq)]
pub struct Modification {
    /// By how much the effect grows with one standard deviation (n - 1) of the modifier, with
    /// its HC3 standard error, to be judged by Student's t.
    pub estimate: Estimate,
    /// The effect by fifths of the modifier, from low to high. There are fewer than five where
    /// quantiles coincide.
    pub groups: Vec<Group>,
}

/// The units whose modifier is above `low` and at most `high`; the first group includes `low`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Group {
    /// The lower edge, in units of the modifier.
    pub low: f64,
    /// The upper edge.
    pub high: f64,
    /// How many units there are; it may be none.
    pub n: usize,
    /// The effect among them: the mean paired difference or the difference in means. `None`
    /// without units, or without units of both arms.
    pub mean: Option<f64>,
    /// Its standard error. `None` with fewer than two units, or fewer than two of an arm.
    pub standard_error: Option<f64>,
}

/// Regresses the differences within pairs on a modifier: ordinary least squares with intercept
/// and HC3 (MacKinnon and White 1985, Journal of Econometrics 29:305), t with n - 2 degrees.
///
/// Both slices have one entry for each pair, the differences in units of the outcome.
///
/// # Errors
///
/// [`Refusal::TooFew`] with fewer than 10 pairs; [`Refusal::Constant`] if the modifier or the
/// differences have one value only; [`Refusal::Leverage`] if one pair alone determines the slope;
/// [`Refusal::Other`] if the fit is exact, the lengths differ, or a value is not finite.
pub fn modification(differences: &[f64], modifier: &[f64]) -> Result<Modification, Refusal> {
    check(differences, modifier)?;
    if differences.len() < MINIMUM {
        return Err(Refusal::TooFew { what: "pairs", found: differences.len(), needed: MINIMUM });
    }
    let standardised = standardise(modifier)?;
    let rows = (0..differences.len()).map(|row| (row, standardised[row], differences[row]));
    let slope = slope(rows)?.ok_or_else(|| constant("differences"))?;
    let degrees = differences.len() as f64 - 2.0;
    let estimate = estimate(slope.value, slope.standard_error, degrees)?;
    let groups = groups(modifier, |inside| {
        let pairs = modifier.iter().zip(differences).filter(|(at, _)| inside(**at));
        let found = moments(pairs.map(|(_, difference)| (*difference, 1.0)));
        let mean = (found.count > 0).then_some(found.mean);
        (found.count, mean, standard_error(&found))
    });
    Ok(Modification { estimate, groups })
}

/// Regresses the outcome on treatment, modifier and their product, for units that are treated or
/// not: the coefficient of the product with HC3, t with n - 4 degrees.
///
/// The model gives each arm a line of its own, so it falls apart into a regression for each arm:
/// the coefficient is the difference of the slopes, its variance the sum of theirs. All slices
/// have one entry for each unit.
///
/// # Errors
///
/// As [`modification`]; in addition every arm needs 3 units and a modifier that varies in it.
pub fn interaction(
    treated: &[bool],
    outcome: &[f64],
    modifier: &[f64],
) -> Result<Modification, Refusal> {
    check(outcome, modifier)?;
    if treated.len() != outcome.len() {
        return Err(Refusal::Other("the columns differ in length".to_owned()));
    }
    if outcome.len() < MINIMUM {
        return Err(Refusal::TooFew { what: "units", found: outcome.len(), needed: MINIMUM });
    }
    for (arm, what) in [(true, "treated units"), (false, "control units")] {
        let found = treated.iter().filter(|unit| **unit == arm).count();
        if found < 3 {
            return Err(Refusal::TooFew { what, found, needed: 3 });
        }
    }
    let standardised = standardise(modifier)?;
    let line = |arm: bool| {
        let rows = (0..outcome.len()).filter(move |row| treated[*row] == arm);
        slope(rows.map(|row| (row, standardised[row], outcome[row])))
    };
    // An arm of one outcome has a slope of exactly zero; both together leave nothing to estimate.
    let (one, zero) = match (line(true)?, line(false)?) {
        (None, None) => return Err(constant("outcome")),
        (one, zero) => (one.unwrap_or_default(), zero.unwrap_or_default()),
    };
    let spread = one.standard_error.hypot(zero.standard_error);
    let estimate = estimate(one.value - zero.value, spread, outcome.len() as f64 - 4.0)?;
    let groups = groups(modifier, |inside| {
        let arm = |which: bool| {
            let units = (0..outcome.len()).filter(|row| treated[*row] == which);
            moments(units.filter(|row| inside(modifier[*row])).map(|row| (outcome[row], 1.0)))
        };
        let (one, zero) = (arm(true), arm(false));
        let both = one.count > 0 && zero.count > 0;
        let error = standard_error(&one).zip(standard_error(&zero));
        let mean = both.then_some(one.mean - zero.mean);
        (one.count + zero.count, mean, error.map(|(one, zero)| one.hypot(zero)))
    });
    Ok(Modification { estimate, groups })
}

/// A regression line's slope.
#[derive(Clone, Copy, Debug, Default)]
struct Slope {
    value: f64,
    standard_error: f64,
}

/// The slope of a regression with intercept and its HC3 standard error, from triples of row,
/// regressor and outcome; `None` if the outcome is constant.
fn slope(rows: impl Iterator<Item = (usize, f64, f64)> + Clone) -> Result<Option<Slope>, Refusal> {
    let across = moments(rows.clone().map(|(_, x, _)| (x, 1.0)));
    let up = moments(rows.clone().map(|(_, _, y)| (y, 1.0)));
    // Moments are measured from the first row, so that a constant has a deviation of exactly 0.
    let (Some(wide), Some(high)) = (across.deviation, up.deviation) else {
        return Err(Refusal::TooFew { what: "units", found: across.count, needed: 3 });
    };
    if wide == 0.0 {
        return Err(Refusal::Constant("modifier in one arm".to_owned()));
    }
    if high == 0.0 {
        return Ok(None);
    }
    // In units of the deviations of both, so that squares keep their range.
    let standard = rows.map(|(row, x, y)| (row, (x - across.mean) / wide, (y - up.mean) / high));
    let (mut xx, mut xy) = (0.0, 0.0);
    for (_, x, y) in standard.clone() {
        xx += x * x;
        xy += x * y;
    }
    let value = xy / xx;
    let (mut meat, mut residuals) = (0.0, 0.0);
    for (row, x, y) in standard {
        let leverage = 1.0 / across.count as f64 + x * x / xx;
        if leverage > 1.0 - 1e-9 {
            return Err(Refusal::Leverage { row, leverage });
        }
        let residual = y - value * x;
        residuals += residual * residual;
        let term = x * residual / (1.0 - leverage);
        meat += term * term;
    }
    let scale = high / wide;
    // An exact fit leaves rounding errors only, of which there is nothing to be estimated.
    let standard_error = if residuals > 1e-24 * xx { scale * meat.sqrt() / xx } else { 0.0 };
    Ok(Some(Slope { value: scale * value, standard_error }))
}

/// The estimate, if there is any uncertainty that it could be judged by.
fn estimate(value: f64, standard_error: f64, degrees: f64) -> Result<Estimate, Refusal> {
    if value.is_finite() && standard_error == 0.0 {
        return Err(Refusal::Other(
            "the modifier predicts without error, so there is no standard error".to_owned(),
        ));
    }
    if value.is_finite() && standard_error.is_finite() && (value / standard_error).is_finite() {
        Ok(Estimate { value, standard_error, degrees })
    } else {
        Err(Refusal::Other("the values are too large to be added up".to_owned()))
    }
}

/// The standard error of a mean.
fn standard_error(found: &Moments) -> Option<f64> {
    found.deviation.map(|deviation| deviation / (found.count as f64).sqrt())
}

/// The modifier with mean 0 and standard deviation (n - 1) 1.
fn standardise(modifier: &[f64]) -> Result<Vec<f64>, Refusal> {
    let found = moments(modifier.iter().map(|value| (*value, 1.0)));
    let deviation = found.deviation.unwrap_or(0.0);
    if deviation == 0.0 {
        return Err(constant("modifier"));
    }
    if !deviation.is_finite() {
        return Err(Refusal::Other("the values are too large to be added up".to_owned()));
    }
    Ok(modifier.iter().map(|value| (value - found.mean) / deviation).collect())
}

/// Cuts the modifier at its quintiles, and asks for number, effect and standard error of each
/// group by a test whether a value of the modifier belongs to it.
fn groups(
    modifier: &[f64],
    effect: impl Fn(&dyn Fn(f64) -> bool) -> (usize, Option<f64>, Option<f64>),
) -> Vec<Group> {
    let edges = edges(modifier);
    let cuts = edges.windows(2).enumerate();
    cuts.map(|(position, edge)| {
        let (low, high) = (edge[0], edge[1]);
        let inside = |at: f64| at <= high && (at > low || position == 0);
        let (n, mean, standard_error) = effect(&inside);
        let finite = |number: &f64| number.is_finite();
        let (mean, standard_error) = (mean.filter(finite), standard_error.filter(finite));
        Group { low, high, n, mean, standard_error }
    })
    .collect()
}

/// The quintiles of a column from minimum to maximum, each once.
fn edges(column: &[f64]) -> Vec<f64> {
    let mut sorted = column.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let mut edges: Vec<f64> = (0..=FIFTHS).map(|at| quantile(&sorted, at, FIFTHS)).collect();
    edges.dedup();
    edges
}

/// The refusal of a column with one value only.
fn constant(name: &str) -> Refusal {
    Refusal::Constant(name.to_owned())
}

/// Refuses columns that do not belong together.
fn check(outcome: &[f64], modifier: &[f64]) -> Result<(), Refusal> {
    if outcome.len() != modifier.len() {
        return Err(Refusal::Other("the columns differ in length".to_owned()));
    }
    if outcome.iter().chain(modifier).any(|value| !value.is_finite()) {
        return Err(Refusal::Other("a value is missing or infinite".to_owned()));
    }
    Ok(())
}
