//! How large the result of a function is that may be far larger than its arguments: told from the
//! arguments alone, and never less than it is.
//!
//! Does not live here: what is refused (`bounded`).

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::compute::kernels::length::length;
use arrow::datatypes::{DataType, Int64Type, IntervalMonthDayNanoType, IntervalUnit, TimeUnit};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::ColumnarValue;

use super::text_concat::TEXT_CONCAT;

/// The most bytes of one value that is made of columns.
pub(super) const MAX_VALUE: u128 = 256 << 20;
/// The most bytes of one value that is made of constants: it may be repeated for each row of a batch.
pub(super) const MAX_CONSTANT: u128 = 1 << 20;
/// The most bytes of the values of one batch of rows.
pub(super) const MAX_ROWS: u128 = 1 << 30;

/// What the size of a result depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Growth {
    /// The arguments: it takes long rather than much.
    Linear,
    /// A text and how often it is repeated.
    Repeat,
    /// How many characters there are to be.
    Pad,
    /// How often a text can be found in another, and what comes in its place.
    Replace,
    /// The same, where what comes in its place may hold what was found.
    RegexpReplace,
    /// A value and how many items there are to be.
    ArrayRepeat,
    /// A list and how many items there are to be.
    ArrayResize,
    /// Where it begins, where it ends, and the step between.
    Range,
    /// All arguments put together.
    Sum,
    /// The items of a list, with a text between any two, and one in the place of each that is null.
    Join,
    /// A list, and what comes in the place of items of it.
    ArrayReplace,
    /// A text, whose characters may become items.
    Split,
}

/// The bytes of some values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ResultSize {
    /// Of the largest one.
    pub(super) largest: u128,
    /// Of all.
    pub(super) all: u128,
}

/// Bytes of an item of a list, at least.
const ITEM: u128 = 8;
/// Bytes of a character, at most.
const CHARACTER: u128 = 4;

const DAY: i128 = 86_400_000_000_000;

