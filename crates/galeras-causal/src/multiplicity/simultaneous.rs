//! Critical values of intervals that cover several effects at once.

use crate::cholesky::Cholesky;
use crate::column::check_level;
use crate::refusal::{at_least, require};
use crate::refute::{mix, normal};
use crate::tail::{over_deviation, t_quantile};
use crate::{Refusal, compensated};

/// Drawn vectors of statistics: the level is right to 0.001.
const DRAWS: usize = 50_000;
const SEED: u64 = 1;
/// More effects would need too many products, and gain little over Bonferroni's value.
const MOST: usize = 100;
/// Added to the diagonal, as contrasts may depend on each other.
const RIDGE: f64 = 1e-9;

/// An effect as a sum of contributions of independent groups of rows.
#[derive(Clone, Copy, Debug)]
pub struct Influence<'a> {
    /// Effects of different samples are independent.
    pub sample: usize,
    /// The contribution of each group to the error of the effect, the groups of a sample in one
    /// order.
    pub parts: &'a [f64],
}

/// The value c for which intervals of c standard errors to either side cover all effects at once
/// with probability `1 - alpha`: the quantile of the largest of correlated |T| with a common scale
/// of `degrees` of freedom (single-step max-t; Hothorn, Bretz & Westfall 2008, Biometrical Journal
/// 50:346). Correlations are those of the contributions; the distribution is drawn, and always
/// the same, so that an interval depends on the data only. It is never above Bonferroni's value.
/// Refuses fewer than two effects or more than 100, and contributions of different lengths or
/// without variation.
pub fn max_t(effects: &[Influence<'_>], degrees: f64, alpha: f64) -> Result<f64, Refusal> {
    check_level(alpha)?;
    let count = effects.len();
    at_least("effects", count, 2)?;
    require(count <= MOST, format!("there are {count} effects, more than {MOST}"))?;
    require(degrees >= 1.0, "there is less than one degree of freedom")?;
    let product =
        |one: usize, other: usize| compensated::dot(effects[one].parts, effects[other].parts).high;
    let norms: Vec<f64> = (0..count).map(|at| product(at, at).sqrt()).collect();
    let usable = norms.iter().all(|norm| *norm > 0.0 && norm.is_finite());
    require(usable, "an effect has no contributions of groups")?;
    for one in effects {
        let same = |other: &Influence<'_>| {
            one.sample != other.sample || one.parts.len() == other.parts.len()
        };
        require(effects.iter().all(same), "two effects of a sample have different groups")?;
    }
    let correlation = |row: usize, column: usize| match row == column {
        true => 1.0 + RIDGE,
        false if effects[row].sample != effects[column].sample => 0.0,
        false => product(row, column) / norms[row] / norms[column],
    };
    let factor = Cholesky::new(count, correlation, |_, pivot| pivot > 0.0)
        .map_err(|_| Refusal::Other("the correlations of the effects are not known".into()))?;
    let upper = factor.upper();
    let largest = |draw: usize| {
        let key = mix(SEED ^ mix(draw as u64));
        let normals: Vec<f64> = (0..count).map(|at| normal(key ^ at as u64)).collect();
        let statistic = |column: usize| -> f64 {
            let cells = upper.iter().skip(column).step_by(count).take(column + 1);
            cells.zip(&normals).map(|(cell, z)| cell * z).sum()
        };
        (0..count).map(|column| statistic(column).abs()).fold(0.0, f64::max)
    };
    let mut drawn: Vec<f64> = (0..DRAWS).map(largest).collect();
    drawn.sort_unstable_by(f64::total_cmp);
    let share = |value: f64| drawn.partition_point(|one| *one <= value) as f64 / DRAWS as f64;
    let covered = |value: f64| over_deviation(degrees, value, |scale| share(value * scale));
    // Between the value for one effect and Bonferroni's.
    let mut low = t_quantile(1.0 - alpha / 2.0, degrees);
    let mut high = t_quantile(1.0 - alpha / 2.0 / count as f64, degrees);
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if covered(middle) < 1.0 - alpha {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Treatments minus one control, in groups of equal size.
    fn many_to_one(treatments: usize) -> Vec<Vec<f64>> {
        let part = |arm: usize, at: usize| match at {
            0 => -1.0,
            at if at == arm => 1.0,
            _ => 0.0,
        };
        (1..=treatments).map(|arm| (0..=treatments).map(|at| part(arm, at)).collect()).collect()
    }

    fn value(columns: &[Vec<f64>], degrees: f64, apart: bool) -> f64 {
        let effects: Vec<Influence<'_>> = columns
            .iter()
            .enumerate()
            .map(|(at, parts)| Influence { sample: if apart { at } else { 0 }, parts })
            .collect();
        max_t(&effects, degrees, 0.05).unwrap()
    }

    #[test]
    fn critical_values_are_those_of_dunnett() {
        // Dunnett (1964), two-sided, 5 %.
        for (treatments, degrees, printed) in
            [(3, f64::INFINITY, 2.35), (5, f64::INFINITY, 2.51), (3, 20.0, 2.54), (5, 10.0, 2.99)]
        {
            let found = value(&many_to_one(treatments), degrees, false);
            assert!((found - printed).abs() < 0.025, "{treatments} {degrees}: {found}");
        }
    }

    #[test]
    fn independent_effects_have_the_value_of_sidak_and_equal_ones_that_of_one() {
        let columns = many_to_one(3);
        let found = value(&columns, f64::INFINITY, true);
        assert!((found - 2.3877).abs() < 0.02, "{found}");
        let same = vec![columns[0].clone(); 3];
        let found = value(&same, f64::INFINITY, false);
        assert!((found - 1.96).abs() < 0.02, "{found}");
    }

    #[test]
    fn what_has_no_correlation_is_refused() {
        let (one, other) = ([1.0, -1.0], [1.0, -1.0, 0.5]);
        let influence = |parts| Influence { sample: 0, parts };
        assert!(max_t(&[influence(&one)], 9.0, 0.05).is_err());
        assert!(max_t(&[influence(&one), influence(&other)], 9.0, 0.05).is_err());
        assert!(max_t(&[influence(&one), influence(&[0.0; 2])], 9.0, 0.05).is_err());
    }
}
