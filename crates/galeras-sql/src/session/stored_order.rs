//! The rows of a stored table in the order of one of its columns.
//!
//! Every row becomes one number: eight bytes of its value, of which a larger number is a larger
//! value, a bit that is set if the value is longer, and the row's position, so that no two are
//! equal and equal values keep the order of the table. Numbers need no more than that. Texts that
//! share their first bytes are sorted again by the next ones that differ.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, UInt64Array};
use arrow::compute::{can_cast_types, cast, concat};
use arrow::datatypes::{DataType, Float64Type, Int64Type, UInt64Type};
use arrow::row::{RowConverter, SortField};
use parquet::errors::Result;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;

use galeras_store::TableFile;

/// The most rows that are put in order: 512 MB of numbers.
const MOST_ROWS: u64 = 32 << 20;

/// The most bytes of texts that are put in order: all of them are in memory.
const MOST_BYTES: u64 = 1 << 30;

/// From so many rows on a part is sorted by several threads.
const PARALLEL: usize = 1 << 15;

/// The positions (from 0) of the rows of a table in the order of a column, rows without a value last,
/// rows of one value in the order of the table. Nothing if it has no such column, or more in it
/// than the memory should hold.
///
/// # Errors
/// If a file cannot be read.
pub fn stored_order(
    stored: &Arc<TableFile>,
    column: &str,
    descending: bool,
) -> Result<Option<Vec<u32>>> {
    let roots = stored.columns(|name| name == column);
    let [root] = roots.as_slice() else { return Ok(None) };
    let data_type = stored.schema().field(*root).data_type();
    let is_small = data_type.is_primitive()
        || *data_type == DataType::Boolean
        || stored.text_bytes(*root).is_some_and(|bytes| bytes <= MOST_BYTES);
    if data_type.is_nested() || stored.rows() > MOST_ROWS || !is_small {
        return Ok(None);
    }
    let parts = stored
        .groups()
        .par_iter()
        .map(|rows| {
            let mut values = Vec::new();
            let count = usize::try_from(rows.end - rows.start)?;
            for batch in stored.read(&roots, std::slice::from_ref(rows), count.max(1))? {
                values.push(batch?.remove_column(0));
            }
            let values: Vec<&dyn Array> = values.iter().map(AsRef::as_ref).collect();
            match values.is_empty() {
                true => Ok(None),
                false => {
                    let all = concat(&values)?;
                    Part::new(u32::try_from(rows.start)?, &all).map(Some)
                }
            }
        })
        .collect::<Result<Vec<Option<Part>>>>()?;
    Ok(Some(ordered(parts.into_iter().flatten().collect(), descending)))
}

/// The values of some rows that follow each other.
struct Part {
    /// The position of the first row.
    start: u32,
    values: Values,
}

/// Values in the form that is compared.
enum Values {
    /// Numbers, of which a larger one is a larger value.
    Numbers(UInt64Array),
    /// Bytes, in the order of dictionaries.
    Texts(BinaryArray),
}

impl Part {
    fn new(start: u32, array: &ArrayRef) -> Result<Self> {
        let values = match numbers(array)? {
            Some(numbers) => Values::Numbers(numbers),
            None => Values::Texts(texts(array)?),
        };
        Ok(Self { start, values })
    }

    /// The keys of the rows that have a value, and the positions of those that have none.
    fn keys(&self, descending: bool) -> (Vec<u128>, Vec<u32>) {
        let turned = if descending { u64::MAX } else { 0 };
        let array: &dyn Array = match &self.values {
            Values::Numbers(numbers) => numbers,
            Values::Texts(texts) => texts,
        };
        let (mut keys, mut absent) = (Vec::with_capacity(array.len()), Vec::new());
        for (row, position) in (self.start..).take(array.len()).enumerate() {
            if array.is_null(row) {
                absent.push(position);
                continue;
            }
            keys.push(match &self.values {
                Values::Numbers(numbers) => key(numbers.value(row) ^ turned, 0, position),
                Values::Texts(texts) => text_key(texts.value(row), descending, position),
            });
        }
        (keys, absent)
    }
}

/// Values whose order is that of numbers of 64 bits: numbers, times, truth.
fn numbers(array: &ArrayRef) -> Result<Option<UInt64Array>> {
    const SIGN: u64 = 1 << 63;
    let by = |to: &DataType| match can_cast_types(array.data_type(), to) {
        true => cast(array, to).map(Some),
        false => Ok(None),
    };
    let data_type = array.data_type();
    Ok(if data_type.is_unsigned_integer() || *data_type == DataType::Boolean {
        by(&DataType::UInt64)?.map(|array| array.as_primitive::<UInt64Type>().clone())
    } else if data_type.is_signed_integer() || data_type.is_temporal() {
        by(&DataType::Int64)?
            .map(|array| array.as_primitive::<Int64Type>().unary(|n| n.cast_unsigned() ^ SIGN))
    } else if data_type.is_floating() {
        // The order of IEEE 754: -0 before 0, what is not a number after all others.
        by(&DataType::Float64)?.map(|array| {
            array.as_primitive::<Float64Type>().unary(|x| match x.to_bits() {
                bits if bits & SIGN == 0 => bits | SIGN,
                bits => !bits,
            })
        })
    } else {
        None
    })
}

