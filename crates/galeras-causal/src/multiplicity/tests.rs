//! Tests of the adjusted p-values: against statsmodels, by brute force, by invariance.

use proptest::prelude::*;

use super::*;
use crate::tests::{json, numbers};

const ALL: [(Adjustment, &str); 6] = [
    (Adjustment::Bonferroni, "bonferroni"),
    (Adjustment::Holm, "holm"),
    (Adjustment::SimesHochberg, "simes-hochberg"),
    (Adjustment::Hommel, "hommel"),
    (Adjustment::BenjaminiHochberg, "fdr_bh"),
    (Adjustment::BenjaminiYekutieli, "fdr_by"),
];

#[track_caller]
fn close(found: &[f64], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= 1e-13 * expected, "{what}: {found:e} {expected:e}");
    }
}

#[test]
fn the_table_of_benjamini_and_hochberg_equals_statsmodels() {
    let reference = json("causal/multiplicity.json");
    for (how, key) in ALL {
        close(&adjust(&numbers(&reference["p"]), how), &numbers(&reference[key]), key);
    }
}

#[test]
fn unordered_tied_and_tiny_values_equal_statsmodels() {
    let p = [
        2e-09, 0.5041, 0.5272, 0.3715, 0.3715, 0.3027, 0.4108, 1e-300, 3e-250, 0.2901, 0.7435,
        0.1715,
    ];
    // statsmodels 0.15.0, multipletests.
    let h = 0.7435;
    let (a, b) = (0.5751272727272727, 0.5477333333333333);
    for (how, expected) in [
        (Adjustment::Hommel, [2e-08, h, h, h, h, h, h, 1.2e-299, 3.3e-249, h, h, 0.686]),
        (Adjustment::SimesHochberg, [2e-08, h, h, h, h, h, h, 1.2e-299, 3.3e-249, h, h, h]),
        (
            Adjustment::Holm,
            [2e-08, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.2e-299, 3.3e-249, 1.0, 1.0, 1.0],
        ),
        (
            Adjustment::BenjaminiHochberg,
            [8e-09, a, a, b, b, b, b, 1.2e-299, 1.8e-249, b, h, 0.5145],
        ),
    ] {
        close(&adjust(&p, how), &expected, &format!("{how:?}"));
    }
    let tiny = [3.7238528138528144e-299, 5.585779220779222e-249];
    let found = adjust(&p, Adjustment::BenjaminiYekutieli);
    close(&[found[0], found[7], found[8]], &[2.482568542568543e-08, tiny[0], tiny[1]], "fdr_by");
}

#[test]
fn the_three_contrasts_of_an_experiment() {
    // Two-sided p-values of the paired contrasts of the published experiment.
    let p = [5.317762732824822e-34, 1.0513395267561552e-41, 1.959129915175365e-129];
    close(
        &adjust(&p, Adjustment::Holm),
        &[5.317762732824822e-34, 2.1026790535123104e-41, 5.877389745526096e-129],
        "holm",
    );
    close(
        &adjust(&p, Adjustment::BenjaminiYekutieli),
        &[9.749231676845505e-34, 2.8911836985794267e-41, 1.0775214533464509e-128],
        "fdr_by",
    );
}

#[test]
fn degenerate_families() {
    for (how, name) in ALL {
        assert_eq!(adjust(&[], how), [0.0; 0], "{name}");
        assert_eq!(adjust(&[0.03], how), [0.03], "{name}");
        assert_eq!(adjust(&[0.0, 0.0], how), [0.0, 0.0], "{name}");
        let odd = adjust(&[f64::NAN, 0.001, 7.0, -3.0, f64::INFINITY], how);
        assert!(odd.iter().all(|p| (0.0..=1.0).contains(p)), "{name}: {odd:?}");
        assert_eq!((odd[0], odd[3]), (1.0, 0.0), "{name}");
    }
}

/// Hommel's adjustment by its definition, every size for every hypothesis.
fn hommel_slowly(p: &[f64]) -> Vec<f64> {
    let m = p.len();
    let mut order: Vec<usize> = (0..m).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let mut answer = p.to_vec();
    for s in 1..=m {
        let level = (1..=s)
            .map(|i| s as f64 * p[order[m - s + i - 1]] / i as f64)
            .fold(f64::INFINITY, f64::min);
        for (i, &at) in order.iter().enumerate() {
            let bound = if i + s >= m { level } else { level.min(s as f64 * p[at]) };
            answer[at] = answer[at].max(bound);
        }
    }
    answer
}

proptest! {
    #[test]
    fn hommel_is_its_definition(
        p in prop::collection::vec(
            prop_oneof![0.0f64..1.0, 0.0f64..1e-3, (0u8..9).prop_map(|k| f64::from(k) / 8.0)],
            0..40,
        ),
    ) {
        let (found, expected) = (adjust(&p, Adjustment::Hommel), hommel_slowly(&p));
        for (found, expected) in found.iter().zip(&expected) {
            prop_assert!((found - expected).abs() <= 1e-13 * expected, "{found} {expected} {p:?}");
        }
    }

    #[test]
    fn the_order_stays_and_power_descends(p in prop::collection::vec(0.0f64..1.0, 1..40)) {
        let of = |how| adjust(&p, how);
        let slack = |a: f64| a * (1.0 + 1e-13);
        let chain = [Adjustment::Bonferroni, Adjustment::Holm, Adjustment::SimesHochberg,
            Adjustment::Hommel, Adjustment::BenjaminiHochberg].map(of);
        for pair in chain.windows(2) {
            prop_assert!(pair[0].iter().zip(&pair[1]).all(|(a, b)| *b <= slack(*a)));
        }
        for (how, _) in ALL {
            let adjusted = of(how);
            let mut reversed: Vec<f64> = p.iter().rev().copied().collect();
            reversed = adjust(&reversed, how);
            reversed.reverse();
            prop_assert_eq!(&adjusted, &reversed);
            for i in 0..p.len() {
                prop_assert!(p[i] <= slack(adjusted[i]) && adjusted[i] <= 1.0);
                for j in 0..i {
                    prop_assert!(p[i] > p[j] || adjusted[i] <= slack(adjusted[j]));
                }
            }
        }
    }
}

#[test]
fn a_large_family_is_adjusted_at_once() {
    let p: Vec<f64> = (0..200_000u64).map(|i| (i * 7919 % 200_003) as f64 / 200_003.0).collect();
    assert!(adjust(&p, Adjustment::Hommel).iter().all(|p| p.is_finite()));
}
