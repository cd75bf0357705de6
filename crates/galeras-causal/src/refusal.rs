//! Reasons for withholding a number, which estimators return instead of a wrong one.

use std::{error, fmt};

use super::column::ColumnRef;

/// The reason for not giving an estimate, as a text for a paper: [`Refusal::describe`] uses the
/// caller's names of columns, `Display` those of arguments.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// Every unit has the same propensity score, so the score cannot find similar units.
    ConstantPropensity {
        /// The score that all units have.
        score: f64,
    },
    /// A column is a linear combination of earlier ones.
    Collinear {
        /// The column.
        column: ColumnRef,
    },
    /// A column has one value only.
    Constant(ColumnRef),
    /// A covariate has values that are not finite, or whose squares overflow or vanish.
    OutOfRange {
        /// The covariate.
        column: ColumnRef,
    },
    /// Another problem with one column.
    UnusableColumn {
        /// The column.
        column: ColumnRef,
        /// The problem, as a predicate of the column: `has 3 rows in place of 4`.
        problem: String,
    },
    /// The covariates predict the treatment of some rows without error, or nearly so, with details.
    NoOverlap(String),
    /// The covariates predict the treatment of every row: any adjusted comparison extrapolates.
    Separated,
    /// There are too few rows, units, clusters or strata.
    TooFew {
        /// The counted things, in the plural.
        what: &'static str,
        /// The number found.
        found: usize,
        /// The number needed.
        needed: usize,
    },
    /// A row's leverage is 1, so its residual is 0 for any outcome.
    Leverage {
        /// The position of the row, from 0.
        row: usize,
        /// Its leverage, the diagonal element of the hat matrix.
        leverage: f64,
    },
    /// Another reason, as a sentence.
    Other(String),
}

impl Refusal {
    /// The text, with column names by `name`; without one, a column has the name of its argument,
    /// and an [`Interaction`](ColumnRef::Interaction) that of its covariate.
    pub fn describe<'n>(&self, name: impl Fn(ColumnRef) -> Option<&'n str>) -> String {
        let named = |column: &ColumnRef| match (name(*column), column) {
            (Some(name), _) => name.to_owned(),
            (None, ColumnRef::Interaction(at)) => name(ColumnRef::Covariate(*at))
                .map_or_else(|| column.to_string(), |name| format!("treatment x {name}")),
            (None, _) => column.to_string(),
        };
        match self {
            Self::ConstantPropensity { score } => format!(
                "every propensity score is {score:.4}: the confounders do not predict the \
                 treatment, so the score cannot tell which units are alike"
            ),
            Self::Collinear { column } => {
                format!("`{}` is a linear combination of the other covariates", named(column))
            }
            Self::Constant(column) => format!("`{}` has one value only", named(column)),
            Self::OutOfRange { column } => format!(
                "covariate `{}` has values that are not finite, or too large or too small to be \
                 squared",
                named(column)
            ),
            Self::UnusableColumn { column, problem } => format!("`{}` {problem}", named(column)),
            Self::NoOverlap(how) => format!("no overlap: {how}"),
            Self::Separated => "no overlap: the covariates tell all treated units from all \
                                controls without error (complete separation), so that no unit has \
                                its like in the other arm"
                .to_owned(),
            Self::TooFew { what, found, needed } => {
                format!("too few {what}: {found}, at least {needed} are needed")
            }
            Self::Leverage { .. } => "a row has a leverage of 1: no other row has similar \
                                      covariates, so its residual is zero for any outcome, and HC2 \
                                      and HC3 are not defined (HC0, HC1 and classic are)"
                .to_owned(),
            Self::Other(text) => text.clone(),
        }
    }

    /// Replaces the column, for estimators that pass columns on at other positions.
    pub(super) fn map_column(self, other: impl Fn(ColumnRef) -> ColumnRef) -> Self {
        match self {
            Self::Collinear { column } => Self::Collinear { column: other(column) },
            Self::Constant(column) => Self::Constant(other(column)),
            Self::OutOfRange { column } => Self::OutOfRange { column: other(column) },
            Self::UnusableColumn { column, problem } => {
                Self::UnusableColumn { column: other(column), problem }
            }
            refusal => refusal,
        }
    }

    /// As [`Refusal::map_column`], for covariates only, by their position.
    pub(super) fn map_covariate(self, other: impl Fn(usize) -> ColumnRef) -> Self {
        self.map_column(|column| match column {
            ColumnRef::Covariate(position) => other(position),
            column => column,
        })
    }

    /// Renumbers covariates of a design whose first column is the treatment.
    pub(super) fn after_treatment(self) -> Self {
        self.map_covariate(|position| match position.checked_sub(1) {
            None => ColumnRef::Treatment,
            Some(covariate) => ColumnRef::Covariate(covariate),
        })
    }
}

