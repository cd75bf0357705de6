//! Linear regression with absorbed effects: constants of the levels of factors, not estimated.

#[cfg(test)]
mod tests;

use crate::column::{check_column, code_count, distinct};
use crate::compensated::centred_with_unit;
use crate::linear::{Covariance, LinearFit, treatment_column, treatment_first};
use crate::refusal::{at_least, require, require_column};
use crate::{ColumnRef, Estimate, Refusal, is_nested};

/// The least share of a column's variance that must remain within the levels.
const SMALLEST_SHARE: f64 = 1e-10;

/// The effect of a binary treatment among rows that share a level of each factor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AbsorbedEffect {
    /// The coefficient of the treatment.
    pub estimate: Estimate,
    /// The number of absorbed constants that are not redundant.
    pub absorbed: usize,
    /// Rows minus coefficients minus absorbed constants.
    pub residual_degrees: usize,
}

/// The coefficient of `treated` in a linear regression of `outcome` on the treatment, `covariates`
/// and a constant for each level of each of `factors`, by the within transformation (Frisch, Waugh
/// & Lovell). Equals linearmodels' `AbsorbingLS`, and least squares with an indicator for each
/// level.
///
/// Degrees of freedom are rows minus coefficients minus absorbed constants; with G clusters G - 1,
/// and constants of levels within clusters do not count in the factor of `Cr1` (Cameron & Miller
/// 2015; as in reghdfe). Refuses a column that does not vary within the levels, a kind that needs
/// leverages, and levels that hardly any row connects.
pub fn absorbed(
    treated: &[bool],
    outcome: &[f64],
    covariates: &[&[f64]],
    factors: &[&[u32]],
    kind: Covariance,
    clusters: Option<&[u32]>,
) -> Result<AbsorbedEffect, Refusal> {
    let rows = outcome.len();
    let indicator = treatment_column(treated, rows)?;
    at_least("absorbed factors", factors.len(), 1)?;
    for length in factors.iter().map(|codes| codes.len()) {
        let reason = format!("an absorbed factor has {length} rows and the outcome {rows}");
        require(length == rows, reason)?;
    }
    let reason = format!(
        "{kind} needs leverages, which are not computed where effects are absorbed (classic, HC0, \
         HC1, CR0 and CR1 need none)"
    );
    require(!kind.needs_leverages(), reason)?;
    let factors: Vec<Factor<'_>> = factors.iter().map(|codes| Factor::new(codes)).collect();
    let all: Vec<&Factor<'_>> = factors.iter().collect();
    let absorbed = constants(&all);
    let slopes = covariates.len() + 1;
    at_least("rows", rows, absorbed + slopes + 1)?;
    let residual_degrees = rows - absorbed - slopes;

    let within = |(at, column): (usize, &&[f64])| {
        varying_within(column, rows, &factors, ColumnRef::Covariate(at))
            .map_err(Refusal::after_treatment)
    };
    let columns = treatment_first(&indicator, covariates);
    let columns = columns.iter().enumerate().map(within).collect::<Result<Vec<_>, _>>()?;
    let outcome = varying_within(outcome, rows, &factors, ColumnRef::Outcome)?;
    let slices: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
    let fit = LinearFit::fit(&slices, &outcome).map_err(Refusal::after_treatment)?;

    let (plain, factor, degrees) = match kind {
        Covariance::Classic | Covariance::Hc1 => {
            // The fit counts an intercept, which is one of the absorbed constants.
            let factor = (rows - slopes - 1) as f64 / residual_degrees as f64;
            (kind, factor, residual_degrees as f64)
        }
        Covariance::Cr1 => {
            let count = clusters.map_or(0, distinct) as f64;
            let counted: Vec<&Factor<'_>> = all
                .into_iter()
                .filter(|factor| !clusters.is_some_and(|groups| is_nested(factor.codes, groups)))
                .collect();
            // The overall constant counts even if all others are within clusters.
            let used = slopes + constants(&counted).max(1);
            let factor = count / (count - 1.0) * (rows - 1) as f64 / (rows - used) as f64;
            (Covariance::Cr0, factor, count - 1.0)
        }
        _ => {
            let groups = clusters.filter(|_| kind.is_clustered());
            let rest = residual_degrees as f64;
            (kind, 1.0, groups.map_or(rest, |codes| distinct(codes) as f64 - 1.0))
        }
    };
    let estimate = fit.estimate(1, plain, clusters)?;
    let standard_error = estimate.standard_error * factor.sqrt();
    Ok(AbsorbedEffect {
        estimate: Estimate { standard_error, degrees, ..estimate },
        absorbed,
        residual_degrees,
    })
}

