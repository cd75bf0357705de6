//! Tests of linear regression: brute force for clusters, invariances, and each refusal.

mod instruments;
mod parity;

use proptest::prelude::*;

use super::*;
use crate::tests::{Draw, Study, close, slices};
use crate::{ColumnRef, Refusal};

pub(super) const KINDS: [Covariance; 9] = [
    Covariance::Classic,
    Covariance::Hc0,
    Covariance::Hc1,
    Covariance::Hc2,
    Covariance::Hc3,
    Covariance::Cr0,
    Covariance::Cr1,
    Covariance::Cr2,
    Covariance::Cr3,
];

/// CR2, CR3 and the degrees of freedom of CR2 for one coefficient, with every n x n matrix.
fn brute_force(
    columns: &[&[f64]],
    residuals: &[f64],
    clusters: &[u32],
    coefficient: usize,
) -> (f64, f64, f64) {
    let (n, k) = (residuals.len(), columns.len() + 1);
    let design = faer::Mat::from_fn(n, k, |i, j| if j == 0 { 1.0 } else { columns[j - 1][i] });
    let spectral = |matrix: &faer::Mat<f64>, power: f64| -> faer::Mat<f64> {
        let eigen = matrix.self_adjoint_eigen(faer::Side::Lower).unwrap();
        let size = matrix.nrows();
        let scale = faer::Mat::from_fn(size, size, |i, j| {
            let value = eigen.S()[i];
            if i == j && value > 1e-12 { value.powf(power) } else { 0.0 }
        });
        eigen.U() * scale * eigen.U().transpose()
    };
    let inverse = spectral(&(design.transpose() * &design), -1.0);
    let maker = faer::Mat::<f64>::identity(n, n) - &design * &inverse * design.transpose();
    let mut codes = clusters.to_vec();
    codes.sort_unstable();
    codes.dedup();
    let (mut second, mut third) = (0.0, 0.0);
    let mut vectors: Vec<Vec<f64>> = Vec::new();
    for code in codes {
        let rows: Vec<usize> = (0..n).filter(|row| clusters[*row] == code).collect();
        let block = faer::Mat::from_fn(rows.len(), rows.len(), |i, j| maker[(rows[i], rows[j])]);
        let influence: Vec<f64> = rows
            .iter()
            .map(|row| (0..k).map(|j| design[(*row, j)] * inverse[(j, coefficient)]).sum())
            .collect();
        let weigh = |matrix: &faer::Mat<f64>| -> Vec<f64> {
            (0..rows.len())
                .map(|i| (0..rows.len()).map(|j| matrix[(i, j)] * influence[j]).sum())
                .collect()
        };
        let against = |weights: &[f64]| -> f64 {
            weights.iter().zip(&rows).map(|(weight, row)| weight * residuals[*row]).sum()
        };
        let weights = weigh(&spectral(&block, -0.5));
        second += against(&weights).powi(2);
        third += against(&weigh(&spectral(&block, -1.0))).powi(2);
        vectors.push(
            (0..n)
                .map(|i| rows.iter().zip(&weights).map(|(row, w)| maker[(i, *row)] * w).sum())
                .collect(),
        );
    }
    let (mut trace, mut squares) = (0.0, 0.0);
    for (i, left) in vectors.iter().enumerate() {
        for (j, right) in vectors.iter().enumerate() {
            let product: f64 = left.iter().zip(right).map(|(a, b)| a * b).sum();
            squares += product * product;
            trace += if i == j { product } else { 0.0 };
        }
    }
    (second.sqrt(), third.sqrt(), trace * trace / squares)
}

