//! Made-up cases: ties against brute force, paired designs, and each refusal.

use super::close;
use crate::propensity::logistic::{exp_of_minus_abs, range};
use crate::propensity::{
    Estimand, Propensity, aipw, cross_fit_aipw, matching, stratification, weighting,
};
use crate::tests::{Draw, slices};
use crate::{ColumnRef, Refusal};

/// A treatment and an outcome that depend on the scores, which have many ties.
fn tied(seed: u64, n: usize, levels: f64) -> (Vec<f64>, Vec<bool>, Vec<f64>) {
    let mut draw = Draw(seed);
    let mut rows = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..n {
        // Multiples of a power of two, so that equal distances are equal in floating point.
        let score = (1.0 + (draw.uniform() * levels).floor()) / 64.0;
        let t = draw.uniform() < 0.2 + 0.6 * score;
        rows.0.push(score);
        rows.1.push(t);
        rows.2.push(5.0 * score + f64::from(u8::from(t)) + draw.normal());
    }
    rows
}

/// The rows of an arm at the least distance, without the row itself.
fn nearest(scores: &[f64], treated: &[bool], row: usize, arm: bool) -> Vec<usize> {
    let others = || (0..scores.len()).filter(|other| *other != row && treated[*other] == arm);
    let distance = |other: usize| (scores[other] - scores[row]).abs();
    let least = others().map(distance).fold(f64::INFINITY, f64::min);
    others().filter(|other| distance(*other) == least).collect()
}

/// Abadie & Imbens by definition: effect and standard error over all, treated and controls.
fn brute(scores: &[f64], treated: &[bool], y: &[f64]) -> [(f64, f64); 3] {
    let n = scores.len();
    let (mut effects, mut k, mut shares) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
    for row in 0..n {
        let matches = nearest(scores, treated, row, !treated[row]);
        let share = 1.0 / matches.len() as f64;
        let mean = matches.iter().map(|other| y[*other]).sum::<f64>() * share;
        effects[row] = if treated[row] { y[row] - mean } else { mean - y[row] };
        for other in matches {
            k[other] += share;
            shares[other] += share * share;
        }
    }
    let variance = |row: usize| {
        let mut set = nearest(scores, treated, row, treated[row]);
        set.push(row);
        let mean = set.iter().map(|other| y[*other]).sum::<f64>() / set.len() as f64;
        set.iter().map(|other| (y[*other] - mean).powi(2)).sum::<f64>() / (set.len() - 1) as f64
    };
    [None, Some(true), Some(false)].map(|population| {
        let inside = |row: &usize| population.is_none_or(|arm| treated[*row] == arm);
        let size = (0..n).filter(inside).count() as f64;
        let mean = (0..n).filter(inside).map(|row| effects[row]).sum::<f64>() / size;
        let mut total = 0.0;
        for row in 0..n {
            if inside(&row) {
                total += (effects[row] - mean).powi(2);
            }
            if population.is_none() {
                total += (k[row] * k[row] + 2.0 * k[row] - shares[row]) * variance(row);
            } else if !inside(&row) {
                total += (k[row] * k[row] - shares[row]) * variance(row);
            }
        }
        (mean, total.sqrt() / size)
    })
}

#[test]
fn matching_equals_its_definition() {
    for (seed, n, levels) in [(1, 60, 6.0), (2, 60, 60.0), (3, 300, 60.0), (4, 12, 60.0)] {
        let (scores, treated, y) = tied(seed, n, levels);
        let found = matching(&scores, &treated, &y).unwrap();
        let expected = brute(&scores, &treated, &y);
        for (estimate, (value, error)) in [found.ate, found.att, found.atc].iter().zip(expected) {
            close("value", estimate.value, value, 1e-12);
            close("error", estimate.standard_error, error, 1e-12);
        }
    }
}

/// Each unit once in either arm: columns, treatment, outcome, pair.
fn pairs(n: usize) -> (Vec<Vec<f64>>, Vec<bool>, Vec<f64>, Vec<u32>) {
    let mut draw = Draw(5);
    let units: Vec<[f64; 3]> =
        (0..n).map(|_| [draw.normal(), 50.0 * draw.uniform(), draw.normal()]).collect();
    let double = |place: usize| (0..2 * n).map(|row| units[row % n][place]).collect();
    let columns = vec![double(0), double(1)];
    let treated: Vec<bool> = (0..2 * n).map(|row| row >= n).collect();
    let y = (0..2 * n)
        .map(|row| units[row % n][2] + 0.1 * units[row % n][1] + if row < n { 0.0 } else { 2.0 })
        .map(|mean| mean + 0.3 * draw.normal())
        .collect();
    (columns, treated, y, (0..2 * n as u32).map(|row| row % n as u32).collect())
}

