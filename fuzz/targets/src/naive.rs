//! Scores by their definitions, in as much time as that takes: what the fast ones must equal.

use std::collections::HashMap;
use std::hash::Hash;

/// The edit distance by the whole matrix.
pub(crate) fn levenshtein(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = corner + usize::from(x != y);
            corner = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

/// The length of the longest common subsequence.
pub(crate) fn subsequence<T: Eq>(a: &[T], b: &[T]) -> usize {
    let mut row = vec![0; b.len() + 1];
    for x in a {
        let mut corner = 0;
        for (j, y) in b.iter().enumerate() {
            let longer = if x == y { corner + 1 } else { row[j].max(row[j + 1]) };
            corner = row[j + 1];
            row[j + 1] = longer;
        }
    }
    row[b.len()]
}

/// N-grams of `b` that `a` has too, each at most as often as there.
pub(crate) fn matches<T: Eq + Hash>(a: &[T], b: &[T], order: usize) -> u64 {
    let mut counts: HashMap<&[T], u64> = HashMap::new();
    a.windows(order).for_each(|gram| *counts.entry(gram).or_default() += 1);
    let mut matched = 0;
    for gram in b.windows(order) {
        if let Some(left) = counts.get_mut(gram).filter(|left| **left > 0) {
            *left -= 1;
            matched += 1;
        }
    }
    matched
}
