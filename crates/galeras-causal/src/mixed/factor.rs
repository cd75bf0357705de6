//! The Cholesky factor of the whole system at given relative covariance parameters θ.
//!
//! The system is the symmetric matrix of [ZΛ X y]'[ZΛ X y] with I added to its first block. Its
//! factor gives the determinant of Λ'Z'ZΛ + I, the factor of the fixed effects with all random
//! effects taken out, and as its last pivot the penalised residual sum of squares. Columns of nodes
//! that are eliminated one by one are sparse and left-looking; the other nodes, X and y form one
//! dense block.

use super::dense;
use super::design::Products;
use super::elimination::{Elimination, order};
use crate::Refusal;

/// The most products in one factor; a fit takes some dozen factors.
const MOST_PRODUCTS: f64 = 2e11;
/// The most rows of the dense block that fit into memory.
const MOST_DENSE: usize = 16_000;

/// A node's block of the factor: its position and the rows of its entries.
struct SparseColumn {
    term: usize,
    /// The first scalar column.
    position: usize,
    /// Rows below its diagonal block, by position, ascending.
    rows: Vec<u32>,
    /// The start of its values: for each scalar column the diagonal block's, then those of `rows`.
    offset: usize,
    /// Blocks of the system in this column: pair, position of the row node, and true if the pair's
    /// block must be transposed to have the row node's effects as rows.
    entries: Vec<Entry>,
    /// The start of the node's products with X and y.
    fixed: usize,
    /// Earlier columns with entries in this one's rows, and the start of these in their `rows`.
    contributors: Vec<(u32, u32)>,
}

struct Entry {
    row: usize,
    row_term: usize,
    offset: usize,
    transposed: bool,
}

/// The structure of the factor, the same for every θ, and buffers for its values.
pub(super) struct Factoriser {
    products: Products,
    /// The number of effects of a group, by term.
    widths: Vec<usize>,
    columns: Vec<SparseColumn>,
    tail: Vec<SparseColumn>,
    /// Scalar columns before the dense block.
    sparse_size: usize,
    /// Random effects in the dense block.
    dense_random: usize,
    fixed: usize,
    rows: usize,
    values: Vec<f64>,
    dense: Vec<f64>,
    work: Vec<f64>,
}

#[derive(Clone, Debug)]
pub(super) struct System {
    /// ln |Λ'Z'ZΛ + I|.
    pub(super) log_random: f64,
    /// ln |X'V⁻¹X| in the orthonormal basis, V in units of σ².
    pub(super) log_fixed: f64,
    pub(super) residual: f64,
    /// The lower factor of X'V⁻¹X, row-major.
    pub(super) fixed_factor: Vec<f64>,
    /// The fixed effects, in the orthonormal basis.
    pub(super) coefficients: Vec<f64>,
}

impl Factoriser {
    /// The structure for `widths` effects per group by term, and `fixed` fixed effects.
    pub(super) fn new(
        products: Products,
        widths: Vec<usize>,
        fixed: usize,
        rows: usize,
    ) -> Result<Self, Refusal> {
        let Elimination { sparse, below, tail } = order(products.nodes(), &products.pairs);
        let terms = products.term_of_node();
        let mut position = vec![0; products.nodes()];
        let mut next = 0;
        for node in sparse.iter().chain(&tail) {
            position[*node as usize] = next;
            next += widths[terms[*node as usize]];
        }
        let sparse_size: usize = sparse.iter().map(|node| widths[terms[*node as usize]]).sum();
        let dense_random = next - sparse_size;
        let size = next + fixed + 1;
        let dense_size = size - sparse_size;
        let scalars = |nodes: &[u32]| -> usize {
            nodes.iter().map(|node| widths[terms[*node as usize]]).sum::<usize>() + fixed + 1
        };
        let products_needed = (dense_size as f64).powi(3) / 3.0
            + below.iter().map(|near| (scalars(near) as f64).powi(2)).sum::<f64>();
        if dense_size > MOST_DENSE || products_needed > MOST_PRODUCTS {
            return Err(Refusal::Other(format!(
                "the groups are crossed too densely: after all that can be taken out one by one, \
                 {dense_random} effects of groups are left that all depend on each other, at most \
                 {MOST_DENSE} can be fitted; leave out a grouping column, or take a coarser one"
            )));
        }
        let column = |node: u32, rows: Vec<u32>, offset: usize| SparseColumn {
            term: terms[node as usize],
            position: position[node as usize],
            rows,
            offset,
            entries: Vec::new(),
            fixed: products.fixed_offsets[node as usize],
            contributors: Vec::new(),
        };
        let (mut columns, mut offset) = (Vec::with_capacity(sparse.len()), 0);
        for (node, near) in sparse.iter().zip(&below) {
            let mut rows: Vec<u32> = Vec::with_capacity(scalars(near));
            for other in near {
                let first = position[*other as usize];
                rows.extend((first..first + widths[terms[*other as usize]]).map(|at| at as u32));
            }
            rows.sort_unstable();
            rows.extend((next..size).map(|at| at as u32));
            let width = widths[terms[*node as usize]];
            let length = width * (width + rows.len());
            columns.push(column(*node, rows, offset));
            offset += length;
        }
        // The position of each node in `columns`, or after them in `tail`.
        let mut place = vec![0; products.nodes()];
        for (at, node) in sparse.iter().chain(&tail).enumerate() {
            place[*node as usize] = at;
        }
        let mut tail: Vec<SparseColumn> =
            tail.iter().map(|node| column(*node, Vec::new(), 0)).collect();
        for ((one, two), offset) in products.pairs.iter().zip(&products.offsets) {
            let (one, two) = (*one as usize, *two as usize);
            // The later node is the row.
            let transposed = position[one] <= position[two];
            let (row, of) = if transposed { (two, one) } else { (one, two) };
            let entry =
                Entry { row: position[row], row_term: terms[row], offset: *offset, transposed };
            let at = place[of];
            let target =
                if at < columns.len() { &mut columns[at] } else { &mut tail[at - columns.len()] };
            target.entries.push(entry);
        }
        link(&mut columns, sparse_size);
        let most = widths.iter().copied().max().unwrap_or(1);
        Ok(Self {
            values: vec![0.0; offset],
            dense: vec![0.0; dense_size * dense_size],
            work: vec![0.0; most * size],
            products,
            widths,
            columns,
            tail,
            sparse_size,
            dense_random,
            fixed,
            rows,
        })
    }

