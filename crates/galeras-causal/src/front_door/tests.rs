//! Tests of the front-door estimator.

use super::*;
use crate::column::indicator;
use crate::tests::Draw;

/// Rows in which a latent variable causes treatment and outcome; the effect is 0.5 times 2 of
/// a mediator that is a number, or has two values whose shares differ by 0.5.
fn rows(draw: &mut Draw, n: usize, binary: bool) -> (Vec<bool>, Vec<f64>, Vec<f64>) {
    let (mut treated, mut mediator, mut outcome) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..n {
        let latent = draw.normal();
        let arm = latent + draw.normal() > 0.3;
        let of_arm = 0.5 * f64::from(u8::from(arm));
        let value = if binary {
            f64::from(u8::from(draw.uniform() < 0.2 + of_arm))
        } else {
            of_arm + draw.normal()
        };
        treated.push(arm);
        mediator.push(value);
        outcome.push(2.0 * value + 1.5 * latent + draw.normal());
    }
    (treated, mediator, outcome)
}

#[test]
fn with_a_mediator_of_two_values_it_is_pearls_formula_with_shares_counted() {
    let (treated, mediator, outcome) = rows(&mut Draw(1), 400, true);
    let found = front_door(&treated, &[&mediator], &outcome, None).unwrap();
    let of = |arm: bool, value: f64| -> Vec<f64> {
        (0..400)
            .filter(|row| treated[*row] == arm && mediator[*row] == value)
            .map(|row| outcome[row])
            .collect()
    };
    let size = |arm| of(arm, 0.0).len() + of(arm, 1.0).len();
    let mean = |cell: Vec<f64>| cell.iter().sum::<f64>() / cell.len() as f64;
    let mut expected = 0.0;
    for value in [0.0, 1.0] {
        let share = |arm| of(arm, value).len() as f64 / size(arm) as f64;
        let averaged = [true, false]
            .map(|arm| mean(of(arm, value)) * size(arm) as f64 / 400.0)
            .iter()
            .sum::<f64>();
        expected += (share(true) - share(false)) * averaged;
    }
    assert!((found.value - expected).abs() < 1e-12, "{found:?} {expected}");
}

#[test]
fn its_standard_error_is_that_of_leaving_out_row_by_row_or_cluster_by_cluster() {
    let mut draw = Draw(2);
    for (n, binary, clustered) in
        [(40, true, false), (300, false, false), (60, true, true), (300, false, true)]
    {
        let (treated, mediator, outcome) = rows(&mut draw, n, binary);
        // Far apart between the arms: what is left within them still counts.
        let second: Vec<f64> = (0..n)
            .map(|row| mediator[row] * 0.3 + draw.normal())
            .map(|value| 1e-3 * value)
            .zip(&treated)
            .map(|(value, arm)| if *arm { value + 5.0 } else { value })
            .collect();
        let codes: Vec<u32> = (0..n as u32).map(|row| row % 12).collect();
        let clusters = clustered.then_some(codes.as_slice());
        let found = front_door(&treated, &[&mediator, &second], &outcome, clusters).unwrap();
        let without = |left: usize| {
            let group = |row: usize| if clustered { codes[row] as usize } else { row };
            let kept: Vec<usize> = (0..n).filter(|row| group(*row) != left).collect();
            let of = |column: &[f64]| -> Vec<f64> { kept.iter().map(|row| column[*row]).collect() };
            let arms: Vec<bool> = kept.iter().map(|row| treated[*row]).collect();
            let columns = [of(&mediator), of(&second)];
            let found = front_door(&arms, &[&columns[0], &columns[1]], &of(&outcome), None);
            found.unwrap().value
        };
        let groups = if clustered { 12 } else { n };
        let square: f64 = (0..groups).map(|left| (without(left) - found.value).powi(2)).sum();
        let jackknife = (square * (groups as f64 - 1.0) / groups as f64).sqrt();
        let ratio = found.standard_error / jackknife;
        assert!((ratio - 1.0).abs() < 1e-8, "{ratio}");
    }
}

#[test]
fn intervals_cover_the_effect_though_a_regression_is_biased() {
    let mut draw = Draw(3);
    for (n, binary) in [(60, false), (60, true), (300, false)] {
        let (mut covered, mut sum, mut refused) = (0, 0.0, 0);
        for _ in 0..600 {
            // A mediator's value that one row of an arm has leaves that row without a variance.
            let found = loop {
                let (treated, mediator, outcome) = rows(&mut draw, n, binary);
                match front_door(&treated, &[&mediator], &outcome, None) {
                    Ok(found) => break found,
                    Err(Refusal::Leverage { .. }) => refused += 1,
                    Err(other) => panic!("{other}"),
                }
            };
            let (low, high) = found.interval(0.05);
            covered += usize::from((low..=high).contains(&1.0));
            sum += found.value / 600.0;
        }
        // 600 intervals of 95 % hold 0.95 give or take 0.009.
        assert!((555..=588).contains(&covered), "{n} {binary}: {covered}");
        assert!(refused < 30, "{n} {binary}: {refused}");
        assert!((sum - 1.0).abs() < 0.08, "{n} {binary}: {sum}");
    }
    let (treated, _, outcome) = rows(&mut draw, 300, false);
    let naive = crate::difference_in_means(&treated, &outcome).unwrap();
    assert!(naive.interval(0.05).0 > 1.5, "{naive:?}");
}

#[test]
fn rows_of_one_cluster_count_once() {
    let (treated, mediator, outcome) = rows(&mut Draw(4), 200, false);
    let twice = |column: &[f64]| [column, column].concat();
    let alone = front_door(&treated, &[&mediator], &outcome, None).unwrap();
    let arms = [treated.clone(), treated].concat();
    let clusters: Vec<u32> = (0..200).chain(0..200).collect();
    let columns = (twice(&mediator), twice(&outcome));
    let both = front_door(&arms, &[&columns.0], &columns.1, Some(&clusters)).unwrap();
    assert!((both.value - alone.value).abs() < 1e-12);
    assert!((both.standard_error / alone.standard_error - 1.0).abs() < 1e-9);
    let few: Vec<u32> = (0..400).map(|row| row % 9).collect();
    let refused = front_door(&arms, &[&columns.0], &columns.1, Some(&few)).unwrap_err();
    assert_eq!(refused.to_string(), "too few clusters: 9, at least 10 are needed");
}

#[test]
fn effects_that_are_not_identified_are_refused() {
    let (treated, mediator, outcome) = rows(&mut Draw(5), 60, false);
    let arm = indicator(&treated);
    let refused = |mediators: &[&[f64]]| {
        front_door(&treated, mediators, &outcome, None).unwrap_err().to_string()
    };
    assert_eq!(refused(&[&arm]), "`#0` has one value only");
    assert!(refused(&[]).contains("needs a mediator"));
    let copy = mediator.clone();
    assert!(refused(&[&mediator, &copy]).contains("`#1` is a linear combination"));
    let short = front_door(&treated[..29], &[&mediator[..29]], &outcome[..29], None);
    assert_eq!(short.unwrap_err().to_string(), "too few rows: 29, at least 30 are needed");
    // One cluster holds all of an arm.
    let codes: Vec<u32> =
        (0..60).map(|row| if treated[row] { 0 } else { 1 + row as u32 % 11 }).collect();
    let one = front_door(&treated, &[&mediator], &outcome, Some(&codes)).unwrap_err();
    assert!(one.to_string().starts_with("without one cluster an arm has too few rows"), "{one}");
    let few = front_door(&[true; 60], &[&mediator], &outcome, None).unwrap_err();
    assert!(few.to_string().contains("control rows"), "{few}");
}
