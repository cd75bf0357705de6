//! The table of a pilot as columns, in the order of its key.

use std::collections::BTreeSet;

use arrow::datatypes::DataType;
use datafusion::dataframe::DataFrame;
use datafusion::logical_expr::cast;

use crate::columns::{Columns, LabelCodes, NONE, integers, read_columns};
use galeras_operator::StepError;
use galeras_sql::session::column;

#[derive(Clone, Debug)]
pub(super) struct PilotColumns {
    pub(super) treatment: String,
    pub(super) control: String,
    pub(super) unit: Option<String>,
    pub(super) cluster: Option<String>,
    pub(super) outcomes: Vec<String>,
}

pub(super) struct PilotFrame {
    pub(super) arms: LabelCodes,
    pub(super) units: Option<LabelCodes>,
    pub(super) clusters: Option<LabelCodes>,
    pub(super) columns: Columns,
    /// The outcomes that are integers of 64 bits in the input, not all of which are doubles.
    pub(super) integers: BTreeSet<String>,
}

/// Reads the columns of a pilot, in the order of `key`.
pub(super) async fn read_pilot(
    input: DataFrame,
    key: &[String],
    pilot: &PilotColumns,
) -> Result<PilotFrame, StepError> {
    let names = [&pilot.treatment].into_iter().chain(&pilot.unit).chain(&pilot.cluster);
    let labels = names.map(|name| cast(column(name), DataType::Utf8)).collect();
    let integers = integers(input.schema(), &pilot.outcomes);
    let mut columns = read_columns(input, key, Vec::new(), labels, &pilot.outcomes).await?;
    if columns.rows > NONE as usize / 2 {
        return Err(StepError::new("`power` takes at most 2³¹ rows"));
    }
    let mut labels = std::mem::take(&mut columns.labels).into_iter();
    Ok(PilotFrame {
        arms: labels.next().unwrap_or_default(),
        units: pilot.unit.as_ref().and_then(|_| labels.next()),
        clusters: pilot.cluster.as_ref().and_then(|_| labels.next()),
        columns,
        integers,
    })
}
