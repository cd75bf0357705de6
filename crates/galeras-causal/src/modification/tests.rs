//! Tests of effect modification: numbers of statsmodels and pandas, invariances, refusals.

use proptest::prelude::*;

use super::*;
use crate::tests::{Number, Table, near};

#[track_caller]
fn close(found: f64, expected: impl Number) {
    near(found, expected, 1e-9, 1e-12);
}

#[track_caller]
fn estimated(found: &Modification, (value, error): (f64, f64), degrees: f64, p: f64) {
    close(found.estimate.value, value);
    close(found.estimate.standard_error, error);
    assert_eq!(found.estimate.degrees, degrees);
    near(found.estimate.p_value(), p, 1e-6, 0.0);
}

fn grouped(found: &Modification, low: f64, expected: &[(f64, usize, f64, f64)]) {
    assert_eq!(found.groups.len(), expected.len());
    let mut edge = low;
    for (found, (high, n, mean, error)) in found.groups.iter().zip(expected) {
        close(found.low, edge);
        close(found.high, *high);
        assert_eq!(found.n, *n);
        let effect = found.effect.as_ref().unwrap();
        close(effect.value, *mean);
        close(effect.standard_error, *error);
        edge = *high;
    }
}

#[test]
fn paired_slopes_are_those_of_statsmodels() {
    // OLS(...).fit(cov_type="HC3", use_t=True) and pandas.qcut on differences y - 2 x2.
    let table = Table::read("causal/formula_splitmix42.csv");
    let [y, x1, x2, x3] = table.columns(["y", "x1", "x2", "x3"]);
    let differences: Vec<f64> = y.iter().zip(x2).map(|(y, x2)| y - 2.0 * x2).collect();
    let found = modification(&differences, x1, None).unwrap();
    estimated(&found, (2.2354894922486155, 0.04281887825065295), 998.0, 1.320856094137289e-287);
    grouped(
        &found,
        -0.9991109134737035,
        &[
            (-0.6214057965078866, 200, 8.045075161841412, 0.07776409624144319),
            (-0.24298782387345907, 200, 9.292079356101139, 0.07976059621629834),
            (0.18393028796256056, 200, 10.858261034377426, 0.08738539472935644),
            (0.5744847011289544, 200, 12.432597082888856, 0.10415483546040734),
            (0.9981053448426525, 200, 14.268407065057676, 0.1154540227031894),
        ],
    );
    let found = modification(&differences, x3, None).unwrap();
    estimated(&found, (-0.4824152832837814, 0.08177272042168898), 998.0, 4.989568745238708e-9);
}

#[test]
fn quintiles_that_coincide_are_one() {
    let modifier = [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 3.0, 5.0, 8.0];
    let differences = [1.0, 3.0, 2.0, 5.0, 4.0, 2.0, 7.0, 1.0, 0.0, 6.0, 3.0, 9.0, 2.0, 11.0];
    let found = modification(&differences, &modifier, None).unwrap();
    estimated(&found, (1.7209981536895855, 1.503279234709618), 12.0, 0.27460073698649373);
    let edges: Vec<f64> = found.groups.iter().map(|group| group.high).collect();
    assert_eq!(edges, [1.0, 2.0, 2.4, 8.0]);
    let sizes: Vec<usize> = found.groups.iter().map(|group| group.n).collect();
    assert_eq!(sizes, [7, 4, 0, 3]);
    // No unit lies above 2 and at most 2.4.
    let few = Refusal::TooFew { what: "pairs", found: 0, needed: 2 };
    assert_eq!(found.groups[2].effect, Err(few));
    let effect = found.groups[3].effect.as_ref().unwrap();
    close(effect.value, 22.0 / 3.0);
    close(effect.standard_error, 2.728450923957484);
    // All but the highest quintile coincide: two values are two groups.
    let rare: Vec<f64> = (0..20).map(|row| f64::from(u8::from(row >= 18))).collect();
    let differences: Vec<f64> = (0..20).map(|row| f64::from(row * row % 7)).collect();
    let found = modification(&differences, &rare, None).unwrap();
    let groups: Vec<_> = found.groups.iter().map(|one| (one.low, one.high, one.n)).collect();
    assert_eq!(groups, [(0.0, 0.0, 18), (1.0, 1.0, 2)]);
}

