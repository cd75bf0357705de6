//! Linear regression with fixed effects that are absorbed: a constant for each level of one or more
//! factors, never estimated.
//!
//! `factor` is a factor, `within` takes the means of all factors out of a column, `effect` is the
//! regression on what is left.

#[cfg(test)]
mod tests;

use crate::linear::{Covariance, LinearFit, treatment_column};
use crate::{ColumnRef, Estimate, Refusal};

// HEADER absorbed/effect.rs
// The coefficient of a binary treatment in a regression with absorbed effects.

/// The share of a column's variance that has to be left within the levels.
const SMALLEST_SHARE: f64 = 1e-10;

/// The effect of a binary treatment among rows that share the levels of all factors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AbsorbedEffect {
    /// The coefficient of the treatment.
    pub estimate: Estimate,
    /// The constants that were absorbed, without those that follow from others.
    pub absorbed: usize,
    /// Rows less coefficients less absorbed constants.
    pub residual_degrees: usize,
}

/// The coefficient of `treated` in a linear regression of `outcome` on the treatment, `covariates`
/// and a constant for each level of each of `factors`, by the within-transformation (Frisch, Waugh
/// & Lovell), in units of the outcome. Equals that of linearmodels' `AbsorbingLS` and of least
/// squares with an indicator for each level.
///
/// All columns have one entry for each of n rows; a factor holds the code of each row's level.
/// `kind` is one of `Classic`, `Hc0`, `Hc1`, `Cr0` and `Cr1`. Degrees of freedom are rows less
/// coefficients less absorbed constants; with clusters Student's t has one degree less than there
/// are, and constants of levels that lie within clusters do not count in the factor of `Cr1`
/// (Cameron & Miller 2015; as reghdfe).
///
/// # Errors
/// [`Refusal::TooFew`] if an arm is empty, below two clusters, or if no degree of freedom is left;
/// [`Refusal::UnusableColumn`] with [`ColumnRef::Treatment`] or [`ColumnRef::Covariate`] for a column
/// that does not vary within the levels; as for least squares else. [`Refusal::Other`] for a kind
/// that needs leverages, or factors that are too loosely connected.
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
    if factors.is_empty() {
        return Err(Refusal::TooFew { what: "absorbed factors", found: 0, needed: 1 });
    }
    if let Some(codes) = factors.iter().find(|codes| codes.len() != rows) {
        return Err(Refusal::Other(format!(
            "an absorbed factor has {} rows and the outcome {rows}",
            codes.len()
        )));
    }
    if !matches!(
        kind,
        Covariance::Classic | Covariance::Hc0 | Covariance::Hc1 | Covariance::Cr0 | Covariance::Cr1
    ) {
        return Err(Refusal::Other(format!(
            "{kind} needs leverages, which are not computed where effects are absorbed (classic, \
             HC0, HC1, CR0 and CR1 need none)"
        )));
    }
    let factors: Vec<Factor<'_>> = factors.iter().map(|codes| Factor::new(codes)).collect();
    let all: Vec<&Factor<'_>> = factors.iter().collect();
    let absorbed = constants(&all);
    let slopes = covariates.len() + 1;
    if rows <= absorbed + slopes {
        return Err(Refusal::TooFew { what: "rows", found: rows, needed: absorbed + slopes + 1 });
    }
    let residual_degrees = rows - absorbed - slopes;

    let mut columns = Vec::with_capacity(slopes);
    for (position, column) in
        std::iter::once(indicator.as_slice()).chain(covariates.iter().copied()).enumerate()
    {
        let reference = match position.checked_sub(1) {
            None => ColumnRef::Treatment,
            Some(covariate) => ColumnRef::Covariate(covariate),
        };
        columns.push(varying_within(column, rows, &factors, reference)?);
    }
    let outcome = varying_within(outcome, rows, &factors, ColumnRef::Outcome)?;
    let slices: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
    let fit = LinearFit::fit(&slices, &outcome).map_err(crate::glm::of_treatment)?;

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
                .filter(|factor| !clusters.is_some_and(|groups| factor.is_nested_in(groups)))
                .collect();
            // The overall constant is there even if all others are within clusters.
            let used = slopes + constants(&counted).max(1);
            let factor = count / (count - 1.0) * (rows - 1) as f64 / (rows - used) as f64;
            (Covariance::Cr0, factor, count - 1.0)
        }
        _ => {
            let groups = clusters.filter(|_| kind.is_clustered());
            (
                kind,
                1.0,
                groups.map_or(residual_degrees as f64, |codes| distinct(codes) as f64 - 1.0),
            )
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

/// A column without the means of the levels.
fn varying_within(
    column: &[f64],
    rows: usize,
    factors: &[Factor<'_>],
    reference: ColumnRef,
) -> Result<Vec<f64>, Refusal> {
    crate::column::check_column(column, reference, rows)?;
    // On a scale on which nothing overflows, and without a mean that costs digits.
    let centred = crate::compensated::centred(column, reference)?;
    let unit = scale(column, &centred);
    let mut left = within(&centred, factors)?;
    let sum = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>();
    if sum(&left) <= SMALLEST_SHARE * sum(&centred) {
        let problem =
            "does not vary within the levels that are absorbed: these explain all of it".to_owned();
        return Err(Refusal::UnusableColumn { column: reference, problem });
    }
    left.iter_mut().for_each(|value| *value *= unit);
    Ok(left)
}

/// The power of two between a column and its centred version.
fn scale(column: &[f64], centred: &[f64]) -> f64 {
    let (mut low, mut high) = (0, 0);
    for (row, value) in column.iter().enumerate() {
        if *value < column[low] {
            low = row;
        }
        if *value > column[high] {
            high = row;
        }
    }
    let ratio =
        (column[high] * 0.5 - column[low] * 0.5) / (centred[high] * 0.5 - centred[low] * 0.5);
    ratio.log2().round().exp2()
}

fn distinct(codes: &[u32]) -> usize {
    let mut sorted = codes.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted.len()
}

// HEADER absorbed/within.rs
// Takes the means of all levels of all factors out of a column.

/// Steps after which factors count as too loosely connected.
const MOST_STEPS: usize = 10_000;
/// The squared length of the step that is left, of the column, below which all means are zero.
const CONVERGED: f64 = 1e-28;

/// The residuals of a column on the levels of the factors: exact in one pass for one factor; for
/// several, symmetric alternating projections (Halperin 1962), accelerated by conjugate gradients
/// (Hernández-Ramos, Escalante & Raydan 2011; as Stata's reghdfe does, Correia 2017).
///
/// # Errors
/// No convergence: some levels are tied to the others by hardly any row.
fn within(column: &[f64], factors: &[Factor<'_>]) -> Result<Vec<f64>, Refusal> {
    let mut sums = Vec::new();
    let mut values = column.to_vec();
    if let [only] = factors {
        // The second pass removes what rounding left in the first.
        only.take_out(&mut values, &mut sums);
        only.take_out(&mut values, &mut sums);
        return Ok(values);
    }
    // One sweep there and back: a symmetric operator whose fixed points have no means.
    let mut sweep = |values: &mut [f64]| {
        for factor in factors {
            factor.take_out(values, &mut sums);
        }
        for factor in factors.iter().rev().skip(1) {
            factor.take_out(values, &mut sums);
        }
    };
    sweep(&mut values);
    let length = square(&values);
    let mut moved = values.clone();
    sweep(&mut moved);
    let mut residual: Vec<f64> = values.iter().zip(&moved).map(|(x, t)| x - t).collect();
    let mut direction = residual.clone();
    let mut left = square(&residual);
    for _ in 0..MOST_STEPS {
        if left <= CONVERGED * length {
            // What the steps' rounding put back is taken out at last.
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

fn square(values: &[f64]) -> f64 {
    product(values, values)
}

/// An inner product in blocks, which keeps rounding small.
fn product(left: &[f64], right: &[f64]) -> f64 {
    let blocks = left.chunks(1024).zip(right.chunks(1024));
    blocks.map(|(left, right)| left.iter().zip(right).map(|(a, b)| a * b).sum::<f64>()).sum()
}

// HEADER absorbed/factor.rs
// A factor whose levels have a constant each, and how many constants several factors have.

/// The levels of a factor.
struct Factor<'a> {
    /// The level of each row.
    codes: &'a [u32],
    /// One over the rows of each level; zero for a code without rows.
    inverse_counts: Vec<f64>,
    levels: usize,
}

impl<'a> Factor<'a> {
    fn new(codes: &'a [u32]) -> Self {
        let size = codes.iter().max().map_or(0, |last| *last as usize + 1);
        let mut counts = vec![0.0; size];
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

    /// Whether each level lies within one group.
    fn is_nested_in(&self, groups: &[u32]) -> bool {
        let mut known = vec![u32::MAX; self.inverse_counts.len()];
        self.codes.iter().zip(groups).all(|(code, group)| {
            let known = &mut known[*code as usize];
            let same = *known == u32::MAX || known == group;
            *known = *group;
            same
        })
    }

    /// The connected parts of the levels of two factors, of which two are tied by a row that has
    /// both: as many constants of the two say the same.
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

/// How many constants factors have that do not follow from the others: exact for one and two
/// (Abowd, Creecy & Kramarz 2002); for each further factor as many are redundant as connected parts
/// with the one before it that has most, which is the count of reghdfe's pairwise method.
fn constants(factors: &[&Factor<'_>]) -> usize {
    let mut total = 0;
    for (at, factor) in factors.iter().enumerate() {
        let redundant = factors[..at].iter().map(|before| before.parts(factor)).max();
        total += factor.levels - redundant.unwrap_or(0);
    }
    total
}