impl Growth {
    /// Of the function of that name; `None` if its result is about as large as its arguments, and it
    /// is quick.
    pub(super) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "repeat" => Self::Repeat,
            "lpad" | "rpad" => Self::Pad,
            "replace" => Self::Replace,
            "regexp_replace" => Self::RegexpReplace,
            "array_repeat" => Self::ArrayRepeat,
            "array_resize" => Self::ArrayResize,
            "range" | "generate_series" => Self::Range,
            "concat" | "concat_ws" | "array_concat" | "array_append" | "array_prepend"
            | "make_array" | "array_union" | TEXT_CONCAT => Self::Sum,
            "array_to_string" => Self::Join,
            "array_replace" | "array_replace_n" | "array_replace_all" => Self::ArrayReplace,
            "string_to_array" => Self::Split,
            "levenshtein" | "regexp_like" | "regexp_count" | "regexp_instr" | "regexp_match"
            | "score_pair" | "score_continuation" => Self::Linear,
            _ => return None,
        })
    }

    /// The size of the results for these arguments, for so many rows.
    pub(super) fn size(self, args: &[ColumnarValue], rows: usize) -> Result<ResultSize> {
        let mut size = ResultSize::default();
        let mut add = |bytes: u128| {
            size.largest = size.largest.max(bytes);
            size.all = size.all.saturating_add(bytes);
        };
        let bytes = |at: usize| args.get(at).map_or(Ok(Each::One(0)), bytes);
        let number = |at: usize| args.get(at).map_or(Ok(Each::One(0)), numbers);
        let count = |number: i64| u128::try_from(number).unwrap_or(0);
        match self {
            Self::Linear => {}
            Self::Repeat => {
                let (text, times) = (bytes(0)?, number(1)?);
                (0..rows).for_each(|row| add(text.at(row) * count(times.at(row))));
            }
            Self::Pad => {
                let (text, chars) = (bytes(0)?, number(1)?);
                let ascii = args.iter().all(is_ascii);
                let wide = if ascii { 1 } else { CHARACTER };
                (0..rows).for_each(|row| add(text.at(row).max(count(chars.at(row)) * wide)));
            }
            Self::Replace | Self::RegexpReplace => {
                let (text, found, instead) = (bytes(0)?, bytes(1)?, bytes(2)?);
                (0..rows).for_each(|row| {
                    let (text, instead) = (text.at(row), instead.at(row));
                    add(match self {
                        Self::Replace => {
                            let places = text.checked_div(found.at(row)).unwrap_or(text + 1);
                            text + places * instead
                        }
                        // `$0` is shorter than what it may stand for.
                        _ => text + (text + 1) * instead + instead / 2 * text,
                    });
                });
            }
            Self::ArrayRepeat => {
                let (value, times) = (bytes(0)?, number(1)?);
                (0..rows).for_each(|row| add(value.at(row).max(ITEM) * count(times.at(row))));
            }
            Self::ArrayResize => {
                let (list, items, value) = (bytes(0)?, number(1)?, bytes(2)?);
                (0..rows).for_each(|row| {
                    add(list.at(row) + value.at(row).max(ITEM) * count(items.at(row)));
                });
            }
            Self::Range => {
                let ranges = Ranges::new(args)?;
                for row in 0..rows {
                    add(ranges.items(row)?.saturating_mul(ITEM));
                }
            }
            Self::Join => {
                let (list, between, null) = (bytes(0)?, bytes(1)?, bytes(2)?);
                let items = args.first().map_or(Ok(Each::One(0)), lengths)?;
                // Numbers become longer when they are written.
                let texts = args.first().is_some_and(|list| has_texts(&list.data_type()));
                let wide = if texts { 1 } else { CHARACTER };
                (0..rows).for_each(|row| {
                    let between = between.at(row) + null.at(row);
                    add(list.at(row) * wide + items.at(row) * between);
                });
            }
            Self::ArrayReplace => {
                let (list, instead) = (bytes(0)?, bytes(2)?);
                let items = args.first().map_or(Ok(Each::One(0)), lengths)?;
                (0..rows).for_each(|row| {
                    add(list.at(row) + items.at(row) * instead.at(row));
                });
            }
            Self::Sum => {
                let all: Vec<_> = args.iter().map(self::bytes).collect::<Result<_>>()?;
                (0..rows).for_each(|row| add(all.iter().map(|arg| arg.at(row)).sum()));
            }
            Self::Split => {
                let text = bytes(0)?;
                (0..rows).for_each(|row| add(text.at(row) * (1 + CHARACTER)));
            }
        }
        Ok(size)
    }
}

/// One number for each row.
enum Each<T> {
    /// The same for all.
    One(T),
    Many(Vec<T>),
}

impl<T: Copy + Default> Each<T> {
    fn at(&self, row: usize) -> T {
        match self {
            Self::One(value) => *value,
            Self::Many(values) => values.get(row).copied().unwrap_or_default(),
        }
    }
}

/// The bytes of each value.
fn bytes(value: &ColumnarValue) -> Result<Each<u128>> {
    Ok(match value {
        ColumnarValue::Scalar(scalar) => Each::One(match scalar.try_as_str() {
            Some(text) => text.map_or(0, str::len) as u128,
            None => sizes(&scalar.to_array()?)?.first().copied().unwrap_or_default(),
        }),
        ColumnarValue::Array(array) => Each::Many(sizes(array)?),
    })
}

