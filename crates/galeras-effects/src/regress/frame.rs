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

use super::args::Args;
use galeras_base::id::ID;
use galeras_operator::StepError;
use galeras_operator::columns::is_text;
use galeras_sql::functions::{KeyedHash, RowId, call};
use galeras_sql::group_columns::as_text;
use galeras_sql::projection::in_key_order;
use galeras_sql::session::column;

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

    /// The codes of these rows: what is in none of them has no code.
    fn of_rows(&self, rows: &[u32]) -> Self {
        let mut codes = Self::default();
        for row in rows {
            let name = self.names.get(self.of_rows[*row as usize] as usize);
            codes.push(name.map(String::as_str));
        }
        codes
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
    /// The group of each row, if there are groups.
    groups: Option<LabelCodes>,
    /// Columns of numbers, by name; of a column of text the codes of its levels.
    pub(super) numbers: BTreeMap<String, Vec<f64>>,
    /// The levels of each column of text, by code.
    pub(super) levels: BTreeMap<String, Vec<String>>,
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

    /// A frame for the rows of each of these groups.
    pub(super) fn split(&self, groups: &[String]) -> Vec<Self> {
        let Some(of_rows) = &self.groups else { return Vec::new() };
        let mut rows: Vec<Vec<u32>> = vec![Vec::new(); of_rows.names().len()];
        for (row, code) in (0u32..).zip(of_rows.rows()) {
            if let Some(group) = rows.get_mut(*code as usize) {
                group.push(row);
            }
        }
        let rows_of =
            |id: &String| of_rows.code(id).map_or(&[][..], |code| rows[code as usize].as_slice());
        groups.iter().map(|id| self.of_rows(rows_of(id))).collect()
    }

    /// The frame of these rows.
    fn of_rows(&self, rows: &[u32]) -> Self {
        let numbers = self.numbers.iter();
        Self {
            arms: self.arms.of_rows(rows),
            units: self.units.as_ref().map(|codes| codes.of_rows(rows)),
            clusters: self.clusters.as_ref().map(|codes| codes.of_rows(rows)),
            groups: None,
            numbers: numbers.map(|(name, column)| (name.clone(), gather(column, rows))).collect(),
            levels: self.levels.clone(),
            integers: self.integers.clone(),
            draws: gather(&self.draws, rows),
            unit_draws: self.unit_draws.as_ref().map(|draws| gather(draws, rows)),
        }
    }
}

/// Reads `numbers`, the treatment, unit and cluster of `input`, and what `group` a row belongs to, in
/// the order of `key`.
pub(super) async fn read(
    input: DataFrame,
    key: &[String],
    args: &Args,
    numbers: &[String],
    group: Expr,
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
    let of_text = |name: &str| {
        let field = types.field_with_unqualified_name(name);
        field.is_ok_and(|field| is_text(field.data_type())) || args.absorb.iter().any(|n| n == name)
    };
    let mut levels: Vec<Option<LabelCodes>> = Vec::new();
    for (at, name) in numbers.iter().enumerate() {
        levels.push(of_text(name).then(LabelCodes::default));
        let value = match levels[at] {
            Some(_) => text(name)?,
            None => cast(column(name), DataType::Float64),
        };
        columns.push(value.alias(format!("n{at}")));
    }
    if !args.by.is_empty() {
        columns.push(as_text(group).alias("group"));
    }
    let mut stream = in_key_order(input, key, columns)?.execute_stream().await?;
    let mut frame = AnalysisFrame {
        units: args.unit.as_ref().map(|_| LabelCodes::default()),
        unit_draws: args.unit.as_ref().map(|_| Vec::new()),
        clusters: args.cluster.as_ref().map(|_| LabelCodes::default()),
        groups: (!args.by.is_empty()).then(LabelCodes::default),
        ..AnalysisFrame::default()
    };
    let mut values: Vec<Vec<f64>> = vec![Vec::new(); numbers.len()];
    while let Some(batch) = stream.next().await {
        frame.push(&batch?, &mut values, &mut levels)?;
    }
    for (name, codes) in numbers.iter().zip(levels) {
        frame.levels.extend(codes.map(|codes| (name.clone(), codes.names)));
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
    fn push(
        &mut self,
        batch: &RecordBatch,
        values: &mut [Vec<f64>],
        levels: &mut [Option<LabelCodes>],
    ) -> Result<(), StepError> {
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
        for (column, levels) in values.iter_mut().zip(levels) {
            if let Some(codes) = levels {
                let texts = next()?.as_string::<i32>();
                texts.iter().for_each(|text| codes.push(text));
                let new = codes.rows()[column.len()..].iter();
                column.extend(new.map(|code| match *code {
                    NONE => f64::NAN,
                    code => f64::from(code),
                }));
                continue;
            }
            let array = next()?.as_primitive::<Float64Type>();
            if array.null_count() == 0 {
                column.extend_from_slice(array.values());
            } else {
                column.extend(array.iter().map(|value| value.unwrap_or(f64::NAN)));
            }
        }
        if self.groups.is_some() {
            self.push_codes(next()?.as_string::<i32>(), |frame| frame.groups.as_mut());
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
