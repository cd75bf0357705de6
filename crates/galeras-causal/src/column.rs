//! What several statistics do with their input: checks of columns and of levels of significance,
//! and the treatment as a column.

use super::column_ref::ColumnRef;
use super::refusal::Refusal;

/// The treatment as a column of zeros and ones.
pub(super) fn indicator(treated: &[bool]) -> Vec<f64> {
    treated.iter().map(|treated| f64::from(u8::from(*treated))).collect()
}

/// Refuses a level of significance that is not between 0 and 1.
pub(super) fn check_level(alpha: f64) -> Result<(), Refusal> {
    if alpha > 0.0 && alpha < 1.0 {
        Ok(())
    } else {
        Err(Refusal::Other(format!("alpha is {alpha}: it must lie between 0 and 1")))
    }
}

/// Refuses a column of another length than `rows` or with a value that is not finite.
pub(super) fn check_column(values: &[f64], column: ColumnRef, rows: usize) -> Result<(), Refusal> {
    let problem = if values.len() != rows {
        format!("has {} rows in place of {rows}", values.len())
    } else if let Some(row) = values.iter().position(|value| !value.is_finite()) {
        format!("is {} in row {row}: not a finite number", values[row])
    } else {
        return Ok(());
    };
    Err(Refusal::UnusableColumn { column, problem })
}