    /// The factor at `lambda`: for each term its lower triangular block of Λ, row-major. `None` if
    /// a pivot is not positive, which rounding causes if Λ is very large.
    pub(super) fn factor(&mut self, lambda: &[Vec<f64>]) -> Option<System> {
        let size = self.sparse_size + self.dense_random + self.fixed + 1;
        let dense_size = size - self.sparse_size;
        self.dense.fill(0.0);
        let mut log_random = 0.0;
        for at in 0..self.columns.len() {
            log_random += self.sparse_column(at, size, lambda)?;
            self.spread(at, dense_size);
        }
        for at in 0..self.tail.len() {
            self.dense_column(at, size, lambda);
        }
        for at in 0..self.fixed {
            let place = self.dense_random + at;
            self.dense[place * dense_size + place] += 1.0;
        }
        let last = dense_size - 1;
        self.dense[last * dense_size + last] += self.rows as f64;
        let pivots = dense::factor(&mut self.dense, dense_size, last);
        if pivots[..last].iter().any(|pivot| !(*pivot > 0.0 && pivot.is_finite())) {
            return None;
        }
        let log = |range: &[f64]| range.iter().map(|pivot| pivot.ln()).sum::<f64>();
        log_random += log(&pivots[..self.dense_random]);
        let fixed = |row: usize, column: usize| {
            self.dense[(self.dense_random + column) * dense_size + self.dense_random + row]
        };
        let p = self.fixed;
        let fixed_factor: Vec<f64> = (0..p * p)
            .map(|at| if at % p <= at / p { fixed(at / p, at % p) } else { 0.0 })
            .collect();
        let mut coefficients: Vec<f64> = (0..p).map(|column| fixed(p, column)).collect();
        for row in (0..p).rev() {
            for later in row + 1..p {
                coefficients[row] -= fixed_factor[later * p + row] * coefficients[later];
            }
            coefficients[row] /= fixed_factor[row * p + row];
        }
        Some(System {
            log_random,
            log_fixed: log(&pivots[self.dense_random..last]),
            residual: pivots[last],
            fixed_factor,
            coefficients,
        })
    }

    /// Computes a sparse column; returns the logarithm of its part of the determinant.
    fn sparse_column(&mut self, at: usize, size: usize, lambda: &[Vec<f64>]) -> Option<f64> {
        let column = &self.columns[at];
        let (width, first) = (self.widths[column.term], column.position);
        fill(&mut self.work, size, column, &self.products, &self.widths, self.fixed, lambda);
        for (other, index) in &column.contributors {
            let (other, index) = (&self.columns[*other as usize], *index as usize);
            let inner = self.widths[other.term];
            let length = inner + other.rows.len();
            for t in 0..inner {
                let panel = &self.values[other.offset + t * length + inner..][..other.rows.len()];
                for s in 0..width {
                    let weight = panel[index + s];
                    let target = &mut self.work[s * size..(s + 1) * size];
                    for (row, value) in other.rows[index + s..].iter().zip(&panel[index + s..]) {
                        target[*row as usize] -= weight * value;
                    }
                }
            }
        }
        // The diagonal block, and then every row divided by its factor.
        let length = width + column.rows.len();
        let values = &mut self.values[column.offset..column.offset + width * length];
        let mut log = 0.0;
        for s in 0..width {
            let source = &mut self.work[s * size..(s + 1) * size];
            let (done, rest) = values.split_at_mut(s * length);
            let target = &mut rest[..length];
            for t in 0..width {
                target[t] = std::mem::take(&mut source[first + t]);
            }
            for (cell, row) in target[width..].iter_mut().zip(&column.rows) {
                *cell = std::mem::take(&mut source[*row as usize]);
            }
            target[s] += 1.0;
            for earlier in done.chunks_exact(length) {
                let weight = earlier[s];
                for (cell, value) in target[s..].iter_mut().zip(&earlier[s..]) {
                    *cell -= weight * value;
                }
            }
            let pivot = target[s];
            if !(pivot > 0.0 && pivot.is_finite()) {
                // The buffer must be empty when the next factor begins.
                self.work.fill(0.0);
                return None;
            }
            log += pivot.ln();
            let root = pivot.sqrt();
            target[..s].fill(0.0);
            target[s] = root;
            target[s + 1..].iter_mut().for_each(|cell| *cell /= root);
        }
        Some(log)
    }

