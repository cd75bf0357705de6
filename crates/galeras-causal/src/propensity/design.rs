//! A design matrix that is never stored: an intercept and standardised columns, well conditioned in
//! any units. Its blocks of rows fit the cache, so a pass reads each column once.

use crate::compensated::lane_sums;
use crate::refusal::require_column;
use crate::{ColumnRef, Refusal};

/// Rows per block: a block of ten columns stays within the first-level cache.
pub(crate) const BLOCK: usize = 256;

/// A range below this share of the column's largest value is rounding.
const ROUNDING: f64 = 1e-13;

/// An intercept followed by columns minus their means, in units of their deviations.
pub(crate) struct StandardisedDesign<'a> {
    columns: Vec<&'a [f64]>,
    mean: Vec<f64>,
    scale: Vec<f64>,
    rows: usize,
}

impl<'a> StandardisedDesign<'a> {
    /// Standardises columns of `rows` values each. Refuses a column of another length, with one
    /// value only, or with values that are not finite or beyond what can be squared.
    pub(crate) fn new(columns: &[&'a [f64]], rows: usize) -> Result<Self, Refusal> {
        let mut mean = Vec::with_capacity(columns.len());
        let mut scale = Vec::with_capacity(columns.len());
        for (position, column) in columns.iter().enumerate() {
            let reference = ColumnRef::Covariate(position);
            let problem = format!("has {} rows, not {rows}", column.len());
            require_column(reference, column.len() == rows, problem)?;
            let (low, high, centre) = extent(column);
            let deviation = (squares(column, centre) / rows as f64).sqrt();
            // Tested first: infinite values would count as rounding.
            let measurable = (high - low).is_finite();
            if measurable && high - low <= ROUNDING * low.abs().max(high.abs()) {
                return Err(Refusal::Constant(reference));
            }
            if !(measurable && deviation.is_finite() && deviation.recip().is_finite()) {
                return Err(Refusal::OutOfRange { column: reference });
            }
            mean.push(centre);
            scale.push(deviation);
        }
        Ok(Self { columns: columns.to_vec(), mean, scale, rows })
    }

    /// The same standardisation of other rows, for predictions.
    pub(crate) fn over<'b>(&self, columns: &[&'b [f64]], rows: usize) -> StandardisedDesign<'b> {
        StandardisedDesign {
            columns: columns.to_vec(),
            mean: self.mean.clone(),
            scale: self.scale.clone(),
            rows,
        }
    }

    /// The number of coefficients, including the intercept.
    pub(crate) fn width(&self) -> usize {
        self.columns.len() + 1
    }

    /// The mean of a column, and its divisor.
    pub(crate) fn standard(&self, position: usize) -> (f64, f64) {
        (self.mean[position], self.scale[position])
    }

    /// Intercept and coefficients in the units of the columns.
    pub(crate) fn raw(&self, standardised: &[f64]) -> (f64, Vec<f64>) {
        let coefficients: Vec<f64> =
            standardised[1..].iter().zip(&self.scale).map(|(g, scale)| g / scale).collect();
        let shift: f64 = coefficients.iter().zip(&self.mean).map(|(b, mean)| b * mean).sum();
        (standardised[0] - shift, coefficients)
    }

    /// The inverse of [`StandardisedDesign::raw`].
    pub(crate) fn standardised(&self, intercept: f64, coefficients: &[f64]) -> Vec<f64> {
        let shift: f64 = coefficients.iter().zip(&self.mean).map(|(b, mean)| b * mean).sum();
        let scaled = coefficients.iter().zip(&self.scale).map(|(b, scale)| b * scale);
        std::iter::once(intercept + shift).chain(scaled).collect()
    }

    /// Writes one row, the intercept first, to the start of `out`.
    pub(super) fn row(&self, row: usize, out: &mut [f64]) {
        out[0] = 1.0;
        for (position, (place, column)) in out[1..].iter_mut().zip(&self.columns).enumerate() {
            *place = (column[row] - self.mean[position]) * self.scale[position].recip();
        }
    }

    /// A buffer for one block: each column has [`BLOCK`] cells, the first column holds ones.
    pub(crate) fn scratch(&self) -> Vec<f64> {
        let mut scratch = vec![0.0; self.width() * BLOCK];
        scratch[..BLOCK].fill(1.0);
        scratch
    }

    /// Calls `visit(start, length, block)` for each block of rows, in their order.
    pub(crate) fn blocks(&self, scratch: &mut [f64], mut visit: impl FnMut(usize, usize, &[f64])) {
        let mut start = 0;
        while start < self.rows {
            let length = BLOCK.min(self.rows - start);
            for (position, column) in self.columns.iter().enumerate() {
                let (mean, inverse) = (self.mean[position], self.scale[position].recip());
                let place = &mut scratch[(position + 1) * BLOCK..][..length];
                for (z, x) in place.iter_mut().zip(&column[start..start + length]) {
                    *z = (x - mean) * inverse;
                }
            }
            visit(start, length, scratch);
            start += length;
        }
    }

    pub(crate) fn predict(&self, standardised: &[f64]) -> Vec<f64> {
        let mut predictor = vec![0.0; self.rows];
        self.blocks(&mut self.scratch(), |start, length, block| {
            combine(block, standardised, &mut predictor[start..start + length]);
        });
        predictor
    }

    /// The sum of the rows, each times its value.
    pub(crate) fn cross(&self, values: &[f64]) -> Vec<f64> {
        let mut total = vec![0.0; self.width()];
        self.blocks(&mut self.scratch(), |start, length, block| {
            for (position, sum) in total.iter_mut().enumerate() {
                *sum += dot(&block[position * BLOCK..][..length], &values[start..start + length]);
            }
        });
        total
    }

    pub(crate) fn gram(&self, weights: &[f64]) -> Vec<f64> {
        let mut total = vec![0.0; self.width() * self.width()];
        let mut weighted = [0.0; BLOCK];
        self.blocks(&mut self.scratch(), |start, length, block| {
            add_gram(block, &weights[start..start + length], &mut weighted, &mut total);
        });
        total
    }
}

