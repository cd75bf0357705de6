//! `Moments`: the count and the exact sums that a statistic is computed from, their state bytes, and
//! the columns that feed them.

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
/// | 1 | Σx |
/// | 2 | Σx, Σx² |
/// | 3 | Σx, Σy, Σxy |
/// | 5 | Σx, Σy, Σxy, Σx², Σy² |
#[derive(Clone, Debug)]
pub(super) struct Moments<const N: usize> {
    /// The number of rows.
    pub(super) count: u64,
    /// The sums, in the order of the table above.
    pub(super) sums: [ExactSum; N],
}

impl<const N: usize> Default for Moments<N> {
    fn default() -> Self {
        Self { count: 0, sums: std::array::from_fn(|_| ExactSum::new()) }
    }
}

impl<const N: usize> Moments<N> {
    /// Adds one row.
    #[inline]
    pub(super) fn add(&mut self, Row { x, y }: Row) {
        self.count += 1;
        each_sum(
            &mut self.sums,
            (x, y),
            |sum, x| change(sum, x, false),
            |sum, a, b| change_product(sum, a, b, false),
        );
    }

    /// Removes one row that was added before.
    pub(super) fn remove(&mut self, Row { x, y }: Row) {
        self.count = self.count.saturating_sub(1);
        each_sum(
            &mut self.sums,
            (x, y),
            |sum, x| change(sum, x, true),
            |sum, a, b| change_product(sum, a, b, true),
        );
    }

    /// Adds all rows of a batch.
    pub(super) fn add_rows(&mut self, rows: &Rows) {
        let Some(columns) = rows.dense() else {
            return rows.for_each(|row| self.add(row));
        };
        self.count += rows.len() as u64;
        each_sum(&mut self.sums, columns, add_slices, add_products);
    }

    /// The canonical bytes: the count as `u64`, little endian, then each sum's bytes. Equal
    /// multisets of rows give equal bytes.
    pub(super) fn write_bytes(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.count.to_le_bytes());
        self.sums.iter().for_each(|sum| sum.write_bytes(bytes));
    }

    /// Adds the rows of a state written by [`Moments::write_bytes`].
    pub(super) fn merge_bytes(&mut self, bytes: &[u8]) -> Result<()> {
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
    pub(super) fn heap_size(&self) -> usize {
        self.sums.iter().map(ExactSum::heap_size).sum()
    }
}

/// Changes the sums of [`Moments`] by rows: those of one value with `one`, those of products with
/// `product`.
#[inline(always)]
fn each_sum<T: Copy>(
    sums: &mut [ExactSum],
    (x, y): (T, T),
    one: impl Fn(&mut ExactSum, T),
    product: impl Fn(&mut ExactSum, T, T),
) {
    match sums {
        [sx] => one(sx, x),
        [sx, sxx] => {
            one(sx, x);
            product(sxx, x, x);
        }
        [sx, sy, sxy, squares @ ..] => {
            one(sx, x);
            one(sy, y);
            product(sxy, x, y);
            if let [sxx, syy] = squares {
                product(sxx, x, x);
                product(syy, y, y);
            }
        }
        [] => {}
    }
}

/// `n Σab - Σa Σb`, which is n² times the population covariance of `a` and `b` (n times
/// their sum of centred products), exactly; `None` if a term is not finite.
pub(super) fn centred(n: u64, a: &ExactSum, b: &ExactSum, ab: &ExactSum) -> Option<Dyadic> {
    let (a, b, ab) = (a.to_dyadic()?, b.to_dyadic()?, ab.to_dyadic()?);
    Some(ab.scaled(n).minus(&a.times(&b)))
}

/// A sum by the number of rows as the nearest double; NaN and infinities as they are, and null
/// without rows.
pub(super) fn mean<const N: usize>(m: &Moments<N>, sum: usize) -> Option<f64> {
    let (sum, n) = (m.sums.get(sum)?, Dyadic::integer(u128::from(m.count)));
    (m.count > 0).then(|| sum.to_dyadic().map_or_else(|| sum.value(), |exact| exact.quotient(&n)))
}

/// A number as the exact sum of two doubles, of which the first is the nearest one: a 64-bit integer
/// has more digits than one. The second is zero for floats.
pub(super) type Parts = [f64; 2];

/// Integers up to here are doubles: 2^53.
const DOUBLES: u64 = 1 << 53;

/// An integer of 64 bits in parts.
pub fn whole_in_parts(whole: i128) -> Parts {
    let nearest = whole as f64;
    [nearest, (whole - nearest as i128) as f64]
}

/// A row of the arguments; `y` is zero if there is only one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub x: Parts,
    pub y: Parts,
}

#[inline]
fn change(sum: &mut ExactSum, [high, low]: Parts, remove: bool) {
    sum.change(high, remove);
    if low != 0.0 {
        sum.change(low, remove);
    }
}

