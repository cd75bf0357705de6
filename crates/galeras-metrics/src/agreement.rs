//! Agreement of raters on nominal labels: percent agreement, Cohen's kappa, Krippendorff's alpha.
//!
//! Everything is computed from counts, so results do not depend on the order of the items.

use std::collections::BTreeMap;

/// The 97.5 % quantile of the normal distribution: intervals are those of 95 %.
pub(crate) const Z: f64 = 1.959_963_984_540_054;

/// Cohen's kappa of two raters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CohenKappa {
    /// The items that both raters labelled.
    pub n: usize,
    /// The share of items with the same label from both raters.
    pub observed: f64,
    /// The share expected by chance, given how often each rater used each label.
    pub expected: f64,
    /// (observed - expected) / (1 - expected). `None` if both raters used one and the same label
    /// only.
    pub kappa: Option<f64>,
    /// Its large-sample standard error, without assuming that kappa is zero (Fleiss, Cohen and
    /// Everitt 1969, equation 13).
    pub standard_error: Option<f64>,
}

impl CohenKappa {
    /// The 95 % interval by the standard error, within -1 to 1. `None` if kappa is.
    pub fn interval(&self) -> Option<(f64, f64)> {
        let (kappa, error) = (self.kappa?, self.standard_error?);
        Some(((kappa - Z * error).max(-1.0), (kappa + Z * error).min(1.0)))
    }
}

/// Cohen's unweighted kappa (1960) of the labels that two raters gave to the same items, as
/// `sklearn.metrics.cohen_kappa_score` computes it. `None` without items.
pub fn cohen_kappa(pairs: &[(usize, usize)]) -> Option<CohenKappa> {
    if pairs.is_empty() {
        return None;
    }
    let labels = pairs.iter().map(|(a, b)| a.max(b) + 1).max()?;
    let mut counts = vec![vec![0_usize; labels]; labels];
    pairs.iter().for_each(|(a, b)| counts[*a][*b] += 1);
    let n = pairs.len() as f64;
    let first: Vec<f64> = counts.iter().map(|row| row.iter().sum::<usize>() as f64 / n).collect();
    let second: Vec<f64> = (0..labels)
        .map(|label| counts.iter().map(|row| row[label]).sum::<usize>() as f64 / n)
        .collect();
    let same: usize = (0..labels).map(|label| counts[label][label]).sum();
    let observed = same as f64 / n;
    let expected: f64 = first.iter().zip(&second).map(|(a, b)| a * b).sum();
    // With one label in all cells, `expected` is exactly 1, because the shares are.
    let room = 1.0 - expected;
    if room <= 0.0 {
        let (kappa, standard_error) = (None, None);
        return Some(CohenKappa { n: pairs.len(), observed, expected, kappa, standard_error });
    }
    let kappa = (observed - expected) / room;
    let (mut agreeing, mut differing) = (0.0, 0.0);
    for (a, row) in counts.iter().enumerate() {
        for (b, count) in row.iter().enumerate() {
            let share = *count as f64 / n;
            if a == b {
                agreeing += share * (room - (first[a] + second[a]) * (1.0 - observed)).powi(2);
            } else {
                differing += share * (second[a] + first[b]).powi(2);
            }
        }
    }
    let last = (observed * expected - 2.0 * expected + observed).powi(2);
    let sum = agreeing + (1.0 - observed).powi(2) * differing;
    // If a rater used one label only, the two sides are equal; the rest is rounding, whose root
    // would look like a number.
    let variance = if sum - last > 32.0 * f64::EPSILON * sum { sum - last } else { 0.0 };
    let standard_error = Some((variance / n).sqrt() / (room * room));
    Some(CohenKappa { n: pairs.len(), observed, expected, kappa: Some(kappa), standard_error })
}

/// Krippendorff's alpha (2004) of nominal labels. Each item is a list of the labels it got, in any
/// order and number. Items with fewer than two labels do not count.
///
/// `None` if no item has two labels, or all labels are the same.
pub fn krippendorff_alpha(items: &[Vec<usize>]) -> Option<f64> {
    let mut totals: BTreeMap<usize, usize> = BTreeMap::new();
    // Pairs of different labels within an item, divided by its labels less one. They are summed as
    // integers by divisor, so that the order of the items does not matter.
    let mut differing: BTreeMap<usize, usize> = BTreeMap::new();
    for labels in items.iter().filter(|labels| labels.len() > 1) {
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        labels.iter().for_each(|label| *counts.entry(*label).or_default() += 1);
        let same: usize = counts.values().map(|count| count * (count - 1)).sum();
        *differing.entry(labels.len() - 1).or_default() += labels.len() * (labels.len() - 1) - same;
        counts.into_iter().for_each(|(label, count)| *totals.entry(label).or_default() += count);
    }
    let n: usize = totals.values().sum();
    let chance =
        n * n.checked_sub(1)? - totals.values().map(|count| count * (count - 1)).sum::<usize>();
    if chance == 0 {
        return None;
    }
    let observed: f64 = differing.iter().map(|(less, pairs)| *pairs as f64 / *less as f64).sum();
    Some(1.0 - (n - 1) as f64 * observed / chance as f64)
}

