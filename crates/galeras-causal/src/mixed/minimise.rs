//! A minimiser that uses function values only.
//!
//! The criterion is a smooth function of θ for any signs, as the sign of a column of Λ does not
//! change ΛΛ'. So lme4's bound, that diagonal elements are not negative, needs only a change of
//! signs at the end. The method is Newton's within a trust region, with gradient and Hessian by
//! central differences, followed by steps with fourth-order differences.

use super::dense::eigen;

/// A function to minimise: of the elements of Λ, and perhaps of more.
pub(super) trait Objective {
    fn start(&self) -> Vec<f64>;

    /// The positions of the diagonal elements of Λ, each with the number of elements of its column
    /// from there on, which are contiguous.
    fn diagonal(&self) -> Vec<(usize, usize)>;

    /// The value, which is infinite where there is none.
    fn at(&mut self, parameters: &[f64]) -> f64;
}

pub(super) struct Minimum {
    pub(super) theta: Vec<f64>,
    pub(super) value: f64,
    /// The gradient vanishes and the Hessian has no negative direction, to rounding.
    pub(super) converged: bool,
}

const MOST_STEPS: usize = 200;
/// A diagonal element of Λ below this counts as zero (lme4's tolerance of `isSingular`).
pub(super) const SINGULAR: f64 = 1e-4;

/// The step of a parameter for a difference.
fn stride(value: f64, relative: f64) -> f64 {
    relative * value.abs().max(0.05)
}

fn moved(theta: &[f64], moves: &[(usize, f64)]) -> Vec<f64> {
    let mut theta = theta.to_vec();
    moves.iter().for_each(|(at, by)| theta[*at] += by);
    theta
}

/// Gradient and Hessian, row-major, by central differences.
pub(super) fn derivatives(
    criterion: &mut impl Objective,
    theta: &[f64],
    value: f64,
) -> (Vec<f64>, Vec<f64>) {
    let size = theta.len();
    let strides: Vec<f64> = theta.iter().map(|value| stride(*value, 2e-3)).collect();
    let mut sides = Vec::with_capacity(size);
    for (at, stride) in strides.iter().enumerate() {
        let up = criterion.at(&moved(theta, &[(at, *stride)]));
        let down = criterion.at(&moved(theta, &[(at, -stride)]));
        sides.push((up, down));
    }
    let gradient = sides.iter().zip(&strides).map(|((up, down), h)| (up - down) / (2.0 * h));
    let gradient: Vec<f64> = gradient.collect();
    let mut hessian = vec![0.0; size * size];
    for i in 0..size {
        let (up, down) = sides[i];
        hessian[i * size + i] = (up - 2.0 * value + down) / (strides[i] * strides[i]);
        for j in 0..i {
            let both = criterion.at(&moved(theta, &[(i, strides[i]), (j, strides[j])]));
            let neither = criterion.at(&moved(theta, &[(i, -strides[i]), (j, -strides[j])]));
            let single = sides[i].0 + sides[i].1 + sides[j].0 + sides[j].1;
            let mixed = (both + neither - single + 2.0 * value) / (2.0 * strides[i] * strides[j]);
            hessian[i * size + j] = mixed;
            hessian[j * size + i] = mixed;
        }
    }
    (gradient, hessian)
}

/// The step of at most `radius` that minimises the quadratic model.
fn step_within(values: &[f64], slopes: &[f64], radius: f64) -> Vec<f64> {
    let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
    let step = |shift: f64| -> Vec<f64> {
        let along = |(value, slope): (&f64, &f64)| -slope / (value + shift);
        values.iter().zip(slopes).map(along).collect()
    };
    let length = |step: &[f64]| step.iter().map(|part| part * part).sum::<f64>().sqrt();
    let largest = values.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
    let floor = 1e-12 * largest.max(1e-300);
    if lowest > floor {
        let newton = step(0.0);
        if length(&newton) <= radius {
            return newton;
        }
    }
    // Between these shifts the length falls from above the radius to below it.
    let slope = length(slopes);
    let mut low = (-lowest).max(0.0) + floor;
    let mut high = low + slope / radius + floor;
    if length(&step(low)) <= radius {
        return step(low);
    }
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if length(&step(middle)) > radius {
            low = middle;
        } else {
            high = middle;
        }
    }
    step(high)
}

/// Marks the parameters except those whose column of Λ is zero. In a zero column the criterion does not
/// change with the sign, so its derivatives in these parameters vanish.
pub(super) fn free_parameters(diagonal: &[(usize, usize)], theta: &[f64]) -> Vec<bool> {
    let mut free = vec![true; theta.len()];
    for (at, length) in diagonal {
        let is_free = theta[*at..at + length].iter().any(|value| *value != 0.0);
        free[*at..at + length].fill(is_free);
    }
    free
}

