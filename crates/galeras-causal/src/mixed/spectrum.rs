//! Eigenvalues of small symmetric matrices by Jacobi's method: as many as there are parameters.
//!
//! Written out, and not taken from a library, so that the order of every operation is fixed on any
//! machine: the path of the minimiser depends on it.

/// Eigenvalues and, row by row, their eigenvectors, of a row-major matrix, `size` by `size`.
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
