//! Parity of linear regression with the reference studies, and with numbers of 50 digits.

use super::*;
use crate::column::indicator;
use crate::difference_in_means;
use crate::tests::{Table, json};

#[test]
fn equals_the_reference_studies() {
    for name in ["nhefs", "ihdp_A_seed0", "formula_splitmix42", "nsw_dw"] {
        let study = Study::read(name);
        let (reference, outcome) = (&study.json, study.outcome());
        let (treated, covariates) = (study.treated(), study.covariates());
        let raw = matches!(name, "nhefs" | "nsw_dw");
        let naive = difference_in_means(&treated, outcome).unwrap();
        let expected = &reference["naive"];
        close(naive.estimate.value, &expected["ate"], 1e-9);
        close(naive.estimate.standard_error, &expected["se_welch"], 1e-9);
        close(naive.estimate.degrees, &expected["df"], 1e-9);
        close(naive.estimate.p_value(), &expected["p"], 1e-8);
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
                close(found.max_leverage, &expected["max_leverage"], 1e-9);
                assert_eq!(found.estimate.degrees, found.residual_degrees as f64);
                close(
                    found.classic_statistic,
                    found.estimate.value / expected["se_classic"].as_f64().unwrap(),
                    if raw { 1e-7 } else { 1e-9 },
                );
            }
        }
        let indicator = indicator(&treated);
        let mut columns = vec![indicator.as_slice()];
        columns.extend(&covariates);
        let fit = LinearFit::fit(&columns, outcome).unwrap();
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
        let mut columns = vec![indicator.as_slice()];
        columns.extend(study.covariates());
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
    close(classic.ols, &reference["ols"], 1e-9);
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
