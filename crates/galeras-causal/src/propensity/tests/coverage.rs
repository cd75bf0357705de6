//! Coverage of the 95 % intervals on synthetic samples.
//!
//! Slow, so it is not run by default. The design: 500 rows, two normal covariates that drive both
//! treatment and outcome; the effect is one for all, or varies with a covariate.

use crate::Estimate;
use crate::propensity::{
    Estimand, Propensity, aipw, cross_fit_aipw, matching, partially_linear, regression_adjustment,
    stratification, weighting,
};
use crate::tests::{Draw, slices};

const SAMPLES: u64 = 2000;
const CLIP: (f64, f64) = (0.01, 0.99);

struct Sample {
    columns: Vec<Vec<f64>>,
    scores: Vec<f64>,
    treated: Vec<bool>,
    outcome: Vec<f64>,
}

/// Rows whose effect is `1 + slope a`.
fn sample(seed: u64, rows: usize, slope: f64) -> Sample {
    let mut draw = Draw(seed.wrapping_mul(0x2545_F491_4F6C_DD1D));
    let mut columns = vec![Vec::new(), Vec::new()];
    let (mut scores, mut treated, mut outcome) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rows {
        let (a, b) = (draw.normal(), draw.normal());
        let e = 1.0 / (1.0 + (-(0.5 * a - 0.4 * b)).exp());
        let t = draw.uniform() < e;
        columns[0].push(a);
        columns[1].push(b);
        scores.push(e);
        treated.push(t);
        let effect = if t { 1.0 + slope * a } else { 0.0 };
        outcome.push(1.0 + a + 0.5 * b + effect + draw.normal());
    }
    Sample { columns, scores, treated, outcome }
}

/// The effects in the population over all, treated, control and overlapping units.
fn truth(slope: f64) -> [f64; 4] {
    let many = sample(1, 2_000_000, slope);
    let (mut effects, mut weights) = ([0.0; 4], [0.0; 4]);
    for (e, a) in many.scores.iter().zip(&many.columns[0]) {
        for (place, weight) in [1.0, *e, 1.0 - e, e * (1.0 - e)].into_iter().enumerate() {
            effects[place] += weight * (1.0 + slope * a);
            weights[place] += weight;
        }
    }
    [0, 1, 2, 3].map(|place| effects[place] / weights[place])
}

/// Estimates with the position of their truth; with a common effect also those that assume one.
fn estimates(data: &Sample, common: bool) -> Vec<(&'static str, usize, Estimate)> {
    let x = slices(&data.columns);
    let (t, y) = (&data.treated, &data.outcome);
    let fit = Propensity::fit(&x, t, None).unwrap();
    let matched = matching(&fit.scores, t, y).unwrap();
    let known = matching(&data.scores, t, y).unwrap();
    let weighted =
        |estimand| weighting(&x, t, y, &fit, estimand, (0.05, 0.95), None).unwrap().estimate;
    let folds: Vec<u32> = (0..t.len() as u32).map(|row| row % 5).collect();
    let crossed = cross_fit_aipw(&x, t, y, &folds, None, false, CLIP, None).unwrap();
    let mut all = vec![
        ("matching ate", 0, matched.ate),
        ("matching att", 1, matched.att),
        ("matching atc", 2, matched.atc),
        ("matching on known scores ate", 0, known.ate),
        ("matching on known scores att", 1, known.att),
        ("matching on known scores atc", 2, known.atc),
        ("weighting ate", 0, weighted(Estimand::Ate)),
        ("weighting att", 1, weighted(Estimand::Att)),
        ("weighting atc", 2, weighted(Estimand::Atc)),
        ("weighting ato", 3, weighted(Estimand::Ato)),
        ("aipw by arm", 0, aipw(&x, t, y, &fit, CLIP, false, None).unwrap().estimate),
        ("aipw additive", 0, aipw(&x, t, y, &fit, CLIP, true, None).unwrap().estimate),
        ("regression", 0, regression_adjustment(&x, t, y, None).unwrap().estimate),
        ("cross-fit aipw", 0, crossed.estimate),
    ];
    if common {
        let strata = stratification(&fit.scores, t, y, None, None).unwrap();
        let known = stratification(&data.scores, t, y, None, None).unwrap();
        let linear = partially_linear(&x, t, y, &folds, None, None).unwrap();
        all.extend([
            ("stratification ate", 0, strata.ate),
            ("stratification att", 1, strata.att),
            ("stratification atc", 2, strata.atc),
            ("stratification on known scores ate", 0, known.ate),
            ("stratification on known scores att", 1, known.att),
            ("stratification on known scores atc", 2, known.atc),
            ("partially linear", 0, linear.estimate),
        ]);
    }
    all
}

/// Name, share of intervals that hold the truth, mean error, mean standard error.
fn rates(slope: f64) -> Vec<(&'static str, f64, f64, f64)> {
    let truth = truth(slope);
    let mut rates: Vec<(&str, f64, f64, f64)> = Vec::new();
    for seed in 1..=SAMPLES {
        let data = sample(seed + 1, 500, slope);
        for (place, (name, estimand, estimate)) in
            estimates(&data, slope == 0.0).into_iter().enumerate()
        {
            if rates.len() <= place {
                rates.push((name, 0.0, 0.0, 0.0));
            }
            let (low, high) = estimate.interval(0.05);
            let truth = truth[estimand];
            let share = 1.0 / SAMPLES as f64;
            rates[place].1 += share * f64::from(u8::from(low <= truth && truth <= high));
            rates[place].2 += share * (estimate.value - truth);
            rates[place].3 += share * estimate.standard_error;
        }
    }
    rates
}

#[test]
#[ignore = "takes some seconds"]
fn intervals_have_their_coverage() {
    let found: Vec<_> = [0.0, 0.5].into_iter().flat_map(rates).collect();
    // Matching and strata take estimated scores as known, which makes their intervals wide.
    let right = |(name, rate, ..): &(&str, f64, f64, f64)| {
        let wide = ["matching a", "stratification a"].iter().any(|start| name.starts_with(start));
        *rate > 0.93 && *rate < if wide { 1.0 } else { 0.97 }
    };
    assert!(found.iter().all(right), "name, coverage, bias, mean standard error: {found:#?}");
}
