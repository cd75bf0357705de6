//! Sums in twofold ("double-double") precision, of about 106 bits, and columns centred with them.
//!
//! The rounded sum of n values of one sign is the same in any order of rows, except (with a
//! probability of about n * 2^-52) if it lies next to the middle of two doubles.

use crate::{ColumnRef, Refusal};

/// An unevaluated sum of two doubles, the second at most half a unit in the last place of the first
/// (Dekker 1971, Numerische Mathematik 18).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Twofold {
    /// The value, rounded to a double.
    pub(super) high: f64,
    /// The rounding error of `high`.
    pub(super) low: f64,
}

/// `a + b` as rounded sum and error, for any order of magnitude (Knuth).
#[inline(always)]
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

/// `a + b` as rounded sum and error, for `|a| >= |b|` (Dekker).
#[inline(always)]
fn fast_two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    (sum, b - (sum - a))
}

/// `a * b` as rounded product and error. Veltkamp's splitting instead of a fused multiply-add is
/// the same on every machine, and fast on those without this instruction.
#[inline(always)]
fn two_product(a: f64, b: f64) -> (f64, f64) {
    const SPLITTER: f64 = 134_217_729.0;
    let product = a * b;
    let (ca, cb) = (SPLITTER * a, SPLITTER * b);
    let (ah, bh) = (ca - (ca - a), cb - (cb - b));
    let (al, bl) = (a - ah, b - bh);
    (product, al * bl - (((product - ah * bh) - al * bh) - ah * bl))
}

impl Twofold {
    #[inline(always)]
    pub(super) fn add(&mut self, value: f64) {
        let (high, error) = two_sum(self.high, value);
        (self.high, self.low) = fast_two_sum(high, self.low + error);
    }

    #[inline(always)]
    pub(super) fn add_product(&mut self, a: f64, b: f64) {
        let (product, rest) = two_product(a, b);
        let (high, error) = two_sum(self.high, product);
        (self.high, self.low) = fast_two_sum(high, self.low + (error + rest));
    }

    pub(super) fn plus(self, other: Self) -> Self {
        let (high, error) = two_sum(self.high, other.high);
        let (low, rest) = two_sum(self.low, other.low);
        let (high, error) = fast_two_sum(high, error + low);
        let (high, low) = fast_two_sum(high, error + rest);
        Self { high, low }
    }

    pub(super) fn negated(self) -> Self {
        Self { high: -self.high, low: -self.low }
    }

    pub(super) fn times(self, other: Self) -> Self {
        let (high, error) = two_product(self.high, other.high);
        let cross = self.high * other.low + self.low * other.high;
        let (high, low) = fast_two_sum(high, error + cross);
        Self { high, low }
    }

    pub(super) fn over(self, other: Self) -> Self {
        let first = self.high / other.high;
        let rest = self.plus(other.times(Self { high: first, low: 0.0 }).negated());
        let (high, low) = fast_two_sum(first, rest.high / other.high);
        Self { high, low }
    }

    /// The square root of a positive number.
    pub(super) fn root(self) -> Self {
        let first = self.high.sqrt();
        let single = Self { high: first, low: 0.0 };
        let rest = self.plus(single.times(single).negated());
        let (high, low) = fast_two_sum(first, rest.high / (2.0 * first));
        Self { high, low }
    }
}

pub(super) fn sum(values: impl IntoIterator<Item = f64>) -> Twofold {
    let mut total = Twofold::default();
    values.into_iter().for_each(|value| total.add(value));
    total
}

/// The inner product of two columns of the same length. Several parallel sums keep additions from
/// waiting for each other.
pub(super) fn dot(x: &[f64], y: &[f64]) -> Twofold {
    const LANES: usize = 8;
    let (mut high, mut low) = ([0.0; LANES], [0.0; LANES]);
    let ((xs, x_rest), (ys, y_rest)) = (x.as_chunks::<LANES>(), y.as_chunks::<LANES>());
    for (a, b) in xs.iter().zip(ys) {
        for lane in 0..LANES {
            let (product, rest) = two_product(a[lane], b[lane]);
            let (sum, error) = two_sum(high[lane], product);
            (high[lane], low[lane]) = fast_two_sum(sum, low[lane] + (error + rest));
        }
    }
    let mut total = Twofold::default();
    for (&a, &b) in x_rest.iter().zip(y_rest) {
        total.add_product(a, b);
    }
    high.into_iter().zip(low).fold(total, |total, (high, low)| total.plus(Twofold { high, low }))
}

