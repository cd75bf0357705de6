//! Takes the means of all levels of all factors out of a column.

use super::factor::Factor;
use crate::Refusal;

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
pub(super) fn within(column: &[f64], factors: &[Factor<'_>]) -> Result<Vec<f64>, Refusal> {
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