#[test]
fn paired_rows_have_one_score_and_only_matching_refuses() {
    let n = 400;
    let (columns, treated, y, pair) = pairs(n);
    let x = slices(&columns);
    let fit = Propensity::fit(&x, &treated, None).unwrap();
    assert!(fit.constant().is_some_and(|score| (score - 0.5).abs() < 1e-12));
    assert!(matches!(
        matching(&fit.scores, &treated, &y),
        Err(Refusal::ConstantPropensity { score }) if (score - 0.5).abs() < 1e-12
    ));
    let differences: Vec<f64> = (0..n).map(|unit| y[unit + n] - y[unit]).collect();
    let mean = differences.iter().sum::<f64>() / n as f64;
    let squares = differences.iter().map(|d| (d - mean).powi(2)).sum::<f64>();
    let paired = (squares / (n - 1) as f64 / n as f64).sqrt();
    let strata = stratification(&fit.scores, &treated, &y, None, Some(&pair)).unwrap();
    assert_eq!((strata.strata_parameter, strata.strata_kept, strata.rows_kept), (2.0, 1, 2 * n));
    close("strata", strata.ate.value, mean, 1e-12);
    close("strata error", strata.att.standard_error, paired, 1e-12);
    for estimand in [Estimand::Ate, Estimand::Att, Estimand::Atc, Estimand::Ato] {
        let found = weighting(&x, &treated, &y, &fit, estimand, (0.05, 0.95), Some(&pair)).unwrap();
        close("weighting", found.estimate.value, mean, 1e-12);
        // Both rows of a pair move the score in opposite directions, which cancels.
        let large = (squares).sqrt() / n as f64;
        close("weighting error", found.estimate.standard_error, large, 1e-9);
    }
    let found = aipw(&x, &treated, &y, &fit, (0.01, 0.99), Some(&pair)).unwrap();
    close("aipw", found.estimate.value, mean, 1e-12);
}

#[test]
fn a_cluster_per_row_changes_nothing() {
    let (scores, treated, y) = tied(9, 400, 60.0);
    let mut draw = Draw(3);
    let columns = vec![scores.clone(), (0..400).map(|_| draw.normal()).collect()];
    let x = slices(&columns);
    let own: Vec<u32> = (0..400).rev().collect();
    let folds: Vec<u32> = (0..400).map(|row| row % 4).collect();
    let fit = Propensity::fit(&x, &treated, Some(1.0)).unwrap();
    let run = |clusters: Option<&[u32]>| {
        let strata = stratification(&scores, &treated, &y, Some(5), clusters).unwrap();
        let clip = (0.3, 0.7);
        let robust = aipw(&x, &treated, &y, &fit, clip, clusters).unwrap();
        let weighted = weighting(&x, &treated, &y, &fit, Estimand::Att, clip, clusters).unwrap();
        let crossed = cross_fit_aipw(&x, &treated, &y, &folds, None, clip, clusters).unwrap();
        [
            strata.ate.standard_error,
            strata.atc.standard_error,
            weighted.estimate.standard_error,
            robust.estimate.standard_error,
            crossed.estimate.standard_error,
        ]
    };
    for (with, without) in run(Some(&own)).iter().zip(run(None)) {
        close("standard error", *with, without, 1e-12);
    }
}

