//! Average ranks with the sizes of the groups of ties, and quantiles.

/// The ranks of a column and its ties.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ranks {
    /// The rank of every row, from 1; equal values share the mean of their ranks.
    pub(super) ranks: Vec<f64>,
    /// The sizes of the groups of at least two equal values, in the order of their values.
    pub(super) ties: Vec<u64>,
}

impl Ranks {
    /// The sum of t^3 - t over the groups of ties, the term of every correction for ties.
    pub(super) fn tie_term(&self) -> f64 {
        self.ties.iter().map(|&size| (size as f64).powi(3) - size as f64).sum()
    }

    /// The share of pairs of values that are equal; zero below two values.
    pub(super) fn tied_share(&self) -> f64 {
        let pairs = |size: f64| size * (size - 1.0);
        let tied: f64 = self.ties.iter().map(|&size| pairs(size as f64)).sum();
        tied / pairs(self.ranks.len() as f64).max(1.0)
    }
}

/// Ranks n values from 1 in O(n log n), ties by their average (equals `scipy.stats.rankdata`).
/// `-0.0` equals `0.0`; NaN ranks after all numbers, or before them if its sign is negative.
pub(super) fn average_ranks(values: &[f64]) -> Ranks {
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

/// The values in ascending order.
pub(super) fn ascending(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// The quantile at `part / parts` of values in ascending order, by linear interpolation between the
/// neighbours of (n - 1) * part / parts: definition 7 of Hyndman & Fan 1996, the default of numpy.
/// 0 for an empty column. The position is computed in integers, so a quantile that is one of the
/// values is exact.
pub(super) fn quantile(sorted: &[f64], part: usize, parts: usize) -> f64 {
    let position = sorted.len().saturating_sub(1) as u128 * part as u128;
    let (below, rest) = (position / parts.max(1) as u128, position % parts.max(1) as u128);
    interpolate(sorted, below as usize, rest as f64 / parts as f64)
}

/// The value at `share` of the way from a position to the next one.
fn interpolate(sorted: &[f64], below: usize, share: f64) -> f64 {
    let Some(&low) = sorted.get(below) else {
        return sorted.last().copied().unwrap_or(0.0);
    };
    let high = sorted.get(below + 1).copied().unwrap_or(low);
    if share == 0.0 || low == high {
        low
    } else if (high - low).is_infinite() {
        low * (1.0 - share) + high * share
    } else if share < 0.5 {
        low + (high - low) * share
    } else {
        high - (high - low) * (1.0 - share)
    }
}

/// An integer for a double, in the same order; both zeros have the same integer.
pub(super) fn order_key(value: f64) -> i64 {
    let bits = (value + 0.0).to_bits() as i64;
    if bits < 0 { (bits ^ i64::MAX) + 1 } else { bits }
}

/// The double of an integer: the inverse of [`order_key`].
pub(super) fn from_order_key(key: i64) -> f64 {
    f64::from_bits(if key < 0 { (key - 1) ^ i64::MAX } else { key } as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_equal_numpy() {
        let mut state = 77u64;
        let mut values: Vec<f64> = (0..37)
            .map(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let value = ((state >> 33) % 60) as f64;
                1.1 * if value < 25.0 { 3.0 } else { value }
            })
            .collect();
        values.sort_unstable_by(f64::total_cmp);
        let expected = [3.3000000000000003, 3.3000000000000003, 34.1, 48.884];
        for (percent, expected) in [10, 25, 50, 77].into_iter().zip(expected) {
            let found = quantile(&values, percent, 100);
            assert!((found - expected).abs() < 1e-14 * expected, "{found} {expected}");
        }
        assert_eq!(quantile(&values, 1, 1), values[36]);
        assert_eq!(quantile(&[-f64::MAX, f64::MAX], 1, 2), 0.0);
        assert_eq!(quantile(&[], 1, 2), 0.0);
    }
}
