//! Mixed logistic models against lme4's printed results for cbpp (`?cbpp`), and against the dense
//! computation of tests/reference/mixed_binary.py, whose digits are also those of glmmTMB.

use super::{intercepts, published};
use crate::tests::{Draw, close};
use crate::{MixedFit, mixed_binary};

/// A row for each animal of the herds: the period as indicators, the herd, and the outcome.
fn cbpp() -> (Vec<f64>, Vec<Vec<f64>>, Vec<u32>) {
    let table = published("cbpp");
    let [herds, cases, sizes, periods] = table.columns(["herd", "incidence", "size", "period"]);
    let (mut outcome, mut columns, mut groups) = (Vec::new(), vec![Vec::new(); 3], Vec::new());
    for (((herd, cases), size), period) in herds.iter().zip(cases).zip(sizes).zip(periods) {
        for animal in 0..*size as u32 {
            outcome.push(f64::from(u8::from(f64::from(animal) < *cases)));
            for (column, of_column) in columns.iter_mut().zip([2.0, 3.0, 4.0]) {
                column.push(f64::from(u8::from(*period == of_column)));
            }
            groups.push(*herd as u32 - 1);
        }
    }
    (outcome, columns, groups)
}

fn agrees(fit: &MixedFit, deviance: f64, deviations: &[f64], coefficients: &[[f64; 2]]) {
    assert!(fit.converged && !fit.singular);
    close(fit.criterion, deviance, 1e-9);
    for (found, expected) in fit.theta.iter().zip(deviations) {
        close(*found, *expected, 2e-5);
    }
    for (found, [value, error]) in fit.coefficients.iter().zip(coefficients) {
        close(found.value, *value, 2e-5);
        close(found.standard_error, *error, 2e-4);
        assert_eq!(found.degrees, f64::INFINITY);
    }
}

#[test]
fn cbpp_has_the_published_results() {
    let (outcome, columns, groups) = cbpp();
    assert_eq!(outcome.len(), 842);
    let fixed: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
    let fit = mixed_binary(&outcome, &fixed, &[intercepts(&groups)]).unwrap();
    let reference = [
        [-1.3985321507946746, 0.23247198683614312],
        [-0.9923327218789467, 0.3066424962054532],
        [-1.1286720751391401, 0.3266378486085465],
        [-1.5803138206911267, 0.4274365753936517],
    ];
    agrees(&fit, 555.003883097833, &[0.6422614221929175], &reference);
    // lme4 prints these; its search stops some 1e-4 before the optimum.
    let printed = [[-1.3983, 0.2312], [-0.9919, 0.3032], [-1.1282, 0.3228], [-1.5797, 0.4220]];
    for (found, [value, error]) in fit.coefficients.iter().zip(printed) {
        assert!((found.value - value).abs() < 1e-3 && (found.standard_error - error).abs() < 6e-3);
    }
    assert!((fit.theta[0] - 0.6421).abs() < 5e-4);
    // Its deviance is that of herds and periods, with binomial coefficients: 184.1, AIC 194.1.
    let table = published("cbpp");
    let log_factorial = |n: f64| (1..=n as u32).map(|k| f64::from(k).ln()).sum::<f64>();
    let sizes = table.column("incidence").iter().zip(table.column("size"));
    let ways: f64 = sizes
        .map(|(cases, size)| {
            log_factorial(*size) - log_factorial(*cases) - log_factorial(size - cases)
        })
        .sum();
    assert!((fit.criterion - 2.0 * ways - 184.0527).abs() < 1e-3, "{}", fit.criterion - 2.0 * ways);
    assert!((fit.aic() - 2.0 * ways - 194.0527).abs() < 1e-3);
}

#[test]
fn crossed_groups_equal_the_dense_computation() {
    let table = published("answers");
    let (models, problems) = (table.codes("model"), table.codes("problem"));
    let fixed = [table.column("prompt")];
    let reference =
        [[-0.21370158259575453, 0.45405983996450167], [0.6674666573665411, 0.2505096700801507]];
    let deviations = [0.9299322597460973, 0.9692594966278368];
    let terms = [intercepts(&models), intercepts(&problems)];
    let fit = mixed_binary(table.column("right"), &fixed, &terms).unwrap();
    agrees(&fit, 437.27704687154846, &deviations, &reference);
    assert_eq!(fit.parameters(), 4);
    // The order of terms changes nothing else.
    let terms = [intercepts(&problems), intercepts(&models)];
    let fit = mixed_binary(table.column("right"), &fixed, &terms).unwrap();
    agrees(&fit, 437.27704687154846, &[deviations[1], deviations[0]], &reference);
}

#[test]
fn groups_without_differences_are_singular() {
    let mut draw = Draw(4);
    let x: Vec<f64> = draw.column(400);
    // As many of each group have the outcome.
    let outcome: Vec<f64> = (0..400).map(|row| f64::from(u8::from(row / 20 % 2 == 0))).collect();
    let groups: Vec<u32> = (0..400).map(|row| row % 20).collect();
    let fit = mixed_binary(&outcome, &[&x], &[intercepts(&groups)]).unwrap();
    assert!(fit.singular && fit.random[0].covariance[0] < 1e-8, "{:?}", fit.theta);
    assert!(fit.coefficients.iter().all(|one| one.standard_error.is_finite()));
}

#[test]
fn outcomes_and_effects_of_other_kinds_are_refused() {
    let (mut outcome, columns, groups) = cbpp();
    let fixed: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
    let mut slopes = intercepts(&groups);
    slopes.slopes = vec![fixed[0]];
    let refusal = mixed_binary(&outcome, &fixed, &[slopes]).unwrap_err().to_string();
    assert!(refusal.contains("no slopes"), "{refusal}");
    let refusal = mixed_binary(&outcome, &[&outcome.clone()], &[intercepts(&groups)]);
    assert!(refusal.is_err());
    outcome[3] = 2.0;
    let refusal = mixed_binary(&outcome, &fixed, &[intercepts(&groups)]).unwrap_err().to_string();
    assert!(refusal.contains("it must be 0 or 1"), "{refusal}");
}
