//! Wilcoxon's and Friedman's tests against SciPy, shifts against all differences, and refusals.

use super::*;
use crate::tests::{GeneralisedModels, close, integers, numbers, slices};

#[test]
fn rank_sums_equal_those_of_scipy() {
    let reference = GeneralisedModels::read();
    for row in reference.json["rank_sum"].as_array().unwrap() {
        let rows = row["rows"].as_u64().unwrap() as usize;
        let column = &reference.table.column(row["column"].as_str().unwrap())[..rows];
        let treated = &reference.treated()[..rows];
        let of = |arm: bool| -> Vec<f64> {
            column.iter().zip(treated).filter(|(_, t)| **t == arm).map(|(y, _)| *y).collect()
        };
        let found = rank_sum(&of(true), &of(false), 0.05).unwrap();
        close(found.u, &row["u"], 0.0);
        close(found.shift.p_value, &row["p_value"], 1e-9);
        close(found.shift.value, &row["shift"], 1e-12);
        close(found.shift.interval.0, &row["interval"][0], 1e-12);
        close(found.shift.interval.1, &row["interval"][1], 1e-12);
        assert_eq!(found.exact, row["exact"].as_bool().unwrap());
    }
}

#[test]
fn signed_ranks_equal_those_of_scipy() {
    let reference = GeneralisedModels::read();
    for row in reference.json["signed_rank"].as_array().unwrap() {
        let differences = numbers(&row["differences"]);
        let found = signed_rank_shift(&differences, 0.05).unwrap();
        close(found.w, &row["w"], 0.0);
        close(found.shift.p_value, &row["p_value"], 1e-9);
        close(found.shift.value, &row["shift"], 1e-12);
        close(found.shift.interval.0, &row["interval"][0], 1e-12);
        close(found.shift.interval.1, &row["interval"][1], 1e-12);
    }
}

#[test]
fn ties_are_counted_over_pairs_of_rows() {
    // 1 + 1 of 15 pairs: the zeros, one of which is negative, and the sevens.
    let found = rank_sum(&[0.0, 7.0, 7.0, 9.0], &[-0.0, 1.0], 0.5).unwrap();
    assert_eq!(found.tied, 2.0 / 15.0);
    // 1 of 10 is zero, 3 of 36 pairs have the same size: the twos.
    let differences = [0.0, 1.0, 2.0, -2.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
    let found = signed_rank_shift(&differences, 0.05).unwrap();
    assert_eq!((found.tied, found.exact), (0.1, true));
    let found = signed_rank_shift(&differences[1..], 0.05).unwrap();
    assert_eq!(found.tied, 3.0 / 36.0);
    assert_eq!(rank_sum(&[1.0, 3.0, 5.0], &[2.0, 4.0, 6.0], 0.5).unwrap().tied, 0.0);
}

#[test]
fn samples_without_an_interval_are_refused() {
    let text = |result: Result<RankSum, crate::Refusal>| result.unwrap_err().to_string();
    assert!(text(rank_sum(&[1.0, 2.0], &[3.0, 4.0], 0.05)).contains("too few rows"));
    assert!(text(rank_sum(&[1.0; 9], &[1.0; 9], 0.05)).contains("one value only"));
    assert!(text(rank_sum(&[], &[1.0], 0.05)).contains("too few treated rows"));
    assert!(text(rank_sum(&[f64::NAN], &[1.0], 0.05)).contains("not a finite number"));
    assert!(text(rank_sum(&[1e308; 9], &[-1e308; 9], 0.05)).contains("too large"));
    let text = |result: Result<SignedRankShift, crate::Refusal>| result.unwrap_err().to_string();
    assert!(text(signed_rank_shift(&[1.0; 4], 0.05)).contains("too few pairs"));
    assert!(text(signed_rank_shift(&[0.0; 40], 0.05)).contains("all 40 differences are zero"));
}

#[test]
fn four_columns_with_ties_equal_scipy() {
    let mut columns = [3, 4, 5, 6].map(|seed| integers(40, seed, 9));
    columns[1].iter_mut().for_each(|value| *value += 2.0);
    let found = friedman(&slices(&columns)).unwrap();
    // scipy 1.16.3, friedmanchisquare.
    assert!((found.statistic / 20.846774193548317 - 1.0).abs() < 1e-13);
    assert!((found.p_value / 0.0001132781718835178 - 1.0).abs() < 1e-9);
    // Neither the order of the arms nor that of the blocks nor a monotone scale matters.
    let changed: Vec<Vec<f64>> =
        columns.iter().rev().map(|c| c.iter().rev().map(|v| v.exp()).collect()).collect();
    assert_eq!(friedman(&slices(&changed)), Ok(found));
}

#[test]
fn agreement_of_all_blocks_is_the_largest_statistic() {
    let columns = [[1.0, 0.0, -7.0], [2.0, 5.0, 0.0], [3.0, 6.0, 1.0]];
    let found = friedman(&columns.each_ref().map(|c| c.as_slice())).unwrap();
    assert_eq!(found.statistic, 6.0);
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
