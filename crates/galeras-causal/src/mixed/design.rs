//! The checked design of a mixed model, on scales at which nothing overflows.

use crate::column::check_column;
use crate::linear::LinearFit;
use crate::{ColumnRef, Refusal};

/// Random effects of one grouping factor.
#[derive(Clone, Debug)]
pub struct RandomTerm<'a> {
    /// The group of each row, as a code below the number of groups; every code occurs.
    pub groups: &'a [u32],
    /// Each group has an intercept.
    pub intercept: bool,
    /// Columns whose slopes differ between groups; these and the intercept are correlated freely.
    /// (Terms with the same groups are not correlated.)
    pub slopes: Vec<&'a [f64]>,
}

pub(super) struct ScaledTerm<'a> {
    pub(super) groups: &'a [u32],
    pub(super) levels: usize,
    /// The columns, intercept first if there is one: slopes divided by their root mean square.
    pub(super) columns: Vec<Vec<f64>>,
    /// The divisor of each column.
    pub(super) scales: Vec<f64>,
}

impl ScaledTerm<'_> {
    pub(super) fn width(&self) -> usize {
        self.columns.len()
    }
}

/// The fixed effects as an orthonormal basis, the outcome as residuals of least squares divided by
/// their root mean square, and the random terms.
pub(super) struct Design<'a> {
    pub(super) rows: usize,
    /// Least squares of the outcome on 1 and the fixed columns.
    pub(super) ordinary: LinearFit,
    /// Its residuals, divided by `scale`: their squares sum to the number of rows.
    pub(super) outcome: Vec<f64>,
    pub(super) scale: f64,
    pub(super) terms: Vec<ScaledTerm<'a>>,
}

impl<'a> Design<'a> {
    /// Makes all checks that need no fit.
    pub(super) fn new(
        outcome: &[f64],
        fixed: &[&[f64]],
        random: &[RandomTerm<'a>],
    ) -> Result<Self, Refusal> {
        let rows = outcome.len();
        if random.is_empty() {
            return Err(Refusal::Other("a mixed model needs a random effect".into()));
        }
        let needed = fixed.len() + 3;
        if rows < needed {
            return Err(Refusal::TooFew { what: "rows", found: rows, needed });
        }
        check_column(outcome, ColumnRef::Outcome, rows)?;
        for (at, column) in fixed.iter().enumerate() {
            check_column(column, ColumnRef::Covariate(at), rows)?;
        }
        let terms = random
            .iter()
            .enumerate()
            .map(|(at, term)| scaled_term(term, at, rows))
            .collect::<Result<Vec<_>, _>>()?;
        for later in 0..random.len() {
            for earlier in 0..later {
                refuse_same(&random[earlier], &random[later], later)?;
            }
        }
        let ordinary = LinearFit::fit(fixed, outcome)?;
        let residuals = ordinary.residuals();
        let largest = residuals.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
        let square: f64 = residuals.iter().map(|value| (value / largest).powi(2)).sum();
        let scale = largest * (square / rows as f64).sqrt();
        let outcome = residuals.iter().map(|value| value / scale).collect();
        Ok(Self { rows, ordinary, outcome, scale, terms })
    }

    pub(super) fn fixed(&self) -> usize {
        self.ordinary.width
    }

    /// The fixed effects of a row in the orthonormal basis.
    pub(super) fn basis_row(&self, row: usize) -> &[f64] {
        let width = self.fixed();
        &self.ordinary.basis[row * width..(row + 1) * width]
    }
}

fn scaled_term<'a>(
    term: &RandomTerm<'a>,
    at: usize,
    rows: usize,
) -> Result<ScaledTerm<'a>, Refusal> {
    let unusable =
        |problem: String| Err(Refusal::UnusableColumn { column: ColumnRef::Grouping(at), problem });
    if term.groups.len() != rows {
        return unusable(format!("has {} rows in place of {rows}", term.groups.len()));
    }
    let levels = term.groups.iter().max().map_or(0, |last| *last as usize + 1);
    let mut columns = Vec::new();
    let mut scales = Vec::new();
    if term.intercept {
        columns.push(vec![1.0; rows]);
        scales.push(1.0);
    }
    for (position, slope) in term.slopes.iter().enumerate() {
        let column = ColumnRef::Slope(at, position);
        check_column(slope, column, rows)?;
        let largest = slope.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
        let first = slope.first().copied().unwrap_or(0.0);
        if slope.iter().all(|value| *value == first) {
            return Err(Refusal::Constant(column));
        }
        let square: f64 = slope.iter().map(|value| (value / largest).powi(2)).sum();
        let scale = largest * (square / rows as f64).sqrt();
        if !(1e-290..1e290).contains(&scale) {
            return Err(Refusal::OutOfRange { column });
        }
        columns.push(slope.iter().map(|value| value / scale).collect());
        scales.push(scale);
    }
    if columns.is_empty() {
        return unusable("has neither an intercept nor a slope".into());
    }
    if levels < 2 {
        return unusable("has one group only".into());
    }
    let effects = levels * columns.len();
    if effects >= rows {
        let problem = if columns.len() == 1 {
            format!(
                "has {levels} groups in {rows} rows: the effect of a group cannot be told from \
                 the residual of its row"
            )
        } else {
            format!(
                "has {levels} groups with {} effects each in {rows} rows: they cannot be told \
                 from the residuals",
                columns.len()
            )
        };
        return unusable(problem);
    }
    Ok(ScaledTerm { groups: term.groups, levels, columns, scales })
}

/// Refuses two intercepts, or two slopes of one column, of the same groups under two names.
fn refuse_same(earlier: &RandomTerm<'_>, later: &RandomTerm<'_>, at: usize) -> Result<(), Refusal> {
    let shared = (earlier.intercept && later.intercept)
        || earlier.slopes.iter().any(|slope| later.slopes.contains(slope));
    if !shared || earlier.groups.len() != later.groups.len() {
        return Ok(());
    }
    let mut partner = std::collections::HashMap::new();
    let mut seen = std::collections::HashMap::new();
    let same = earlier.groups.iter().zip(later.groups).all(|(left, right)| {
        *partner.entry(*left).or_insert(*right) == *right
            && *seen.entry(*right).or_insert(*left) == *left
    });
    if same {
        return Err(Refusal::UnusableColumn {
            column: ColumnRef::Grouping(at),
            problem: "groups the rows as an earlier one does: their effects cannot be told apart"
                .into(),
        });
    }
    Ok(())
}