/// The bytes of each value of an array. A list is as large as its own items: an array of lists may be
/// a part of one that is far larger.
fn sizes(array: &ArrayRef) -> Result<Vec<u128>> {
    let rows = array.len();
    match array.data_type() {
        data_type if is_text(data_type) => item_counts(array),
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            of_lists(list.values(), list.offsets().iter().map(|at| i64::from(*at)).collect())
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            of_lists(list.values(), list.offsets().to_vec())
        }
        DataType::Struct(_) => {
            let mut all = vec![ITEM; rows];
            for column in array.as_struct().columns() {
                all.iter_mut().zip(sizes(column)?).for_each(|(all, size)| *all += size);
            }
            Ok(all)
        }
        data_type => Ok(match data_type.primitive_width() {
            Some(width) => vec![width as u128; rows],
            None => {
                let all = array.to_data().get_slice_memory_size().unwrap_or_default() as u128;
                vec![all.div_ceil((rows as u128).max(1)); rows]
            }
        }),
    }
}

/// The bytes of lists of items, between each two of the offsets, and of where the items begin.
fn of_lists(items: &ArrayRef, offsets: Vec<i64>) -> Result<Vec<u128>> {
    let place = |at: Option<&i64>| at.map_or(0, |at| usize::try_from(*at).unwrap_or(0));
    let (first, last) = (place(offsets.first()), place(offsets.last()));
    let sizes = sizes(&items.slice(first, last.saturating_sub(first)))?;
    let mut until = vec![0_u128];
    until.extend(sizes.iter().scan(0, |all, size| {
        *all += size + ITEM;
        Some(*all)
    }));
    let before = |at: &i64| until.get(place(Some(at)) - first).copied().unwrap_or_default();
    Ok(offsets.array_windows().map(|[from, to]| before(to).saturating_sub(before(from))).collect())
}

/// Whether it is a list of texts.
fn has_texts(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(item) | DataType::LargeList(item) => {
            is_text(item.data_type()) || has_texts(item.data_type())
        }
        _ => false,
    }
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn is_ascii(value: &ColumnarValue) -> bool {
    match value {
        ColumnarValue::Scalar(scalar) => scalar.try_as_str().flatten().is_none_or(str::is_ascii),
        ColumnarValue::Array(array) => match array.data_type() {
            DataType::Utf8 => array.as_string::<i32>().is_ascii(),
            DataType::LargeUtf8 => array.as_string::<i64>().is_ascii(),
            DataType::Utf8View => array.as_string_view().is_ascii(),
            _ => true,
        },
    }
}

/// The bytes of a text, or the items of a list.
fn lengths(value: &ColumnarValue) -> Result<Each<u128>> {
    Ok(match value {
        ColumnarValue::Scalar(scalar) => {
            Each::One(item_counts(&scalar.to_array()?)?.first().copied().unwrap_or_default())
        }
        ColumnarValue::Array(array) => Each::Many(item_counts(array)?),
    })
}

fn item_counts(array: &ArrayRef) -> Result<Vec<u128>> {
    if array.data_type() == &DataType::Null {
        return Ok(vec![0; array.len()]);
    }
    let counts = integers(&cast(&length(array)?, &DataType::Int64)?)?;
    Ok(counts.into_iter().map(|count| u128::try_from(count).unwrap_or(0)).collect())
}

/// Whole numbers; a null is zero.
fn numbers(value: &ColumnarValue) -> Result<Each<i64>> {
    let of = |array: &ArrayRef| integers(&cast(array, &DataType::Int64)?);
    per_row(value, of)
}

fn integers(array: &ArrayRef) -> Result<Vec<i64>> {
    let numbers = array.as_primitive_opt::<Int64Type>();
    Ok(numbers.ok_or_else(no_number)?.iter().map(Option::unwrap_or_default).collect())
}

fn no_number() -> DataFusionError {
    DataFusionError::Internal("a length is not a number".into())
}

fn per_row<T: Copy + Default>(
    value: &ColumnarValue,
    of: impl Fn(&ArrayRef) -> Result<Vec<T>>,
) -> Result<Each<T>> {
    Ok(match value {
        ColumnarValue::Scalar(scalar) => {
            Each::One(of(&scalar.to_array()?)?.first().copied().unwrap_or_default())
        }
        ColumnarValue::Array(array) => Each::Many(of(array)?),
    })
}