/// Changes a sum by the products of the parts, of which those with a lower part that is zero are left
/// out.
#[inline]
fn change_product(sum: &mut ExactSum, a: Parts, b: Parts, remove: bool) {
    sum.change_product(a[0], b[0], remove);
    if a[1] != 0.0 {
        sum.change_product(a[1], b[0], remove);
    }
    if b[1] != 0.0 {
        sum.change_product(a[0], b[1], remove);
        if a[1] != 0.0 {
            sum.change_product(a[1], b[1], remove);
        }
    }
}

/// Slices of upper and lower parts; the lower ones are empty where all are zero.
type Slices<'a> = [&'a [f64]; 2];

fn add_slices(sum: &mut ExactSum, parts: Slices<'_>) {
    parts.into_iter().for_each(|part| sum.add_slice(part));
}

fn add_products(sum: &mut ExactSum, a: Slices<'_>, b: Slices<'_>) {
    for a in a {
        b.into_iter().for_each(|b| sum.add_products(a, b));
    }
}

/// An argument as two columns whose sums are its values.
struct Argument<'a> {
    high: Cow<'a, Float64Array>,
    /// Absent for floats, and for integers that are doubles: most are, and cost as little.
    low: Option<Float64Array>,
}

impl<'a> Argument<'a> {
    fn new(array: &'a ArrayRef) -> Result<Self> {
        let (high, low) = match array.data_type() {
            DataType::Int64 => {
                let x = array.as_primitive::<Int64Type>();
                let low = x.values().iter().any(|v| v.unsigned_abs() > DOUBLES);
                let low = low.then(|| x.unary::<_, Float64Type>(|v| whole_in_parts(v.into())[1]));
                (Cow::Owned(x.unary(|v| v as f64)), low)
            }
            DataType::UInt64 => {
                let x = array.as_primitive::<UInt64Type>();
                let low = x.values().iter().any(|v| *v > DOUBLES);
                let low = low.then(|| x.unary::<_, Float64Type>(|v| whole_in_parts(v.into())[1]));
                (Cow::Owned(x.unary(|v| v as f64)), low)
            }
            // `avg(NULL)`
            DataType::Null => (Cow::Owned(Float64Array::new_null(array.len())), None),
            other => match array.as_primitive_opt::<Float64Type>() {
                Some(array) => (Cow::Borrowed(array), None),
                None => return exec_err!("an exact aggregate got {other}, not Float64"),
            },
        };
        Ok(Self { high, low })
    }

    #[inline]
    fn get(&self, i: usize) -> Parts {
        [self.high.value(i), self.low.as_ref().map_or(0.0, |low| low.value(i))]
    }

    fn slices(&self) -> Slices<'_> {
        [&self.high.values()[..], self.low.as_ref().map_or(&[][..], |low| &low.values()[..])]
    }
}

/// The arguments of an aggregate as rows `(x, y)`.
pub(super) struct Rows<'a> {
    x: Argument<'a>,
    y: Option<Argument<'a>>,
    /// Rows where any argument is null.
    nulls: Option<NullBuffer>,
}

impl<'a> Rows<'a> {
    /// Of one argument, `x` is its value; of two, as in SQL's `regr_slope(y, x)`, `y` is the
    /// first.
    pub(super) fn new(arguments: &'a [ArrayRef]) -> Result<Self> {
        let (x, y) = match arguments {
            [x] => (Argument::new(x)?, None),
            [y, x] => (Argument::new(x)?, Some(Argument::new(y)?)),
            _ => return exec_err!("an exact aggregate got {} arguments", arguments.len()),
        };
        let nulls = NullBuffer::union(x.high.nulls(), y.as_ref().and_then(|y| y.high.nulls()));
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
        Ok(Self { x, y, nulls })
    }

    /// Number of rows, with the null ones.
    pub(super) fn len(&self) -> usize {
        self.x.high.len()
    }

    /// Row `i` of fewer than [`Rows::len`]; `None` if an argument is null.
    #[inline]
    pub(super) fn get(&self, i: usize) -> Option<Row> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(i)) {
            return None;
        }
        Some(Row { x: self.x.get(i), y: self.y.as_ref().map_or([0.0; 2], |y| y.get(i)) })
    }

    /// Calls `f` on every row without a null.
    pub(super) fn for_each(&self, f: impl FnMut(Row)) {
        (0..self.len()).filter_map(|i| self.get(i)).for_each(f);
    }

    /// The columns as slices, if no row is null; those of `y` are empty if there is none.
    fn dense(&self) -> Option<(Slices<'_>, Slices<'_>)> {
        let y = self.y.as_ref().map_or([&[][..]; 2], Argument::slices);
        self.nulls.is_none().then(|| (self.x.slices(), y))
    }
}