    /// Subtracts the contributions of a sparse column from the dense block.
    fn spread(&mut self, at: usize, dense_size: usize) {
        let column = &self.columns[at];
        let width = self.widths[column.term];
        let length = width + column.rows.len();
        let start = column.rows.partition_point(|row| (*row as usize) < self.sparse_size);
        let rows = &column.rows[start..];
        for t in 0..width {
            let panel = &self.values[column.offset + t * length + width + start..][..rows.len()];
            for (k, (place, weight)) in rows.iter().zip(panel).enumerate() {
                let place = *place as usize - self.sparse_size;
                let target = &mut self.dense[place * dense_size..(place + 1) * dense_size];
                for (row, value) in rows[k..].iter().zip(&panel[k..]) {
                    target[*row as usize - self.sparse_size] -= weight * value;
                }
            }
        }
    }

    /// Adds the system's own entries to a column of the dense block.
    fn dense_column(&mut self, at: usize, size: usize, lambda: &[Vec<f64>]) {
        let column = &self.tail[at];
        let (width, first) = (self.widths[column.term], column.position);
        fill(&mut self.work, size, column, &self.products, &self.widths, self.fixed, lambda);
        let dense_size = size - self.sparse_size;
        for s in 0..width {
            let source = &mut self.work[s * size..(s + 1) * size];
            source[first + s] += 1.0;
            let place = first + s - self.sparse_size;
            let target = &mut self.dense[place * dense_size..(place + 1) * dense_size];
            for (cell, value) in target[place..].iter_mut().zip(&source[first + s..]) {
                *cell += value;
            }
            source[self.sparse_size..].fill(0.0);
        }
    }
}

/// Writes the system's entries of a column into `work`, one range for each scalar column.
fn fill(
    work: &mut [f64],
    size: usize,
    column: &SparseColumn,
    products: &Products,
    widths: &[usize],
    fixed: usize,
    lambda: &[Vec<f64>],
) {
    let width = widths[column.term];
    let own = &lambda[column.term];
    for entry in &column.entries {
        let height = widths[entry.row_term];
        let other = &lambda[entry.row_term];
        let block = &products.values[entry.offset..entry.offset + width * height];
        let cell = |i: usize, j: usize| {
            if entry.transposed { block[j * height + i] } else { block[i * width + j] }
        };
        for s in 0..width {
            for r in 0..height {
                // (Λ' M Λ) at row r and column s, Λ lower triangular.
                let mut sum = 0.0;
                for i in r..height {
                    for j in s..width {
                        sum += other[i * height + r] * cell(i, j) * own[j * width + s];
                    }
                }
                work[s * size + entry.row + r] += sum;
            }
        }
    }
    let block = &products.fixed_values[column.fixed..column.fixed + width * (fixed + 1)];
    for s in 0..width {
        for j in s..width {
            let weight = own[j * width + s];
            let target = &mut work[(s + 1) * size - fixed - 1..(s + 1) * size];
            for (cell, value) in target.iter_mut().zip(&block[j * (fixed + 1)..]) {
                *cell += weight * value;
            }
        }
    }
}

/// Records the columns that contribute to each column.
fn link(columns: &mut [SparseColumn], sparse_size: usize) {
    let mut starts = vec![u32::MAX; sparse_size];
    for (at, column) in columns.iter().enumerate() {
        starts[column.position] = at as u32;
    }
    for at in 0..columns.len() {
        let found: Vec<(u32, u32)> = columns[at]
            .rows
            .iter()
            .enumerate()
            .take_while(|(_, row)| (**row as usize) < sparse_size)
            .filter_map(|(index, row)| {
                let column = starts[*row as usize];
                (column != u32::MAX).then_some((column, index as u32))
            })
            .collect();
        for (column, index) in found {
            columns[column as usize].contributors.push((at as u32, index));
        }
    }
}
