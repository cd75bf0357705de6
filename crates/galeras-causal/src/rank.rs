//! Average ranks, with the sizes of the groups of ties.

/// The ranks of a column and its ties.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranks {
    /// The rank of every row, from 1; equal values share the mean of their ranks.
    pub ranks: Vec<f64>,
    /// The sizes of the groups of equal values, in the order of their values, groups of at
    /// least two only.
    pub ties: Vec<u64>,
}

impl Ranks {
    /// The sum of t^3 - t over the groups of ties, the term of every correction for ties.
    pub(super) fn tie_term(&self) -> f64 {
        self.ties.iter().map(|&size| (size as f64).powi(3) - size as f64).sum()
    }
}

/// Ranks n values from 1 in O(n log n), ties by their average (equals `scipy.stats.rankdata`).
/// `-0.0` equals `0.0`; NaN ranks after all numbers, or before them if its sign is negative.
pub fn average_ranks(values: &[f64]) -> Ranks {
    let mut order: Vec<(f64, usize)> =
        values.iter().enumerate().map(|(row, &value)| (value, row)).collect();
    order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let mut ranks = vec![0.0; values.len()];
    let mut ties = Vec::new();
    let mut before = 0;
    for group in order.chunk_by(|a, b| a.0 == b.0) {
        // The mean of before + 1 ..= before + size; both halves are exact in a double.
        let rank = before as f64 + (group.len() as f64 + 1.0) / 2.0;
        for &(_, row) in group {
            ranks[row] = rank;
        }
        if group.len() > 1 {
            ties.push(group.len() as u64);
        }
        before += group.len();
    }
    Ranks { ranks, ties }
}
