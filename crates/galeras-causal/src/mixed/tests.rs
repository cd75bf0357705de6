//! Mixed models against lme4's published results, statsmodels, and a dense computation; designs that
//! are degenerate, refused, balanced with a closed form, or large.
mod binary;
mod oracle;
mod published;

use super::{MixedFit, RandomTerm, mixed};
use crate::tests::{Draw, Table};
use crate::{ColumnRef, Refusal};

fn published(name: &str) -> Table {
    Table::read(&format!("mixed/{name}.csv"))
}

pub(super) fn intercepts(groups: &[u32]) -> RandomTerm<'_> {
    RandomTerm { groups, intercept: true, slopes: Vec::new() }
}

pub(super) fn fit(
    table: &Table,
    outcome: &str,
    fixed: &[&str],
    random: &[&str],
    reml: bool,
) -> MixedFit {
    let columns: Vec<&[f64]> = fixed.iter().map(|name| table.column(name)).collect();
    let groups: Vec<Vec<u32>> = random.iter().map(|name| table.groups(name)).collect();
    let terms: Vec<RandomTerm<'_>> = groups.iter().map(|groups| intercepts(groups)).collect();
    mixed(table.column(outcome), &columns, &terms, reml).unwrap()
}

fn refusal(outcome: &[f64], fixed: &[&[f64]], terms: &[RandomTerm<'_>]) -> String {
    mixed(outcome, fixed, terms, true).unwrap_err().to_string()
}

/// Twelve rows, four groups of three.
fn twelve() -> (Vec<f64>, Vec<u32>) {
    let outcome = vec![1.0, 2.0, 4.0, 3.0, 3.5, 5.0, 7.0, 6.0, 8.5, 2.0, 2.5, 1.0];
    (outcome, (0..12).map(|row| row / 3).collect())
}

#[test]
fn a_balanced_one_way_layout_has_the_anova_estimates() {
    let (outcome, groups) = twelve();
    let fit = mixed(&outcome, &[], &[intercepts(&groups)], true).unwrap();
    let means: Vec<f64> = outcome.chunks(3).map(|rows| rows.iter().sum::<f64>() / 3.0).collect();
    let grand = means.iter().sum::<f64>() / 4.0;
    let between: f64 = means.iter().map(|mean| 3.0 * (mean - grand).powi(2)).sum::<f64>() / 3.0;
    let within: f64 =
        outcome.iter().enumerate().map(|(row, y)| (y - means[row / 3]).powi(2)).sum::<f64>() / 8.0;
    assert!((fit.residual_variance / within - 1.0).abs() < 1e-9);
    let variance = (between - within) / 3.0;
    assert!((fit.random[0].covariance[0] / variance - 1.0).abs() < 1e-8);
    assert!((fit.coefficients[0].standard_error / (between / 12.0).sqrt() - 1.0).abs() < 1e-8);
    assert!((fit.coefficients[0].degrees - 3.0).abs() < 1e-5);
}

#[test]
fn the_order_of_rows_and_of_groups_does_not_matter() {
    let mut draw = Draw(3);
    let rows = 300;
    let groups: Vec<u32> = (0..rows).map(|row| row % 23).collect();
    let others: Vec<u32> = (0..rows).map(|_| draw.below(5) as u32).collect();
    let x: Vec<f64> = (0..rows).map(|_| draw.normal()).collect();
    let y: Vec<f64> =
        (0..rows as usize).map(|row| x[row] + f64::from(groups[row] % 4) + draw.normal()).collect();
    let first = mixed(&y, &[&x], &[intercepts(&groups), intercepts(&others)], true).unwrap();
    let turn = |column: &[f64]| -> Vec<f64> { column.iter().rev().copied().collect() };
    let renamed: Vec<u32> = groups.iter().rev().map(|group| 22 - group).collect();
    let turned: Vec<u32> = others.iter().rev().copied().collect();
    let (x, y) = (turn(&x), turn(&y));
    let again = mixed(&y, &[&x], &[intercepts(&renamed), intercepts(&turned)], true).unwrap();
    for (one, other) in first.coefficients.iter().zip(&again.coefficients) {
        assert!((one.value - other.value).abs() < 1e-9 * one.value.abs().max(1.0));
        assert!((one.standard_error / other.standard_error - 1.0).abs() < 1e-8);
        assert!((one.degrees / other.degrees - 1.0).abs() < 1e-5);
    }
    assert!((first.criterion - again.criterion).abs() < 1e-8);
}

#[test]
fn scales_of_columns_do_not_matter() {
    let (outcome, groups) = twelve();
    let days: Vec<f64> = (0..12).map(|row| f64::from(row % 3)).collect();
    let far = |column: &[f64], by: f64| -> Vec<f64> { column.iter().map(|v| v * by).collect() };
    let fit = |y: &[f64], x: &[f64]| {
        let term = RandomTerm { groups: &groups, intercept: true, slopes: vec![x] };
        mixed(y, &[x], &[term], true).unwrap()
    };
    let plain = fit(&outcome, &days);
    let scaled = fit(&far(&outcome, 1e-60), &far(&days, 1e80));
    let ratio = scaled.coefficients[1].value / plain.coefficients[1].value;
    assert!((ratio / 1e-140 - 1.0).abs() < 1e-6);
    assert!((scaled.coefficients[1].degrees / plain.coefficients[1].degrees - 1.0).abs() < 1e-4);
    let shift: Vec<f64> = outcome.iter().map(|value| value + 1e7).collect();
    let shifted = fit(&shift, &days);
    assert!((shifted.criterion - plain.criterion).abs() < 1e-5);
}

#[test]
fn impossible_designs_are_refused() {
    let (outcome, groups) = twelve();
    let one = vec![0; 12];
    let each: Vec<u32> = (0..12).collect();
    let renamed: Vec<u32> = groups.iter().map(|group| 3 - group).collect();
    let half: Vec<f64> = groups.iter().map(|group| f64::from(*group)).collect();
    let is = |level: u32| -> Vec<f64> {
        groups.iter().map(|group| f64::from(u8::from(*group == level))).collect()
    };
    assert!(refusal(&outcome, &[], &[]).contains("needs a random effect"));
    assert!(refusal(&outcome, &[], &[intercepts(&one)]).contains("one group only"));
    assert!(refusal(&outcome, &[], &[intercepts(&each)]).contains("12 groups in 12 rows"));
    let same = refusal(&outcome, &[], &[intercepts(&groups), intercepts(&renamed)]);
    assert!(same.contains("`grouping #1` groups the rows as an earlier one"), "{same}");
    let dummies = [is(1), is(2), is(3)];
    let dummies: Vec<&[f64]> = dummies.iter().map(Vec::as_slice).collect();
    let explained = refusal(&outcome, &dummies, &[intercepts(&groups)]);
    assert!(explained.contains("the fixed effects tell apart"), "{explained}");
    // A trend over groups leaves some variation between them.
    assert!(mixed(&outcome, &[&half], &[intercepts(&groups)], true).is_ok());
    let constant = mixed(&[1.0; 12], &[], &[intercepts(&groups)], true);
    assert_eq!(constant.unwrap_err(), Refusal::Constant(ColumnRef::Outcome));
    let by_group: Vec<f64> = groups.iter().map(|group| f64::from(*group * group)).collect();
    let perfect = refusal(&by_group, &[], &[intercepts(&groups)]);
    assert!(perfect.contains("without a rest"), "{perfect}");
    let mut infinite = outcome.clone();
    infinite[3] = f64::INFINITY;
    assert!(refusal(&infinite, &[], &[intercepts(&groups)]).contains("not a finite number"));
    assert!(
        refusal(&outcome, &[], &[intercepts(&groups[..11])]).contains("11 rows in place of 12")
    );
    let term = RandomTerm { groups: &groups, intercept: true, slopes: vec![&[2.0; 12]] };
    let constant = mixed(&outcome, &[], &[term], true).unwrap_err();
    assert_eq!(constant, Refusal::Constant(ColumnRef::Slope(0, 0)));
}

#[test]
fn a_variance_that_is_nearly_all_or_nearly_nothing_is_found() {
    let mut draw = Draw(8);
    let groups: Vec<u32> = (0..2000).map(|row| row % 40).collect();
    let effects: Vec<f64> = (0..40).map(|_| draw.normal()).collect();
    let noise: Vec<f64> = (0..2000).map(|_| draw.normal()).collect();
    for size in [1e-2, 0.1, 10.0, 1e4] {
        let y: Vec<f64> =
            groups.iter().zip(&noise).map(|(g, e)| size * effects[*g as usize] + e).collect();
        let fit = mixed(&y, &[], &[intercepts(&groups)], true).unwrap();
        // Balanced: the estimates are those of the analysis of variance, at least zero.
        let mut means = vec![0.0; 40];
        groups.iter().zip(&y).for_each(|(g, y)| means[*g as usize] += y / 50.0);
        let grand = means.iter().sum::<f64>() / 40.0;
        let between = 50.0 * means.iter().map(|m| (m - grand).powi(2)).sum::<f64>() / 39.0;
        let within: f64 =
            groups.iter().zip(&y).map(|(g, y)| (y - means[*g as usize]).powi(2)).sum::<f64>()
                / 1960.0;
        let variance = ((between - within) / 50.0).max(0.0);
        let found = fit.random[0].covariance[0];
        // If one variance is 1e8 times the other, the last digits of the criterion are rounding.
        let tolerance = if size < 1e3 { 1e-6 } else { 1e-3 };
        assert!((found - variance).abs() <= tolerance * variance, "{size}: {found} {variance}");
        assert_eq!(fit.singular, variance == 0.0);
        assert!(fit.converged);
    }
}
