//! The input as columns of numbers, in the order of its key.
//!
//! A value that is missing is NaN (so a NaN of the file counts as missing), a missing arm, unit
//! or cluster is [`NONE`]. Which rows are used for what is decided in `comparison`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float64Type, UInt64Type};
use datafusion::common::ScalarValue;
use datafusion::dataframe::DataFrame;
use datafusion::logical_expr::{Expr, cast, lit, when};
use datafusion::prelude::isnan;
use futures::StreamExt;

use super::super::projection::in_key_order;
use super::args::Args;
use crate::functions::{KeyedHash, RowId, call};
use crate::id::ID;
use crate::operator::StepError;
use crate::session::column;

/// The code of a row without an arm, unit or cluster.
pub(super) const NONE: u32 = u32::MAX;

/// Texts as codes, in the order in which they appear.
#[derive(Default)]
pub(super) struct LabelCodes {
    names: Vec<String>,
    known: HashMap<String, u32>,
    of_rows: Vec<u32>,
}

impl LabelCodes {
    fn push(&mut self, name: Option<&str>) {
        let code = match name {
            None => NONE,
            Some(name) => match self.known.get(name) {
                Some(code) => *code,
                None => {
                    let code = self.names.len() as u32;
                    self.names.push(name.to_string());
                    self.known.insert(name.to_string(), code);
                    code
                }
            },
        };
        self.of_rows.push(code);
    }

    /// The code of each row.
    pub(super) fn rows(&self) -> &[u32] {
        &self.of_rows
    }

    /// The names, by code.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// The code of a name.
    pub(super) fn code(&self, name: &str) -> Option<u32> {
        self.known.get(name).copied()
    }
}

/// The values of a column in some rows.
pub(super) fn gather<T: Copy>(column: &[T], rows: &[u32]) -> Vec<T> {
    rows.iter().map(|row| column[*row as usize]).collect()
}

/// The columns that an analysis reads.
#[derive(Default)]
pub(super) struct AnalysisFrame {
    /// The arm of each row.
    pub(super) arms: LabelCodes,
    /// The unit of each row, if there are units.
    pub(super) units: Option<LabelCodes>,
    /// The cluster of each row, if clusters are given.
    pub(super) clusters: Option<LabelCodes>,
    /// Columns of numbers, by name.
    pub(super) numbers: BTreeMap<String, Vec<f64>>,
    /// Those of them that are integers of 64 bits in the input, not all of which are doubles.
    pub(super) integers: BTreeSet<String>,
    /// A random number of each row.
    pub(super) draws: Vec<u64>,
    /// A random number of the unit of each row.
    pub(super) unit_draws: Option<Vec<u64>>,
}

impl AnalysisFrame {
    /// How many rows there are.
    pub(super) fn len(&self) -> usize {
        self.draws.len()
    }
}

/// Reads `numbers`, the treatment, unit and cluster of `input`, in the order of `key`.
pub(super) async fn read(
    input: DataFrame,
    key: &[String],
    args: &Args,
    numbers: &[String],
) -> Result<AnalysisFrame, StepError> {
    let types = input.schema().clone();
    // A label that is NaN is missing, as pandas writes it; the two zeros are one label.
    let text = |name: &str| {
        let label = cast(column(name), DataType::Utf8);
        match types.field_with_unqualified_name(name) {
            Ok(field) if field.data_type().is_floating() => {
                when(isnan(column(name)), lit(ScalarValue::Utf8(None)))
                    .when(label.clone().eq(lit("-0.0")), lit("0.0"))
                    .otherwise(label)
            }
            _ => Ok(label),
        }
    };
    let hash = |purpose: &str, id: Expr| call::<KeyedHash>(vec![lit(args.seed), lit(purpose), id]);
    let id = match key {
        [only] if only == ID => text(ID)?,
        _ => call::<RowId>(key.iter().map(|name| column(name)).collect()),
    };
    let mut columns = vec![hash("regress", id).alias("draw"), text(&args.treatment)?.alias("arm")];
    if let Some(unit) = &args.unit {
        columns.push(text(unit)?.alias("unit"));
        columns.push(hash("regress/unit", text(unit)?).alias("unit_draw"));
    }
    if let Some(cluster) = &args.cluster {
        columns.push(text(cluster)?.alias("cluster"));
    }
    for (at, name) in numbers.iter().enumerate() {
        columns.push(cast(column(name), DataType::Float64).alias(format!("n{at}")));
    }
    let mut stream = in_key_order(input, key, columns)?.execute_stream().await?;
    let mut frame = AnalysisFrame {
        units: args.unit.as_ref().map(|_| LabelCodes::default()),
        unit_draws: args.unit.as_ref().map(|_| Vec::new()),
        clusters: args.cluster.as_ref().map(|_| LabelCodes::default()),
        ..AnalysisFrame::default()
    };
    let mut values: Vec<Vec<f64>> = vec![Vec::new(); numbers.len()];
    while let Some(batch) = stream.next().await {
        frame.push(&batch?, &mut values)?;
    }
    let long = |name: &&String| {
        types
            .field_with_unqualified_name(name)
            .is_ok_and(|field| matches!(field.data_type(), DataType::Int64 | DataType::UInt64))
    };
    frame.integers = numbers.iter().filter(long).cloned().collect();
    frame.numbers = numbers.iter().cloned().zip(values).collect();
    if frame.len() > NONE as usize / 2 {
        return Err(StepError::new("`regress` takes at most 2³¹ rows"));
    }
    Ok(frame)
}

impl AnalysisFrame {
    fn push(&mut self, batch: &RecordBatch, values: &mut [Vec<f64>]) -> Result<(), StepError> {
        let mut columns = batch.columns().iter();
        let mut next = || columns.next().ok_or_else(|| StepError::new("a defect: no column"));
        self.draws.extend(next()?.as_primitive::<UInt64Type>().values());
        self.push_codes(next()?.as_string::<i32>(), |frame| Some(&mut frame.arms));
        if self.units.is_some() {
            self.push_codes(next()?.as_string::<i32>(), |frame| frame.units.as_mut());
            let draws = next()?;
            let draws = draws.as_primitive::<UInt64Type>().iter().map(|draw| draw.unwrap_or(0));
            self.unit_draws.get_or_insert_default().extend(draws);
        }
        if self.clusters.is_some() {
            self.push_codes(next()?.as_string::<i32>(), |frame| frame.clusters.as_mut());
        }
        for column in values {
            let array = next()?.as_primitive::<Float64Type>();
            if array.null_count() == 0 {
                column.extend_from_slice(array.values());
            } else {
                column.extend(array.iter().map(|value| value.unwrap_or(f64::NAN)));
            }
        }
        Ok(())
    }

    fn push_codes(
        &mut self,
        texts: &arrow::array::StringArray,
        place: impl Fn(&mut Self) -> Option<&mut LabelCodes>,
    ) {
        if let Some(codes) = place(self) {
            texts.iter().for_each(|text| codes.push(text));
        }
    }
}
