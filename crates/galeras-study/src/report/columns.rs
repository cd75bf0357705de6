//! Statistics of a table's columns for the panel of a step: counts, quartiles, a small histogram of
//! numbers, the most frequent of few texts.

use std::collections::HashMap;

use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, SchemaRef};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use galeras_pages::model::{ColumnStatistics, ValueBin, ValueCount};
use serde_json::Value;

use galeras_display::{ColumnSummary, Measured, TableSummary};

/// The bars of a small histogram.
const BINS: usize = 20;
const TOP: usize = 8;
/// The most different texts of a column of categories.
const CATEGORIES: usize = 1_000;
/// The longest text of a category.
const CATEGORY: usize = 80;

pub(super) struct ColumnsOfTable {
    summary: TableSummary,
    values: Vec<Seen>,
}

/// The state collected for a column in addition to its summary.
enum Seen {
    Numbers(Vec<f64>),
    /// The count of each text; `None` if there are too many.
    Texts(Option<HashMap<String, u64>>),
    Other,
}

impl ColumnsOfTable {
    pub(super) fn new(schema: &SchemaRef) -> Self {
        let seen = |data_type: &DataType| match data_type {
            t if t.is_numeric() => Seen::Numbers(Vec::new()),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Boolean => {
                Seen::Texts(Some(HashMap::new()))
            }
            _ => Seen::Other,
        };
        let values = schema.fields().iter().map(|field| seen(field.data_type())).collect();
        Self { summary: TableSummary::new(schema), values }
    }

    pub(super) fn add(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        self.summary.add(batch)?;
        for (seen, array) in self.values.iter_mut().zip(batch.columns()) {
            match seen {
                Seen::Numbers(values) => {
                    let numbers = cast(array, &DataType::Float64)?;
                    let numbers = numbers.as_primitive::<Float64Type>();
                    values.extend(numbers.iter().flatten().filter(|value| value.is_finite()));
                }
                Seen::Texts(counts) => count_texts(counts, array)?,
                Seen::Other => {}
            }
        }
        Ok(())
    }

    /// The statistics of each column, in order.
    pub(super) fn finish(self) -> Vec<ColumnStatistics> {
        let summaries = self.summary.finish();
        summaries.iter().zip(self.values).map(|(column, seen)| statistics(column, seen)).collect()
    }
}

/// The value of an array of one: a number if it is one, else its text.
pub fn one_value(array: &ArrayRef) -> Value {
    let text = text_of(array);
    match text.parse::<serde_json::Number>() {
        Ok(number) if array.data_type().is_numeric() => Value::Number(number),
        _ if array.data_type().is_numeric() => Value::Null,
        _ => match text.as_str() {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => Value::String(text),
        },
    }
}

/// The text of an array of one.
pub fn text_of(array: &ArrayRef) -> String {
    ArrayFormatter::try_new(array.as_ref(), &FormatOptions::default())
        .and_then(|formatter| formatter.value(0).try_to_string())
        .unwrap_or_default()
}

fn count_texts(
    counts: &mut Option<HashMap<String, u64>>,
    array: &ArrayRef,
) -> Result<(), ArrowError> {
    let Some(known) = counts else { return Ok(()) };
    let texts = cast(array, &DataType::Utf8)?;
    for text in texts.as_string::<i32>().iter().flatten() {
        if let Some(count) = known.get_mut(text) {
            *count += 1;
        } else if known.len() >= CATEGORIES || text.len() > CATEGORY {
            *counts = None;
            return Ok(());
        } else {
            known.insert(text.to_string(), 1);
        }
    }
    Ok(())
}