#[test]
fn interactions_are_those_of_statsmodels() {
    let table = Table::read("causal/nsw_dw.csv");
    let treated = table.treated("treat");
    let [outcome, age] = table.columns(["re78", "age"]);
    let found = interaction(&treated, outcome, age, &[], None).unwrap();
    estimated(&found, (607.5965972023287, 559.7713012094258), 441.0, 0.2783210456094246);
    grouped(
        &found,
        17.0,
        &[
            (19.0, 106, 918.2524167701549, 959.9524643282723),
            (23.0, 97, 757.8717076637186, 1185.7805027450777),
            (25.4, 64, 292.94762723462645, 1793.2800536769369),
            (30.0, 95, 3380.577083962974, 1966.530668739843),
            (55.0, 83, 3050.171036109293, 1357.2048505632322),
        ],
    );
    let table = Table::read("causal/nhefs.csv");
    let treated = table.treated("qsmk");
    let [outcome, weight] = table.columns(["wt82_71", "wt71"]);
    let found = interaction(&treated, outcome, weight, &[], None).unwrap();
    estimated(&found, (0.4921115498351483, 0.5368548603217242), 1562.0, 0.3594641171323471);
    let table = Table::read("causal/formula_splitmix42.csv");
    let treated = table.treated("t");
    let [outcome, x1] = table.columns(["y", "x1"]);
    let found = interaction(&treated, outcome, x1, &[], None).unwrap();
    estimated(&found, (0.7085666484576479, 0.0892728155214538), 996.0, 5.550650868004907e-15);
}

#[test]
fn interactions_are_adjusted_as_by_statsmodels() {
    // OLS(re78 ~ treat x age + educ + black).fit(cov_type="HC3", use_t=True), age standardised;
    // by fifths of age OLS(re78 ~ treat + educ + black + age) with the same errors.
    let table = Table::read("causal/nsw_dw.csv");
    let treated = table.treated("treat");
    let [outcome, age, educ, black] = table.columns(["re78", "age", "educ", "black"]);
    let found = interaction(&treated, outcome, age, &[educ, black, age], None).unwrap();
    estimated(&found, (594.1518237865796, 567.4104769157208), 439.0, 0.2956163753812612);
    grouped(
        &found,
        17.0,
        &[
            (19.0, 106, 842.3079134442478, 952.9374248804413),
            (23.0, 97, 85.95064870318173, 1216.8952544133032),
            (25.4, 64, 736.7219582179744, 1686.0889056356607),
            (30.0, 95, 3237.381904618711, 1910.570525176989),
            (55.0, 83, 3210.370107148572, 1397.1150587096658),
        ],
    );
    let twice = interaction(&treated, outcome, age, &[educ, black, educ], None);
    assert_eq!(twice, Err(Refusal::Collinear { column: ColumnRef::Covariate(2) }));
    let arm: Vec<f64> = treated.iter().map(|arm| f64::from(u8::from(*arm))).collect();
    let same = interaction(&treated, outcome, age, &[&arm], None);
    assert_eq!(same, Err(Refusal::Collinear { column: ColumnRef::Covariate(0) }));
}

#[test]
fn overlap_weights_within_fifths_are_those_of_a_logistic_regression() {
    // With numpy: in each fifth of age Newton's steps to the logistic regression of treat on educ,
    // black and age, then means weighted by 1 - e and e.
    let table = Table::read("causal/nsw_dw.csv");
    let treated = table.treated("treat");
    let [outcome, age, educ, black] = table.columns(["re78", "age", "educ", "black"]);
    let columns: [&[f64]; 3] = [educ, black, age];
    let found = overlap_interaction(&treated, outcome, age, &columns, None).unwrap();
    let expected = [
        (106, 861.6011035758038),
        (97, 76.03756423702362),
        (64, 752.0029187374939),
        (95, 3233.1126755097275),
        (83, 3209.5394142819005),
    ];
    for (group, (n, effect)) in found.groups.iter().zip(expected) {
        let found = group.effect.as_ref().unwrap();
        assert_eq!(group.n, n);
        assert!((found.value - effect).abs() < 1e-6 * effect, "{found:?} {effect}");
        assert!(found.standard_error > 500.0 && found.degrees < n as f64, "{found:?}");
    }
    // The change along the modifier is that of the regression.
    let plain = interaction(&treated, outcome, age, &columns, None).unwrap();
    assert_eq!(found.estimate, plain.estimate);
    // A covariate has the same mean in both arms of each fifth: what it adds changes no effect.
    let more: Vec<f64> = outcome.iter().zip(educ).map(|(y, educ)| y + 1000.0 * educ).collect();
    let shifted = overlap_interaction(&treated, &more, age, &columns, None).unwrap();
    for (one, other) in found.groups.iter().zip(&shifted.groups) {
        let [one, other] = [one, other].map(|group| group.effect.as_ref().unwrap().value);
        assert!((one - other).abs() < 1e-5, "{one} {other}");
    }
}