#[test]
fn clusters_equal_brute_force() {
    let mut noise = Draw(3);
    for (rows, clusters) in [(60, 3), (60, 5), (120, 50), (60, 30), (24, 24), (40, 13), (90, 4)] {
        let columns: Vec<Vec<f64>> = (0..4).map(|_| noise.column(rows)).collect();
        let codes: Vec<u32> = (0..rows)
            .map(|row| if row < clusters { row } else { row * row * 31 % clusters } as u32)
            .collect();
        // One column is constant within clusters, like a treatment of whole clusters.
        let mut columns = slices(&columns);
        let whole: Vec<f64> = codes.iter().map(|code| f64::from(code % 2)).collect();
        columns[1] = &whole;
        // Another varies within the first cluster only, whose I - H is then singular.
        let alone: Vec<f64> =
            (0..rows).map(|row| if codes[row] == 0 { columns[3][row] } else { 0.0 }).collect();
        if clusters == 13 {
            columns[3] = &alone;
        }
        let outcome = noise.column(rows);
        let fit = LinearFit::fit(&columns, &outcome).unwrap();
        for coefficient in 0..5 {
            let (second, third, degrees) =
                brute_force(&columns, &fit.residuals, &codes, coefficient);
            if second < 1e-9 {
                // Scores cancel completely, so there is nothing to compare.
                assert!(fit.estimate(coefficient, Covariance::Cr2, Some(&codes)).is_err());
                continue;
            }
            let found = fit.estimate(coefficient, Covariance::Cr2, Some(&codes)).unwrap();
            close(found.standard_error, second, 1e-9);
            close(found.degrees, degrees, 1e-7);
            let found = fit.estimate(coefficient, Covariance::Cr3, Some(&codes)).unwrap();
            close(found.standard_error, third, 1e-9);
        }
    }
}

#[test]
fn clusters_of_one_row_equal_hc() {
    let study = Study::read("nsw_dw");
    let (treated, outcome, covariates) = (study.treated(), study.outcome(), study.covariates());
    let codes: Vec<u32> = (0..outcome.len() as u32).collect();
    let error = |kind| {
        adjusted(&treated, outcome, &covariates, kind, Some(&codes))
            .unwrap()
            .estimate
            .standard_error
    };
    for (clustered, plain) in KINDS[5..].iter().zip(&KINDS[1..5]) {
        close(error(*clustered), error(*plain), 1e-12);
    }
    // Codes need not be dense.
    let sparse: Vec<u32> = codes.iter().map(|code| u32::MAX - code * 5).collect();
    let found = adjusted(&treated, outcome, &covariates, Covariance::Cr3, Some(&sparse)).unwrap();
    close(found.estimate.standard_error, error(Covariance::Cr3), 1e-12);
}

#[test]
fn pairs_as_clusters_equal_the_paired_analysis() {
    // Without covariates, CR2 by pair is the paired t standard error with n - 1 degrees.
    let mut noise = Draw(11);
    let (left, right) = (noise.column(37), noise.column(37));
    let outcome: Vec<f64> = left.iter().chain(&right).copied().collect();
    let treated: Vec<bool> = (0..74).map(|row| row < 37).collect();
    let pairs: Vec<u32> = (0..74).map(|row| row % 37).collect();
    let found = adjusted(&treated, &outcome, &[], Covariance::Cr2, Some(&pairs)).unwrap();
    let paired = crate::paired(&left, &right).unwrap();
    close(found.estimate.value, paired.estimate.value, 1e-12);
    close(found.estimate.standard_error, paired.estimate.standard_error, 1e-12);
    close(found.estimate.degrees, 36.0, 1e-10);
}

#[test]
fn scales_and_offsets_do_not_matter() {
    let mut noise = Draw(5);
    let rows = 400;
    let columns: Vec<Vec<f64>> = (0..3).map(|_| noise.column(rows)).collect();
    let outcome: Vec<f64> =
        (0..rows).map(|row| columns[0][row] * 2.0 + noise.uniform() - 0.5).collect();
    let codes: Vec<u32> = (0..rows).map(|row| (row % 20) as u32).collect();
    let plain = LinearFit::fit(&slices(&columns), &outcome).unwrap();
    let factors = [1e150, 1e-150, 1.0];
    let offsets = [0.0, 0.0, 1e9];
    let moved: Vec<Vec<f64>> = columns
        .iter()
        .zip(factors.iter().zip(offsets))
        .map(|(column, (factor, offset))| column.iter().map(|x| x * factor + offset).collect())
        .collect();
    let large: Vec<f64> = outcome.iter().map(|y| y * 1e120).collect();
    let fit = LinearFit::fit(&slices(&moved), &large).unwrap();
    for kind in KINDS {
        for coefficient in 1..4 {
            let left = plain.estimate(coefficient, kind, Some(&codes)).unwrap();
            let right = fit.estimate(coefficient, kind, Some(&codes)).unwrap();
            // 1e9 with a spread of 1 is stored with seven digits.
            let tolerance = 1e-5;
            close(right.value / 1e120 * factors[coefficient - 1], left.value, tolerance);
            close(
                right.standard_error / 1e120 * factors[coefficient - 1],
                left.standard_error,
                tolerance,
            );
            close(right.degrees, left.degrees, tolerance);
        }
    }
}

