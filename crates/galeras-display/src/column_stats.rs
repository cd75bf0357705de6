//! Summaries of a table's columns: nulls, distinct values, extremes, quartiles, mean. Reads batch
//! by batch, in memory that does not grow with the table.
//!
//! Up to `KEPT` values, the number of distinct values and the quartiles are exact. Beyond that they
//! are estimates from the smallest hashes: of values for distinct ones (the KMV sketch, Bar-Yossef
//! et al. 2002: relative error about 1/√KEPT, 0.4 %), of row numbers for quartiles (a simple random
//! sample). Both are the same in every run.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, SchemaRef};
use arrow::error::ArrowError;
use arrow::row::{OwnedRow, RowConverter, SortField};

use galeras_operator::table_digest::type_name;
use galeras_sql::functions::aggregate::ExactSum;

/// Everything is exact up to this number of values.
const KEPT: usize = 1 << 16;

/// The quantity that a column's summary describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measured {
    /// The values, which are numbers; `true` is 1.
    Values,
    /// The lengths of texts in characters, of lists in items, of binary values in bytes.
    Lengths,
    /// The extremes are points in time; there are no other numbers.
    Times,
    /// Nothing: the values have no useful order.
    Nothing,
}

impl Measured {
    fn of(data_type: &DataType) -> Self {
        match data_type {
            DataType::Boolean => Self::Values,
            t if t.is_numeric() => Self::Values,
            DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::List(_)
            | DataType::LargeList(_) => Self::Lengths,
            t if t.is_temporal() => Self::Times,
            _ => Self::Nothing,
        }
    }

    /// The word for it; empty for `Nothing`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Values => "values",
            Self::Lengths => "lengths",
            Self::Times => "times",
            Self::Nothing => "",
        }
    }
}

/// An exact or estimated count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DistinctCount {
    /// The number of different values that are not null.
    pub values: u64,
    /// False if it is an estimate.
    pub exact: bool,
}

/// First, second and third quartile, with linear interpolation between values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quartiles {
    /// The quartiles, the smallest first.
    pub values: [f64; 3],
    /// False if they are from a sample.
    pub exact: bool,
}

/// The summary of a column.
#[derive(Clone, Debug)]
pub struct ColumnSummary {
    /// The column's name.
    pub name: String,
    /// Its type, as contracts write it.
    pub data_type: String,
    /// The number of rows.
    pub rows: u64,
    /// The number of nulls.
    pub nulls: u64,
    /// The different values; `None` for types without comparison.
    pub distinct: Option<DistinctCount>,
    /// The quantity that the numbers describe.
    pub measured: Measured,
    /// The extremes of the measured quantity: arrays of one value each.
    pub extremes: Option<(ArrayRef, ArrayRef)>,
    /// The quartiles of the measured quantity.
    pub quartiles: Option<Quartiles>,
    /// The mean of the measured quantity, exact up to its last digit.
    pub mean: Option<f64>,
}

/// Summarises the columns of a table in one pass.
pub struct TableSummary {
    columns: Vec<ColumnCounts>,
}

impl TableSummary {
    /// The summary of a table with these columns and no rows yet.
    pub fn new(schema: &SchemaRef) -> Self {
        let fields = schema.fields().iter();
        let columns = fields.map(|field| ColumnCounts::new(field.name(), field.data_type()));
        Self { columns: columns.collect() }
    }

    /// Adds rows.
    ///
    /// # Errors
    /// If the columns are not those of the schema.
    pub fn add(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        if batch.num_columns() != self.columns.len() {
            let message = "the batch and the table have different columns";
            return Err(ArrowError::InvalidArgumentError(message.into()));
        }
        self.columns.iter_mut().zip(batch.columns()).try_for_each(|(column, a)| column.add(a))
    }

    /// The summary of each column, in order.
    pub fn finish(self) -> Vec<ColumnSummary> {
        self.columns.into_iter().map(ColumnCounts::finish).collect()
    }
}

