//! Refuses times that no calendar has: a file may store any number as a date or a time, even one
//! that is millions of years away. Such a value cannot be written as text. Arrow writes `ERROR: …`
//! instead, or fails later.

use std::ops::RangeInclusive;

use arrow::array::timezone::Tz;
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, TimeUnit};

use galeras_operator::table_digest::type_name;
use galeras_workflow::quote;

/// The seconds since 1970 that every step of writing a time supports, in any time zone: from the
/// year 262,142 before our era to the year 262,141.
const SECONDS: RangeInclusive<i64> = -8_334_500_000_000..=8_210_200_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// Returns true if all dates and times of the table are ones that can be written.
///
/// # Errors
/// A sentence that names the column of the first that is not.
pub fn check_times(batch: &RecordBatch) -> Result<(), String> {
    for (array, field) in batch.columns().iter().zip(batch.schema_ref().fields()) {
        if let Some(why) = problem(array.as_ref()) {
            return Err(format!("the column {} has {why}", quote(field.name())));
        }
    }
    Ok(())
}

fn problem(array: &dyn Array) -> Option<String> {
    let (what, within) = match array.data_type() {
        DataType::Date32 => {
            ("date", SECONDS.start() / SECONDS_PER_DAY..=SECONDS.end() / SECONDS_PER_DAY)
        }
        DataType::Date64 => ("date", times(1_000)),
        DataType::Timestamp(_, Some(zone)) if zone.parse::<Tz>().is_err() => {
            return Some(format!("times of the time zone {}, which is unknown", quote(zone)));
        }
        DataType::Timestamp(TimeUnit::Second, _) => ("time", times(1)),
        DataType::Timestamp(TimeUnit::Millisecond, _) => ("time", times(1_000)),
        DataType::Timestamp(TimeUnit::Microsecond, _) => ("time", times(1_000_000)),
        DataType::List(_) => {
            let lists = array.as_list::<i32>();
            let (first, last) = (lists.value_offsets().first()?, lists.value_offsets().last()?);
            return problem(
                lists.values().slice(*first as usize, (last - first) as usize).as_ref(),
            );
        }
        DataType::Struct(_) => {
            return array.as_struct().columns().iter().find_map(|column| problem(column.as_ref()));
        }
        // 64 bits of nanoseconds are some centuries.
        _ => return None,
    };
    let numbers = cast(array, &DataType::Int64).ok()?;
    let mut numbers = numbers.as_primitive::<Int64Type>().iter().flatten();
    let far = numbers.find(|number| !within.contains(number))?;
    Some(format!("a {what} that no calendar has ({far} in {})", type_name(array.data_type())))
}

fn times(per_second: i64) -> RangeInclusive<i64> {
    SECONDS.start().saturating_mul(per_second)..=SECONDS.end().saturating_mul(per_second)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, Date32Array, Date64Array, ListArray, StringArray, StructArray,
        TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray,
        TimestampSecondArray,
    };
    use arrow::datatypes::{Date32Type, Field};
    use arrow::util::display::array_value_to_string;

    use super::*;

    fn of(array: ArrayRef) -> Result<(), String> {
        check_times(&RecordBatch::try_from_iter_with_nullable([("t", array, true)]).unwrap())
    }

    #[track_caller]
    fn refused(array: ArrayRef) {
        let why = of(array).unwrap_err();
        assert!(why.starts_with("the column `t` has a "), "{why}");
        assert!(why.contains("that no calendar has"), "{why}");
    }

    #[test]
    fn what_cannot_be_written_is_refused() {
        for extreme in [i64::MIN, i64::MAX] {
            refused(Arc::new(TimestampSecondArray::from(vec![Some(0), None, Some(extreme)])));
            refused(Arc::new(TimestampMillisecondArray::from(vec![extreme])));
            refused(Arc::new(Date64Array::from(vec![extreme])));
            of(Arc::new(TimestampNanosecondArray::from(vec![extreme]))).unwrap();
        }
        refused(Arc::new(TimestampMicrosecondArray::from(vec![i64::MIN])));
        for extreme in [i32::MIN, i32::MAX] {
            let days: ArrayRef = Arc::new(Date32Array::from(vec![extreme]));
            refused(Arc::clone(&days));
            let field = Arc::new(Field::new("item", DataType::Date32, true));
            let list = ListArray::from_iter_primitive::<Date32Type, _, _>([
                Some(vec![Some(1)]),
                Some(vec![Some(extreme)]),
            ]);
            refused(Arc::new(list.clone()));
            // Only what is in the rows counts.
            of(Arc::new(list.slice(0, 1))).unwrap();
            refused(Arc::new(StructArray::from(vec![(field, days)])));
        }
        of(Arc::new(StringArray::from(vec!["99999-01-01"]))).unwrap();
        let zoned = TimestampSecondArray::from(vec![1]).with_timezone("+99:99");
        assert!(of(Arc::new(zoned)).unwrap_err().contains("`+99:99`, which is unknown"));
    }

    #[test]
    fn what_is_accepted_can_be_written() {
        for second in [*SECONDS.start(), 0, *SECONDS.end()] {
            let mut arrays: Vec<ArrayRef> = Vec::new();
            for zone in [None, Some("+14:00"), Some("-12:00"), Some("Pacific/Auckland")] {
                let times = TimestampSecondArray::from(vec![second]);
                let times = zone.into_iter().fold(times, |times, zone| times.with_timezone(zone));
                let millis = TimestampMillisecondArray::from(vec![second * 1_000]);
                let millis = zone.into_iter().fold(millis, |times, zone| times.with_timezone(zone));
                arrays.extend([Arc::new(times) as ArrayRef, Arc::new(millis)]);
            }
            arrays.push(Arc::new(Date32Array::from(vec![(second / SECONDS_PER_DAY) as i32])));
            arrays.push(Arc::new(Date64Array::from(vec![second * 1_000])));
            for array in arrays {
                of(Arc::clone(&array)).unwrap();
                let text = array_value_to_string(&array, 0).unwrap();
                assert!(!text.contains("ERROR"), "{text}");
            }
        }
        let most = TimestampMicrosecondArray::from(vec![i64::MAX]);
        assert!(of(Arc::new(most.clone())).is_err() || array_value_to_string(&most, 0).is_ok());
    }
}