/// The share of pairs of raters who gave the same label, of all pairs that labelled the same item.
/// With two raters it is the share of items on which they agree. `None` if no item has two labels.
pub fn percent_agreement(items: &[Vec<usize>]) -> Option<f64> {
    let (mut pairs, mut same) = (0_usize, 0_usize);
    for labels in items {
        for (at, label) in labels.iter().enumerate() {
            pairs += labels.len() - at - 1;
            same += labels[at + 1..].iter().filter(|other| *other == label).count();
        }
    }
    (pairs > 0).then(|| same as f64 / pairs as f64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Numbers of scikit-learn, statsmodels and the package `krippendorff`, from
    /// `tests/reference/agreement.py`.
    const PEERS: &str = include_str!("../../../tests/reference/agreement.json");

    fn close(found: Option<f64>, expected: &serde_json::Value, what: &str) {
        match (found, expected.as_f64()) {
            (Some(found), Some(expected)) => {
                assert!((found - expected).abs() < 1e-12, "{what}: {found}, not {expected}");
            }
            (None, None) => {}
            (found, _) => assert!(found.is_none() && expected.is_null(), "{what}: {found:?}"),
        }
    }

    #[test]
    fn numbers_are_those_of_the_peers() {
        let cases: Vec<serde_json::Value> = serde_json::from_str(PEERS).unwrap();
        assert!(cases.len() > 20);
        let mut kappas = 0;
        for case in &cases {
            let name = case["name"].as_str().unwrap();
            let items: Vec<Vec<Option<usize>>> =
                serde_json::from_value(case["items"].clone()).unwrap();
            let given: Vec<Vec<usize>> =
                items.iter().map(|item| item.iter().flatten().copied().collect()).collect();
            close(krippendorff_alpha(&given), &case["alpha"], name);
            if case["raters"] == 2 {
                let pairs: Vec<(usize, usize)> =
                    items.iter().filter_map(|item| Some((item[0]?, item[1]?))).collect();
                let found = cohen_kappa(&pairs);
                close(found.and_then(|found| found.kappa), &case["kappa"], name);
                close(found.and_then(|found| found.standard_error), &case["kappa_se"], name);
                close(found.map(|found| found.observed), &case["agreement"], name);
                close(percent_agreement(&given), &case["agreement"], name);
                kappas += usize::from(!case["kappa"].is_null());
            }
        }
        assert!(kappas > 10);
    }

    #[test]
    fn kappa_is_as_computed_by_hand() {
        let table = |yes_yes: usize, yes_no: usize, no_yes: usize, no_no: usize| {
            let cells = [((1, 1), yes_yes), ((1, 0), yes_no), ((0, 1), no_yes), ((0, 0), no_no)];
            let pairs = cells.into_iter().flat_map(|(pair, n)| std::iter::repeat_n(pair, n));
            cohen_kappa(&pairs.collect::<Vec<_>>()).unwrap()
        };
        let near = |found: Option<f64>, wanted: f64| (found.unwrap() - wanted).abs() < 1e-15;
        assert!(near(table(20, 5, 10, 15).kappa, 0.4));
        assert!(near(table(45, 15, 25, 15).kappa, 3.0 / 23.0));
        assert!(near(table(0, 5, 5, 0).kappa, -1.0));
        assert!(near(table(0, 8, 0, 0).kappa, 0.0));
        let perfect = table(3, 0, 0, 7);
        assert_eq!((perfect.kappa, perfect.standard_error), (Some(1.0), Some(0.0)));
        assert_eq!(perfect.interval(), Some((1.0, 1.0)));
        let one_label = table(9, 0, 0, 0);
        assert_eq!((one_label.kappa, one_label.interval()), (None, None));
        assert_eq!((one_label.n, one_label.observed), (9, 1.0));
        assert_eq!(cohen_kappa(&[]), None);
    }

    #[test]
    fn items_with_one_label_give_no_agreement() {
        for items in [vec![], vec![vec![]], vec![vec![1], vec![0]]] {
            assert_eq!(krippendorff_alpha(&items), None);
            assert_eq!(percent_agreement(&items), None);
        }
        assert_eq!(krippendorff_alpha(&[vec![1, 1], vec![1, 1, 1]]), None);
        assert_eq!(percent_agreement(&[vec![1, 1], vec![1, 1, 1]]), Some(1.0));
    }

    proptest! {
        #[test]
        fn the_order_of_items_and_raters_does_not_matter(
            items in prop::collection::vec(prop::collection::vec(0_usize..3, 0..5), 0..30)
        ) {
            let mut turned: Vec<Vec<usize>> = items.clone();
            turned.reverse();
            turned.iter_mut().for_each(|item| item.reverse());
            prop_assert_eq!(krippendorff_alpha(&items), krippendorff_alpha(&turned));
            prop_assert_eq!(percent_agreement(&items), percent_agreement(&turned));
            if let Some(alpha) = krippendorff_alpha(&items) {
                prop_assert!(alpha <= 1.0);
            }
            let pairs: Vec<(usize, usize)> =
                items.iter().filter(|item| item.len() > 1).map(|item| (item[0], item[1])).collect();
            let swapped: Vec<(usize, usize)> = pairs.iter().map(|(a, b)| (*b, *a)).collect();
            let (one, other) = (cohen_kappa(&pairs), cohen_kappa(&swapped));
            let kappa = |found: Option<CohenKappa>| found.and_then(|found| found.kappa);
            match (kappa(one), kappa(other)) {
                (Some(a), Some(b)) => prop_assert!((a - b).abs() < 1e-12 && (-1.0..=1.0).contains(&a)),
                (a, b) => prop_assert_eq!(a, b),
            }
        }
    }
}