struct ColumnCounts {
    name: String,
    data_type: DataType,
    measured: Measured,
    rows: u64,
    nulls: u64,
    /// Makes values comparable; `None` for types without comparison.
    converter: Option<RowConverter>,
    /// Hashes of values.
    values: Smallest,
    least: Option<(OwnedRow, ArrayRef)>,
    most: Option<(OwnedRow, ArrayRef)>,
    sum: ExactSum,
    /// The bits of measured numbers, by hashes of their rows.
    sample: Smallest,
}

impl ColumnCounts {
    fn new(name: &str, data_type: &DataType) -> Self {
        Self {
            name: name.to_string(),
            data_type: data_type.clone(),
            measured: Measured::of(data_type),
            rows: 0,
            nulls: 0,
            converter: converter(data_type),
            values: Smallest::default(),
            least: None,
            most: None,
            sum: ExactSum::new(),
            sample: Smallest::default(),
        }
    }

    fn add(&mut self, array: &ArrayRef) -> Result<(), ArrowError> {
        let first = self.rows;
        self.rows += array.len() as u64;
        self.nulls += array.logical_null_count() as u64;
        self.count_distinct(array)?;
        let measures = match self.measured {
            Measured::Nothing => return Ok(()),
            Measured::Lengths => lengths(array)?,
            Measured::Values | Measured::Times => array.clone(),
        };
        self.widen(&measures)?;
        if self.measured == Measured::Times {
            return Ok(());
        }
        let numbers = cast(&measures, &DataType::Float64)?;
        let numbers = numbers.as_primitive::<Float64Type>();
        for (row, number) in numbers.iter().enumerate() {
            if let Some(number) = number {
                self.sum.add(number);
                self.sample.add(scattered(first + row as u64), number.to_bits());
            }
        }
        Ok(())
    }

    fn count_distinct(&mut self, array: &ArrayRef) -> Result<(), ArrowError> {
        let Some(converter) = &self.converter else { return Ok(()) };
        let rows = converter.convert_columns(std::slice::from_ref(array))?;
        let nulls = array.logical_nulls();
        for (at, row) in rows.iter().enumerate() {
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(at)) {
                continue;
            }
            let mut hasher = DefaultHasher::new();
            hasher.write(row.as_ref());
            self.values.add(hasher.finish(), 0);
        }
        Ok(())
    }

    /// Extends the extremes by these values.
    fn widen(&mut self, measures: &ArrayRef) -> Result<(), ArrowError> {
        let Some(converter) = converter(measures.data_type()) else { return Ok(()) };
        let rows = converter.convert_columns(std::slice::from_ref(measures))?;
        let values = || (0..measures.len()).filter(|at| !measures.is_null(*at));
        let least = values().min_by_key(|at| rows.row(*at));
        let most = values().max_by_key(|at| rows.row(*at));
        let owned = |at: usize| (rows.row(at).owned(), measures.slice(at, 1));
        if let Some(at) = least
            && self.least.as_ref().is_none_or(|(row, _)| rows.row(at) < row.row())
        {
            self.least = Some(owned(at));
        }
        if let Some(at) = most
            && self.most.as_ref().is_none_or(|(row, _)| rows.row(at) > row.row())
        {
            self.most = Some(owned(at));
        }
        Ok(())
    }

    fn finish(self) -> ColumnSummary {
        let values = self.rows - self.nulls;
        let distinct = self.converter.is_some().then(|| self.values.distinct(values));
        let numbers = matches!(self.measured, Measured::Values | Measured::Lengths) && values > 0;
        let quartiles = (numbers && self.data_type != DataType::Boolean)
            .then(|| self.sample.quartiles())
            .flatten();
        ColumnSummary {
            name: self.name,
            data_type: type_name(&self.data_type),
            rows: self.rows,
            nulls: self.nulls,
            distinct,
            measured: self.measured,
            extremes: self.least.zip(self.most).map(|((_, least), (_, most))| (least, most)),
            quartiles,
            mean: numbers.then(|| self.sum.value() / values as f64),
        }
    }
}