#[test]
fn impossible_scores_are_refused() {
    let mut draw = Draw(8);
    let a: Vec<f64> = (0..200).map(|_| draw.normal()).collect();
    let b: Vec<f64> = (0..200).map(|_| draw.normal()).collect();
    let t: Vec<bool> = a.iter().map(|a| a + 2.0 * draw.normal() > 0.0).collect();
    let fit = |columns: &[&[f64]], c| Propensity::fit(columns, &t, c);
    assert!(fit(&[&a, &b], None).is_ok());
    let same = vec![3.3; 200];
    for c in [None, Some(1.0)] {
        assert_eq!(fit(&[&a, &same], c), Err(Refusal::Constant(ColumnRef::Covariate(1))));
        let sum: Vec<f64> = a.iter().zip(&b).map(|(a, b)| 1e6 * (a - 3.0 * b) + 7.0).collect();
        let column = ColumnRef::Covariate(2);
        assert_eq!(fit(&[&a, &b, &sum], c), Err(Refusal::Collinear { column }));
    }
    let complete: Vec<f64> = t.iter().map(|t| if *t { 5.0 } else { 4.0 }).collect();
    let noisy: Vec<f64> = t.iter().map(|t| if *t { 5.0 } else { 3.5 } + draw.uniform()).collect();
    let mut quasi = vec![0.0; 200];
    let only = t.iter().position(|t| *t).unwrap();
    quasi[only] = 1.0;
    for column in [&complete, &noisy] {
        for c in [None, Some(1.0), Some(1e-3)] {
            assert_eq!(fit(&[column], c), Err(Refusal::Separated), "{column:?}");
        }
        assert_eq!(fit(&[column, &a], None), Err(Refusal::Separated));
    }
    assert!(matches!(fit(&[&quasi], None), Err(Refusal::NoOverlap(_))));
    assert!(matches!(fit(&[&quasi, &a], None), Err(Refusal::NoOverlap(_))));
    assert!(fit(&[&quasi, &a], Some(1.0)).is_ok());
    for c in [0.0, -1.0, f64::NAN] {
        assert!(matches!(fit(&[&a], Some(c)), Err(Refusal::Other(_))));
    }
    assert_eq!(fit(&[&a], Some(f64::INFINITY)), fit(&[&a], None));
    for (arm, missing) in [(true, "control units"), (false, "treated units")] {
        let refusal = Propensity::fit(&[&a], &[arm; 200], None).unwrap_err();
        assert!(matches!(refusal, Refusal::TooFew { what, .. } if what == missing), "{refusal}");
    }
    assert!(Propensity::fit(&[], &[], None).is_err());
    assert!(fit(&[&a[..100]], None).is_err());
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e308, -1e200] {
        let mut column = a.clone();
        column[17] = bad;
        assert!(matches!(fit(&[&column], None), Err(Refusal::OutOfRange { .. })), "{bad}");
    }
    // Without covariates the score is the share of the treated.
    let share = t.iter().filter(|t| **t).count() as f64 / 200.0;
    close("share", fit(&[], None).unwrap().constant().unwrap(), share, 1e-12);
}

#[test]
fn an_outlier_is_not_separation() {
    let mut draw = Draw(21);
    let mut a: Vec<f64> = (0..300).map(|_| draw.normal()).collect();
    let t: Vec<bool> = a.iter().map(|a| a + 3.0 * draw.normal() > 0.0).collect();
    let place = t.iter().position(|t| *t).unwrap();
    a[place] = 15.0;
    let fit = Propensity::fit(&[&a], &t, None).unwrap();
    assert!(range(&fit.scores).1 > 0.99);
}

#[test]
fn impossible_inputs_are_refused() {
    let (scores, t, y) = tied(2, 200, 60.0);
    let mut draw = Draw(4);
    let other: Vec<f64> = (0..200).map(|_| draw.normal()).collect();
    let x: Vec<&[f64]> = vec![&scores, &other];
    let fit = Propensity::fit(&x, &t, None).unwrap();
    let weigh = |y: &[f64], clip, clusters: Option<&[u32]>| {
        weighting(&x, &t, y, &fit, Estimand::Ate, clip, clusters).map(|w| w.estimate.value)
    };
    assert!(weigh(&y, (0.05, 0.95), None).is_ok());
    for clip in [(0.9, 0.1), (0.5, 0.5), (-0.1, 0.9), (0.1, 1.1), (f64::NAN, 1.0)] {
        assert!(weigh(&y, clip, None).is_err());
    }
    assert!(weigh(&y, (0.0, 1.0), Some(&[0; 200])).is_err());
    assert!(weigh(&y, (0.0, 1.0), Some(&[u32::MAX; 200])).is_err());
    assert!(weigh(&y, (0.0, 1.0), Some(&[0; 20])).is_err());
    assert!(weigh(&y[1..], (0.0, 1.0), None).is_err());
    let ones = vec![1.1; 200];
    let folds: Vec<u32> = (0..200).map(|row| row % 3).collect();
    let clip = (0.01, 0.99);
    let all = |y: &[f64], folds: &[u32]| {
        [
            weigh(y, clip, None).is_err(),
            matching(&scores, &t, y).is_err(),
            stratification(&scores, &t, y, None, None).is_err(),
            aipw(&x, &t, y, &fit, clip, None).is_err(),
            cross_fit_aipw(&x, &t, y, folds, None, clip, None).is_err(),
        ]
    };
    assert_eq!(all(&y, &folds), [false; 5]);
    assert_eq!(all(&ones, &folds), [true; 5], "an outcome that does not vary");
    for bad in [f64::NAN, f64::INFINITY, 1.7e308] {
        let mut wrong = y.clone();
        wrong[3] = bad;
        wrong[4] = -bad;
        assert_eq!(all(&wrong, &folds), [true; 5], "{bad}");
    }
    for wrong in [vec![0; 200], vec![7; 3], vec![u32::MAX; 200]] {
        assert!(all(&y, &wrong)[4]);
    }
    for strata in [0, 1, usize::MAX] {
        assert!(stratification(&scores, &t, &y, Some(strata), None).is_err());
    }
    assert!(stratification(&scores[..30], &t[..30], &y[..30], None, None).is_err());
    assert!(matching(&[f64::NAN, 0.5, 0.2], &[true, false, true], &[1.0, 2.0, 3.0]).is_err());
    assert!(matches!(matching(&[], &[], &[]), Err(Refusal::TooFew { .. })));
    assert!(matching(&[0.2], &[true], &[1.0]).is_err());
    assert!(matching(&[0.2, 0.3, 0.4], &[true, false, false], &[1.0, 2.0, 4.0]).is_err());
    assert!(stratification(&[], &[], &[], None, None).is_err());
    assert!(aipw(&x[..1], &t, &y, &fit, clip, None).is_err());
}

