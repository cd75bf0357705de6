//! Wilcoxon's tests against SciPy, their shifts against all differences, and where there is none.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::tests::{GeneralisedModels, close, numbers};

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