fn statistics(column: &ColumnSummary, seen: Seen) -> ColumnStatistics {
    let is_value = matches!(column.measured, Measured::Values | Measured::Times);
    let extreme = |array: &ArrayRef| if is_value { one_value(array) } else { Value::Null };
    let extremes = column.extremes.as_ref();
    let quartiles = column.quartiles.filter(|_| is_value).map(|q| q.values);
    let mut statistics = ColumnStatistics {
        count: column.rows,
        nulls: column.nulls,
        distinct: column.distinct.map(|distinct| distinct.values),
        distinct_estimated: column.distinct.is_some_and(|distinct| !distinct.exact),
        min: extremes.map_or(Value::Null, |(least, _)| extreme(least)),
        max: extremes.map_or(Value::Null, |(_, most)| extreme(most)),
        q1: quartiles.map(|q| q[0]),
        median: quartiles.map(|q| q[1]),
        q3: quartiles.map(|q| q[2]),
        mean: column.mean.filter(|_| is_value),
        ..ColumnStatistics::default()
    };
    match seen {
        Seen::Numbers(values) => {
            statistics.std = deviation(&values, statistics.mean);
            statistics.bins = bins(&values);
        }
        Seen::Texts(Some(counts)) => statistics.top = top(counts),
        Seen::Texts(None) | Seen::Other => {}
    }
    statistics
}

/// The sample standard deviation, with divisor n - 1.
fn deviation(values: &[f64], mean: Option<f64>) -> Option<f64> {
    let mean = mean.filter(|_| values.len() > 1)?;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// Bins of equal width from the smallest to the largest value; the last one holds its upper end.
fn bins(values: &[f64]) -> Vec<ValueBin> {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let width = (high - low) / BINS as f64;
    if values.is_empty() || !width.is_finite() || low + width <= low {
        return Vec::new();
    }
    let mut counts = [0_u64; BINS];
    for value in values {
        let bin = ((value - low) / width) as usize;
        counts[bin.min(BINS - 1)] += 1;
    }
    let bin = |at: usize| ValueBin {
        low: low + at as f64 * width,
        high: if at + 1 == BINS { high } else { low + (at + 1) as f64 * width },
        count: counts[at],
    };
    (0..BINS).map(bin).collect()
}

/// The most frequent values, if any is repeated.
fn top(counts: HashMap<String, u64>) -> Vec<ValueCount> {
    if counts.values().all(|count| *count < 2) {
        return Vec::new();
    }
    let mut counts: Vec<(String, u64)> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    counts.truncate(TOP);
    counts.into_iter().map(|(value, count)| ValueCount { value, count }).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Float64Array, StringArray};
    use arrow::datatypes::{Field, Schema};

    use super::*;

    fn of(numbers: Vec<Option<f64>>, texts: Vec<Option<&str>>) -> Vec<ColumnStatistics> {
        let schema = Arc::new(Schema::new(vec![
            Field::new("x", DataType::Float64, true),
            Field::new("t", DataType::Utf8, true),
        ]));
        let numbers = Arc::new(Float64Array::from(numbers)) as ArrayRef;
        let texts = Arc::new(StringArray::from(texts)) as ArrayRef;
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![numbers, texts]).unwrap();
        let mut columns = ColumnsOfTable::new(&schema);
        columns.add(&batch).unwrap();
        columns.finish()
    }

    #[test]
    fn bins_hold_every_value_once() {
        let values: Vec<Option<f64>> = (0..=100).map(|n| Some(f64::from(n))).collect();
        let texts = vec![Some("a"); 101];
        let columns = of(values, texts);
        let bins = &columns[0].bins;
        assert_eq!(bins.iter().map(|bin| bin.count).sum::<u64>(), 101);
        assert_eq!((bins[0].low, bins[BINS - 1].high), (0.0, 100.0));
        // The last bin includes its upper end, 100.
        assert_eq!((bins[0].count, bins[BINS - 1].count), (5, 6));
        // n = 101, 0..=100: variance 101 * 102 / 12.
        assert!((columns[0].std.unwrap() - (101.0_f64 * 102.0 / 12.0).sqrt()).abs() < 1e-9);
        assert_eq!(columns[1].top, [ValueCount { value: "a".into(), count: 101 }]);
    }

    #[test]
    fn degenerate_columns_have_no_bins() {
        let columns = of(vec![None, Some(f64::NAN), Some(3.0)], vec![None, Some("a"), Some("b")]);
        assert!(columns[0].bins.is_empty() && columns[1].top.is_empty());
        assert_eq!((columns[0].nulls, columns[1].nulls), (1, 1));
        let infinite = of(vec![Some(f64::MIN), Some(f64::MAX), None], vec![None; 3]);
        assert!(infinite[0].bins.is_empty());
    }
}