/// The power of two that scales a column with largest magnitude `largest` to about 1, so that no
/// later product over- or underflows. Multiplying by it is exact for normal numbers.
pub(super) fn scale_of(largest: f64) -> f64 {
    let exponent = ((largest.to_bits() >> 52) & 0x7ff) as i64 - 1023;
    f64::from_bits(((1023 - exponent.clamp(-1023, 1022)) as u64) << 52)
}

pub(super) fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |most: f64, value| most.max(value.abs()))
}

/// The mean of finite values, rounded once; 0 for an empty column. Does not overflow.
pub(super) fn mean(values: &[f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let scale = scale_of(largest(values));
    let count = Twofold { high: values.len() as f64, low: 0.0 };
    sum(values.iter().map(|value| value * scale)).over(count).high / scale
}

/// A column minus its mean, times a power of two that makes its largest magnitude about 1. Every
/// element is the exact difference, rounded once: `1e9 + small` keeps its digits.
///
/// # Errors
/// [`Refusal::Constant`] with `reference` if all values are equal, or differ by no more than about
/// two units in the last place of the largest, so that they may be the same number computed in two
/// ways.
pub(super) fn centred(values: &[f64], reference: ColumnRef) -> Result<Vec<f64>, Refusal> {
    Ok(centred_with_unit(values, reference)?.0)
}

/// As [`centred`], with the power of two that a difference of 1 in the result is in the column.
pub(super) fn centred_with_unit(
    values: &[f64],
    reference: ColumnRef,
) -> Result<(Vec<f64>, f64), Refusal> {
    let scale = scale_of(largest(values));
    let mut column: Vec<f64> = values.iter().map(|value| value * scale).collect();
    let (low, high) = column
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &v| (v.min(low), v.max(high)));
    let tolerance = 2.0 * f64::EPSILON * low.abs().max(high.abs());
    let spread = high - low;
    // The spread of an empty column is minus infinity, that of NaNs is NaN.
    if spread.is_nan() || spread <= tolerance {
        return Err(Refusal::Constant(reference));
    }
    let count = Twofold { high: values.len() as f64, low: 0.0 };
    let mean = sum(column.iter().copied()).over(count);
    for value in &mut column {
        let (difference, error) = two_sum(*value, -mean.high);
        *value = difference + (error - mean.low);
    }
    let again = scale_of(largest(&column));
    column.iter_mut().for_each(|value| *value *= again);
    Ok((column, 1.0 / scale / again))
}

/// The parts of an inner product in eight parallel sums. The order in which callers add them
/// determines the last digit of their results.
pub(super) struct LaneSums {
    /// The sum of lanes 0, 4, 1 and 5.
    pub(super) first: f64,
    /// The sum of lanes 2, 6, 3 and 7.
    pub(super) second: f64,
    /// The sum over the last elements, fewer than eight.
    pub(super) rest: f64,
}

/// The inner product of two columns of the same length, in parts.
#[inline]
pub(super) fn lane_sums(left: &[f64], right: &[f64]) -> LaneSums {
    let (left, right) = (left.chunks_exact(8), right.chunks_exact(8));
    let rest = left.remainder().iter().zip(right.remainder()).map(|(a, b)| a * b).sum();
    let mut sums = [0.0; 8];
    for (a, b) in left.zip(right) {
        for lane in 0..8 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    LaneSums {
        first: (sums[0] + sums[4]) + (sums[1] + sums[5]),
        second: (sums[2] + sums[6]) + (sums[3] + sums[7]),
        rest,
    }
}
