//! The input of `mixed` as columns, in the order of its key.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use arrow::array::{AsArray, StringArray};
use arrow::datatypes::{DataType, Float64Type};
use datafusion::common::ScalarValue;
use datafusion::dataframe::DataFrame;
use datafusion::logical_expr::{Expr, cast, lit, when};
use datafusion::prelude::isnan;
use futures::StreamExt;

use galeras_operator::StepError;
use galeras_sql::projection::in_key_order;
use galeras_sql::session::column;

/// The code of a row without a label.
pub(super) const NONE: u32 = u32::MAX;

/// Labels as codes, in the order in which they appear.
#[derive(Clone, Debug, Default)]
pub(super) struct LabelColumn {
    pub(super) names: Vec<String>,
    pub(super) codes: Vec<u32>,
}

/// The columns that the models read.
#[derive(Debug, Default)]
pub(super) struct MixedFrame {
    pub(super) rows: usize,
    /// Numbers by column; NaN where there is none.
    pub(super) numbers: BTreeMap<String, Vec<f64>>,
    /// Those of them that are integers of 64 bits in the input, not all of which are doubles.
    pub(super) integers: BTreeSet<String>,
    /// Labels by column.
    pub(super) labels: BTreeMap<String, LabelColumn>,
}

/// Reads the columns `numbers` and `labels` of `input`, in the order of `key`.
pub(super) async fn read(
    input: DataFrame,
    key: &[String],
    numbers: &[String],
    labels: &[String],
) -> Result<MixedFrame, StepError> {
    let mut columns = Vec::with_capacity(numbers.len() + labels.len());
    for (at, name) in numbers.iter().enumerate() {
        columns.push(cast(column(name), DataType::Float64).alias(format!("n{at}")));
    }
    for (at, name) in labels.iter().enumerate() {
        columns.push(label(&input, name)?.alias(format!("l{at}")));
    }
    let types = input.schema();
    let whole = |name: &&String| {
        let field = types.field_with_unqualified_name(name);
        field.is_ok_and(|field| matches!(field.data_type(), DataType::Int64 | DataType::UInt64))
    };
    let integers = numbers.iter().filter(whole).cloned().collect();
    let mut stream = in_key_order(input, key, columns)?.execute_stream().await?;
    let mut values: Vec<Vec<f64>> = vec![Vec::new(); numbers.len()];
    let mut texts: Vec<LabelCodes> = labels.iter().map(|_| LabelCodes::default()).collect();
    let mut rows = 0;
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        rows += batch.num_rows();
        let (first, second) = batch.columns().split_at(numbers.len());
        for (target, array) in values.iter_mut().zip(first) {
            let array = array.as_primitive::<Float64Type>();
            target.extend(array.iter().map(|value| value.unwrap_or(f64::NAN)));
        }
        for (target, array) in texts.iter_mut().zip(second) {
            target.extend(array.as_string::<i32>());
        }
    }
    if rows >= NONE as usize {
        return Err(StepError::new("`mixed` takes fewer than 2³² rows"));
    }
    Ok(MixedFrame {
        rows,
        integers,
        numbers: numbers.iter().cloned().zip(values).collect(),
        labels: labels.iter().cloned().zip(texts.into_iter().map(|one| one.column)).collect(),
    })
}

/// A column as text. A label that is NaN is missing, as pandas writes it; the two zeros are one.
fn label(input: &DataFrame, name: &str) -> Result<Expr, StepError> {
    let text = cast(column(name), DataType::Utf8);
    let schema = input.schema();
    Ok(match schema.field_with_unqualified_name(name) {
        Ok(field) if field.data_type().is_floating() => {
            when(isnan(column(name)), lit(ScalarValue::Utf8(None)))
                .when(text.clone().eq(lit("-0.0")), lit("0.0"))
                .otherwise(text)?
        }
        _ => text,
    })
}

/// Labels while they are read.
#[derive(Default)]
struct LabelCodes {
    column: LabelColumn,
    known: HashMap<String, u32>,
}

impl LabelCodes {
    fn extend(&mut self, texts: &StringArray) {
        for text in texts {
            let code = match text {
                None => NONE,
                Some(text) => match self.known.get(text) {
                    Some(code) => *code,
                    None => {
                        let code = self.column.names.len() as u32;
                        self.column.names.push(text.to_owned());
                        self.known.insert(text.to_owned(), code);
                        code
                    }
                },
            };
            self.column.codes.push(code);
        }
    }
}

/// The combinations of several columns of codes as codes, in the order in which they appear.
pub(super) fn combined(columns: &[&[u32]], rows: &[u32]) -> Vec<u32> {
    let mut known: HashMap<Vec<u32>, u32> = HashMap::new();
    rows.iter()
        .map(|row| {
            let key: Vec<u32> = columns.iter().map(|column| column[*row as usize]).collect();
            let next = known.len() as u32;
            *known.entry(key).or_insert(next)
        })
        .collect()
}
