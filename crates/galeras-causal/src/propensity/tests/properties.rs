//! What must not change, or must change in a known way, on arbitrary samples.

use proptest::prelude::*;

use super::{Sample, close};
use crate::Estimate;
use crate::propensity::{Estimand, Propensity, aipw, matching, stratification, weighting};
use crate::tests::{Draw, slices};

fn sample(seed: u64) -> Sample {
    let (mut draw, mut data) = (Draw(seed), Sample::default());
    for _ in 0..150 {
        let (a, b) = (draw.normal(), (4.0 * draw.uniform()).floor());
        let t = draw.uniform() < 1.0 / (1.0 + (0.3 * b - 0.5 * a - 0.4).exp());
        data.push([a, b], t, a + b + 2.0 * f64::from(u8::from(t)) + draw.normal());
    }
    data
}

/// All, treated, control and overlap effects by weighting, then matching, strata, models.
fn estimates(data: &Sample, c: Option<f64>) -> Vec<Estimate> {
    let x = slices(&data.columns);
    let (t, y) = (&data.treated, &data.outcome);
    let fit = Propensity::fit(&x, t, c).unwrap();
    let weigh =
        |estimand| weighting(&x, t, y, &fit, estimand, (0.25, 0.75), None).unwrap().estimate;
    let matched = matching(&fit.scores, t, y).unwrap();
    let strata = stratification(&fit.scores, t, y, Some(2), None).unwrap();
    vec![
        weigh(Estimand::Ate),
        weigh(Estimand::Att),
        weigh(Estimand::Atc),
        weigh(Estimand::Ato),
        matched.ate,
        matched.att,
        matched.atc,
        strata.ate,
        strata.att,
        strata.atc,
        aipw(&x, t, y, &fit, (0.01, 0.99), None).unwrap().estimate,
    ]
}

/// Where each estimate goes when the arms change their names.
const SWAPPED: [usize; 11] = [0, 2, 1, 3, 4, 6, 5, 7, 9, 8, 10];

fn equal(found: &[Estimate], expected: &[Estimate], factor: f64) {
    for (a, b) in found.iter().zip(expected) {
        close("value", a.value, factor * b.value, 1e-8);
        close("error", a.standard_error, factor.abs() * b.standard_error, 1e-8);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..Default::default() })]

    #[test]
    fn the_outcome_may_be_shifted_and_scaled(seed: u64, shift in -1e3..1e3, factor in 0.01..50.0) {
        let mut data = sample(seed);
        let before = estimates(&data, None);
        data.outcome.iter_mut().for_each(|y| *y = factor * *y + shift);
        equal(&estimates(&data, None), &before, factor);
    }

    #[test]
    fn covariates_may_be_shifted_and_scaled(seed: u64, shift in -1e3..1e3, factor in 0.01..50.0) {
        let mut data = sample(seed);
        let x = slices(&data.columns);
        let before = Propensity::fit(&x, &data.treated, None).unwrap();
        data.columns[0].iter_mut().for_each(|x| *x = factor * *x + shift);
        let after = Propensity::fit(&slices(&data.columns), &data.treated, None).unwrap();
        for (a, b) in after.scores.iter().zip(&before.scores) {
            close("score", *a, *b, 1e-9);
        }
        close("coefficient", factor * after.coefficients[0], before.coefficients[0], 1e-7);
    }

    #[test]
    fn rows_may_be_reversed(seed: u64) {
        let mut data = sample(seed);
        let before = estimates(&data, Some(1.0));
        data.columns.iter_mut().for_each(|column| column.reverse());
        data.treated.reverse();
        data.outcome.reverse();
        let after = estimates(&data, Some(1.0));
        // Scores differ by rounding, which may order ties of matching differently.
        for place in [0, 1, 2, 3, 10] {
            equal(&after[place..=place], &before[place..=place], 1.0);
        }
    }

    #[test]
    fn arms_may_change_their_names(seed: u64) {
        let mut data = sample(seed);
        let before = estimates(&data, None);
        data.treated.iter_mut().for_each(|t| *t = !*t);
        let after = estimates(&data, None);
        for place in [0, 1, 2, 3, 10] {
            let other = SWAPPED[place];
            equal(&after[place..=place], &before[other..=other], -1.0);
        }
    }

    #[test]
    fn matching_ignores_row_order_and_arm_names(seed: u64) {
        let data = sample(seed);
        // Exact binary fractions, so that distances are the same from either side.
        let mut scores: Vec<f64> =
            data.columns[0].iter().map(|a| ((a + 8.0) * 64.0).floor() / 1024.0).collect();
        let (mut treated, mut outcome) = (data.treated, data.outcome);
        let before = matching(&scores, &treated, &outcome).unwrap();
        scores.reverse();
        outcome.reverse();
        treated.reverse();
        treated.iter_mut().for_each(|t| *t = !*t);
        scores.iter_mut().for_each(|e| *e = 1.0 - *e);
        let after = matching(&scores, &treated, &outcome).unwrap();
        let found = [after.ate, after.att, after.atc];
        equal(&found, &[before.ate, before.atc, before.att], -1.0);
    }

    #[test]
    fn nothing_panics(
        rows in prop::collection::vec(
            (prop::num::f64::ANY, prop::num::f64::ANY, any::<bool>(), prop::num::f64::ANY, 0..4_u32),
            0..40,
        ),
    ) {
        type Columns = (Vec<f64>, Vec<f64>, Vec<bool>, Vec<f64>, Vec<u32>);
        let (a, b, t, y, clusters): Columns = rows.into_iter().collect();
        let _ = matching(&a, &t, &y);
        let _ = stratification(&a, &t, &y, Some(2), Some(&clusters));
        if let Ok(fit) = Propensity::fit(&[&a, &b], &t, Some(1.0)) {
            let _ = weighting(&[&a, &b], &t, &y, &fit, Estimand::Ate, (0.0, 1.0), Some(&clusters));
            let _ = aipw(&[&a, &b], &t, &y, &fit, (0.0, 1.0), Some(&clusters));
        }
    }
}