/// From where to where, and in which steps: numbers, or nanoseconds. Where one is null, nothing is made.
struct Ranges {
    start: Each<Option<i128>>,
    stop: Each<Option<i128>>,
    step: Each<Option<Step>>,
}

/// A step of numbers, or of a time.
#[derive(Clone, Copy)]
struct Step {
    /// As small as it may be; below zero if it goes back.
    size: i128,
    /// Parts of it go forward, others back.
    both_ways: bool,
}

impl Ranges {
    /// The arguments of `range`: a stop; start and stop; or these and a step.
    fn new(args: &[ColumnarValue]) -> Result<Self> {
        let (start, stop) = match args {
            [stop] => (Each::One(Some(0)), places(stop)?),
            [start, stop, ..] => (places(start)?, places(stop)?),
            [] => (Each::One(None), Each::One(None)),
        };
        let step = match args.get(2) {
            Some(step) => steps(step)?,
            None => Each::One(Some(Step { size: 1, both_ways: false })),
        };
        Ok(Self { start, stop, step })
    }

    fn items(&self, row: usize) -> Result<u128> {
        let (Some(start), Some(stop), Some(step)) =
            (self.start.at(row), self.stop.at(row), self.step.at(row))
        else {
            return Ok(0);
        };
        if step.both_ways {
            let message = "a step of `range` has parts that go forward and others that go back";
            return Err(DataFusionError::Execution(message.into()));
        }
        let way = stop - start;
        // It goes the other way, and arrives nowhere.
        if way.signum() * step.size.signum() < 0 {
            return Ok(0);
        }
        let items = way.unsigned_abs().checked_div(step.size.unsigned_abs());
        Ok(items.map_or(0, |items| items + 1))
    }
}

/// Numbers, or times as nanoseconds.
fn places(value: &ColumnarValue) -> Result<Each<Option<i128>>> {
    per_row(value, |array| {
        let scale = match array.data_type() {
            DataType::Date32 => DAY,
            DataType::Date64 | DataType::Timestamp(TimeUnit::Millisecond, _) => 1_000_000,
            DataType::Timestamp(TimeUnit::Second, _) => 1_000_000_000,
            DataType::Timestamp(TimeUnit::Microsecond, _) => 1_000,
            _ => 1,
        };
        let whole = match array.data_type() {
            DataType::Date32 => &cast(array, &DataType::Int32)?,
            _ => array,
        };
        let places = cast(whole, &DataType::Int64)?;
        let places = places.as_primitive_opt::<Int64Type>().ok_or_else(no_number)?;
        Ok(places.iter().map(|place| place.map(|place| i128::from(place) * scale)).collect())
    })
}

fn steps(value: &ColumnarValue) -> Result<Each<Option<Step>>> {
    per_row(value, |array| match array.data_type() {
        DataType::Interval(_) => {
            let steps = cast(array, &DataType::Interval(IntervalUnit::MonthDayNano))?;
            let steps = steps.as_primitive::<IntervalMonthDayNanoType>();
            Ok(steps.iter().map(|step| step.map(step_of)).collect())
        }
        _ => {
            let steps = cast(array, &DataType::Int64)?;
            let steps = steps.as_primitive_opt::<Int64Type>().ok_or_else(no_number)?;
            let step = |size: i64| Step { size: i128::from(size), both_ways: false };
            Ok(steps.iter().map(|size| size.map(step)).collect())
        }
    })
}

fn step_of(interval: arrow::datatypes::IntervalMonthDayNano) -> Step {
    let parts = [
        i128::from(interval.months) * 28 * DAY,
        i128::from(interval.days) * DAY,
        i128::from(interval.nanoseconds),
    ];
    let both_ways = parts.iter().any(|part| *part > 0) && parts.iter().any(|part| *part < 0);
    Step { size: parts.iter().sum(), both_ways }
}
