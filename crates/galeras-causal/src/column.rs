//! Checks of input that several statistics share: columns of finite numbers, levels of
//! significance. Not here: what makes a column unfit for one statistic (constant, collinear).

use super::refusal::Refusal;

/// Refuses a level of significance that is none.
pub(super) fn check_level(alpha: f64) -> Result<(), Refusal> {
    if alpha > 0.0 && alpha < 1.0 {
        Ok(())
    } else {
        Err(Refusal::Other(format!("alpha is {alpha}: it must lie between 0 and 1")))
    }
}

/// Refuses a column of another length than `rows` or with a value that is not finite.
pub(super) fn check_column(column: &[f64], name: &str, rows: usize) -> Result<(), Refusal> {
    if column.len() != rows {
        let found = column.len();
        return Err(Refusal::Other(format!("`{name}` has {found} rows in place of {rows}")));
    }
    match column.iter().position(|value| !value.is_finite()) {
        Some(row) => {
            let value = column[row];
            Err(Refusal::Other(format!("`{name}` is {value} in row {row}: not a finite number")))
        }
        None => Ok(()),
    }
}
