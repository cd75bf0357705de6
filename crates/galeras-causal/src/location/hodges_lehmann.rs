//! The Hodges-Lehmann pseudomedian: an exact selection among the n (n + 1) / 2 pairwise sums
//! that never stores them.

use super::super::compensated;

/// The median of the averages (d_i + d_j) / 2 over all i <= j; 0 for an empty column.
/// `sorted` ascends.
///
/// The sums ascend along rows and columns of the matrix d_i + d_j, so that one walk along its
/// staircase counts the sums up to a bound (D. B. Johnson & T. Mizoguchi, "Selecting the kth
/// element in X + Y", SIAM J. Computing 7, 1978; J. F. Monahan, ACM TOMS 10, 1984). The bound is
/// found by bisection of the doubles themselves, with at most 64 walks, until no more than about
/// n sums lie between its ends (or all that do are equal); those are sorted out one by one. The
/// result is exactly one of the sums, or the mean of two.
pub(super) fn pseudomedian(sorted: &[f64]) -> f64 {
    if sorted.is_empty() {
        return 0.0;
    }
    // Sums of two must not overflow.
    if compensated::largest(sorted) > f64::MAX / 4.0 {
        let quarters: Vec<f64> = sorted.iter().map(|value| value / 4.0).collect();
        return pseudomedian(&quarters) * 4.0;
    }
    let n = sorted.len() as u64;
    let total = n * (n + 1) / 2;
    // The middle sum, or the lower one of the two.
    let wanted = total.div_ceil(2);
    let lower = select(sorted, wanted);
    let upper =
        if total % 2 == 1 || count(sorted, lower) > wanted { lower } else { next(sorted, lower) };
    // As the mean of two averages; adding zero makes a negative zero positive.
    (lower / 2.0 + upper / 2.0) / 2.0 + 0.0
}

/// The sum at position `wanted`, from 1, among all sums of two, ascending. `sorted` ascends and is
/// not empty; no sum overflows.
pub(crate) fn select(sorted: &[f64], wanted: u64) -> f64 {
    let [Some(&first), Some(&last)] = [sorted.first(), sorted.last()] else {
        return 0.0;
    };
    let n = sorted.len() as u64;
    let total = n * (n + 1) / 2;
    let (mut low, mut high) = (key(first + first), key(last + last));
    // The number of sums below `low` and up to `high`.
    let (mut below, mut up_to) = (0, total);
    while low < high && up_to - below > n {
        let middle = (low & high) + ((low ^ high) >> 1);
        let count = count(sorted, value(middle));
        if count >= wanted {
            (high, up_to) = (middle, count);
        } else {
            (low, below) = (middle + 1, count);
        }
    }
    if low == high { value(low) } else { pick(sorted, low, high, wanted - below) }
}

/// How many sums are at most `bound`.
fn count(sorted: &[f64], bound: f64) -> u64 {
    let (mut row, mut end, mut count) = (0, sorted.len(), 0);
    // The sums of the row with the columns row..end are at most the bound, once the last one
    // is. Either the row or the end moves, without a branch that could not be foreseen.
    while row < end {
        let fits = usize::from(sorted[row] + sorted[end - 1] <= bound);
        count += (fits * (end - row)) as u64;
        row += fits;
        end -= 1 - fits;
    }
    count
}

/// The smallest sum above `bound`, infinite if there is none.
fn next(sorted: &[f64], bound: f64) -> f64 {
    let mut end = sorted.len();
    let mut next = f64::INFINITY;
    for (i, &row) in sorted.iter().enumerate() {
        while end > i && row + sorted[end - 1] > bound {
            end -= 1;
        }
        match sorted.get(end.max(i)) {
            Some(&column) => next = next.min(row + column),
            None => continue,
        }
        if end <= i {
            break;
        }
    }
    next
}

/// The sum at `position` (from 1) among those whose keys are from `low` to `high`.
fn pick(sorted: &[f64], low: i64, high: i64, position: u64) -> f64 {
    let mut end = sorted.len();
    let mut between = Vec::new();
    for (i, &row) in sorted.iter().enumerate() {
        while end > i && key(row + sorted[end - 1]) > high {
            end -= 1;
        }
        let sums = sorted[i..end.max(i)].iter().rev().map(|column| key(row + column));
        between.extend(sums.take_while(|&sum| sum >= low));
    }
    let index = (position.saturating_sub(1) as usize).min(between.len().saturating_sub(1));
    if between.is_empty() { value(low) } else { value(*between.select_nth_unstable(index).1) }
}

/// An integer for a double, in the same order; both zeros have the same.
fn key(value: f64) -> i64 {
    let bits = (value + 0.0).to_bits() as i64;
    if bits < 0 { (bits ^ i64::MAX) + 1 } else { bits }
}

/// The double of an integer: the inverse of [`key`].
fn value(key: i64) -> f64 {
    f64::from_bits(if key < 0 { (key - 1) ^ i64::MAX } else { key } as u64)
}