/// A column minus the means of the levels.
fn varying_within(
    column: &[f64],
    rows: usize,
    factors: &[Factor<'_>],
    reference: ColumnRef,
) -> Result<Vec<f64>, Refusal> {
    check_column(column, reference, rows)?;
    // Scaled so that nothing overflows, and centred so that a large mean costs no digits.
    let (centred, unit) = centred_with_unit(column, reference)?;
    let mut left = within_transform(&centred, factors)?;
    let sum = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>();
    let varies = sum(&left) > SMALLEST_SHARE * sum(&centred);
    let problem = "does not vary within the levels that are absorbed: these explain all of it";
    require_column(reference, varies, problem)?;
    left.iter_mut().for_each(|value| *value *= unit);
    Ok(left)
}

/// Steps after which factors count as too loosely connected.
const MOST_STEPS: usize = 10_000;
/// The squared length of the remaining step, relative to the column, at which the iteration stops.
const CONVERGED: f64 = 1e-28;

/// The residuals of a column on the levels of the factors. One factor takes one exact pass; several
/// take symmetric alternating projections (Halperin 1962) accelerated by conjugate gradients
/// (Hernández-Ramos, Escalante & Raydan 2011; as in Stata's reghdfe, Correia 2017), which do not
/// converge if hardly any row connects some levels to the others.
fn within_transform(column: &[f64], factors: &[Factor<'_>]) -> Result<Vec<f64>, Refusal> {
    let mut sums = Vec::new();
    let mut values = column.to_vec();
    if let [only] = factors {
        // The second pass removes the rounding errors of the first.
        only.take_out(&mut values, &mut sums);
        only.take_out(&mut values, &mut sums);
        return Ok(values);
    }
    // One sweep forth and back is a symmetric operator whose fixed points have zero means.
    let mut sweep = |values: &mut [f64]| {
        for factor in factors {
            factor.take_out(values, &mut sums);
        }
        for factor in factors.iter().rev().skip(1) {
            factor.take_out(values, &mut sums);
        }
    };
    sweep(&mut values);
    let square = |values: &[f64]| product(values, values);
    let length = square(&values);
    let mut moved = values.clone();
    sweep(&mut moved);
    let mut residual: Vec<f64> = values.iter().zip(&moved).map(|(x, t)| x - t).collect();
    let mut direction = residual.clone();
    let mut left = square(&residual);
    for _ in 0..MOST_STEPS {
        if left <= CONVERGED * length {
            // Removes the rounding errors of the steps.
            sweep(&mut values);
            return Ok(values);
        }
        moved.copy_from_slice(&direction);
        sweep(&mut moved);
        moved.iter_mut().zip(&direction).for_each(|(t, u)| *t = u - *t);
        let curvature = product(&direction, &moved);
        if curvature <= 0.0 || curvature.is_nan() {
            break;
        }
        let share = left / curvature;
        for row in 0..values.len() {
            values[row] -= share * direction[row];
            residual[row] -= share * moved[row];
        }
        let next = square(&residual);
        let keep = next / left;
        direction.iter_mut().zip(&residual).for_each(|(u, r)| *u = r + keep * *u);
        left = next;
    }
    if left <= 1e4 * CONVERGED * length {
        sweep(&mut values);
        return Ok(values);
    }
    Err(Refusal::Other(
        "the effects that are absorbed could not be taken out: some of their levels are tied to \
         the others by hardly any row"
            .into(),
    ))
}

/// An inner product in blocks, which reduces rounding errors.
fn product(left: &[f64], right: &[f64]) -> f64 {
    let blocks = left.chunks(1024).zip(right.chunks(1024));
    blocks.map(|(left, right)| left.iter().zip(right).map(|(a, b)| a * b).sum::<f64>()).sum()
}

struct Factor<'a> {
    codes: &'a [u32],
    /// One over the rows of each level; zero for a code without rows.
    inverse_counts: Vec<f64>,
    levels: usize,
}

impl<'a> Factor<'a> {
    fn new(codes: &'a [u32]) -> Self {
        let mut counts = vec![0.0; code_count(codes)];
        codes.iter().for_each(|code| counts[*code as usize] += 1.0);
        let levels = counts.iter().filter(|count| **count > 0.0).count();
        let inverse_counts =
            counts.into_iter().map(|count| if count > 0.0 { 1.0 / count } else { 0.0 }).collect();
        Self { codes, inverse_counts, levels }
    }

    /// Subtracts from each row the mean of its level.
    fn take_out(&self, column: &mut [f64], sums: &mut Vec<f64>) {
        sums.clear();
        sums.resize(self.inverse_counts.len(), 0.0);
        for (code, value) in self.codes.iter().zip(column.iter()) {
            sums[*code as usize] += value;
        }
        sums.iter_mut().zip(&self.inverse_counts).for_each(|(sum, inverse)| *sum *= inverse);
        for (code, value) in self.codes.iter().zip(column) {
            *value -= sums[*code as usize];
        }
    }

    /// The connected components of the levels of two factors, where a row connects its two levels:
    /// as many constants of the two factors are redundant.
    fn parts(&self, other: &Factor<'_>) -> usize {
        let offset = self.inverse_counts.len();
        let mut parent: Vec<usize> = (0..offset + other.inverse_counts.len()).collect();
        fn root(parent: &mut [usize], mut at: usize) -> usize {
            while parent[at] != at {
                parent[at] = parent[parent[at]];
                at = parent[at];
            }
            at
        }
        let mut parts = self.levels + other.levels;
        for (left, right) in self.codes.iter().zip(other.codes) {
            let left = root(&mut parent, *left as usize);
            let right = root(&mut parent, offset + *right as usize);
            if left != right {
                parent[left.max(right)] = left.min(right);
                parts -= 1;
            }
        }
        parts
    }
}

/// The number of constants of the factors that are not redundant: exact for one and two factors
/// (Abowd, Creecy & Kramarz 2002). For each further factor, the redundant ones are the most
/// connected components that it has with an earlier factor, as in reghdfe's pairwise method.
fn constants(factors: &[&Factor<'_>]) -> usize {
    let mut total = 0;
    for (at, factor) in factors.iter().enumerate() {
        let redundant = factors[..at].iter().map(|before| before.parts(factor)).max();
        total += factor.levels - redundant.unwrap_or(0);
    }
    total
}
