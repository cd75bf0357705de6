//! References to columns in refusals, checks of columns and levels, and the treatment as a column.

use std::fmt;

use crate::refusal::Refusal;

/// A column, by the argument that held it and its position there, so that a caller can replace it
/// by its name for the column.
///
/// `Display` gives the name of the argument, with `#` and the position if the argument is a list.
/// Users see their names through [`Refusal::describe`](crate::Refusal::describe).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ColumnRef {
    /// The treatment as a column of zeros and ones.
    Treatment,
    /// The outcome.
    Outcome,
    /// The outcomes of the treated member of each pair.
    TreatedOutcome,
    /// The outcomes of the control member of each pair.
    ControlOutcome,
    /// The differences within pairs, treated minus control.
    Differences,
    /// The endogenous column, which has instruments.
    Endogenous,
    /// The column at this position, from 0, of `covariates`, `columns`, `exogenous` or `given`.
    Covariate(usize),
    /// The column at this position, from 0, of `instruments`.
    Instrument(usize),
    /// The product of the treatment and the covariate at this position.
    Interaction(usize),
    /// The modifier of an effect.
    Modifier,
    /// The modifier within one of the arms.
    ModifierInArm,
    /// The propensity score.
    Score,
    /// The grouping factor of the random term at this position, from 0, of `random`.
    Grouping(usize),
    /// The slope at the second position of the random term at the first.
    Slope(usize, usize),
    /// The first column of a correlation.
    X,
    /// The second column of a correlation.
    Y,
}

impl fmt::Display for ColumnRef {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Treatment => "treatment",
            Self::Outcome => "outcome",
            Self::TreatedOutcome => "treated",
            Self::ControlOutcome => "control",
            Self::Differences => "differences",
            Self::Endogenous => "endogenous",
            Self::Covariate(position) => return write!(formatter, "#{position}"),
            Self::Instrument(position) => return write!(formatter, "instrument #{position}"),
            Self::Interaction(position) => return write!(formatter, "treatment x #{position}"),
            Self::Modifier => "modifier",
            Self::ModifierInArm => "modifier in one arm",
            Self::Score => "score",
            Self::Grouping(position) => return write!(formatter, "grouping #{position}"),
            Self::Slope(term, position) => {
                return write!(formatter, "slope #{position} of grouping #{term}");
            }
            Self::X => "x",
            Self::Y => "y",
        };
        formatter.pad(name)
    }
}

pub(super) fn indicator(treated: &[bool]) -> Vec<f64> {
    treated.iter().map(|treated| f64::from(u8::from(*treated))).collect()
}

pub(super) fn check_level(alpha: f64) -> Result<(), Refusal> {
    if alpha > 0.0 && alpha < 1.0 {
        Ok(())
    } else {
        Err(Refusal::Other(format!("alpha is {alpha}: it must lie between 0 and 1")))
    }
}

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
