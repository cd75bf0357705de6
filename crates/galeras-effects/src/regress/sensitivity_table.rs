//! The rows of the port `sensitivity`, and what collects those of one comparison. Which measures
//! there are is in `sensitivity`, `evalue`, `robustness`, `instruments` and `attrition`.

use super::comparison::{Contrast, RowSet};
use super::shared_columns::{self as columns, RowStatus};
use galeras_operator::small_table::{TableColumn, TableRow};

/// Why nothing is computed that takes units as independent.
pub(super) const CLUSTERED: &str =
    "units of a cluster depend on each other, and it would take them as independent";

/// A measure of how sensitive an estimate is.
pub(super) struct SensitivityRow {
    outcome: String,
    contrast: Contrast,
    analysis: &'static str,
    measure: String,
    value: Option<f64>,
    status: RowStatus,
    note: String,
}

impl TableRow for SensitivityRow {
    const COLUMNS: &'static [TableColumn<Self>] = &[
        columns::outcome(|row| &row.outcome),
        columns::treatment(|row| &row.contrast.treatment),
        columns::control(|row| &row.contrast.control),
        TableColumn::text(
            "analysis",
            "evalue, robustness, robustness_ols, instruments, rosenbaum, power, location, \
             attrition or omnibus",
            |row| row.analysis,
        ),
        TableColumn::text("measure", "what the value is", |row| &row.measure),
        columns::status(|row| row.status.name()),
        columns::reason(|row| row.status.reason()),
        TableColumn::number("value", "the value", |row| row.value),
        columns::note(|row| &row.note),
    ];
}

impl SensitivityRow {
    /// The row of a measure; a refused one gets a note of its own.
    pub(super) fn new(
        outcome: &str,
        contrast: Contrast,
        analysis: &'static str,
        measure: &str,
        value: Result<f64, String>,
        note: String,
    ) -> Self {
        Self {
            outcome: outcome.into(),
            contrast,
            analysis,
            measure: measure.into(),
            status: RowStatus::of(&value),
            note: match &value {
                Ok(_) => note,
                Err(reason) => format!("Not computed: {reason}."),
            },
            value: value.ok(),
        }
    }
}

/// Collects the rows of one comparison.
pub(super) struct SensitivityMeasures<'a> {
    pub(super) set: &'a RowSet,
    pub(super) outcome: &'a str,
    pub(super) rows: Vec<SensitivityRow>,
}

impl SensitivityMeasures<'_> {
    pub(super) fn add(
        &mut self,
        analysis: &'static str,
        measure: &str,
        value: Result<f64, String>,
        note: String,
    ) {
        let contrast = self.set.contrast.clone();
        let row = SensitivityRow::new(self.outcome, contrast, analysis, measure, value, note);
        self.rows.push(row);
    }

    pub(super) fn refused(&mut self, analysis: &'static str, measure: &str, reason: impl ToString) {
        self.add(analysis, measure, Err(reason.to_string()), String::new());
    }
}
