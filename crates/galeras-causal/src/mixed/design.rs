//! The checked design of a mixed model, on scales at which nothing overflows, and the products of
//! its columns, summed once over the rows.

use crate::column::{check_column, code_count};
use crate::compensated::{Twofold, largest};
use crate::linear::LinearFit;
use crate::refusal::{at_least, require, require_column};
use crate::{ColumnRef, Refusal, is_nested};

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
        require(!random.is_empty(), "a mixed model needs a random effect")?;
        at_least("rows", rows, fixed.len() + 3)?;
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
        let scale = root_mean_square(&ordinary.residuals);
        let outcome = ordinary.residuals.iter().map(|value| value / scale).collect();
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

fn root_mean_square(values: &[f64]) -> f64 {
    let largest = largest(values);
    let square: f64 = values.iter().map(|value| (value / largest).powi(2)).sum();
    largest * (square / values.len() as f64).sqrt()
}

fn scaled_term<'a>(
    term: &RandomTerm<'a>,
    at: usize,
    rows: usize,
) -> Result<ScaledTerm<'a>, Refusal> {
    let grouping = ColumnRef::Grouping(at);
    let problem = format!("has {} rows in place of {rows}", term.groups.len());
    require_column(grouping, term.groups.len() == rows, problem)?;
    let levels = code_count(term.groups);
    let mut columns = Vec::new();
    let mut scales = Vec::new();
    if term.intercept {
        columns.push(vec![1.0; rows]);
        scales.push(1.0);
    }
    for (position, slope) in term.slopes.iter().enumerate() {
        let column = ColumnRef::Slope(at, position);
        check_column(slope, column, rows)?;
        let first = slope.first().copied().unwrap_or(0.0);
        if slope.iter().all(|value| *value == first) {
            return Err(Refusal::Constant(column));
        }
        let scale = root_mean_square(slope);
        if !(1e-290..1e290).contains(&scale) {
            return Err(Refusal::OutOfRange { column });
        }
        columns.push(slope.iter().map(|value| value / scale).collect());
        scales.push(scale);
    }
    require_column(grouping, !columns.is_empty(), "has neither an intercept nor a slope")?;
    require_column(grouping, levels >= 2, "has one group only")?;
    let problem = if columns.len() == 1 {
        format!(
            "has {levels} groups in {rows} rows: the effect of a group cannot be told from the \
             residual of its row"
        )
    } else {
        format!(
            "has {levels} groups with {} effects each in {rows} rows: they cannot be told from \
             the residuals",
            columns.len()
        )
    };
    require_column(grouping, levels * columns.len() < rows, problem)?;
    Ok(ScaledTerm { groups: term.groups, levels, columns, scales })
}

/// Refuses two intercepts, or two slopes of one column, of the same groups under two names.
fn refuse_same(earlier: &RandomTerm<'_>, later: &RandomTerm<'_>, at: usize) -> Result<(), Refusal> {
    let shared = (earlier.intercept && later.intercept)
        || earlier.slopes.iter().any(|slope| later.slopes.contains(slope));
    if !shared || earlier.groups.len() != later.groups.len() {
        return Ok(());
    }
    let same = is_nested(earlier.groups, later.groups) && is_nested(later.groups, earlier.groups);
    let problem = "groups the rows as an earlier one does: their effects cannot be told apart";
    require_column(ColumnRef::Grouping(at), !same, problem)
}

/// The products of the columns of the design. The groups of the terms are numbered as *nodes*: those of
/// the first term, then those of the second. A node has as many effects as its term has columns.
pub(super) struct Products {
    /// The first node of each term, followed by the number of nodes.
    pub(super) first_node: Vec<usize>,
    /// Pairs of nodes that share a row, the first at most the second, in ascending order.
    pub(super) pairs: Vec<(u32, u32)>,
    /// For each pair, the start of its block of Z'Z in `values`: effects of the first node by
    /// effects of the second, row-major.
    pub(super) offsets: Vec<usize>,
    pub(super) values: Vec<f64>,
    /// For each node, the start of its block of Z'[X y]: effects by `fixed + 1`, row-major.
    pub(super) fixed_offsets: Vec<usize>,
    pub(super) fixed_values: Vec<f64>,
}

impl Products {
    pub(super) fn new(design: &Design<'_>) -> Self {
        let mut first_node = vec![0];
        for term in &design.terms {
            first_node.push(first_node[first_node.len() - 1] + term.levels);
        }
        let mut blocks: Vec<((u32, u32), Vec<f64>)> = Vec::new();
        for left in 0..design.terms.len() {
            for right in left..design.terms.len() {
                blocks.extend(cross_products(design, &first_node, left, right));
            }
        }
        blocks.sort_by_key(|(pair, _)| *pair);
        let (mut pairs, mut offsets, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for (pair, block) in blocks {
            pairs.push(pair);
            offsets.push(values.len());
            values.extend(block);
        }
        let (fixed_offsets, fixed_values) = with_fixed(design);
        Self { first_node, pairs, offsets, values, fixed_offsets, fixed_values }
    }

    pub(super) fn nodes(&self) -> usize {
        self.first_node[self.first_node.len() - 1]
    }

    pub(super) fn term_of_node(&self) -> Vec<usize> {
        let mut terms = Vec::with_capacity(self.nodes());
        for (term, range) in self.first_node.windows(2).enumerate() {
            terms.extend(std::iter::repeat_n(term, range[1] - range[0]));
        }
        terms
    }
}

/// The blocks of Z'Z between two terms, or of one with itself, for the pairs of groups that occur.
fn cross_products(
    design: &Design<'_>,
    first_node: &[usize],
    left: usize,
    right: usize,
) -> Vec<((u32, u32), Vec<f64>)> {
    let (one, two) = (&design.terms[left], &design.terms[right]);
    let node = |term: usize, group: u32| first_node[term] as u32 + group;
    let mut rows: Vec<((u32, u32), u32)> = (0..design.rows)
        .map(|row| ((node(left, one.groups[row]), node(right, two.groups[row])), row as u32))
        .collect();
    rows.sort_unstable();
    let mut blocks = Vec::new();
    for rows in rows.chunk_by(|a, b| a.0 == b.0) {
        let mut block = Vec::with_capacity(one.width() * two.width());
        for x in &one.columns {
            for y in &two.columns {
                let mut sum = Twofold::default();
                rows.iter()
                    .for_each(|(_, row)| sum.add_product(x[*row as usize], y[*row as usize]));
                block.push(sum.high);
            }
        }
        blocks.push((rows[0].0, block));
    }
    blocks
}

/// Z'[X y] by node.
fn with_fixed(design: &Design<'_>) -> (Vec<usize>, Vec<f64>) {
    let width = design.fixed() + 1;
    let mut offsets = Vec::new();
    let mut sums: Vec<Twofold> = Vec::new();
    for term in &design.terms {
        let start = sums.len();
        let size = term.width() * width;
        offsets.extend((0..term.levels).map(|level| start + level * size));
        sums.resize(start + term.levels * size, Twofold::default());
        for row in 0..design.rows {
            let block = &mut sums[start + term.groups[row] as usize * size..][..size];
            let fixed = design.basis_row(row);
            for (column, cells) in term.columns.iter().zip(block.chunks_exact_mut(width)) {
                for (cell, value) in cells.iter_mut().zip(fixed) {
                    cell.add_product(column[row], *value);
                }
                cells[width - 1].add_product(column[row], design.outcome[row]);
            }
        }
    }
    (offsets, sums.into_iter().map(|sum| sum.high).collect())
}