#[test]
fn clusters_have_the_errors_of_bell_and_mccaffrey() {
    // The definition of CR2, with numpy: clusters of 20 rows in order; of every 30th row.
    let table = Table::read("causal/formula_splitmix42.csv");
    let [y, x1, x2] = table.columns(["y", "x1", "x2"]);
    let differences: Vec<f64> = y.iter().zip(x2).map(|(y, x2)| y - 2.0 * x2).collect();
    let clusters: Vec<u32> = (0..y.len() as u32).map(|row| row / 20).collect();
    let found = modification(&differences, x1, Some(&clusters)).unwrap();
    close(found.estimate.value, 2.2354894922486155);
    close(found.estimate.standard_error, 0.04129629738995067);
    assert!((30.0..50.0).contains(&found.estimate.degrees), "{}", found.estimate.degrees);
    let first = found.groups[0].effect.as_ref().unwrap();
    close(first.value, 8.045075161841412);
    close(first.standard_error, 0.08001141420729642);
    // HC2 of statsmodels, where every row is a cluster.
    let alone: Vec<u32> = (0..y.len() as u32).collect();
    let found = modification(&differences, x1, Some(&alone)).unwrap();
    close(found.estimate.standard_error, 0.04275612756816612);
    let table = Table::read("causal/nsw_dw.csv");
    let treated = table.treated("treat");
    let [outcome, age] = table.columns(["re78", "age"]);
    let clusters: Vec<u32> = (0..age.len() as u32).map(|row| row % 30).collect();
    let found = interaction(&treated, outcome, age, &[], Some(&clusters)).unwrap();
    close(found.estimate.value, 607.5965972023295);
    close(found.estimate.standard_error, 521.262735899322);
}

#[test]
fn impossible_modifiers_are_refused() {
    let rows: Vec<f64> = (0..12).map(f64::from).collect();
    let wild = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0, 5.0, 3.0, 5.0, 8.0];
    let constant = |column| Err(Refusal::Constant(column));
    assert_eq!(modification(&wild, &[0.1; 12], None), constant(ColumnRef::Modifier));
    assert_eq!(modification(&[0.1; 12], &rows, None), constant(ColumnRef::Differences));
    let few = |what, found, needed| Err(Refusal::TooFew { what, found, needed });
    assert_eq!(modification(&wild[..9], &rows[..9], None), few("pairs", 9, 10));
    assert_eq!(modification(&[], &[], None), few("pairs", 0, 10));
    // A line through all points.
    let line: Vec<f64> = rows.iter().map(|row| 0.3 * row + 0.7).collect();
    assert!(matches!(modification(&line, &rows, None), Err(Refusal::Other(_))));
    // One row alone has another value, so that its residual is zero whatever it is.
    let mut alone = [0.0; 12];
    alone[7] = 1.0;
    let found = modification(&wild, &alone, None);
    assert!(matches!(found, Err(Refusal::Leverage { row: 7, .. })), "{found:?}");
    assert!(matches!(modification(&wild, &rows[..11], None), Err(Refusal::Other(_))));
    assert!(matches!(modification(&[f64::NAN; 12], &rows, None), Err(Refusal::Other(_))));
    assert!(modification(&[f64::MAX, f64::MIN].repeat(6), &rows, None).is_err());

    let arms: Vec<bool> = (0..12).map(|row| row % 2 == 0).collect();
    assert_eq!(interaction(&arms, &wild, &[0.1; 12], &[], None), constant(ColumnRef::Modifier));
    assert_eq!(interaction(&arms, &[0.1; 12], &rows, &[], None), constant(ColumnRef::Outcome));
    let halves: Vec<f64> = arms.iter().map(|arm| f64::from(u8::from(*arm))).collect();
    let collinear = Refusal::Collinear { column: ColumnRef::ModifierInArm };
    assert_eq!(interaction(&arms, &wild, &halves, &[], None), Err(collinear));
    assert_eq!(interaction(&arms[..9], &wild[..9], &rows[..9], &[], None), few("units", 9, 10));
    let all = [true; 12];
    assert_eq!(interaction(&all, &wild, &rows, &[], None), few("control units", 0, 3));
    assert!(matches!(interaction(&all[..11], &wild, &rows, &[], None), Err(Refusal::Other(_))));
}

