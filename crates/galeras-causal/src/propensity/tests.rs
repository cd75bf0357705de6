//! Tests of the propensity estimators against the reference files, and helpers for the files below.

mod cases;
mod properties;
mod sandwich;
mod small_samples;

use serde_json::{Value, json};

use crate::Estimate;
use crate::linear::LinearFit;
use crate::propensity::{
    Estimand, Propensity, aipw, aipw_treated, cross_fit_aipw, matching, stratification, weighting,
};
use crate::rank::{ascending, quantile};
use crate::tests::{Number, Study, numbers, slices};

/// Asserts a relative difference; absolute differences below the tolerance also pass.
#[track_caller]
fn close(what: &str, found: f64, expected: impl Number, tolerance: f64) {
    let expected = expected.number();
    let bound = tolerance * expected.abs().max(1e-3);
    assert!((found - expected).abs() <= bound, "{what}: {found} instead of {expected}");
}

const CLOSED: f64 = 1e-9;
const OPTIMISED: f64 = 1e-6;

/// Two covariates, a treatment and an outcome, in clusters or not.
#[derive(Default)]
struct Sample {
    columns: [Vec<f64>; 2],
    treated: Vec<bool>,
    outcome: Vec<f64>,
    clusters: Vec<u32>,
}

impl Sample {
    fn push(&mut self, covariates: [f64; 2], treated: bool, outcome: f64) {
        self.columns.iter_mut().zip(covariates).for_each(|(column, x)| column.push(x));
        self.treated.push(treated);
        self.outcome.push(outcome);
    }
}

fn scores(data: &Study, c: Option<f64>, expected: &Value) -> Propensity {
    let fit = Propensity::fit(&data.covariates(), &data.treated(), c).unwrap();
    close("intercept", fit.intercept, &expected["intercept"], OPTIMISED);
    for (found, coefficient) in fit.coefficients.iter().zip(numbers(&expected["coef"])) {
        close("coefficient", *found / coefficient, 1.0, OPTIMISED);
    }
    let (low, high) = super::logistic::range(&fit.scores);
    close("least score", low, &expected["min"], CLOSED);
    close("greatest score", high, &expected["max"], CLOSED);
    let sorted = ascending(&fit.scores);
    let quantiles = numbers(&expected["quantiles_1_25_50_75_99"]);
    for (percent, value) in [1, 25, 50, 75, 99].into_iter().zip(quantiles) {
        close("quantile", quantile(&sorted, percent, 100), value, CLOSED);
    }
    let outside = sorted.iter().filter(|e| **e < 0.05 || **e > 0.95).count();
    assert_eq!(outside as u64, expected["n_outside_0.05_0.95"].as_u64().unwrap());
    fit
}

fn weights(data: &Study, fit: &Propensity, clip: (f64, f64), expected: &Value) {
    let run = |estimand| {
        weighting(&data.covariates(), &data.treated(), data.outcome(), fit, estimand, clip, None)
            .unwrap()
    };
    let ate = run(Estimand::Ate);
    close("ate", ate.estimate.value, &expected["ate_hajek"], CLOSED);
    close("att", run(Estimand::Att).estimate.value, &expected["att"], CLOSED);
    close("atc", run(Estimand::Atc).estimate.value, &expected["atc"], CLOSED);
    close("ato", run(Estimand::Ato).estimate.value, &expected["ato_overlap"], CLOSED);
}

fn model(data: &Study, c: Option<f64>, expected: &Value) {
    let fit = scores(data, c, expected);
    let (x, t, y) = (data.covariates(), &data.treated(), data.outcome());
    let matched = matching(&fit.scores, t, y).unwrap();
    three([matched.ate, matched.att, matched.atc], &expected["match_tie_averaged"]);
    let strata = &expected["stratify"];
    let found = stratification(&fit.scores, t, y, None, None).unwrap();
    three([found.ate, found.att, found.atc], strata);
    close("k", found.strata_parameter, &strata["num_strata_param"], 0.0);
    assert_eq!(found.strata_kept as u64, strata["strata_kept"].as_u64().unwrap());
    assert_eq!(found.rows_kept as u64, strata["rows_kept"].as_u64().unwrap());
    weights(data, &fit, (0.05, 0.95), &expected["ipw_clip_05_95"]);
    weights(data, &fit, (0.0, 1.0), &expected["ipw_noclip"]);
    let stacked = weighting(&x, t, y, &fit, Estimand::Ate, (0.0, 1.0), None).unwrap();
    let ipw = &expected["ipw_stacked_noclip"];
    close("ipw", stacked.estimate.value, &ipw["ate"], CLOSED);
    close("ipw se", stacked.estimate.standard_error, &ipw["se"], CLOSED);
    let found = aipw(&x, t, y, &fit, (0.01, 0.99), None).unwrap();
    let armwise = &expected["aipw_armwise_clip_01_99"];
    close("aipw", found.estimate.value, &armwise["ate"], CLOSED);
}

