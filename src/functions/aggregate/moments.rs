//! `Moments`: the count and the exact sums that a statistic is computed from, and the
//! columns that feed them.
//!
//! Here: which sums are kept, their state bytes, reading rows from Arrow arrays, and the
//! centred second moments. Not here: the formula of each statistic (`variance`,
//! `correlation`, `sum`), DataFusion's accumulator traits (`accumulator`).

use std::borrow::Cow;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type, UInt64Type};
use datafusion::common::{Result, exec_datafusion_err, exec_err};

use super::dyadic::Dyadic;
use super::exact::{ExactSum, MalformedSum};

/// A count and `N` exact sums over the rows `(x, y)` that were added:
///
/// | `N` | sums |
/// |---|---|
/// | 1 | Σ(x + y) |
/// | 2 | Σx, Σx² |
/// | 3 | Σx, Σy, Σxy |
/// | 5 | Σx, Σy, Σxy, Σx², Σy² |
///
/// With one sum, a row is a value in two exact parts (a 64-bit integer has more digits than
/// a double); `y` is zero for floats.
#[derive(Clone, Debug)]
pub(crate) struct Moments<const N: usize> {
    count: u64,
    sums: [ExactSum; N],
}

impl<const N: usize> Default for Moments<N> {
    fn default() -> Self {
        Self { count: 0, sums: std::array::from_fn(|_| ExactSum::new()) }
    }
}

impl<const N: usize> Moments<N> {
    /// Number of rows.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The sums, in the order of the table above.
    pub(crate) fn sums(&self) -> &[ExactSum; N] {
        &self.sums
    }

    /// Adds one row.
    #[inline]
    pub(crate) fn add(&mut self, x: f64, y: f64) {
        self.count += 1;
        match self.sums.as_mut_slice() {
            [s] => {
                s.add(x);
                s.add(y);
            }
            [sx, sxx] => {
                sx.add(x);
                sxx.add_product(x, x);
            }
            [sx, sy, sxy, squares @ ..] => {
                sx.add(x);
                sy.add(y);
                sxy.add_product(x, y);
                if let [sxx, syy] = squares {
                    sxx.add_product(x, x);
                    syy.add_product(y, y);
                }
            }
            [] => {}
        }
    }

    /// Removes one row that was added before.
    pub(crate) fn remove(&mut self, x: f64, y: f64) {
        self.count = self.count.saturating_sub(1);
        match self.sums.as_mut_slice() {
            [s] => {
                s.remove(x);
                s.remove(y);
            }
            [sx, sxx] => {
                sx.remove(x);
                sxx.remove_product(x, x);
            }
            [sx, sy, sxy, squares @ ..] => {
                sx.remove(x);
                sy.remove(y);
                sxy.remove_product(x, y);
                if let [sxx, syy] = squares {
                    sxx.remove_product(x, x);
                    syy.remove_product(y, y);
                }
            }
            [] => {}
        }
    }

    /// Adds all rows of a batch.
    pub(crate) fn add_rows(&mut self, rows: &Rows) {
        let Some((x, y)) = rows.dense() else {
            return rows.for_each(|x, y| self.add(x, y));
        };
        self.count += x.len() as u64;
        match self.sums.as_mut_slice() {
            [s] => {
                s.add_slice(x);
                s.add_slice(y);
            }
            [sx, sxx] => {
                sx.add_slice(x);
                sxx.add_products(x, x);
            }
            [sx, sy, sxy, squares @ ..] => {
                sx.add_slice(x);
                sy.add_slice(y);
                sxy.add_products(x, y);
                if let [sxx, syy] = squares {
                    sxx.add_products(x, x);
                    syy.add_products(y, y);
                }
            }
            [] => {}
        }
    }

    /// The canonical bytes: the count as `u64`, little endian, then each sum's bytes. Equal
    /// multisets of rows give equal bytes.
    pub(crate) fn write_bytes(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.count.to_le_bytes());
        self.sums.iter().for_each(|sum| sum.write_bytes(bytes));
    }

    /// Adds the rows of a state written by [`Moments::write_bytes`].
    pub(crate) fn merge_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let malformed = |e: MalformedSum| exec_datafusion_err!("{e}");
        let (count, mut rest) =
            bytes.split_first_chunk::<8>().ok_or(MalformedSum).map_err(malformed)?;
        self.count = self.count.saturating_add(u64::from_le_bytes(*count));
        for sum in &mut self.sums {
            rest = sum.merge_bytes(rest).map_err(malformed)?;
        }
        if rest.is_empty() { Ok(()) } else { Err(malformed(MalformedSum)) }
    }

    /// Bytes on the heap.
    pub(crate) fn heap_size(&self) -> usize {
        self.sums.iter().map(ExactSum::heap_size).sum()
    }
}