/// Values whose order is that of bytes.
fn texts(array: &ArrayRef) -> Result<BinaryArray> {
    Ok(match array.data_type() {
        DataType::Utf8 => BinaryArray::from(array.as_string::<i32>().clone()),
        DataType::Binary => array.as_binary::<i32>().clone(),
        other => {
            let converter = RowConverter::new(vec![SortField::new(other.clone())])?;
            let rows = converter.convert_columns(&[ArrayRef::clone(array)])?.try_into_binary()?;
            let (offsets, values, _) = rows.into_parts();
            BinaryArray::new(offsets, values, array.logical_nulls())
        }
    })
}

/// Bytes of a text that a key holds.
const CHUNK: usize = 8;

fn key(chunk: u64, rest: u8, position: u32) -> u128 {
    u128::from(chunk) << 64 | u128::from(rest) << 32 | u128::from(position)
}

/// The key of a text whose earlier bytes are known to be equal: its next bytes and their number, so
/// that a text comes before longer ones.
fn text_key(text: &[u8], descending: bool, position: u32) -> u128 {
    let mut chunk = [0; CHUNK];
    let held = text.len().min(CHUNK);
    chunk[..held].copy_from_slice(&text[..held]);
    let chunk = u64::from_be_bytes(chunk);
    let rest = text.len().min(CHUNK + 1) as u8;
    match descending {
        true => key(!chunk, CHUNK as u8 + 1 - rest, position),
        false => key(chunk, rest, position),
    }
}

fn position(key: u128) -> u32 {
    (key & u128::from(u32::MAX)) as u32
}

/// Returns true if the text of a key is longer than its bytes.
fn goes_on(key: u128, descending: bool) -> bool {
    let rest = (key >> 32) as u8;
    rest == if descending { 0 } else { CHUNK as u8 + 1 }
}

fn ordered(parts: Vec<Part>, descending: bool) -> Vec<u32> {
    let found: Vec<(Vec<u128>, Vec<u32>)> =
        parts.par_iter().map(|part| part.keys(descending)).collect();
    let rows = found.iter().map(|(keys, _)| keys.len()).sum();
    let (mut keys, mut absent) = (Vec::with_capacity(rows), Vec::new());
    for (some, none) in found {
        keys.extend(some);
        absent.extend(none);
    }
    sort(&mut keys);
    let mut texts = Texts::default();
    for part in parts {
        if let Values::Texts(values) = part.values {
            texts.starts.push(part.start);
            texts.parts.push(values);
        }
    }
    if !texts.parts.is_empty() {
        sort_on(&mut keys, &texts, descending);
    }
    keys.into_iter().map(position).chain(absent).collect()
}

fn sort(keys: &mut [u128]) {
    match keys.len() < PARALLEL {
        true => keys.sort_unstable(),
        false => keys.par_sort_unstable(),
    }
}

/// All texts, by the positions of their rows.
#[derive(Default)]
struct Texts {
    starts: Vec<u32>,
    parts: Vec<BinaryArray>,
}

impl Texts {
    /// The text of a row from a byte on.
    fn of(&self, key: u128, from: usize) -> &[u8] {
        let position = position(key);
        let part = self.starts.partition_point(|start| *start <= position) - 1;
        let text = self.parts[part].value((position - self.starts[part]) as usize);
        text.get(from..).unwrap_or_default()
    }

    /// How many bytes, from one on, all of these texts share.
    fn shared(&self, keys: &[u128], from: usize) -> usize {
        let Some((first, others)) = keys.split_first() else { return 0 };
        let mut shared = self.of(*first, from);
        for other in others {
            let pairs = shared.iter().zip(self.of(*other, from));
            let same = pairs.take_while(|(one, other)| one == other).count();
            shared = &shared[..same];
            if same == 0 {
                break;
            }
        }
        shared.len()
    }
}

/// Sorts rows of one key by their next bytes, and so on. It uses a list of remaining ranges instead
/// of recursion, as texts may be long and differ only at their ends.
fn sort_on(keys: &mut [u128], texts: &Texts, descending: bool) {
    let mut left: Vec<(Range<usize>, usize)> = ties(keys, 0..keys.len(), CHUNK, descending);
    while let Some((range, from)) = left.pop() {
        let run = &mut keys[range.clone()];
        let from = from + texts.shared(run, from);
        run.iter_mut().for_each(|key| {
            *key = text_key(texts.of(*key, from), descending, position(*key));
        });
        sort(run);
        left.extend(ties(keys, range, from + CHUNK, descending));
    }
}