#[test]
fn impossible_regressions_are_refused() {
    let mut noise = Draw(7);
    let rows = 30;
    let (a, b, y) = (noise.column(rows), noise.column(rows), noise.column(rows));
    let treated: Vec<bool> = (0..rows).map(|row| row % 3 == 0).collect();
    let run = |covariates: &[&[f64]], outcome: &[f64], kind| {
        adjusted(&treated, outcome, covariates, kind, None).unwrap_err()
    };
    let sum: Vec<f64> = a.iter().zip(&b).map(|(a, b)| 3.0 * a - b + 7.0).collect();
    let same: Vec<f64> = treated.iter().map(|t| if *t { 5.0 } else { 2.0 }).collect();
    let collinear = |column| Refusal::Collinear { column };
    assert_eq!(run(&[&a, &b, &sum], &y, Covariance::Hc2), collinear(ColumnRef::Covariate(2)));
    assert_eq!(run(&[&a, &same], &y, Covariance::Hc2), collinear(ColumnRef::Covariate(1)));
    let fives = vec![0.1 + 0.2; rows];
    assert_eq!(run(&[&a, &fives], &y, Covariance::Hc2), Refusal::Constant(ColumnRef::Covariate(1)));
    assert_eq!(run(&[&a], &fives, Covariance::Hc2), Refusal::Constant(ColumnRef::Outcome));
    // The fit is perfect, except for rounding.
    let exact: Vec<f64> = a.iter().map(|a| 1e6 + 0.1 * a).collect();
    assert!(run(&[&a], &exact, Covariance::Classic).to_string().contains("perfect"));
    // Only one row has a nonzero covariate.
    let alone: Vec<f64> = (0..rows).map(|row| f64::from(u8::from(row == 4))).collect();
    for kind in [Covariance::Hc2, Covariance::Hc3] {
        assert!(matches!(run(&[&alone], &y, kind), Refusal::Leverage { row: 4, .. }));
    }
    assert!(adjusted(&treated, &y, &[&alone], Covariance::Hc1, None).is_ok());
    // Interacted: only one arm varies.
    let half: Vec<f64> = (0..rows).map(|row| if treated[row] { a[row] } else { 0.0 }).collect();
    assert_eq!(
        interacted(&treated, &y, &[&half], Covariance::Hc2, None).unwrap_err(),
        collinear(ColumnRef::Interaction(0))
    );
    assert_eq!(
        adjusted(&treated, &y, &[], Covariance::Cr2, Some(&[3; 30])).unwrap_err(),
        Refusal::TooFew { what: "clusters", found: 1, needed: 2 }
    );
    assert!(adjusted(&treated, &y, &[], Covariance::Cr2, None).is_err());
    assert!(adjusted(&treated, &y, &[], Covariance::Cr2, Some(&[0, 1])).is_err());
    // Each arm is one cluster, so its residuals always sum to zero.
    let arms: Vec<u32> = treated.iter().map(|t| u32::from(*t)).collect();
    for kind in &KINDS[5..] {
        assert!(adjusted(&treated, &y, &[], *kind, Some(&arms)).is_err(), "{kind}");
    }
    for outcome in [&[][..], &[1.0], &[1.0, 2.0], &[f64::NAN; 30], &[f64::INFINITY; 30]] {
        let treated = &treated[..outcome.len()];
        for kind in KINDS {
            assert!(adjusted(treated, outcome, &[], kind, Some(&arms)).is_err());
            assert!(interacted(treated, outcome, &[], kind, Some(&arms)).is_err());
        }
        assert!(two_stage(outcome, outcome, &[outcome], &[], KINDS[0], None).is_err());
    }
    assert!(adjusted(&[true; 30], &y, &[], Covariance::Hc2, None).is_err());
    assert!(adjusted(&treated, &y, &[&a[..9]], Covariance::Hc2, None).is_err());
    let huge: Vec<f64> = a.iter().map(|a| a * 1e308).collect();
    assert!(adjusted(&treated, &huge, &[], Covariance::Hc2, None).is_err());
}

