//! The Cholesky factor of a small symmetric matrix (a Gram matrix, Hessian or correlation, as wide
//! as the covariates plus one).
//!
//! It is not taken from a library, so that a singular matrix gives its first dependent column, and
//! so that the order of operations is the same on every machine.

use crate::{ColumnRef, Refusal};

/// The share 1 - R² of a column below which the others explain it.
pub(super) const DEPENDENT: f64 = 1e-10;

/// The refusal of a column that depends on earlier ones, in a design that starts with an intercept.
pub(super) fn collinear(column: usize) -> Refusal {
    Refusal::Collinear { column: ColumnRef::Covariate(column.saturating_sub(1)) }
}

/// The lower triangular L with L L' = A, for a positive definite A.
pub(super) struct Cholesky {
    /// Row-major, `size` by `size`; zero above the diagonal.
    lower: Vec<f64>,
    size: usize,
}

impl Cholesky {
    /// Factors the matrix with element `entry(i, j)` at row i and column j <= i. A pivot is what
    /// remains of a diagonal element, a variance, after the earlier columns are taken out.
    ///
    /// # Errors
    /// The position of the first column whose pivot `is_pivot(column, pivot)` rejects.
    pub(super) fn new(
        size: usize,
        entry: impl Fn(usize, usize) -> f64,
        is_pivot: impl Fn(usize, f64) -> bool,
    ) -> Result<Self, usize> {
        let mut lower = vec![0.0; size * size];
        for row in 0..size {
            for column in 0..=row {
                let mut value = entry(row, column);
                for inner in 0..column {
                    value -= lower[row * size + inner] * lower[column * size + inner];
                }
                if column < row {
                    lower[row * size + column] = value / lower[column * size + column];
                } else if is_pivot(row, value) {
                    lower[row * size + row] = value.sqrt();
                } else {
                    return Err(row);
                }
            }
        }
        Ok(Self { lower, size })
    }

    /// Factors a row-major matrix, `size` by `size`, of which only the lower triangle is read.
    ///
    /// # Errors
    /// The position of the first column whose pivot is not above `tolerance` times its diagonal
    /// element (a share of 1 - R²), not above zero, or not finite.
    pub(super) fn of_lower(matrix: &[f64], size: usize, tolerance: f64) -> Result<Self, usize> {
        let entry = |row: usize, column: usize| matrix[row * size + column];
        Self::new(size, entry, |column, pivot| {
            pivot > tolerance * entry(column, column) && pivot > 0.0 && pivot.is_finite()
        })
    }

    /// The factor of the Gram matrix of an intercept and covariates.
    pub(super) fn of_gram(matrix: &[f64], size: usize) -> Result<Self, Refusal> {
        Self::of_lower(matrix, size, DEPENDENT).map_err(collinear)
    }

    pub(super) fn solve(&self, right: &[f64]) -> Vec<f64> {
        let size = self.size;
        let mut x = right.to_vec();
        for row in 0..size {
            for column in 0..row {
                x[row] -= self.lower[row * size + column] * x[column];
            }
            x[row] /= self.lower[row * size + row];
        }
        for row in (0..size).rev() {
            for below in row + 1..size {
                x[row] -= self.lower[below * size + row] * x[below];
            }
            x[row] /= self.lower[row * size + row];
        }
        x
    }

    /// The upper triangular R = L' with R' R = A, row-major.
    pub(super) fn upper(&self) -> Vec<f64> {
        let size = self.size;
        let mut upper = vec![0.0; size * size];
        for row in 0..size {
            for column in 0..=row {
                upper[column * size + row] = self.lower[row * size + column];
            }
        }
        upper
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 4, 2, 2; 2, 5, 3; 2, 3, 6: its factor has small integers and halves.
    const MATRIX: [f64; 9] = [4.0, 2.0, 2.0, 2.0, 5.0, 3.0, 2.0, 3.0, 6.0];

    #[test]
    fn the_factor_times_its_transpose_is_the_matrix() {
        let factor = Cholesky::of_lower(&MATRIX, 3, 1e-10).map(|factor| factor.upper());
        assert_eq!(factor, Ok(vec![2.0, 1.0, 1.0, 0.0, 2.0, 1.0, 0.0, 0.0, 2.0]));
    }

    #[test]
    fn only_the_lower_triangle_is_read() {
        let mut half = MATRIX;
        [half[1], half[2], half[5]] = [f64::NAN; 3];
        let factors = [MATRIX, half].map(|matrix| Cholesky::of_lower(&matrix, 3, 1e-10));
        let [whole, half] = factors.map(|factor| factor.map(|factor| factor.upper()));
        assert_eq!(whole, half);
    }

    #[test]
    fn a_system_is_solved() {
        let solution = Cholesky::of_lower(&MATRIX, 3, 1e-10).map(|f| f.solve(&[8.0, 10.0, 11.0]));
        assert_eq!(solution, Ok(vec![1.0, 1.0, 1.0]));
    }

    #[test]
    fn the_first_dependent_column_is_named() {
        let matrix = [1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 2.0];
        assert_eq!(Cholesky::of_lower(&matrix, 3, 1e-10).err(), Some(2));
        assert_eq!(Cholesky::of_lower(&[0.0], 1, 1e-10).err(), Some(0));
        assert_eq!(Cholesky::of_lower(&[f64::NAN], 1, 1e-10).err(), Some(0));
        assert_eq!(Cholesky::of_lower(&[f64::INFINITY], 1, 0.0).err(), Some(0));
    }
}
