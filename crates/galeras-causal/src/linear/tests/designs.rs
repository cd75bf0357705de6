//! Two-way clusters, weights and differences in differences: the numbers of
//! tests/reference/regress_designs.py, by statsmodels, linearmodels and dense matrices.

use crate::tests::{Study, close, slices};
use crate::{
    Covariance, LinearFit, RowDesign, adjusted_by_design, difference_in_differences,
    difference_in_means,
};

const ROWS: usize = 1000;

fn first() -> Vec<u32> {
    (0..ROWS as u32).map(|row| row / 50).collect()
}

fn second() -> Vec<u32> {
    (0..ROWS as u32).map(|row| row * 7 % 23).collect()
}

fn design(kind: Covariance) -> RowDesign<'static> {
    RowDesign { kind, clusters: None, second_clusters: None, weights: None }
}

#[test]
fn two_way_errors_equal_statsmodels() {
    let study = Study::read("formula_splitmix42");
    let (treated, outcome) = (study.treated(), study.outcome());
    let covariates = study.table.columns(["x1", "x2"]);
    let (first, second) = (first(), second());
    for (kind, error) in [
        (Covariance::Cr0, 0.07087690575105929),
        (Covariance::Cr1, 0.07390779542935956),
        (Covariance::Cr3, 0.0769301731531841),
    ] {
        let design =
            RowDesign { clusters: Some(&first), second_clusters: Some(&second), ..design(kind) };
        let found = adjusted_by_design(&treated, outcome, &covariates, design).unwrap().estimate;
        close(found.standard_error, error, 1e-9);
        assert_eq!(found.degrees, 19.0);
        // The columns may be exchanged.
        let other = RowDesign { clusters: Some(&second), second_clusters: Some(&first), ..design };
        let other = adjusted_by_design(&treated, outcome, &covariates, other).unwrap().estimate;
        close(other.standard_error, error, 1e-9);
        // Twice the same clusters are one column.
        let twice = RowDesign { second_clusters: Some(&first), ..design };
        let twice = adjusted_by_design(&treated, outcome, &covariates, twice).unwrap().estimate;
        let once = RowDesign { second_clusters: None, ..design };
        let once = adjusted_by_design(&treated, outcome, &covariates, once).unwrap().estimate;
        close(twice.standard_error, once.standard_error, 1e-12);
    }
    let clusters = RowDesign {
        clusters: Some(&first),
        second_clusters: Some(&second),
        ..design(Covariance::Cr2)
    };
    let refusal = adjusted_by_design(&treated, outcome, &covariates, clusters).unwrap_err();
    assert!(refusal.to_string().contains("use CR0, CR1 or CR3"), "{refusal}");
}

#[test]
fn contributions_of_rows_add_up_to_the_variance() {
    let study = Study::read("formula_splitmix42");
    let (treated, outcome) = (study.treated(), study.outcome());
    let covariates = study.table.columns(["x1", "x2"]);
    let weights: Vec<f64> = (0..ROWS).map(|row| 0.5 + (row * 37 % 101) as f64 / 40.0).collect();
    let clusters = first();
    let design =
        RowDesign { clusters: Some(&clusters), weights: Some(&weights), ..design(Covariance::Cr0) };
    let found = adjusted_by_design(&treated, outcome, &covariates, design).unwrap();
    let mut sums = [0.0; 20];
    found.influence.iter().zip(&clusters).for_each(|(part, code)| sums[*code as usize] += part);
    let variance: f64 = sums.iter().map(|sum| sum * sum).sum();
    close(variance.sqrt(), found.estimate.standard_error, 1e-9);
}

