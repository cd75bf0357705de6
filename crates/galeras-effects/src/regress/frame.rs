//! The input as columns of numbers, in the order of its key.
//!
//! A missing value is NaN (so a NaN of the file counts as missing), a missing arm, unit or cluster
//! is [`NONE`]. `comparison` decides which rows are used.

use std::collections::{BTreeMap, BTreeSet};

use datafusion::dataframe::DataFrame;
use datafusion::logical_expr::{Expr, lit};

use super::args::Args;
pub(super) use crate::columns::{LabelCodes, NONE};
use crate::columns::{integers, label, read_columns};
use galeras_base::id::ID;
use galeras_operator::StepError;
use galeras_operator::columns::is_text;
use galeras_sql::functions::{KeyedHash, RowId, call};
use galeras_sql::group_columns::as_text;
use galeras_sql::session::column;

/// The values of a column in some rows.
pub(super) fn gather<T: Copy>(column: &[T], rows: &[u32]) -> Vec<T> {
    rows.iter().map(|row| column[*row as usize]).collect()
}

/// The columns that an analysis reads.
#[derive(Default)]
pub(super) struct AnalysisFrame {
    pub(super) arms: LabelCodes,
    pub(super) units: Option<LabelCodes>,
    pub(super) clusters: Option<LabelCodes>,
    groups: Option<LabelCodes>,
    /// Columns of numbers, by name; of a column of text the codes of its levels.
    pub(super) numbers: BTreeMap<String, Vec<f64>>,
    /// The levels of each column of text, by code.
    pub(super) levels: BTreeMap<String, Vec<String>>,
    /// Those of them that are integers of 64 bits in the input, not all of which are doubles.
    pub(super) integers: BTreeSet<String>,
    /// A random number of each row.
    pub(super) draws: Vec<u64>,
    pub(super) unit_draws: Option<Vec<u64>>,
}

impl AnalysisFrame {
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

/// Reads `numbers`, the treatment, unit, cluster and `group` of `input`, in the order of `key`.
pub(super) async fn read(
    input: DataFrame,
    key: &[String],
    args: &Args,
    numbers: &[String],
    group: Expr,
) -> Result<AnalysisFrame, StepError> {
    let types = input.schema().clone();
    let hash = |purpose: &str, id: Expr| call::<KeyedHash>(vec![lit(args.seed), lit(purpose), id]);
    let id = match key {
        [only] if only == ID => label(&types, ID)?,
        _ => call::<RowId>(key.iter().map(|name| column(name)).collect()),
    };
    let mut hashes = vec![hash("regress", id)];
    let mut labels = vec![label(&types, &args.treatment)?];
    if let Some(unit) = &args.unit {
        hashes.push(hash("regress/unit", label(&types, unit)?));
        labels.push(label(&types, unit)?);
    }
    if let Some(cluster) = &args.cluster {
        labels.push(label(&types, cluster)?);
    }
    if !args.by.is_empty() {
        labels.push(as_text(group));
    }
    let has_levels = |name: &&String| {
        let field = types.field_with_unqualified_name(name);
        field.is_ok_and(|field| is_text(field.data_type())) || args.absorb.contains(name)
    };
    let (texts, plain): (Vec<String>, Vec<String>) =
        numbers.iter().cloned().partition(|name| has_levels(&name));
    for name in &texts {
        labels.push(label(&types, name)?);
    }
    let read = read_columns(input, key, hashes, labels, &plain).await?;
    if read.rows > NONE as usize / 2 {
        return Err(StepError::new("`regress` takes at most 2³¹ rows"));
    }
    let (mut hashes, mut labels) = (read.hashes.into_iter(), read.labels.into_iter());
    let mut frame = AnalysisFrame {
        draws: hashes.next().unwrap_or_default(),
        unit_draws: hashes.next(),
        arms: labels.next().unwrap_or_default(),
        units: args.unit.as_ref().and_then(|_| labels.next()),
        clusters: args.cluster.as_ref().and_then(|_| labels.next()),
        groups: args.by.first().and_then(|_| labels.next()),
        numbers: read.numbers,
        levels: BTreeMap::new(),
        integers: integers(&types, numbers),
    };
    for (name, codes) in texts.into_iter().zip(labels) {
        frame.numbers.insert(name.clone(), codes.numbers());
        frame.levels.insert(name, codes.names().to_vec());
    }
    Ok(frame)
}