#[test]
fn the_exponential_is_right_to_the_last_digits() {
    let mut draw = Draw(1);
    for _ in 0..200_000 {
        let x = 708.0 * draw.uniform().powi(3);
        let (found, expected) = (exp_of_minus_abs(x), (-x).exp());
        assert!((found / expected - 1.0).abs() <= 4.5e-16, "{x}: {found} {expected}");
        assert_eq!(found, exp_of_minus_abs(-x));
    }
    assert_eq!(exp_of_minus_abs(0.0), 1.0);
    for x in [708.0, 709.0, 1e308, f64::INFINITY, f64::NAN] {
        assert!((exp_of_minus_abs(x) / (-708.0_f64).exp() - 1.0).abs() < 1e-15);
    }
}

#[test]
fn a_score_of_one_needs_clipping() {
    let (scores, t, y) = tied(2, 200, 60.0);
    let x: Vec<&[f64]> = vec![&scores];
    let mut fit = Propensity::fit(&x, &t, None).unwrap();
    let control = t.iter().position(|t| !t).unwrap();
    fit.scores[control] = 1.0;
    for estimand in [Estimand::Ate, Estimand::Att, Estimand::Atc, Estimand::Ato] {
        let run = |clip| weighting(&x, &t, &y, &fit, estimand, clip, None);
        assert!(matches!(run((0.0, 1.0)), Err(Refusal::NoOverlap(_))));
        assert_eq!(run((0.05, 0.95)).unwrap().clipped, 1);
    }
    assert!(aipw(&x, &t, &y, &fit, (0.0, 1.0), None).is_err());
    assert!(aipw(&x, &t, &y, &fit, (0.01, 0.99), None).is_ok());
}

/// The maximum of the likelihood exists unless a hyperplane separates the arms; on one covariate
/// that is when all of one arm lie at or above all of the other.
#[test]
fn small_samples_are_refused_exactly_when_separated() {
    let mut draw = Draw(77);
    let (mut separated, mut fitted) = (0, 0);
    for _ in 0..3000 {
        let n = 4 + (8.0 * draw.uniform()) as usize;
        let x: Vec<f64> = (0..n).map(|_| (6.0 * draw.uniform()).floor()).collect();
        let t: Vec<bool> = (0..n).map(|_| draw.uniform() < 0.5).collect();
        let extent = |arm: bool| {
            let values = x.iter().zip(&t).filter(|(_, t)| **t == arm).map(|(x, _)| *x);
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(x), h.max(x)))
        };
        let (none, one) = (extent(false), extent(true));
        let constant = x.iter().all(|value| *value == x[0]);
        match Propensity::fit(&[&x], &t, None) {
            Ok(fit) => {
                fitted += 1;
                assert!(none.1 > one.0 && one.1 > none.0, "{x:?} {t:?}");
                let balance: f64 =
                    t.iter().zip(&fit.scores).map(|(t, e)| f64::from(u8::from(*t)) - e).sum();
                assert!(balance.abs() < 1e-9);
            }
            Err(Refusal::NoOverlap(_)) => {
                separated += 1;
                assert!(none.1 == one.0 || one.1 == none.0, "{x:?} {t:?}");
            }
            Err(Refusal::Separated) => {
                separated += 1;
                assert!(none.1 < one.0 || one.1 < none.0, "{x:?} {t:?}");
            }
            Err(refusal) => {
                assert!(constant || t.iter().all(|arm| *arm == t[0]), "{refusal} {x:?} {t:?}");
            }
        }
    }
    assert!(separated > 100 && fitted > 100);
}