fn converter(data_type: &DataType) -> Option<RowConverter> {
    let field = SortField::new(data_type.clone());
    let fields = vec![field];
    RowConverter::supports_fields(&fields).then(|| RowConverter::new(fields).ok()).flatten()
}

/// The length of each value; null where there is none.
fn lengths(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let texts = match array.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            cast(array, &DataType::LargeUtf8)?
        }
        _ => return arrow::compute::kernels::length::length(array),
    };
    let lengths = texts
        .as_string::<i64>()
        .iter()
        .map(|text| text.map(|text| i64::try_from(text.chars().count()).unwrap_or(i64::MAX)));
    Ok(std::sync::Arc::new(lengths.collect::<arrow::array::Int64Array>()))
}

/// Values by the smallest hashes.
#[derive(Default)]
struct Smallest {
    kept: BTreeMap<u64, u64>,
    /// True if a hash was dropped.
    crowded: bool,
}

impl Smallest {
    fn add(&mut self, hash: u64, value: u64) {
        if self.crowded && self.kept.last_key_value().is_some_and(|(last, _)| hash >= *last) {
            return;
        }
        self.kept.insert(hash, value);
        if self.kept.len() > KEPT {
            self.kept.pop_last();
            self.crowded = true;
        }
    }

    /// The number of hashes of so many values.
    fn distinct(&self, values: u64) -> DistinctCount {
        let kept = self.kept.len() as u64;
        let last = self.kept.last_key_value().filter(|_| self.crowded);
        let Some((last, _)) = last else { return DistinctCount { values: kept, exact: true } };
        // The k-th smallest of n uniform numbers in [0, 1) lies near k/n.
        let share = (*last as f64 + 1.0) / 2.0_f64.powi(64);
        let estimate = ((kept - 1) as f64 / share).round() as u64;
        DistinctCount { values: estimate.clamp(kept + 1, values), exact: false }
    }

    fn quartiles(self) -> Option<Quartiles> {
        let mut numbers: Vec<f64> = self.kept.into_values().map(f64::from_bits).collect();
        numbers.sort_by(f64::total_cmp);
        let last = numbers.len().checked_sub(1)?;
        let at = |share: f64| {
            let place = share * last as f64;
            let (low, part) = (place.floor() as usize, place.fract());
            let (a, b) = (numbers[low], numbers[(low + 1).min(last)]);
            // Infinities have no difference.
            if part == 0.0 || a == b { a } else { a + (b - a) * part }
        };
        Some(Quartiles { values: [at(0.25), at(0.5), at(0.75)], exact: !self.crowded })
    }
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection that scatters its input.
fn scattered(row: u64) -> u64 {
    let mut z = row.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        BooleanArray, Float64Array, Int64Array, ListBuilder, StringArray, StringBuilder,
        TimestampMicrosecondArray,
    };
    use arrow::datatypes::Int64Type;

    use super::*;

    fn summary(batches: &[ArrayRef]) -> ColumnSummary {
        let batch = |a: &ArrayRef| {
            RecordBatch::try_from_iter_with_nullable([("c", a.clone(), true)]).unwrap()
        };
        let mut summary = TableSummary::new(&batch(&batches[0]).schema());
        batches.iter().for_each(|a| summary.add(&batch(a)).unwrap());
        summary.finish().remove(0)
    }

