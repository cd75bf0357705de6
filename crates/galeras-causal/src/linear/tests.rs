//! Tests of linear regression: the reference studies, numbers of 50 digits, brute force for clusters,
//! invariances, and each refusal.

mod designs;
mod instruments;

use proptest::prelude::*;

use super::*;
use crate::column::indicator;
use crate::tests::{Draw, KINDS, Study, Table, close, json, slices};
use crate::{ColumnRef, Refusal, difference_in_means};

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
    close(found.estimate.value, paired.value, 1e-12);
    close(found.estimate.standard_error, paired.standard_error, 1e-12);
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
    // Nor does one that is the same under both treatments of a unit, as its covariates are.
    let twice: Vec<f64> = (0..50).map(|row| w[row / 2]).collect();
    let both = [w[..25].to_vec(), y[..25].to_vec()]
        .map(|column| (0..50).map(|row| column[row / 2]).collect::<Vec<f64>>());
    for covariates in [vec![twice.as_slice()], both.iter().map(Vec::as_slice).collect()] {
        let refused = run(&d, &[&z], &covariates).unwrap_err().to_string();
        assert!(refused.contains("do not move"), "{refused}");
    }
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

#[test]
fn equals_the_reference_studies() {
    for name in ["nhefs", "ihdp_A_seed0", "formula_splitmix42", "nsw_dw"] {
        let study = Study::read(name);
        let (reference, outcome) = (&study.json, study.outcome());
        let (treated, covariates) = (study.treated(), study.covariates());
        let raw = matches!(name, "nhefs" | "nsw_dw");
        let naive = difference_in_means(&treated, outcome).unwrap();
        let expected = &reference["naive"];
        close(naive.value, &expected["ate"], 1e-9);
        close(naive.standard_error, &expected["se_welch"], 1e-9);
        close(naive.degrees, &expected["df"], 1e-9);
        close(naive.p_value(), &expected["p"], 1e-8);
        for kind in &KINDS[..5] {
            for (expected, found) in [
                (&reference["ols"], adjusted(&treated, outcome, &covariates, *kind, None)),
                (&reference["lin2013"], interacted(&treated, outcome, &covariates, *kind, None)),
            ] {
                let Some(error) = expected[format!("se_{kind}")].as_f64() else {
                    assert!(matches!(found, Err(Refusal::Leverage { .. })), "{name} {kind}");
                    continue;
                };
                let found = found.unwrap();
                close(found.estimate.value, &expected["ate"], 1e-9);
                // The reference inverts X'X of the raw columns, which loses eight digits with
                // squares of ages or earnings.
                close(found.estimate.standard_error, error, if raw { 1e-7 } else { 1e-9 });
                assert_eq!(found.estimate.degrees, found.residual_degrees as f64);
                close(
                    found.classic_statistic,
                    found.estimate.value / expected["se_classic"].as_f64().unwrap(),
                    if raw { 1e-7 } else { 1e-9 },
                );
            }
        }
        let indicator = indicator(&treated);
        let fit = LinearFit::fit(&treatment_first(&indicator, &covariates), outcome).unwrap();
        for (found, expected) in
            fit.coefficients.iter().zip(reference["ols"]["coef"].as_array().unwrap())
        {
            close(*found, expected, 1e-9);
        }
    }
}

#[test]
fn equals_numbers_of_fifty_digits() {
    // Raw columns of very different size; the inverse of X'X by 50-digit arithmetic.
    for (name, errors) in [
        ("nhefs", [0.4384542550856404, 0.4659359547019052, 0.4693663445991127, 0.4728520241483273]),
        ("nsw_dw", [638.682014898318, 669.0867435523614, 677.0491440184052, 685.3024746500739]),
    ] {
        let study = Study::read(name);
        let (treated, outcome, covariates) = (study.treated(), study.outcome(), study.covariates());
        let kinds = [Covariance::Classic, Covariance::Hc0, Covariance::Hc2, Covariance::Hc3];
        for (kind, error) in kinds.into_iter().zip(errors) {
            let found = adjusted(&treated, outcome, &covariates, kind, None).unwrap();
            close(found.estimate.standard_error, error, 1e-12);
        }
    }
}