/// The least and the greatest value and the mean, in eight parallel lanes.
fn extent(column: &[f64]) -> (f64, f64, f64) {
    let (mut low, mut high, mut sums) = ([f64::INFINITY; 8], [f64::NEG_INFINITY; 8], [0.0; 8]);
    for values in column.chunks(8) {
        for (lane, value) in values.iter().enumerate() {
            low[lane] = if *value < low[lane] { *value } else { low[lane] };
            high[lane] = if *value > high[lane] { *value } else { high[lane] };
            sums[lane] += value;
        }
    }
    let low = low.into_iter().fold(f64::INFINITY, f64::min);
    let high = high.into_iter().fold(f64::NEG_INFINITY, f64::max);
    (low, high, sums.iter().sum::<f64>() / column.len() as f64)
}

/// The sum of squares about a centre, in eight parallel lanes.
fn squares(column: &[f64], centre: f64) -> f64 {
    let mut sums = [0.0; 8];
    for values in column.chunks(8) {
        for (lane, value) in values.iter().enumerate() {
            sums[lane] += (value - centre) * (value - centre);
        }
    }
    sums.iter().sum()
}

/// Writes the linear combination of a block's columns.
pub(crate) fn combine(block: &[f64], coefficients: &[f64], out: &mut [f64]) {
    out.fill(coefficients.first().copied().unwrap_or(0.0));
    for (position, coefficient) in coefficients.iter().enumerate().skip(1) {
        let column = &block[position * BLOCK..][..out.len()];
        for (value, z) in out.iter_mut().zip(column) {
            *value += coefficient * z;
        }
    }
}

/// Adds a block's weighted Gram matrix to the lower triangle of `total`.
pub(crate) fn add_gram(
    block: &[f64],
    weights: &[f64],
    weighted: &mut [f64; BLOCK],
    total: &mut [f64],
) {
    let width = block.len() / BLOCK;
    let length = weights.len();
    for row in 0..width {
        let column = &block[row * BLOCK..][..length];
        for ((product, z), weight) in weighted.iter_mut().zip(column).zip(weights) {
            *product = z * weight;
        }
        for other in 0..=row {
            total[row * width + other] +=
                dot(&weighted[..length], &block[other * BLOCK..][..length]);
        }
    }
}

pub(crate) fn dot(left: &[f64], right: &[f64]) -> f64 {
    let sums = lane_sums(left, right);
    sums.first + sums.second + sums.rest
}