/// The runs of sorted rows that are equal up to this number of bytes and longer.
fn ties(
    keys: &[u128],
    within: Range<usize>,
    from: usize,
    descending: bool,
) -> Vec<(Range<usize>, usize)> {
    let mut found = Vec::new();
    let mut start = within.start;
    for run in keys[within].chunk_by(|one, other| one >> 32 == other >> 32) {
        let end = start + run.len();
        if run.len() > 1 && goes_on(run[0], descending) {
            found.push((start..end, from));
        }
        start = end;
    }
    found
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use arrow::array::{
        BooleanArray, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray,
        TimestampMicrosecondArray,
    };
    use arrow::compute::SortOptions;
    use parquet::arrow::ArrowWriter;
    use parquet::file::properties::WriterProperties;
    use proptest::prelude::*;

    use super::*;

    fn table(array: ArrayRef) -> Arc<TableFile> {
        let batch = RecordBatch::try_from_iter_with_nullable([("x", array, true)]).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        let small = WriterProperties::builder().set_max_row_group_row_count(Some(7)).build();
        let mut writer =
            ArrowWriter::try_new(file.reopen().unwrap(), batch.schema(), Some(small)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        Arc::new(TableFile::open(file.into_file()).unwrap())
    }

    /// The order of Arrow, in which rows of one value are put in the order of the table.
    fn expected(array: &ArrayRef, descending: bool) -> Vec<u32> {
        let options = SortOptions { descending, nulls_first: false };
        let ranks = arrow::compute::rank(array, Some(options)).unwrap();
        let mut rows: Vec<u32> = (0..array.len() as u32).collect();
        rows.sort_by_key(|row| (array.is_null(*row as usize), ranks[*row as usize]));
        rows
    }

    fn check(array: ArrayRef) {
        let table = table(Arc::clone(&array));
        for descending in [false, true] {
            let found = stored_order(&table, "x", descending).unwrap().unwrap();
            assert_eq!(found, expected(&array, descending), "{array:?} {descending}");
        }
    }

    #[test]
    fn every_kind_of_value_is_in_order_and_absent_ones_are_last() {
        let floats =
            [0.0, -0.0, f64::NAN, 1.5, f64::NEG_INFINITY, -2.0, f64::INFINITY, 1.5, -f64::NAN];
        let numbers = [3, i64::MIN, -1, i64::MAX, 0, 3, 2, -1, 9, 10];
        let some = |n: &i64| (n % 3 != 0).then_some(*n);
        check(Arc::new(Float64Array::from(floats.to_vec())));
        check(Arc::new(Int64Array::from(numbers.to_vec())));
        check(Arc::new(Int64Array::from_iter(numbers.iter().map(some))));
        check(Arc::new(BooleanArray::from_iter(numbers.iter().map(|n| some(n).map(|n| n > 0)))));
        check(Arc::new(TimestampMicrosecondArray::from_iter(numbers.iter().map(some))));
        let decimals = numbers.iter().map(|n| some(n).map(i128::from));
        check(Arc::new(Decimal128Array::from_iter(decimals)));
        check(Arc::new(Int64Array::from(Vec::<i64>::new())));
        check(Arc::new(StringArray::from(vec![None::<&str>; 20])));
    }

    #[test]
    fn texts_that_begin_alike_are_told_apart_however_long_they_are() {
        let long = "x".repeat(100_000);
        let mut texts: Vec<String> = (0..40).map(|n| format!("{long}{}", n % 9)).collect();
        texts.extend((0..40).map(|n| long[..n * 3].to_string()));
        texts.extend(["\0", "", "\0\0", "a\0", "a", "a\0b"].map(str::to_string));
        check(Arc::new(StringArray::from(texts)));
        let many = (0..PARALLEL + 9).map(|n| format!("https://example.org/{}", n * 7919 % 3000));
        let many: ArrayRef = Arc::new(StringArray::from_iter_values(many));
        let part = Part::new(0, &many).unwrap();
        assert_eq!(ordered(vec![part], false), expected(&many, false));
    }

    #[test]
    fn what_is_no_column_or_a_list_has_no_order() {
        let table = table(Arc::new(Int64Array::from(vec![1])));
        assert_eq!(stored_order(&table, "y", false).unwrap(), None);
    }

    proptest! {
        #[test]
        fn texts_are_in_order(texts in prop::collection::vec(
            prop::option::of("(ab?|\u{0}|b{0,9}|é){0,4}"), 0..60
        )) {
            check(Arc::new(StringArray::from(texts)));
        }
    }
}
