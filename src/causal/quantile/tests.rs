//! Tests of quantiles and bins: against numpy and pandas, refusals.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::*;

fn made_up(n: usize) -> Vec<f64> {
    let mut state = 77u64;
    (0..n)
        .map(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let value = ((state >> 33) % 60) as f64;
            if value < 25.0 { 3.0 } else { value }
        })
        .collect()
}

#[test]
fn quantiles_equal_numpy() {
    let mut values: Vec<f64> = made_up(37).iter().map(|value| value * 1.1).collect();
    values.sort_unstable_by(f64::total_cmp);
    let expected = [3.3000000000000003, 3.3000000000000003, 34.1, 48.884];
    for (probability, expected) in [0.1, 0.25, 0.5, 0.77].into_iter().zip(expected) {
        let found = quantile(&values, probability).unwrap();
        assert!((found - expected).abs() < 1e-14 * expected, "{found} {expected}");
    }
    assert_eq!(quantile(&values, -1.0), quantile(&values, 0.0));
    assert_eq!(quantile(&values, 1.0).unwrap(), values[36]);
    assert_eq!(quantile(&[-f64::MAX, f64::MAX], 0.5), Ok(0.0));
    assert!(quantile(&[], 0.5).is_err() && quantile(&values, f64::NAN).is_err());
}

#[test]
fn bins_equal_pandas() {
    // pandas 3.1.1, qcut(values, 5, duplicates="drop", retbins=True).
    let found = quantile_bins(&made_up(300), 5).unwrap();
    assert_eq!(found.edges, [(3.0, 34.0), (34.0, 45.0), (45.0, 59.0)]);
    let size = |bin: u32| found.codes.iter().filter(|&&code| code == bin).count();
    assert_eq!([0, 1, 2].map(size), [181, 65, 54]);
}

#[test]
fn degenerate_bins() {
    assert_eq!(quantile_bins(&[2.0; 9], 5), Err(Refusal::Constant("values".to_owned())));
    assert!(quantile_bins(&[], 5).is_err() && quantile_bins(&[1.0, 2.0], 0).is_err());
    assert!(quantile_bins(&[1.0, f64::NAN], 2).is_err());
    let two = quantile_bins(&[1.0, 0.0], usize::MAX).unwrap();
    assert_eq!((two.edges, two.codes), (vec![(0.0, 0.5), (0.5, 1.0)], vec![1, 0]));
    let one = quantile_bins(&[-0.0, 5.0, 0.0], 1).unwrap();
    assert_eq!((one.edges, one.codes), (vec![(0.0, 5.0)], vec![0, 0, 0]));
}

proptest! {
    #[test]
    fn every_value_is_between_its_edges(
        values in prop::collection::vec(
            prop_oneof![any::<f64>(), (-3i32..4).prop_map(f64::from)],
            0..50,
        ),
        bins in 0usize..12,
    ) {
        if let Ok(found) = quantile_bins(&values, bins) {
            prop_assert!(found.edges.len() <= bins && !found.edges.is_empty());
            prop_assert!(found.edges.iter().all(|edge| edge.0 < edge.1));
            for (value, &code) in values.iter().zip(&found.codes) {
                let (low, high) = found.edges[code as usize];
                prop_assert!((low < *value || (code == 0 && low == *value)) && *value <= high);
            }
        }
    }
}
