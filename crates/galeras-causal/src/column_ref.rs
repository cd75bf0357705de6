//! Which column of an estimator's arguments a refusal is about: a value, so that a caller can put
//! its own name for the column in the message.

use std::fmt;

/// A column, by the argument that held it and its position there.
///
/// `Display` gives the name of the argument, with `#` and the position where the argument is a
/// list: what a reader of this crate's signatures understands. Users are shown names of their own,
/// through [`Refusal::describe`](crate::Refusal::describe).
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
    /// The differences within pairs, treated less control.
    Differences,
    /// The column that instruments stand in for.
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
    /// Of the random term at the first position the slope at the second.
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
