//! References to columns in refusals, checks of columns and levels, arms and groups of rows.

use std::fmt;

use crate::refusal::{Refusal, at_least, require};

/// A column in a [`Refusal`], by the argument that held it and its position there. `Display` gives
/// the name of the argument, with `#` and the position if the argument is a list.
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

/// The values of the rows of one arm.
pub(super) fn of_arm(arm: bool, treated: &[bool], values: &[f64]) -> Vec<f64> {
    let rows = treated.iter().zip(values).filter(|(treated, _)| **treated == arm);
    rows.map(|(_, value)| *value).collect()
}

/// The numbers of treated and control rows, which `what` names; refuses fewer than `needed`.
pub(super) fn arm_sizes(
    treated: &[bool],
    what: [&'static str; 2],
    needed: usize,
) -> Result<[usize; 2], Refusal> {
    let count = treated.iter().filter(|treated| **treated).count();
    let sizes = [count, treated.len() - count];
    what.into_iter().zip(sizes).try_for_each(|(what, found)| at_least(what, found, needed))?;
    Ok(sizes)
}

pub(super) const ROWS: [&str; 2] = ["treated rows", "control rows"];
pub(super) const UNITS: [&str; 2] = ["treated units", "control units"];

/// One more than the largest code: the number of groups if every code occurs.
pub(super) fn code_count(codes: &[u32]) -> usize {
    codes.iter().max().map_or(0, |last| *last as usize + 1)
}

/// The number of different codes.
pub(super) fn distinct(codes: &[u32]) -> usize {
    let mut sorted = codes.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted.len()
}

/// The sums of `parts` by cluster, or each part without clusters.
pub(super) fn cluster_sums(parts: &[f64], clusters: Option<&[u32]>) -> Vec<f64> {
    let Some(codes) = clusters else { return parts.to_vec() };
    let mut sums = vec![0.0; code_count(codes)];
    codes.iter().zip(parts).for_each(|(code, part)| sums[*code as usize] += part);
    sums
}

pub(super) fn check_level(alpha: f64) -> Result<(), Refusal> {
    require(alpha > 0.0 && alpha < 1.0, format!("alpha is {alpha}: it must lie between 0 and 1"))
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