/// Refuses fewer than `needed` of something.
pub(super) fn at_least(what: &'static str, found: usize, needed: usize) -> Result<(), Refusal> {
    if found < needed { Err(Refusal::TooFew { what, found, needed }) } else { Ok(()) }
}

/// Refuses for another reason unless a condition holds.
pub(super) fn require(holds: bool, reason: impl Into<String>) -> Result<(), Refusal> {
    if holds { Ok(()) } else { Err(Refusal::Other(reason.into())) }
}

/// Refuses a column for a problem, which is a predicate of it, unless a condition holds.
pub(super) fn require_column(
    column: ColumnRef,
    holds: bool,
    problem: impl Into<String>,
) -> Result<(), Refusal> {
    let problem = problem.into();
    if holds { Ok(()) } else { Err(Refusal::UnusableColumn { column, problem }) }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.describe(|_| None))
    }
}

impl error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(refusal: &Refusal) -> String {
        refusal.describe(|column| match column {
            ColumnRef::Covariate(position) => ["size", "age"].get(position).copied(),
            ColumnRef::Endogenous => Some("arm"),
            _ => None,
        })
    }

    #[test]
    fn columns_have_the_names_that_the_caller_gives() {
        let constant = Refusal::Constant(ColumnRef::Covariate(1));
        assert_eq!(named(&constant), "`age` has one value only");
        assert_eq!(constant.to_string(), "`#1` has one value only");
        let column = ColumnRef::Interaction(0);
        assert_eq!(
            named(&Refusal::Collinear { column }),
            "`treatment x size` is a linear combination of the other covariates"
        );
        let problem = "has values beyond 1e290".to_owned();
        let refusal = Refusal::UnusableColumn { column: ColumnRef::Endogenous, problem };
        assert_eq!(named(&refusal), "`arm` has values beyond 1e290");
    }

    #[test]
    fn columns_without_a_name_keep_that_of_their_argument() {
        for (column, expected) in [
            (ColumnRef::Covariate(7), "#7"),
            (ColumnRef::Interaction(7), "treatment x #7"),
            (ColumnRef::Instrument(0), "instrument #0"),
            (ColumnRef::Outcome, "outcome"),
        ] {
            let expected = format!("`{expected}` has one value only");
            assert_eq!(named(&Refusal::Constant(column)), expected);
        }
    }

    #[test]
    fn columns_are_mapped_in_every_refusal_that_has_one() {
        let moved = |refusal: Refusal| refusal.map_covariate(|at| ColumnRef::Instrument(at + 1));
        let (from, to) = (ColumnRef::Covariate(2), ColumnRef::Instrument(3));
        let problem = String::new();
        for (refusal, expected) in [
            (Refusal::Constant(from), Refusal::Constant(to)),
            (Refusal::Collinear { column: from }, Refusal::Collinear { column: to }),
            (Refusal::OutOfRange { column: from }, Refusal::OutOfRange { column: to }),
            (
                Refusal::UnusableColumn { column: from, problem: problem.clone() },
                Refusal::UnusableColumn { column: to, problem },
            ),
            (Refusal::Constant(ColumnRef::X), Refusal::Constant(ColumnRef::X)),
        ] {
            assert_eq!(moved(refusal), expected);
        }
    }
}