#[test]
fn impossible_instruments_are_refused() {
    let mut noise = Draw(9);
    let (y, d, z, w) = (noise.column(50), noise.column(50), noise.column(50), noise.column(50));
    let run = |d: &[f64], z: &[&[f64]], w: &[&[f64]]| two_stage(&y, d, z, w, KINDS[2], None);
    assert!(run(&d, &[&z], &[&w]).is_ok());
    assert!(matches!(run(&d, &[], &[&w]), Err(Refusal::TooFew { what: "instruments", .. })));
    let collinear = |column| Refusal::Collinear { column };
    assert_eq!(run(&d, &[&w], &[&w]).unwrap_err(), collinear(ColumnRef::Instrument(0)));
    assert_eq!(run(&d, &[&z], &[&w, &w]).unwrap_err(), collinear(ColumnRef::Covariate(1)));
    assert_eq!(run(&[1.0; 50], &[&z], &[]).unwrap_err(), Refusal::Constant(ColumnRef::Endogenous));
    assert!(run(&z, &[&z], &[&w]).unwrap_err().to_string().contains("entirely"));
    // An instrument with exactly zero covariance with the treatment.
    let d: Vec<f64> = (0..50).map(|row| f64::from(row % 2)).collect();
    let z: Vec<f64> = (0..50).map(|row| f64::from(row / 2 % 5)).collect();
    assert!(run(&d, &[&z], &[]).unwrap_err().to_string().contains("do not move"));
}

proptest! {
    #[test]
    fn rows_and_labels_may_be_permuted(seed in 0u64..1000, shift in 1usize..50) {
        let mut noise = Draw(seed);
        let rows = 60;
        let columns: Vec<Vec<f64>> = (0..2).map(|_| noise.column(rows)).collect();
        let treated: Vec<bool> = (0..rows).map(|row| row % 5 < 2).collect();
        let outcome = noise.column(rows);
        let clusters: Vec<u32> = (0..rows).map(|row| (row % 9) as u32).collect();
        let turn = |row: usize| (row * 7 + shift) % rows;
        let moved: Vec<Vec<f64>> = columns
            .iter()
            .map(|column| (0..rows).map(|row| column[turn(row)] * 4.0 - 3.0).collect())
            .collect();
        let other: Vec<bool> = (0..rows).map(|row| treated[turn(row)]).collect();
        let result: Vec<f64> = (0..rows).map(|row| outcome[turn(row)] * 10.0 + 2.0).collect();
        let codes: Vec<u32> = (0..rows).map(|row| 8 - clusters[turn(row)]).collect();
        for kind in KINDS {
            for estimator in [adjusted, interacted] {
                let left =
                    estimator(&treated, &outcome, &slices(&columns), kind, Some(&clusters));
                let right = estimator(&other, &result, &slices(&moved), kind, Some(&codes));
                let (left, right) = (left.unwrap().estimate, right.unwrap().estimate);
                let tolerance = 1e-9;
                prop_assert!((right.value - 10.0 * left.value).abs() < tolerance);
                prop_assert!(
                    (right.standard_error - 10.0 * left.standard_error).abs() < tolerance
                );
                prop_assert!((right.degrees / left.degrees - 1.0).abs() < tolerance);
            }
        }
    }

    #[test]
    fn never_panics(
        outcome in prop::collection::vec(prop::num::f64::ANY, 0..12),
        column in prop::collection::vec(prop::num::f64::ANY, 0..12),
        treated in prop::collection::vec(any::<bool>(), 0..12),
        codes in prop::collection::vec(any::<u32>(), 0..12),
    ) {
        for kind in KINDS {
            for estimator in [adjusted, interacted] {
                if let Ok(found) =
                    estimator(&treated, &outcome, &[&column], kind, Some(&codes))
                {
                    prop_assert!(found.estimate.standard_error > 0.0);
                    prop_assert!(found.estimate.degrees > 0.0);
                }
            }
            let _ = two_stage(&outcome, &column, &[&column], &[], kind, Some(&codes));
        }
    }
}