#[test]
fn weighted_regressions_equal_statsmodels() {
    let study = Study::read("formula_splitmix42");
    let (treated, outcome) = (study.treated(), study.outcome());
    let covariates = study.table.columns(["x1", "x2"]);
    let weights: Vec<f64> = (0..ROWS).map(|row| 0.5 + (row * 37 % 101) as f64 / 40.0).collect();
    let clusters = first();
    for (kind, error) in [
        (Covariance::Hc0, 0.06302389416809832),
        (Covariance::Hc1, 0.06315032136470503),
        (Covariance::Hc2, 0.0631955750946445),
        (Covariance::Hc3, 0.06336789629529319),
        (Covariance::Cr1, 0.061878945907954036),
        (Covariance::Cr3, 0.06364858765978078),
    ] {
        // The unit of the weights changes nothing.
        for unit in [1.0, 1e-7] {
            let weights: Vec<f64> = weights.iter().map(|weight| weight * unit).collect();
            let design =
                RowDesign { clusters: Some(&clusters), weights: Some(&weights), ..design(kind) };
            let found =
                adjusted_by_design(&treated, outcome, &covariates, design).unwrap().estimate;
            close(found.value, 1.8461350471161397, 1e-9);
            close(found.standard_error, error, 1e-9);
        }
    }
    let hc3 = RowDesign { weights: Some(&weights), ..design(Covariance::Hc3) };
    let found = adjusted_by_design(&treated, outcome, &[], hc3).unwrap().estimate;
    close(found.value, 2.5963831567061955, 1e-9);
    close(found.standard_error, 0.17429551144617672, 1e-9);
    // Equal weights are none, also far from zero.
    let far: Vec<f64> = outcome.iter().map(|y| y + 1e6).collect();
    let columns: Vec<Vec<f64>> = covariates.iter().map(|column| column.to_vec()).collect();
    let plain = LinearFit::fit(&slices(&columns), &far).unwrap();
    let equal = LinearFit::fit_weighted(&slices(&columns), &far, &[3.0; ROWS]).unwrap();
    for (found, expected) in equal.coefficients.iter().zip(&plain.coefficients) {
        close(*found, *expected, 1e-9);
    }
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let mut weights = weights.clone();
        weights[7] = bad;
        let design = RowDesign { weights: Some(&weights), ..hc3 };
        assert!(adjusted_by_design(&treated, outcome, &covariates, design).is_err(), "{bad}");
    }
}

#[test]
fn differences_in_differences_equal_statsmodels() {
    let study = Study::read("formula_splitmix42");
    let (treated, outcome) = (study.treated(), study.outcome());
    let covariates = study.table.columns(["x1"]);
    let after: Vec<f64> = (0..ROWS).map(|row| if row * 13 % 29 < 14 { 1.0 } else { 0.0 }).collect();
    let clusters = first();
    for (kind, error) in
        [(Covariance::Hc3, 0.18386267778424525), (Covariance::Cr1, 0.17242736865439873)]
    {
        let design = RowDesign { clusters: Some(&clusters), ..design(kind) };
        let found = difference_in_differences(&treated, &after, outcome, &covariates, design)
            .unwrap()
            .estimate;
        close(found.value, 0.26914591212721484, 1e-9);
        close(found.standard_error, error, 1e-9);
    }
    // Without covariates it is the change of one mean minus the change of the other.
    let hc3 = design(Covariance::Hc3);
    let found = difference_in_differences(&treated, &after, outcome, &[], hc3).unwrap().estimate;
    close(found.value, -0.05418345594533702, 1e-9);
    let effect = |time: f64| {
        let rows: Vec<usize> = (0..ROWS).filter(|row| after[*row] == time).collect();
        let arms: Vec<bool> = rows.iter().map(|row| treated[*row]).collect();
        let values: Vec<f64> = rows.iter().map(|row| outcome[*row]).collect();
        difference_in_means(&arms, &values).unwrap().value
    };
    close(found.value, effect(1.0) - effect(0.0), 1e-9);
    for bad in [0.5, f64::NAN] {
        let mut after = after.clone();
        after[3] = bad;
        assert!(difference_in_differences(&treated, &after, outcome, &[], hc3).is_err());
    }
    let never = [0.0; ROWS];
    let refusal = difference_in_differences(&treated, &never, outcome, &[], hc3).unwrap_err();
    assert!(refusal.to_string().contains("rows of an arm before or after"), "{refusal}");
}
