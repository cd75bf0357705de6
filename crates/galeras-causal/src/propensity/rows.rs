//! The checks that all estimators share, and the step from influence to an [`Estimate`].

use crate::{ColumnRef, Estimate, Refusal};

/// A standard error below this share of the largest outcome is rounding, not uncertainty.
const ROUNDING: f64 = 1e-14;

/// The rows that an estimator works on, checked.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub(super) treated: &'a [bool],
    pub(super) outcome: &'a [f64],
    pub(super) clusters: Option<&'a [u32]>,
}

impl<'a> Rows<'a> {
    /// Checks lengths, values and cluster codes.
    ///
    /// # Errors
    /// Lengths that differ, an empty arm, an outcome that is not finite, cluster codes that are
    /// not dense, fewer than two clusters.
    pub(super) fn new(
        treated: &'a [bool],
        outcome: &'a [f64],
        clusters: Option<&'a [u32]>,
    ) -> Result<Self, Refusal> {
        let n = treated.len();
        let rows = Self { treated, outcome, clusters };
        arms(treated)?;
        same_length("outcomes", outcome.len(), n)?;
        finite(ColumnRef::Outcome, outcome)?;
        if let Some(codes) = clusters {
            same_length("cluster codes", codes.len(), n)?;
            let groups = rows.groups().unwrap_or_default();
            if groups > n {
                return Err(Refusal::Other("cluster codes are not dense".into()));
            }
            if groups < 2 {
                return Err(Refusal::TooFew { what: "clusters", found: groups, needed: 2 });
            }
        }
        Ok(rows)
    }

    /// An estimate from the contribution of each row to its error: normal, or with G clusters
    /// Student's t with G - 1 degrees of freedom.
    ///
    /// # Errors
    /// As [`estimate`].
    pub(super) fn estimate(&self, value: f64, influence: &[f64]) -> Result<Estimate, Refusal> {
        let normal = estimate(value, self.variance(influence), self.outcome)?;
        // As many contributions are independent as there are clusters.
        let degrees = self.groups().map_or(f64::INFINITY, |groups| groups as f64 - 1.0);
        Ok(Estimate { degrees, ..normal })
    }

    fn groups(&self) -> Option<usize> {
        let codes = self.clusters?;
        Some(codes.iter().max().map_or(0, |code| *code as usize + 1))
    }

    /// The sum of squared contributions, summed within each cluster first.
    pub(super) fn variance(&self, influence: &[f64]) -> f64 {
        match self.clusters {
            None => influence.iter().map(|value| value * value).sum(),
            Some(codes) => {
                let mut sums = vec![0.0; self.groups().unwrap_or_default()];
                for (code, value) in codes.iter().zip(influence) {
                    sums[*code as usize] += value;
                }
                sums.iter().map(|sum| sum * sum).sum()
            }
        }
    }
}

/// The number of treated and of control rows.
///
/// # Errors
/// One arm is empty.
pub(super) fn arms(treated: &[bool]) -> Result<(usize, usize), Refusal> {
    let count = treated.iter().filter(|t| **t).count();
    let rest = treated.len() - count;
    if count == 0 {
        return Err(Refusal::TooFew { what: "treated units", found: 0, needed: 1 });
    }
    if rest == 0 {
        return Err(Refusal::TooFew { what: "control units", found: 0, needed: 1 });
    }
    Ok((count, rest))
}

pub(super) fn same_length(what: &str, length: usize, rows: usize) -> Result<(), Refusal> {
    if length == rows {
        Ok(())
    } else {
        Err(Refusal::Other(format!("there are {length} {what} for {rows} rows")))
    }
}

pub(super) fn finite(column: ColumnRef, values: &[f64]) -> Result<(), Refusal> {
    if values.iter().all(|value| value.is_finite()) {
        Ok(())
    } else {
        let problem = "has values that are not finite".to_owned();
        Err(Refusal::UnusableColumn { column, problem })
    }
}

/// Some of the scores, ascending, with their rows; rows of equal score keep their order.
pub(super) fn ascending(scores: &[f64], chosen: impl Fn(usize) -> bool) -> Vec<(f64, usize)> {
    // Adding zero turns a negative zero into a positive one, with which it ties.
    let chosen = scores.iter().enumerate().filter(|(row, _)| chosen(*row));
    let mut order: Vec<(f64, usize)> = chosen.map(|(row, score)| (score + 0.0, row)).collect();
    order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    order
}

pub(super) fn bounds(clip: (f64, f64)) -> Result<(), Refusal> {
    if 0.0 <= clip.0 && clip.0 < clip.1 && clip.1 <= 1.0 {
        Ok(())
    } else {
        Err(Refusal::Other(format!("scores cannot be clipped to [{}, {}]", clip.0, clip.1)))
    }
}

/// A normal estimate.
///
/// # Errors
/// A value or a variance that is not finite, or a standard error that is only rounding: then the
/// outcome is explained without error and an interval would be meaningless.
pub(super) fn estimate(value: f64, variance: f64, outcome: &[f64]) -> Result<Estimate, Refusal> {
    let standard_error = variance.sqrt();
    if !(value.is_finite() && standard_error.is_finite()) {
        return Err(Refusal::Other(
            "the estimate or its standard error is not a finite number: a score of 0 or 1, or \
             values that are too large"
                .into(),
        ));
    }
    let size = outcome.iter().fold(0.0_f64, |size, y| size.max(y.abs()));
    if standard_error <= ROUNDING * size || standard_error <= 0.0 {
        return Err(Refusal::Other(
            "the standard error is zero: the outcome does not vary, or is explained without error"
                .into(),
        ));
    }
    Ok(Estimate { value, standard_error, degrees: f64::INFINITY })
}
