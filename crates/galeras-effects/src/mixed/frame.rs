//! The input of `mixed` as columns, in the order of its key.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use datafusion::dataframe::DataFrame;

pub(super) use crate::columns::{LabelCodes, NONE};
use crate::columns::{integers, label, read_columns};
use galeras_operator::StepError;

#[derive(Debug, Default)]
pub(super) struct MixedFrame {
    pub(super) rows: usize,
    /// Numbers by column; NaN where there is none.
    pub(super) numbers: BTreeMap<String, Vec<f64>>,
    /// Those of them that are integers of 64 bits in the input, not all of which are doubles.
    pub(super) integers: BTreeSet<String>,
    pub(super) labels: BTreeMap<String, LabelCodes>,
}

/// Reads the columns `numbers` and `labels` of `input`, in the order of `key`.
pub(super) async fn read(
    input: DataFrame,
    key: &[String],
    numbers: &[String],
    labels: &[String],
) -> Result<MixedFrame, StepError> {
    let texts = labels.iter().map(|name| label(input.schema(), name)).collect::<Result<_, _>>()?;
    let integers = integers(input.schema(), numbers);
    let read = read_columns(input, key, Vec::new(), texts, numbers).await?;
    if read.rows >= NONE as usize {
        return Err(StepError::new("`mixed` takes fewer than 2³² rows"));
    }
    let labels = labels.iter().cloned().zip(read.labels).collect();
    Ok(MixedFrame { rows: read.rows, numbers: read.numbers, integers, labels })
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
