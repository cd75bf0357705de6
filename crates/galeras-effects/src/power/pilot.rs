//! The table of a pilot as columns of numbers, in the order of its key.

use std::collections::HashMap;

use arrow::array::{ArrayRef, AsArray};
use arrow::compute::cast as cast_array;
use arrow::datatypes::{DataType, Float64Type};
use datafusion::dataframe::DataFrame;
use datafusion::logical_expr::cast;
use futures::StreamExt;

use galeras_operator::StepError;
use galeras_sql::projection::in_key_order;
use galeras_sql::session::column;

/// The columns of a pilot.
#[derive(Clone, Debug)]
pub(super) struct PilotColumns {
    pub(super) treatment: String,
    pub(super) control: String,
    pub(super) unit: Option<String>,
    pub(super) cluster: Option<String>,
    pub(super) outcomes: Vec<String>,
}

/// Texts as codes, in the order in which they appear; `None` is a missing one.
#[derive(Default)]
pub(super) struct PilotLabels {
    pub(super) names: Vec<String>,
    known: HashMap<String, u32>,
    pub(super) rows: Vec<Option<u32>>,
}

impl PilotLabels {
    fn push(&mut self, texts: &ArrayRef) -> Result<(), StepError> {
        let texts = cast_array(texts, &DataType::Utf8)?;
        for text in texts.as_string::<i32>() {
            let code = text.map(|text| match self.known.get(text) {
                Some(code) => *code,
                None => {
                    let code = self.names.len() as u32;
                    self.names.push(text.to_owned());
                    self.known.insert(text.to_owned(), code);
                    code
                }
            });
            self.rows.push(code);
        }
        Ok(())
    }
}

/// The rows of a pilot.
#[derive(Default)]
pub(super) struct PilotFrame {
    pub(super) arms: PilotLabels,
    pub(super) units: Option<PilotLabels>,
    pub(super) clusters: Option<PilotLabels>,
    /// The outcomes; NaN is a missing value.
    pub(super) outcomes: Vec<Vec<f64>>,
    /// Which of them are integers of 64 bits in the input, not all of which are doubles.
    pub(super) whole: Vec<bool>,
}

/// Reads the columns of a pilot, in the order of `key`.
pub(super) async fn read_pilot(
    input: DataFrame,
    key: &[String],
    pilot: &PilotColumns,
) -> Result<PilotFrame, StepError> {
    let text = |name: &str| cast(column(name), DataType::Utf8);
    let mut columns = vec![text(&pilot.treatment).alias("arm")];
    columns.extend(pilot.unit.iter().map(|name| text(name).alias("unit")));
    columns.extend(pilot.cluster.iter().map(|name| text(name).alias("cluster")));
    for (at, name) in pilot.outcomes.iter().enumerate() {
        columns.push(cast(column(name), DataType::Float64).alias(format!("n{at}")));
    }
    let types = input.schema();
    let whole = pilot.outcomes.iter().map(|name| {
        let field = types.field_with_unqualified_name(name);
        field.is_ok_and(|field| matches!(field.data_type(), DataType::Int64 | DataType::UInt64))
    });
    let mut frame = PilotFrame {
        whole: whole.collect(),
        units: pilot.unit.as_ref().map(|_| PilotLabels::default()),
        clusters: pilot.cluster.as_ref().map(|_| PilotLabels::default()),
        outcomes: vec![Vec::new(); pilot.outcomes.len()],
        ..PilotFrame::default()
    };
    let mut stream = in_key_order(input, key, columns)?.execute_stream().await?;
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        let mut columns = batch.columns().iter();
        let mut next = || columns.next().ok_or_else(|| StepError::new("a defect: no column"));
        frame.arms.push(next()?)?;
        for labels in [&mut frame.units, &mut frame.clusters].into_iter().flatten() {
            labels.push(next()?)?;
        }
        for outcome in &mut frame.outcomes {
            let values = next()?.as_primitive::<Float64Type>();
            outcome.extend(values.iter().map(|value| value.unwrap_or(f64::NAN)));
        }
    }
    if frame.arms.rows.len() > u32::MAX as usize / 2 {
        return Err(StepError::new("`power` takes at most 2³¹ rows"));
    }
    Ok(frame)
}
