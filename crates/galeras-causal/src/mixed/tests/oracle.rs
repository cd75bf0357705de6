//! The criterion and its by-products against the definition with dense matrices: V = I + Z Λ Λ' Z'
//! of all rows, generalised least squares, determinants by elimination.

use super::super::criterion::Criterion;
use super::super::degrees::variances;
use super::super::design::Design;
use super::super::{RandomTerm, mixed};
use super::intercepts;
use crate::tests::{Draw, solve};

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Criterion, coefficients and their variances in units of σ², from the definition.
fn direct(
    outcome: &[f64],
    fixed: &[&[f64]],
    terms: &[RandomTerm<'_>],
    theta: &[f64],
    reml: bool,
) -> (f64, Vec<f64>, Vec<f64>) {
    let rows = outcome.len();
    let mut variance = vec![vec![0.0; rows]; rows];
    (0..rows).for_each(|row| variance[row][row] = 1.0);
    let mut values = theta.iter();
    for term in terms {
        let mut columns = Vec::new();
        if term.intercept {
            columns.push(vec![1.0; rows]);
        }
        columns.extend(term.slopes.iter().map(|slope| slope.to_vec()));
        let width = columns.len();
        let mut lambda = vec![vec![0.0; width]; width];
        for column in 0..width {
            for row in lambda.iter_mut().skip(column) {
                row[column] = *values.next().unwrap();
            }
        }
        for i in 0..rows {
            for j in (0..rows).filter(|j| term.groups[i] == term.groups[*j]) {
                for a in 0..width {
                    for b in 0..width {
                        variance[i][j] +=
                            columns[a][i] * columns[b][j] * dot(&lambda[a], &lambda[b]);
                    }
                }
            }
        }
    }
    let mut design = vec![vec![1.0; rows]];
    design.extend(fixed.iter().map(|column| column.to_vec()));
    let mut sides = design.clone();
    sides.push(outcome.to_vec());
    let (solved, log) = solve(variance, sides);
    let size = design.len();
    let normal: Vec<Vec<f64>> =
        (0..size).map(|i| (0..size).map(|j| dot(&design[i], &solved[j])).collect()).collect();
    let right: Vec<f64> = design.iter().map(|column| dot(column, &solved[size])).collect();
    let mut sides: Vec<Vec<f64>> =
        (0..size).map(|at| (0..size).map(|i| f64::from(u8::from(i == at))).collect()).collect();
    sides.push(right);
    let (inverse, log_fixed) = solve(normal, sides);
    let coefficients = inverse[size].clone();
    let residuals: Vec<f64> = (0..rows)
        .map(|row| {
            outcome[row] - (0..size).map(|at| design[at][row] * coefficients[at]).sum::<f64>()
        })
        .collect();
    let weighted: Vec<f64> = (0..rows)
        .map(|row| {
            solved[size][row] - (0..size).map(|at| solved[at][row] * coefficients[at]).sum::<f64>()
        })
        .collect();
    let square = dot(&residuals, &weighted);
    let degrees = (rows - if reml { size } else { 0 }) as f64;
    let criterion = log
        + if reml { log_fixed } else { 0.0 }
        + degrees * (1.0 + (std::f64::consts::TAU * square / degrees).ln());
    let variances = (0..size).map(|at| inverse[at][at]).collect();
    (criterion, coefficients, variances)
}

/// Rows with three factors, one nested in another, a slope, and columns away from zero.
struct Rows {
    outcome: Vec<f64>,
    x: Vec<f64>,
    w: Vec<f64>,
    point: Vec<u32>,
    model: Vec<u32>,
    repository: Vec<u32>,
}

fn rows(seed: u64, count: usize, points: usize) -> Rows {
    let mut draw = Draw(seed);
    let mut rows = Rows {
        outcome: Vec::new(),
        x: Vec::new(),
        w: Vec::new(),
        point: Vec::new(),
        model: Vec::new(),
        repository: Vec::new(),
    };
    for at in 0..count {
        // Every group occurs.
        let point = if at < points { at } else { draw.below(points) };
        rows.point.push(point as u32);
        rows.repository.push(point as u32 % 7);
        rows.model.push(draw.below(4) as u32);
        rows.x.push(30.0 + 5.0 * draw.normal());
        rows.w.push(draw.uniform());
        rows.outcome.push(100.0 + 3.0 * draw.normal() + point as f64 / 9.0);
    }
    rows
}

#[test]
fn the_criterion_is_that_of_dense_matrices_for_any_theta() {
    for (seed, count, points) in [(1, 60, 20), (2, 130, 50), (3, 160, 90)] {
        let rows = rows(seed, count, points);
        let slopes =
            RandomTerm { groups: &rows.model, intercept: true, slopes: vec![&rows.w, &rows.x] };
        let terms = [intercepts(&rows.point), slopes, intercepts(&rows.repository)];
        let fixed: [&[f64]; 2] = [&rows.x, &rows.w];
        let mut draw = Draw(seed + 100);
        for reml in [true, false] {
            let design = Design::new(&rows.outcome, &fixed, &terms).unwrap();
            let mut criterion = Criterion::new(&design, reml).unwrap();
            assert_eq!(criterion.parameters(), 8);
            for _ in 0..4 {
                let theta: Vec<f64> = (0..8).map(|_| draw.normal()).collect();
                // Slopes are divided by their root mean square in the design, so θ is multiplied by
                // it.
                let scales = &design.terms[1].scales;
                let (b, c) = (scales[1], scales[2]);
                let factors = [1.0, 1.0, b, c, b, c, c, 1.0];
                let inside: Vec<f64> = theta.iter().zip(factors).map(|(a, b)| a * b).collect();
                let system = criterion.system(&inside).unwrap();
                let (expected, _, variance) = direct(&rows.outcome, &fixed, &terms, &theta, reml);
                let found = criterion.of(&system);
                assert!((found - expected).abs() < 1e-9 * expected.abs(), "{found} {expected}");
                let transform = &design.ordinary.transform;
                for (found, expected) in
                    variances(&system.fixed_factor, transform, 3).iter().zip(variance)
                {
                    assert!((found / expected - 1.0).abs() < 1e-8, "{found} {expected}");
                }
            }
        }
    }
}

#[test]
fn a_fit_is_a_minimum_and_its_numbers_are_those_of_dense_matrices() {
    let rows = rows(4, 150, 40);
    let terms = [intercepts(&rows.point), intercepts(&rows.model), intercepts(&rows.repository)];
    let fixed: [&[f64]; 1] = [&rows.x];
    for reml in [true, false] {
        let fit = mixed(&rows.outcome, &fixed, &terms, reml).unwrap();
        let (criterion, coefficients, variances) =
            direct(&rows.outcome, &fixed, &terms, &fit.theta, reml);
        assert!((fit.criterion - criterion).abs() < 1e-9 * criterion);
        for (at, found) in fit.coefficients.iter().enumerate() {
            assert!((found.value / coefficients[at] - 1.0).abs() < 1e-9);
            let error = (fit.residual_variance * variances[at]).sqrt();
            assert!((found.standard_error / error - 1.0).abs() < 1e-8);
        }
        for at in 0..fit.theta.len() {
            for by in [-0.02, 0.02] {
                let mut theta = fit.theta.clone();
                theta[at] += by;
                let (there, ..) = direct(&rows.outcome, &fixed, &terms, &theta, reml);
                assert!(there >= criterion - 1e-9, "{at} {by}: {there} below {criterion}");
            }
        }
    }
}