pub(super) fn minimise(criterion: &mut impl Objective) -> Minimum {
    let mut theta = criterion.start();
    let size = theta.len();
    let mut value = criterion.at(&theta);
    let mut radius = 0.5;
    let mut last = (Vec::new(), Vec::new());
    'search: for _ in 0..MOST_STEPS {
        let (gradient, hessian) = derivatives(criterion, &theta, value);
        if gradient.iter().chain(&hessian).any(|number| !number.is_finite()) {
            break;
        }
        let (values, vectors) = eigen(&hessian, size);
        let along: Vec<f64> = vectors
            .chunks_exact(size)
            .map(|vector| vector.iter().zip(&gradient).map(|(a, b)| a * b).sum())
            .collect();
        last = (values.clone(), vectors.clone());
        loop {
            let parts = step_within(&values, &along, radius);
            let length = parts.iter().map(|part| part * part).sum::<f64>().sqrt();
            let expected: f64 = parts
                .iter()
                .zip(values.iter().zip(&along))
                .map(|(part, (value, slope))| -(slope * part + 0.5 * value * part * part))
                .sum();
            let scale = theta.iter().fold(0.05, |most: f64, value| most.max(value.abs()));
            if length <= 1e-6 * scale || expected <= 1e-13 * (1.0 + value.abs()) {
                break 'search;
            }
            let mut next = theta.clone();
            for (part, vector) in parts.iter().zip(vectors.chunks_exact(size)) {
                next.iter_mut().zip(vector).for_each(|(cell, direction)| *cell += part * direction);
            }
            let there = criterion.at(&next);
            let ratio = (value - there) / expected;
            if ratio > 0.75 && length > 0.9 * radius {
                radius *= 2.5;
            } else if ratio.is_nan() || ratio < 0.25 {
                radius = 0.3 * length;
            }
            if ratio > 1e-3 {
                (theta, value) = (next, there);
                break;
            }
        }
    }
    finish(criterion, theta, value, &last)
}

/// Sets parameters to zero that are zero to rounding, makes diagonal elements positive, and takes
/// the last steps with better differences.
fn finish(
    criterion: &mut impl Objective,
    mut theta: Vec<f64>,
    mut value: f64,
    spectrum: &(Vec<f64>, Vec<f64>),
) -> Minimum {
    let diagonal = criterion.diagonal();
    let mut signs = vec![1.0; theta.len()];
    for (at, length) in &diagonal {
        if theta[*at].abs() < 1e-2 {
            let mut zero = theta.clone();
            zero[*at] = 0.0;
            // A zero variance makes its covariances zero, if this does not raise the criterion.
            let mut column = zero.clone();
            column[*at..at + length].fill(0.0);
            for candidate in [column, zero] {
                let there = criterion.at(&candidate);
                if there <= value + 1e-9 * (1.0 + value.abs().min(1e3)) {
                    (theta, value) = (candidate, there);
                    break;
                }
            }
        }
        if theta[*at] < 0.0 {
            theta[*at..at + length].iter_mut().for_each(|cell| *cell = -*cell);
            signs[*at..at + length].fill(-1.0);
        }
    }
    let size = theta.len();
    let free = free_parameters(&diagonal, &theta);
    let (values, vectors) = spectrum;
    let mut converged = values.len() == size;
    if !converged {
        return Minimum { theta, value, converged };
    }
    let hessian = |i: usize, j: usize| -> f64 {
        let pairs = values.iter().zip(vectors.chunks_exact(size));
        let sum: f64 = pairs.map(|(value, vector)| value * vector[i] * vector[j]).sum();
        signs[i] * signs[j] * sum
    };
    let places: Vec<usize> = (0..size).filter(|at| free[*at]).collect();
    let pairs = places.iter().flat_map(|i| places.iter().map(move |j| (*i, *j)));
    let inner: Vec<f64> = pairs.map(|(i, j)| hessian(i, j)).collect();
    let (values, vectors) = eigen(&inner, places.len());
    let largest = values.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
    converged = values.iter().all(|value| *value > -1e-3 * largest);
    let mut shortest = f64::INFINITY;
    for _ in 0..4 {
        let mut gradient = Vec::with_capacity(places.len());
        for at in &places {
            let h = stride(theta[*at], 4e-3);
            let mut difference = |times: f64| {
                criterion.at(&moved(&theta, &[(*at, times * h)]))
                    - criterion.at(&moved(&theta, &[(*at, -times * h)]))
            };
            gradient.push((8.0 * difference(1.0) - difference(2.0)) / (12.0 * h));
        }
        let mut next = theta.clone();
        let mut length = 0.0_f64;
        for (value, vector) in values.iter().zip(vectors.chunks_exact(places.len().max(1))) {
            if *value <= 1e-8 * largest {
                continue;
            }
            let slope: f64 = vector.iter().zip(&gradient).map(|(a, b)| a * b).sum();
            let part = -slope / value;
            length = length.max(part.abs());
            places.iter().zip(vector).for_each(|(at, direction)| next[*at] += part * direction);
        }
        if length.is_nan() || length >= 0.5 * shortest {
            break;
        }
        shortest = length;
        let there = criterion.at(&next);
        if !there.is_finite() {
            break;
        }
        (theta, value) = (next, there);
        if length < 1e-11 {
            break;
        }
    }
    let scale = theta.iter().fold(0.05, |most: f64, value| most.max(value.abs()));
    converged &= places.is_empty() || shortest <= 1e-3 * scale;
    Minimum { theta, value, converged }
}
