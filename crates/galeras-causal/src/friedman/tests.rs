//! Tests of Friedman's test: against scipy, by invariance, refusals.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::tests::{integers, slices};

#[test]
fn four_columns_with_ties_equal_scipy() {
    let mut columns = [3, 4, 5, 6].map(|seed| integers(40, seed, 9));
    columns[1].iter_mut().for_each(|value| *value += 2.0);
    let found = friedman(&slices(&columns)).unwrap();
    // scipy 1.16.3, friedmanchisquare.
    assert!((found.statistic / 20.846774193548317 - 1.0).abs() < 1e-13);
    assert!((found.p_value / 0.0001132781718835178 - 1.0).abs() < 1e-9);
    assert_eq!((found.degrees, found.n), (3.0, 40));
    // Neither the order of the arms nor that of the blocks nor a monotone scale matters.
    let changed: Vec<Vec<f64>> =
        columns.iter().rev().map(|c| c.iter().rev().map(|v| v.exp()).collect()).collect();
    assert_eq!(friedman(&slices(&changed)), Ok(found));
}

#[test]
fn agreement_of_all_blocks_is_the_largest_statistic() {
    let columns = [[1.0, 0.0, -7.0], [2.0, 5.0, 0.0], [3.0, 6.0, 1.0]];
    let found = friedman(&columns.each_ref().map(|c| c.as_slice())).unwrap();
    assert_eq!((found.statistic, found.concordance), (6.0, 1.0));
}

#[test]
fn impossible_blocks_are_refused() {
    let values = [1.0, 2.0, 3.0];
    let column = values.as_slice();
    let empty: &[f64] = &[];
    let of = |columns: &[&[f64]]| friedman(columns).unwrap_err();
    assert_eq!(of(&[column; 2]), Refusal::TooFew { what: "arms", found: 2, needed: 3 });
    assert_eq!(of(&[]), Refusal::TooFew { what: "arms", found: 0, needed: 3 });
    assert_eq!(of(&[&column[..1]; 3]), Refusal::TooFew { what: "blocks", found: 1, needed: 2 });
    assert_eq!(of(&[empty; 3]), Refusal::TooFew { what: "blocks", found: 0, needed: 2 });
    assert_eq!(of(&[column; 3]).to_string(), "every block has one value only");
    assert!(matches!(of(&[column, &column[..2], column]), Refusal::UnusableColumn { .. }));
    let infinite = of(&[column, &[1.0, f64::NAN, 2.0], column]);
    assert!(matches!(infinite, Refusal::UnusableColumn { .. }));
}
