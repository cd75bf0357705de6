//! Dense matrices: the Cholesky factor of what sparse elimination leaves, and eigenvalues.

const PANEL: usize = 32;
/// Rows of a panel updated at a time, which fit into the processor's cache.
const CHUNK: usize = 256;

/// Replaces the lower triangle of a column-major matrix by its Cholesky factor. Columns from
/// `unchecked` on may have pivots that are not positive; these are not divided. Returns the pivots
/// before their roots.
pub(super) fn factor(matrix: &mut [f64], size: usize, unchecked: usize) -> Vec<f64> {
    let mut pivots = vec![0.0; size];
    for first in (0..size).step_by(PANEL) {
        let last = (first + PANEL).min(size);
        update(matrix, size, first, last);
        for column in first..last {
            let (before, rest) = matrix.split_at_mut(column * size);
            let target = &mut rest[..size];
            for earlier in first..column {
                let source = &before[earlier * size..(earlier + 1) * size];
                let weight = source[column];
                for (cell, value) in target[column..].iter_mut().zip(&source[column..]) {
                    *cell -= weight * value;
                }
            }
            let pivot = target[column];
            pivots[column] = pivot;
            if column >= unchecked && pivot <= 0.0 {
                continue;
            }
            let root = pivot.sqrt();
            target[column] = root;
            target[column + 1..].iter_mut().for_each(|cell| *cell /= root);
        }
    }
    pivots
}

/// Subtracts the contributions of the columns before `first` from the columns `first..last`.
fn update(matrix: &mut [f64], size: usize, first: usize, last: usize) {
    let (before, rest) = matrix.split_at_mut(first * size);
    for top in (first..size).step_by(CHUNK) {
        let bottom = (top + CHUNK).min(size);
        for block in (0..first).step_by(PANEL) {
            for column in first..last.min(bottom) {
                let from = top.max(column);
                let offset = (column - first) * size;
                let target = &mut rest[offset + from..offset + bottom];
                // Four columns at once: the target is read and written a quarter as often.
                for four in (block..block + PANEL).step_by(4) {
                    let source = |k: usize| {
                        let start = (four + k) * size;
                        (before[start + column], &before[start + from..start + bottom])
                    };
                    let [(a, x0), (b, x1), (c, x2), (d, x3)] = [0, 1, 2, 3].map(source);
                    for ((((cell, p), q), r), s) in
                        target.iter_mut().zip(x0).zip(x1).zip(x2).zip(x3)
                    {
                        *cell -= (a * p + b * q) + (c * r + d * s);
                    }
                }
            }
        }
    }
}

/// Eigenvalues and, row by row, eigenvectors of a row-major matrix, `size` by `size`, by Jacobi's
/// method. Not taken from a library, so that the order of every operation is the same on any
/// machine: the path of the minimiser depends on it.
pub(super) fn eigen(matrix: &[f64], size: usize) -> (Vec<f64>, Vec<f64>) {
    let mut a = matrix.to_vec();
    let mut vectors = vec![0.0; size * size];
    (0..size).for_each(|at| vectors[at * size + at] = 1.0);
    for _sweep in 0..60 {
        let off: f64 = (0..size)
            .flat_map(|i| (0..i).map(move |j| (i, j)))
            .map(|(i, j)| a[i * size + j].powi(2))
            .sum();
        let all: f64 = a.iter().map(|value| value * value).sum();
        if off <= 1e-34 * all {
            break;
        }
        for p in 0..size {
            for q in p + 1..size {
                rotate(&mut a, &mut vectors, size, p, q);
            }
        }
    }
    ((0..size).map(|at| a[at * size + at]).collect(), vectors)
}

/// One rotation, which makes the element at row p and column q zero.
fn rotate(a: &mut [f64], vectors: &mut [f64], size: usize, p: usize, q: usize) {
    let off = a[p * size + q];
    if off == 0.0 {
        return;
    }
    let ratio = (a[q * size + q] - a[p * size + p]) / (2.0 * off);
    let tangent = ratio.signum() / (ratio.abs() + (ratio * ratio + 1.0).sqrt());
    let tangent = if ratio == 0.0 { 1.0 } else { tangent };
    let cosine = 1.0 / (tangent * tangent + 1.0).sqrt();
    let sine = tangent * cosine;
    for k in 0..size {
        let (left, right) = (a[k * size + p], a[k * size + q]);
        a[k * size + p] = cosine * left - sine * right;
        a[k * size + q] = sine * left + cosine * right;
    }
    for k in 0..size {
        let (left, right) = (a[p * size + k], a[q * size + k]);
        a[p * size + k] = cosine * left - sine * right;
        a[q * size + k] = sine * left + cosine * right;
        let (left, right) = (vectors[p * size + k], vectors[q * size + k]);
        vectors[p * size + k] = cosine * left - sine * right;
        vectors[q * size + k] = sine * left + cosine * right;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_factor_times_its_transpose_is_the_matrix_at_sizes_around_those_of_blocks() {
        for size in [1, 3, 31, 32, 33, 64, 70, 300] {
            // A Kac-Murdock-Szegő matrix: positive definite, with a known determinant.
            let entry = |i: usize, j: usize| 0.7_f64.powi(i.abs_diff(j) as i32);
            let mut matrix: Vec<f64> =
                (0..size * size).map(|at| entry(at / size, at % size)).collect();
            let pivots = factor(&mut matrix, size, size);
            let determinant: f64 = pivots.iter().map(|pivot| pivot.ln()).sum();
            let expected = (size as f64 - 1.0) * (1.0_f64 - 0.49).ln();
            assert!((determinant - expected).abs() < 1e-10 * size as f64, "{size}");
            for (i, j) in [(0, 0), (size - 1, 0), (size - 1, size / 2), (size / 2, size / 3)] {
                let sum: f64 =
                    (0..=i.min(j)).map(|k| matrix[k * size + i] * matrix[k * size + j]).sum();
                assert!((sum - entry(i, j)).abs() < 1e-12, "{size}: {i} {j}");
            }
        }
    }

    #[test]
    fn the_spectrum_rebuilds_the_matrix() {
        let matrix = [4.0, 1.0, -2.0, 1.0, 2.0, 0.5, -2.0, 0.5, -3.0];
        let (values, vectors) = eigen(&matrix, 3);
        for i in 0..3 {
            for j in 0..3 {
                let sum: f64 =
                    (0..3).map(|k| values[k] * vectors[k * 3 + i] * vectors[k * 3 + j]).sum();
                assert!((sum - matrix[i * 3 + j]).abs() < 1e-13, "{i} {j}: {sum}");
            }
        }
        // Trace and the sum of squares are those of the matrix.
        assert!((values.iter().sum::<f64>() - 3.0).abs() < 1e-13);
    }

    #[test]
    fn a_diagonal_matrix_is_its_own_spectrum() {
        assert_eq!(eigen(&[3.0, 0.0, 0.0, 1.0], 2).0, [3.0, 1.0]);
        assert_eq!(eigen(&[], 0).0, [0.0; 0]);
    }
}
