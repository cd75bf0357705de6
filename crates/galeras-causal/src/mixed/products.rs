//! The products of the columns of the design, summed once over the rows.
//!
//! Groups of all terms are numbered as *nodes*: those of the first term, then those of the second.
//! A node has as many effects as its term has columns.

use super::design::Design;
use crate::compensated::Twofold;

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