/// The effects over all, treated and controls.
fn three(found: [Estimate; 3], expected: &Value) {
    for (estimate, name) in found.iter().zip(["ate", "att", "atc"]) {
        close(name, estimate.value, &expected[name], CLOSED);
    }
}

fn stack(data: &Study, expected: &Value) {
    let covariates = data.covariates();
    let (treated, outcome) = (&data.treated(), data.outcome());
    let fit = Propensity::fit(&covariates, treated, None).unwrap();
    let clip = (0.0, 1.0);
    let ipw = weighting(&covariates, treated, outcome, &fit, Estimand::Ate, clip, None).unwrap();
    let robust = aipw(&covariates, treated, outcome, &fit, clip, None).unwrap();
    for (name, estimate, mean) in
        [("ipw", ipw.estimate, ipw.control_mean), ("aipw", robust.estimate, robust.control_mean)]
    {
        let numbers = &expected[name];
        close(name, estimate.value, &numbers["ate"], CLOSED);
        close(name, mean, &numbers["pom0"], CLOSED);
        close(name, estimate.standard_error, &numbers["se"], CLOSED);
    }
}

fn all(name: &str) {
    let data = Study::read(name);
    model(&data, Some(1.0), &data.json["propensity"]["ridge_C1"]);
    model(&data, None, &data.json["propensity"]["mle"]);
    stack(&data, &data.json["teffects_stack_logit"]);
}

#[test]
fn equals_the_reference_studies() {
    for name in ["nhefs", "ihdp_A_seed0", "formula_splitmix42", "nsw_dw"] {
        println!("{name}");
        all(name);
    }
}

/// The least and greatest score of the reference, and the estimate from the rows of each fold by
/// definition.
#[test]
fn equals_the_cross_fitted_reference() {
    let expected = crate::tests::json("causal/crossfit.json");
    for name in ["formula_splitmix42", "nsw_dw"] {
        let data = Study::read(name);
        let (x, t, y) = (data.covariates(), data.treated(), data.outcome());
        let folds: Vec<u32> = (0..t.len() as u32).map(|row| row % 5).collect();
        let fit = cross_fit_aipw(&x, &t, y, &folds, None, (0.0, 1.0), None).unwrap();
        let (low, high) = super::logistic::range(&fit.scores);
        close("least", low, &expected[name]["e_min_max"][0], CLOSED);
        close("greatest", high, &expected[name]["e_min_max"][1], CLOSED);
        let mut effect = vec![0.0; t.len()];
        for fold in 0..5 {
            let means = [false, true].map(|arm| {
                let used = |row: &usize| folds[*row] != fold && t[*row] == arm;
                let rows: Vec<usize> = (0..t.len()).filter(used).collect();
                let pick = |column: &[f64]| rows.iter().map(|row| column[*row]).collect::<Vec<_>>();
                let columns: Vec<Vec<f64>> = x.iter().map(|column| pick(column)).collect();
                LinearFit::fit(&slices(&columns), &pick(y)).unwrap().coefficients.to_vec()
            });
            for row in (0..t.len()).filter(|row| folds[*row] == fold) {
                let [none, one] = means
                    .each_ref()
                    .map(|b| b[0] + x.iter().zip(&b[1..]).map(|(x, b)| x[row] * b).sum::<f64>());
                let e = fit.scores[row];
                let correction =
                    if t[row] { (y[row] - one) / e } else { (none - y[row]) / (1.0 - e) };
                effect[row] = one - none + correction;
            }
        }
        let n = t.len() as f64;
        let mean = effect.iter().sum::<f64>() / n;
        let squares: f64 = effect.iter().map(|effect| (effect - mean).powi(2)).sum();
        close("aipw", fit.estimate.value, mean, CLOSED);
        close("aipw se", fit.estimate.standard_error, squares.sqrt() / n, CLOSED);
    }
}