#[test]
fn equals_the_reference_with_clusters() {
    // By the definitions, from the full n x n residual maker and coefficients of 50 digits. The
    // columns are the errors by CR0 to CR3, and the degrees of CR2 for two coefficients.
    let by_23 = |row: usize| (row * 7 % 23) as u32;
    let by_2 = |row: usize| (row / 2) as u32;
    let uneven = |row: usize| (row as f64 / 4.0).sqrt().floor() as u32;
    type Case<'a> = (&'a str, &'a dyn Fn(usize) -> u32, [f64; 4], [f64; 2]);
    let cases: [Case<'_>; 6] = [
        (
            "nsw_dw",
            &by_23,
            [603.2587284727068, 623.1649932725586, 619.0646616538801, 635.5492015588084],
            [21.824244512414996, 16.45148171554058],
        ),
        (
            "nsw_dw",
            &by_2,
            [663.1222652032143, 671.454225242523, 674.5427044303639, 686.6142476052169],
            [182.70583188971284, 72.1019718683573],
        ),
        (
            "nsw_dw",
            &uneven,
            [543.8583001714035, 576.273912890422, 636.7420977415792, 762.3498705735715],
            [7.136040889529478, 6.707855399842365],
        ),
        (
            "nhefs",
            &by_23,
            [0.3994350130078304, 0.41091418593645396, 0.4105032269314126, 0.4219537722773687],
            [21.632303834334994, 21.644769351420294],
        ),
        (
            "nhefs",
            &by_2,
            [0.45087912238770805, 0.45393122369246247, 0.45432398181526346, 0.45782612299242975],
            [469.4391711337103, 479.0715334248026],
        ),
        (
            "nhefs",
            &uneven,
            [0.3402626399471302, 0.35124074584370213, 0.3535123400197292, 0.367584381915363],
            [13.955663189523705, 14.102561495210024],
        ),
    ];
    for (name, code, errors, degrees) in cases {
        let study = Study::read(name);
        let (treated, outcome) = (study.treated(), study.outcome());
        let clusters: Vec<u32> = (0..outcome.len()).map(code).collect();
        let indicator = indicator(&treated);
        let columns = treatment_first(&indicator, &study.covariates());
        let fit = LinearFit::fit(&columns, outcome).unwrap();
        for (kind, error) in KINDS[5..].iter().zip(errors) {
            let found = fit.estimate(1, *kind, Some(&clusters)).unwrap();
            close(found.standard_error, error, 1e-11);
            let matrix = fit.covariance(*kind, Some(&clusters)).unwrap();
            close(matrix[1][1].sqrt(), error, 1e-9);
        }
        for (coefficient, degrees) in [(1, degrees[0]), (2, degrees[1])] {
            let found = fit.estimate(coefficient, Covariance::Cr2, Some(&clusters)).unwrap();
            close(found.degrees, degrees, 1e-8);
        }
    }
}

#[test]
fn two_stage_equals_the_reference() {
    let (reference, table) = (json("causal/card_iv.json"), Table::read("causal/card_iv.csv"));
    let exogenous = table.columns(["exper", "black", "south", "married", "smsa"]);
    let [outcome, educ, near] = table.columns(["lwage", "educ", "nearc4"]);
    let run = |instruments: &[&[f64]], kind, clusters: Option<&[u32]>| {
        two_stage(outcome, educ, instruments, &exogenous, kind, clusters).unwrap()
    };
    let classic = run(&[near], Covariance::Classic, None);
    close(classic.estimate.value, &reference["tsls"], 1e-9);
    close(classic.estimate.standard_error, &reference["se_classic_n-k"], 1e-9);
    close(classic.first_stage_f, &reference["first_stage_F"], 1e-9);
    assert_eq!(classic.sargan, None);
    let robust = run(&[near], Covariance::Hc0, None);
    close(robust.estimate.standard_error, &reference["se_HC0"], 1e-9);

    // Three instruments; numbers by numpy from the textbook formulas.
    let product = |name: &str| -> Vec<f64> {
        table.column(name).iter().zip(near).map(|(x, z)| x * z).collect()
    };
    let (black, exper) = (product("black"), product("exper"));
    let clusters: Vec<u32> = (0..outcome.len()).map(|row| (row % 31) as u32).collect();
    for (kind, error) in [
        (Covariance::Classic, 0.04535326651896573),
        (Covariance::Hc0, 0.04535442960444505),
        (Covariance::Hc1, 0.04540738283862975),
        (Covariance::Hc2, 0.045438156272732524),
        (Covariance::Hc3, 0.04552211576586717),
        (Covariance::Cr1, 0.03907620800151137),
    ] {
        let found = run(&[near, &black, &exper], kind, Some(&clusters));
        close(found.estimate.value, 0.16680181368044472, 1e-9);
        close(found.estimate.standard_error, error, 1e-9);
        close(found.first_stage_f, 7.419731066651859, 1e-9);
        let sargan = found.sargan.unwrap();
        close(sargan.chi_squared, 2.2371773235872987, 1e-9);
        close(sargan.p, 0.3267406108704488, 1e-9);
        assert_eq!(sargan.degrees, 2);
    }
}

#[test]
fn first_stage_f_equals_statsmodels() {
    // OLS(t ~ x3 + x1 + x2).fit(cov_type=..., use_t=True).f_test("x1 = x2 = 0") of statsmodels.
    let table = Table::read("causal/formula_splitmix42.csv");
    let [y, t, x1, x2, x3] = table.columns(["y", "t", "x1", "x2", "x3"]);
    let (both, given) = ([x1, x2], [x3]);
    let clusters: Vec<u32> = (0..y.len() as u32).map(|row| row / 20).collect();
    for (kind, two, one) in [
        (Covariance::Hc1, 40.43669264047997, None),
        (Covariance::Hc3, 40.22188789234441, None),
        (Covariance::Cr1, 39.74704716056961, Some(65.76610879908738)),
    ] {
        let found = two_stage(y, t, &both, &given, kind, Some(&clusters)).unwrap();
        close(found.robust_first_stage_f.unwrap(), two, 1e-9);
        if let Some(f) = one {
            let found = two_stage(y, t, &[x1], &[x3, x2], kind, Some(&clusters)).unwrap();
            close(found.robust_first_stage_f.unwrap(), f, 1e-9);
        }
    }
    let classic = two_stage(y, t, &both, &given, Covariance::Classic, None).unwrap();
    close(classic.robust_first_stage_f.unwrap(), classic.first_stage_f, 1e-9);
}