/// `n Σab - Σa Σb`, which is n² times the population covariance of `a` and `b` (n times
/// their sum of centred products), exactly; `None` if a term is not finite.
pub(crate) fn centred(n: u64, a: &ExactSum, b: &ExactSum, ab: &ExactSum) -> Option<Dyadic> {
    let (a, b, ab) = (a.to_dyadic()?, b.to_dyadic()?, ab.to_dyadic()?);
    Some(ab.scaled(n).minus(&a.times(&b)))
}

/// `sum / n` as the nearest double; NaN and infinities as they are.
pub(crate) fn mean(n: u64, sum: &ExactSum) -> f64 {
    match sum.to_dyadic() {
        Some(exact) => exact.quotient(&Dyadic::integer(u128::from(n))),
        None => sum.value(),
    }
}

/// The arguments of an aggregate as rows `(x, y)`.
pub(crate) struct Rows<'a> {
    x: Cow<'a, Float64Array>,
    y: Option<Cow<'a, Float64Array>>,
    /// Rows where any argument is null.
    nulls: Option<NullBuffer>,
}

impl<'a> Rows<'a> {
    /// Of one argument, `x` is its value (64-bit integers in two exact parts); of two, as in
    /// SQL's `regr_slope(y, x)`, `y` is the first.
    pub(crate) fn new(arguments: &'a [ArrayRef]) -> Result<Self> {
        let float = |array: &'a ArrayRef| match array.as_primitive_opt::<Float64Type>() {
            Some(array) => Ok(Cow::Borrowed(array)),
            // `avg(NULL)`
            None if array.data_type() == &DataType::Null => {
                Ok(Cow::Owned(Float64Array::new_null(array.len())))
            }
            None => exec_err!("an exact aggregate got {}, not Float64", array.data_type()),
        };
        let (x, y) = match arguments {
            [x] => match x.data_type() {
                DataType::Int64 => {
                    let x = x.as_primitive::<Int64Type>();
                    let high = x.unary::<_, Float64Type>(|v| (v >> 32) as f64 * TWO_POW_32);
                    let low = x.unary::<_, Float64Type>(|v| (v & 0xffff_ffff) as f64);
                    (Cow::Owned(high), Some(Cow::Owned(low)))
                }
                DataType::UInt64 => {
                    let x = x.as_primitive::<UInt64Type>();
                    let high = x.unary::<_, Float64Type>(|v| (v >> 32) as f64 * TWO_POW_32);
                    let low = x.unary::<_, Float64Type>(|v| (v & 0xffff_ffff) as f64);
                    (Cow::Owned(high), Some(Cow::Owned(low)))
                }
                _ => (float(x)?, None),
            },
            [y, x] => (float(x)?, Some(float(y)?)),
            _ => return exec_err!("an exact aggregate got {} arguments", arguments.len()),
        };
        let nulls = NullBuffer::union(x.nulls(), y.as_ref().and_then(|y| y.nulls()));
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
        Ok(Self { x, y, nulls })
    }

    /// Number of rows, with the null ones.
    pub(crate) fn len(&self) -> usize {
        self.x.len()
    }

    /// Row `i` of fewer than [`Rows::len`]; `None` if an argument is null.
    #[inline]
    pub(crate) fn get(&self, i: usize) -> Option<(f64, f64)> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(i)) {
            return None;
        }
        Some((self.x.value(i), self.y.as_ref().map_or(0.0, |y| y.value(i))))
    }

    /// Calls `f` on every row without a null.
    pub(crate) fn for_each(&self, mut f: impl FnMut(f64, f64)) {
        for (x, y) in (0..self.len()).filter_map(|i| self.get(i)) {
            f(x, y);
        }
    }

    /// The columns as slices, if no row is null; `y` is empty if there is none.
    fn dense(&self) -> Option<(&[f64], &[f64])> {
        let y = self.y.as_ref().map_or(&[][..], |y| &y.values()[..]);
        self.nulls.is_none().then(|| (&self.x.values()[..], y))
    }
}

/// The weight of the upper half of a 64-bit integer.
const TWO_POW_32: f64 = 4_294_967_296.0;
