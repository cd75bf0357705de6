//! Kendall's tau-b in O(n log n), its exact distribution and its normal approximation.

use super::super::{column_ref::ColumnRef, compensated, refusal::Refusal, tail};
use super::coefficient::{Coefficient, Correlation};

/// Up to this many rows without ties the p-value is exact.
const EXACT_ROWS: usize = 33;

/// The pairs of rows, by their order in both columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pairs {
    /// All pairs, n (n - 1) / 2.
    pub(super) total: i128,
    /// Pairs in opposite orders, tied in neither column.
    pub(super) discordant: i128,
    /// Pairs in the same order minus pairs in opposite orders.
    pub(super) excess: i128,
    /// Ties of each column.
    pub(super) ties: [Ties; 2],
}

/// Sums over the groups of t equal values of a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ties {
    /// Of t (t - 1) / 2, the tied pairs.
    pub(super) pairs: i128,
    /// Of t (t - 1) (t - 2).
    triples: i128,
    /// Of t (t - 1) (2 t + 5).
    variance: i128,
}

impl Ties {
    fn add(&mut self, size: usize) {
        let t = size as i128;
        self.pairs += t * (t - 1) / 2;
        self.triples += t * (t - 1) * (t - 2);
        self.variance += t * (t - 1) * (2 * t + 5);
    }
}

/// Kendall's tau-b of two checked columns.
pub(super) fn correlation(x: &[f64], y: &[f64], alpha: f64) -> Result<Correlation, Refusal> {
    compensated::centred(x, ColumnRef::X)?;
    compensated::centred(y, ColumnRef::Y)?;
    let pairs = count(x, y);
    let n = x.len() as f64;
    let untied = pairs.ties.map(|ties| pairs.total - ties.pairs);
    let value = if untied[0] == untied[1] {
        // tau is a ratio of integers then, exactly 1 where every pair agrees.
        pairs.excess as f64 / untied[0] as f64
    } else {
        pairs.excess as f64 / (untied[0] as f64).sqrt() / (untied[1] as f64).sqrt()
    };
    let value = value.clamp(-1.0, 1.0);
    let coefficient = Coefficient { value, complement: (1.0 - value) * (1.0 + value) };
    let variance = if n > 4.0 { 0.437 / (n - 4.0) } else { 0.0 };
    Ok(Correlation {
        coefficient: value,
        interval: coefficient.interval(variance, alpha),
        p_value: p_value(x.len(), &pairs),
        n: x.len(),
    })
}

/// Counts the pairs: sorted by x, the discordant ones are the inversions of y, and a merge sort
/// counts those (W. R. Knight, "A computer method for calculating Kendall's tau with ungrouped
/// data", JASA 61, 1966).
pub(super) fn count(x: &[f64], y: &[f64]) -> Pairs {
    // Adding zero makes -0.0 equal to 0.0 in the total order, too.
    let mut rows: Vec<(f64, f64)> = x.iter().zip(y).map(|(x, y)| (x + 0.0, y + 0.0)).collect();
    rows.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut ties = [Ties::default(); 2];
    let mut joint = Ties::default();
    for group in rows.chunk_by(|a, b| a.0 == b.0) {
        ties[0].add(group.len());
        group.chunk_by(|a, b| a.1 == b.1).for_each(|same| joint.add(same.len()));
    }
    let mut column: Vec<f64> = rows.into_iter().map(|row| row.1).collect();
    let discordant = inversions(&mut column);
    column.chunk_by(|a, b| a == b).for_each(|group| ties[1].add(group.len()));
    let n = x.len() as i128;
    let total = n * (n - 1) / 2;
    let excess = total - ties[0].pairs - ties[1].pairs + joint.pairs - 2 * discordant;
    Pairs { total, discordant, excess, ties }
}

/// Sorts the column by merging from the bottom up; returns how many pairs were out of order.
fn inversions(column: &mut Vec<f64>) -> i128 {
    let n = column.len();
    let mut merged = column.clone();
    let mut inversions = 0;
    let mut width = 1;
    while width < n {
        for (from, to) in column.chunks(2 * width).zip(merged.chunks_mut(2 * width)) {
            let (left, right) = from.split_at(width.min(from.len()));
            let (mut i, mut j) = (0, 0);
            for slot in to {
                if j == right.len() || (i < left.len() && left[i] <= right[j]) {
                    *slot = left[i];
                    i += 1;
                } else {
                    *slot = right[j];
                    j += 1;
                    inversions += (left.len() - i) as i128;
                }
            }
        }
        std::mem::swap(column, &mut merged);
        width *= 2;
    }
    inversions
}

/// The two-sided p-value of no association, by the rule of `scipy.stats.kendalltau`.
fn p_value(n: usize, pairs: &Pairs) -> f64 {
    let fewer = pairs.discordant.min(pairs.total - pairs.discordant);
    if pairs.ties.iter().all(|ties| ties.pairs == 0) && (n <= EXACT_ROWS || fewer <= 1) {
        return exact_p_value(n, fewer);
    }
    tail::normal_two_sided(standardised_excess(n, pairs)).min(1.0)
}

/// Concordant less discordant pairs of two columns in standard errors, without association; the
/// variance is that with ties in both. Neither column is constant.
pub(crate) fn tie_corrected_excess(x: &[f64], y: &[f64]) -> f64 {
    standardised_excess(x.len(), &count(x, y))
}

/// The same of pairs that are counted.
fn standardised_excess(n: usize, pairs: &Pairs) -> f64 {
    // G. E. Noether, "Elements of nonparametric statistics", 1967; M. G. Kendall, "Rank
    // correlation methods", 4th edition, 1970, chapter 4.
    let [x, y] = pairs.ties;
    let rows = n as f64;
    let m = rows * (rows - 1.0);
    let free = (n as i128 * (n as i128 - 1) * (2 * n as i128 + 5)) - x.variance - y.variance;
    let variance = free as f64 / 18.0
        + 2.0 * x.pairs as f64 * y.pairs as f64 / m
        + x.triples as f64 * y.triples as f64 / (9.0 * m * (rows - 2.0));
    pairs.excess as f64 / variance.sqrt()
}

/// Twice the share of the n! orders that have at most `fewer` inversions, at most 1.
fn exact_p_value(n: usize, fewer: i128) -> f64 {
    // 2 / n! or 2 / (n - 1)!; for many rows it underflows to zero in its own time.
    let reciprocal = |n: usize| (2..=n).fold(2.0, |p: f64, j| p / j as f64);
    match fewer {
        0 => reciprocal(n).min(1.0),
        1 => reciprocal(n - 1).min(1.0),
        _ => {
            // Orders of j rows by inversions follow from those of j - 1 rows: the new row is
            // before 0 to j - 1 others. 33! is below 2^128, so that the counts are exact.
            let most = fewer as usize;
            let mut orders = vec![0u128; most + 1];
            orders[0] = 1;
            for j in 2..=n {
                for c in 1..=most {
                    orders[c] += orders[c - 1];
                }
                for c in (j..=most).rev() {
                    orders[c] -= orders[c - j];
                }
            }
            let favourable: u128 = orders.iter().sum();
            let all = (2..=n as u128).product::<u128>();
            (2.0 * (favourable as f64 / all as f64)).min(1.0)
        }
    }
}
