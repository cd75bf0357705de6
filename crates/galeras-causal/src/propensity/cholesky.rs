//! The Cholesky factor of a small symmetric matrix, with the first dependent column told.
//!
//! Matrices here are Gram matrices and Hessians: as wide as there are covariates, plus one.

/// The lower factor of a positive definite matrix.
pub(super) struct Cholesky {
    /// Row-major, `size` by `size`; what is above the diagonal is not used.
    lower: Vec<f64>,
    size: usize,
}

impl Cholesky {
    /// Factors a row-major matrix of which only the lower triangle is read.
    ///
    /// # Errors
    /// The position of the first column whose remainder, once the columns before it are taken
    /// out, is below `tolerance` times its own diagonal (a share of 1 - R²), or is no number.
    pub(super) fn new(matrix: &[f64], size: usize, tolerance: f64) -> Result<Self, usize> {
        let mut lower = matrix.to_vec();
        for row in 0..size {
            let diagonal = lower[row * size + row];
            for column in 0..=row {
                let mut value = lower[row * size + column];
                for inner in 0..column {
                    value -= lower[row * size + inner] * lower[column * size + inner];
                }
                if column < row {
                    lower[row * size + column] = value / lower[column * size + column];
                } else if value > tolerance * diagonal && value > 0.0 && value.is_finite() {
                    lower[row * size + row] = value.sqrt();
                } else {
                    return Err(row);
                }
            }
        }
        Ok(Self { lower, size })
    }

    /// The solution x of `matrix x = right`.
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
}