#[test]
fn groups_without_an_arm_have_no_effect() {
    let arms: Vec<bool> = (0..20).map(|row| row >= 8).collect();
    let rows: Vec<f64> = (0..20).map(f64::from).collect();
    let outcome: Vec<f64> = (0..20).map(|row| f64::from(row * row % 11)).collect();
    let found = interaction(&arms, &outcome, &rows, &[], None).unwrap();
    let known: Vec<bool> = found.groups.iter().map(|group| group.effect.is_ok()).collect();
    assert_eq!(known, [false; 5]);
    let arms: Vec<bool> = (0..20).map(|row| row >= 9 || row == 1).collect();
    let found = interaction(&arms, &outcome, &rows, &[], None).unwrap();
    let known: Vec<bool> = found.groups.iter().map(|group| group.effect.is_ok()).collect();
    // The first group has one row in an arm, and so no standard error.
    assert_eq!(known, [false; 5]);
    let few = Refusal::TooFew { what: "treated rows", found: 1, needed: 2 };
    assert_eq!(found.groups[0].effect, Err(few));
}

/// Twelve units and more with different modifiers.
fn units() -> impl Strategy<Value = Vec<(bool, f64, f64)>> {
    let unit = (any::<bool>(), -8.0..8.0, (-6_i32..6).prop_map(f64::from));
    proptest::collection::vec(unit, 0..40).prop_map(|mut units| {
        for row in 0..12 {
            units.push((row % 2 == 0, f64::from(row * row % 5), f64::from(row * row % 7)));
        }
        units
    })
}

fn of(units: &[(bool, f64, f64)], scale: f64, shift: f64, unit: f64) -> [Modification; 2] {
    let scaled = units.iter().map(|one| (one.0, one.1 * unit + shift, one.2 * scale + shift));
    let (treated, outcome, modifier): (Vec<bool>, Vec<f64>, Vec<f64>) = scaled.collect();
    [
        modification(&outcome, &modifier, None).unwrap(),
        interaction(&treated, &outcome, &modifier, &[], None).unwrap(),
    ]
}

fn alike(a: &[Modification; 2], b: &[Modification; 2], sign: f64, tolerance: f64) {
    for (a, b) in a.iter().zip(b) {
        let scale = tolerance * b.estimate.standard_error;
        assert!((a.estimate.value - sign * b.estimate.value).abs() < scale, "{a:?} {b:?}");
        assert!((a.estimate.standard_error - b.estimate.standard_error).abs() < scale);
    }
}

proptest! {
    #[test]
    fn slopes_are_per_deviation(units in units()) {
        let found = of(&units, 1.0, 0.0, 1.0);
        alike(&of(&units, 3.7, 0.0, 1.0), &found, 1.0, 1e-9);
        alike(&of(&units, -1.0, 0.0, 1.0), &found, -1.0, 1e-9);
        alike(&of(&units, 1.0, 1048.0, 1.0), &found, 1.0, 1e-8);
        alike(&of(&units, 1e150, 0.0, 1.0), &found, 1.0, 1e-9);
        alike(&of(&units, 1e-200, 0.0, 1.0), &found, 1.0, 1e-9);
        alike(&of(&units, 1.0, 0.0, -1.0), &found, -1.0, 1e-9);
        let mut turned = units.clone();
        turned.reverse();
        alike(&of(&turned, 1.0, 0.0, 1.0), &found, 1.0, 1e-9);
    }

    #[test]
    fn groups_are_a_partition(units in units()) {
        for found in of(&units, 1.0, 0.0, 1.0) {
            prop_assert_eq!(found.groups.iter().map(|group| group.n).sum::<usize>(), units.len());
            let values = found.groups.iter().all(|group| group.low == group.high);
            let touches = |two: &[ModifierGroup]| (two[0].high < two[1].low) == values;
            prop_assert!(found.groups.windows(2).all(touches));
            prop_assert!(found.groups.windows(2).all(|two| two[0].high <= two[1].low));
            prop_assert!(values || found.groups.iter().all(|group| group.low < group.high));
        }
    }

    #[test]
    fn exchanged_arms_exchange_the_sign(units in units()) {
        let found = of(&units, 1.0, 0.0, 1.0);
        let other: Vec<_> = units.iter().map(|unit| (!unit.0, unit.1, unit.2)).collect();
        let other = of(&other, 1.0, 0.0, 1.0);
        close(other[1].estimate.value, -found[1].estimate.value);
    }

    #[test]
    fn nothing_panics(
        treated in proptest::collection::vec(any::<bool>(), 0..20),
        outcome in proptest::collection::vec(any::<f64>(), 0..20),
        modifier in proptest::collection::vec(any::<f64>(), 0..20),
    ) {
        let all = treated.len().min(outcome.len()).min(modifier.len());
        for found in [
            modification(&outcome, &modifier, None),
            modification(&outcome[..all], &modifier[..all], None),
            interaction(&treated[..all], &outcome[..all], &modifier[..all], &[], None),
        ].into_iter().flatten() {
            prop_assert!(found.estimate.standard_error > 0.0);
            prop_assert!(found.estimate.value.is_finite());
        }
    }
}
