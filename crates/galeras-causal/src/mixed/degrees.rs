//! Satterthwaite's degrees of freedom of the fixed effects, as Kuznetsova, Brockhoff and
//! Christensen compute them ("lmerTest", Journal of Statistical Software 82, 2017): 2 C² / (g'A g),
//! where C is the variance of a coefficient as a function of (θ, σ), g its gradient and A twice the
//! inverse of the Hessian of the deviance or REML criterion in (θ, σ), which is not profiled here.
//!
//! Derivatives in θ are fourth-order differences, those in σ are exact.

use super::criterion::Criterion;
use super::dense::eigen;
use super::minimise::free_parameters;

/// The differentiated quantities; variances of coefficients are in units of σ².
struct Sample {
    determinants: f64,
    residual: f64,
    variances: Vec<f64>,
}

/// The variance of each coefficient in units of σ², from the factor of X'V⁻¹X in the orthonormal
/// basis; `transform` has a row for each coefficient.
pub(super) fn variances(factor: &[f64], transform: &[f64], size: usize) -> Vec<f64> {
    let variance = |row: &[f64]| {
        let mut solved = row.to_vec();
        for at in 0..size {
            for earlier in 0..at {
                solved[at] -= factor[at * size + earlier] * solved[earlier];
            }
            solved[at] /= factor[at * size + at];
        }
        solved.iter().map(|value| value * value).sum()
    };
    transform.chunks_exact(size).map(variance).collect()
}

/// The degrees of freedom of each coefficient at the minimum; infinite if they are undetermined.
pub(super) fn satterthwaite(
    criterion: &mut Criterion,
    theta: &[f64],
    transform: &[f64],
    fixed: usize,
) -> Option<Vec<f64>> {
    let free = free_parameters(&criterion.diagonal(), theta);
    let places: Vec<usize> = (0..theta.len()).filter(|at| free[*at]).collect();
    let strides: Vec<f64> = places.iter().map(|at| 5e-3 * theta[*at].abs().max(0.1)).collect();
    let mut sample = |moves: &[(usize, f64)]| -> Option<Sample> {
        let mut there = theta.to_vec();
        moves.iter().for_each(|(at, times)| there[places[*at]] += times * strides[*at]);
        let system = criterion.system(&there)?;
        Some(Sample {
            determinants: criterion.determinants(&system),
            residual: system.residual,
            variances: variances(&system.fixed_factor, transform, fixed),
        })
    };
    let centre = sample(&[])?;
    let size = places.len();
    let width = size + 1;
    let mut axes = Vec::with_capacity(size);
    for at in 0..size {
        let mut on_axis = Vec::with_capacity(4);
        for times in [1.0, -1.0, 2.0, -2.0] {
            on_axis.push(sample(&[(at, times)])?);
        }
        axes.push(on_axis);
    }
    let mut mixed = Vec::new();
    for i in 0..size {
        for j in 0..i {
            let mut corners = Vec::with_capacity(8);
            for times in [1.0, 2.0] {
                for (a, b) in [(times, times), (times, -times), (-times, times), (-times, -times)] {
                    corners.push(sample(&[(i, a), (j, b)])?);
                }
            }
            mixed.push(((i, j), corners));
        }
    }
    let degrees = criterion.degrees;
    let square = centre.residual / degrees;
    let sigma = square.sqrt();
    // The deviance as a function of θ at this σ, up to a constant.
    let of = |sample: &Sample| sample.determinants + sample.residual / square;
    let mut hessian = vec![0.0; width * width];
    let mut slopes = vec![vec![0.0; width]; fixed];
    for (i, axis) in axes.iter().enumerate() {
        let h = strides[i];
        let first = |value: &dyn Fn(&Sample) -> f64| {
            (8.0 * (value(&axis[0]) - value(&axis[1])) - (value(&axis[2]) - value(&axis[3])))
                / (12.0 * h)
        };
        let near = of(&axis[0]) + of(&axis[1]);
        let far = of(&axis[2]) + of(&axis[3]);
        hessian[i * width + i] = (16.0 * near - far - 30.0 * of(&centre)) / (12.0 * h * h);
        let cross = -2.0 * first(&|sample: &Sample| sample.residual) / (square * sigma);
        hessian[i * width + size] = cross;
        hessian[size * width + i] = cross;
        for (at, slope) in slopes.iter_mut().enumerate() {
            slope[i] = square * first(&|sample: &Sample| sample.variances[at]);
        }
    }
    for ((i, j), corners) in &mixed {
        let second = |corners: &[Sample], times: f64| {
            (of(&corners[0]) - of(&corners[1]) - of(&corners[2]) + of(&corners[3]))
                / (4.0 * times * times * strides[*i] * strides[*j])
        };
        let value = (4.0 * second(&corners[..4], 1.0) - second(&corners[4..], 2.0)) / 3.0;
        hessian[i * width + j] = value;
        hessian[j * width + i] = value;
    }
    hessian[size * width + size] = -2.0 * degrees / square + 6.0 * centre.residual / square.powi(2);
    for (slope, variance) in slopes.iter_mut().zip(&centre.variances) {
        slope[size] = 2.0 * sigma * variance;
    }
    let found = slopes.iter().zip(&centre.variances).map(|(slope, variance)| {
        let spread = quadratic_inverse(&hessian, slope, width);
        2.0 * (square * variance).powi(2) / (2.0 * spread)
    });
    Some(found.collect())
}

/// g' H⁻¹ g, without the directions in which H is zero or negative to rounding.
fn quadratic_inverse(hessian: &[f64], slope: &[f64], width: usize) -> f64 {
    // Parameters on a common scale, so that "to rounding" means the same for all of them.
    let units: Vec<f64> = (0..width)
        .map(|at| hessian[at * width + at].abs().sqrt())
        .map(|unit| if unit > 0.0 { unit } else { 1.0 })
        .collect();
    let scaled: Vec<f64> = (0..width * width)
        .map(|at| hessian[at] / (units[at / width] * units[at % width]))
        .collect();
    let slope: Vec<f64> = slope.iter().zip(&units).map(|(value, unit)| value / unit).collect();
    let (values, vectors) = eigen(&scaled, width);
    values
        .iter()
        .zip(vectors.chunks_exact(width))
        .filter(|(value, _)| **value > 1e-8)
        .map(|(value, vector)| {
            vector.iter().zip(&slope).map(|(a, b)| a * b).sum::<f64>().powi(2) / value
        })
        .sum()
}