    fn ints(values: impl Iterator<Item = i64>) -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(values))
    }

    #[test]
    fn numbers_have_extremes_quartiles_and_a_mean_whatever_their_batches() {
        for batches in [vec![ints(1..=9)], vec![ints(7..=9), ints(1..=6), ints(0..0)]] {
            let column = summary(&batches);
            let (least, most) = column.extremes.unwrap();
            assert_eq!(least.as_primitive::<Int64Type>().value(0), 1);
            assert_eq!(most.as_primitive::<Int64Type>().value(0), 9);
            let quartiles = column.quartiles.unwrap();
            assert_eq!((quartiles.values, quartiles.exact), ([3.0, 5.0, 7.0], true));
            assert_eq!((column.mean, column.rows, column.nulls), (Some(5.0), 9, 0));
            assert_eq!(column.distinct.unwrap(), DistinctCount { values: 9, exact: true });
        }
    }

    #[test]
    fn nulls_are_counted_and_are_no_values() {
        let column = summary(&[Arc::new(Float64Array::from(vec![Some(1.0), None, Some(2.0)]))]);
        assert_eq!((column.rows, column.nulls, column.mean), (3, 1, Some(1.5)));
        assert_eq!(column.distinct.unwrap().values, 2);
        let none = summary(&[Arc::new(Float64Array::from(vec![None, None]))]);
        assert_eq!((none.nulls, none.mean, none.distinct.unwrap().values), (2, None, 0));
        assert!(none.extremes.is_none() && none.quartiles.is_none());
    }

    #[test]
    fn texts_and_lists_are_measured_by_their_length() {
        let column = summary(&[Arc::new(StringArray::from(vec!["", "日本", "abcd", "abcd"]))]);
        assert_eq!((column.measured, column.mean), (Measured::Lengths, Some(2.5)));
        assert_eq!(column.distinct.unwrap().values, 3);
        let mut lists = ListBuilder::new(StringBuilder::new());
        lists.append_value([Some("a"), None, Some("b")]);
        lists.append_null();
        lists.append_value([None::<&str>; 0]);
        let column = summary(&[Arc::new(lists.finish())]);
        assert_eq!((column.nulls, column.mean, column.distinct.unwrap().values), (1, Some(1.5), 2));
    }

    #[test]
    fn truth_has_a_share_and_times_have_extremes_only() {
        let column = summary(&[Arc::new(BooleanArray::from(vec![true, false, true, true]))]);
        assert_eq!((column.mean, column.quartiles), (Some(0.75), None));
        let times = TimestampMicrosecondArray::from(vec![5, 3, 4]).with_timezone("UTC");
        let column = summary(&[Arc::new(times)]);
        assert_eq!((column.measured, column.mean), (Measured::Times, None));
        assert!(column.extremes.is_some() && column.quartiles.is_none());
    }

    #[test]
    fn many_values_are_estimated_closely_and_always_alike() {
        let rows = 400_000;
        let batches: Vec<ArrayRef> =
            (0..40).map(|i| ints((0..10_000).map(|j| (i * 10_000 + j) * 7 % rows))).collect();
        let column = summary(&batches);
        let distinct = column.distinct.unwrap();
        assert!(!distinct.exact);
        assert!((distinct.values as f64 / rows as f64 - 1.0).abs() < 0.02, "{distinct:?}");
        let quartiles = column.quartiles.unwrap();
        for (quartile, share) in quartiles.values.iter().zip([0.25, 0.5, 0.75]) {
            assert!((quartile / rows as f64 - share).abs() < 0.01, "{quartiles:?}");
        }
        assert!(!quartiles.exact);
        assert_eq!(column.mean, Some((rows - 1) as f64 / 2.0));
        assert_eq!(summary(&batches).distinct.unwrap(), distinct);
    }

    #[test]
    fn few_values_in_many_rows_are_counted_exactly() {
        let batches: Vec<ArrayRef> = (0..20).map(|_| ints((0..10_000).map(|j| j % 13))).collect();
        assert_eq!(summary(&batches).distinct.unwrap(), DistinctCount { values: 13, exact: true });
    }

    #[test]
    fn infinities_and_nan_are_no_trouble() {
        let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, f64::INFINITY];
        let column = summary(&[Arc::new(Float64Array::from(odd.to_vec()))]);
        assert!(column.mean.unwrap().is_nan());
        assert_eq!(column.distinct.unwrap().values, 4);
        assert_eq!(column.quartiles.unwrap().values[1], f64::INFINITY);
    }
}
