//! Small symmetric matrices, row by row in a slice: Gram matrices, triangular factors, eigenvalues.
//! Sums over rows are not left to a library, which fixes the order of every addition.

use faer::{Mat, Side};

use crate::cholesky::Cholesky;
use crate::compensated::lane_sums;

/// Rows that are transposed and summed at a time, which reduces rounding errors.
const BLOCK: usize = 256;

/// The Gram matrix of `weight(i)` times row i, `width` x `width`, from rows laid end to end.
pub(super) fn gram(rows: &[f64], width: usize, weight: impl Fn(usize) -> f64) -> Vec<f64> {
    let mut total = vec![0.0; width * width];
    let mut columns = vec![0.0; width * BLOCK];
    let mut first = 0;
    for block in rows.chunks(width * BLOCK) {
        let count = block.len() / width;
        for (index, row) in block.chunks_exact(width).enumerate() {
            let weight = weight(first + index);
            for (column, cell) in columns.chunks_exact_mut(BLOCK).zip(row) {
                column[index] = cell * weight;
            }
        }
        for a in 0..width {
            let left = &columns[a * BLOCK..a * BLOCK + count];
            for b in a..width {
                let sums = lane_sums(left, &columns[b * BLOCK..b * BLOCK + count]);
                total[a * width + b] += sums.rest + sums.first + sums.second;
            }
        }
        first += count;
    }
    mirror(&mut total, width);
    total
}

/// Adds `weight` squared times the outer product of `row` to the upper triangle.
pub(super) fn add_outer(matrix: &mut [f64], row: &[f64], weight: f64) {
    let width = row.len();
    let square = weight * weight;
    for (a, line) in matrix.chunks_exact_mut(width).enumerate() {
        let left = row[a] * square;
        for (cell, right) in line[a..].iter_mut().zip(&row[a..]) {
            *cell += left * right;
        }
    }
}

pub(super) fn mirror(matrix: &mut [f64], width: usize) {
    for a in 0..width {
        for b in 0..a {
            matrix[a * width + b] = matrix[b * width + a];
        }
    }
}

/// The upper triangular R with R'R = `matrix`, of which only the upper triangle is read, or the
/// first column whose pivot is not above `smallest`.
pub(super) fn upper_factor(matrix: &[f64], width: usize, smallest: f64) -> Result<Vec<f64>, usize> {
    let entry = |row: usize, column: usize| matrix[column * width + row];
    Ok(Cholesky::new(width, entry, |_, pivot| pivot > smallest)?.upper())
}

/// Replaces each row r by r R^-1, for the upper triangular `factor` R.
pub(super) fn divide_rows(rows: &mut [f64], factor: &[f64], width: usize) {
    let mut columns = vec![0.0; width * BLOCK];
    for block in rows.chunks_mut(width * BLOCK) {
        for (index, row) in block.chunks_exact(width).enumerate() {
            for (column, cell) in columns.chunks_exact_mut(BLOCK).zip(row) {
                column[index] = *cell;
            }
        }
        for i in 0..width {
            let (before, after) = columns.split_at_mut((i + 1) * BLOCK);
            let pivot = &mut before[i * BLOCK..];
            let diagonal = factor[i * width + i];
            pivot.iter_mut().for_each(|cell| *cell /= diagonal);
            for (column, upper) in
                after.chunks_exact_mut(BLOCK).zip(&factor[i * width + i + 1..(i + 1) * width])
            {
                for (cell, value) in column.iter_mut().zip(pivot.iter()) {
                    *cell -= value * upper;
                }
            }
        }
        for (index, row) in block.chunks_exact_mut(width).enumerate() {
            for (column, cell) in columns.chunks_exact(BLOCK).zip(row) {
                *cell = column[index];
            }
        }
    }
}

pub(super) fn invert_upper(factor: &[f64], width: usize) -> Vec<f64> {
    let mut inverse = vec![0.0; width * width];
    for (i, row) in inverse.chunks_exact_mut(width).enumerate() {
        row[i] = 1.0;
    }
    divide_rows(&mut inverse, factor, width);
    inverse
}

pub(super) fn multiply_upper(left: &[f64], right: &[f64], width: usize) -> Vec<f64> {
    let mut product = vec![0.0; width * width];
    for i in 0..width {
        for l in i..width {
            for j in l..width {
                product[i * width + j] += left[i * width + l] * right[l * width + j];
            }
        }
    }
    product
}

pub(super) fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(a, b)| a * b).sum()
}

pub(super) fn apply(matrix: &[f64], vector: &[f64]) -> Vec<f64> {
    matrix.chunks_exact(vector.len().max(1)).map(|row| dot(row, vector)).collect()
}

/// Eigenvalues and eigenvectors (as rows) of a symmetric matrix; `None` if a value is not finite.
pub(super) fn eigen(matrix: &[f64], width: usize) -> Option<(Vec<f64>, Vec<f64>)> {
    let matrix = Mat::from_fn(width, width, |row, column| matrix[row * width + column]);
    let decomposition = matrix.self_adjoint_eigen(Side::Lower).ok()?;
    let values = decomposition.S().column_vector().iter().copied().collect();
    let vectors = decomposition.U();
    let rows = (0..width).flat_map(|at| (0..width).map(move |row| vectors[(row, at)]));
    Some((values, rows.collect()))
}