/// The numbers below are those of the reference algorithms for clusters of four rows each.
#[test]
fn equals_the_reference_with_clusters() {
    let data = Study::read("formula_splitmix42");
    let x = data.covariates();
    let (t, y) = (&data.treated(), data.outcome());
    let clusters: Vec<u32> = (0..t.len() as u32).map(|row| row / 4).collect();
    let clusters = Some(clusters.as_slice());
    let fit = Propensity::fit(&x, t, None).unwrap();
    let all = (0.0, 1.0);
    let ipw = weighting(&x, t, y, &fit, Estimand::Ate, all, clusters).unwrap().estimate;
    close("ipw", ipw.standard_error, 0.04033800274000907, CLOSED);
    let robust = aipw(&x, t, y, &fit, all, clusters).unwrap().estimate;
    close("aipw", robust.standard_error, 0.03921613645261484, CLOSED);
    let ridge = Propensity::fit(&x, t, Some(1.0)).unwrap();
    let ipw = weighting(&x, t, y, &ridge, Estimand::Ate, all, clusters).unwrap().estimate;
    close("ridge", ipw.standard_error, 0.04024807119681362, CLOSED);
}

/// The numbers of tests/reference/regress_designs.py: the stack of estimating equations, whose
/// derivatives are numeric.
#[test]
fn the_effect_on_the_treated_equals_the_reference() {
    let data = Study::read("formula_splitmix42");
    let x = data.table.columns(["x1", "x2", "x3", "x4"]);
    let (t, y) = (&data.treated(), data.outcome());
    let clusters: Vec<u32> = (0..t.len() as u32).map(|row| row / 4).collect();
    let fit = Propensity::fit(&x, t, None).unwrap();
    for (clusters, error) in
        [(None, 0.0468381972945372), (Some(clusters.as_slice()), 0.045059293057257366)]
    {
        let found = aipw_treated(&x, t, y, &fit, (0.0, 1.0), clusters).unwrap();
        close("att", found.estimate.value, 2.079976141989466, CLOSED);
        close("att se", found.estimate.standard_error, error, OPTIMISED);
        let treated = y.iter().zip(t).filter(|(_, t)| **t).map(|(y, _)| *y);
        let mean = crate::compensated::mean(&treated.collect::<Vec<f64>>());
        close("mean", found.control_mean + found.estimate.value, mean, CLOSED);
    }
}

/// The numbers below are those of the reference algorithms for scores with ties and few strata.
#[test]
fn equals_the_reference_with_ties() {
    let data = Study::read("formula_splitmix42");
    let x = data.covariates();
    let (t, y) = (&data.treated(), data.outcome());
    let fit = Propensity::fit(&x, t, Some(1.0)).unwrap();
    let six = stratification(&fit.scores, t, y, Some(6), None).unwrap();
    let expected =
        json!({ "ate": 2.007289802346608, "att": 2.1370865827501624, "atc": 1.8855424346812577 });
    three([six.ate, six.att, six.atc], &expected);
    assert_eq!((six.strata_parameter, six.strata_kept, six.rows_kept), (6.0, 7, 1000));
    let coarse: Vec<f64> =
        fit.scores.iter().map(|e| (e * 100.0).round_ties_even() / 100.0).collect();
    let strata = stratification(&coarse, t, y, None, None).unwrap();
    let expected =
        json!({ "ate": 2.1231626657553786, "att": 2.194668645628307, "atc": 2.0497749495700046 });
    three([strata.ate, strata.att, strata.atc], &expected);
    assert_eq!((strata.strata_parameter, strata.strata_kept, strata.rows_kept), (25.0, 18, 770));
    let coarse: Vec<f64> = fit.scores.iter().map(|e| (e * 64.0).round_ties_even() / 64.0).collect();
    let matched = matching(&coarse, t, y).unwrap();
    let expected =
        json!({ "ate": 2.0082718056758875, "att": 2.109151775288214, "atc": 1.9136479582100627 });
    three([matched.ate, matched.att, matched.atc], &expected);
    let expected = json!({
        "ate_hajek": 1.97387919786639, "att": 2.101000302313796, "atc": 1.847958046614714,
        "ato_overlap": 1.977006569138025,
    });
    weights(&data, &fit, (0.3, 0.7), &expected);
}
