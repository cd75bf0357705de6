//! Checks of scores under several prompts, and of the reported effects, for tests of studies.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::harness::text;
use crate::paper::table;

#[track_caller]
pub fn same(found: &str, expected: f64, what: &str) {
    let found: f64 = found.parse().unwrap_or_else(|_| panic!("{what}: {found:?}"));
    assert!(
        (found - expected).abs() <= 1e-9 * expected.abs().max(1.0),
        "{what}: {found} {expected}"
    );
}

/// As `same`, of a number that is reported with four digits behind the point.
#[track_caller]
pub fn same_rounded(found: &str, expected: f64, what: &str) {
    let number: f64 = found.parse().unwrap_or_else(|_| panic!("{what}: {found:?}"));
    assert!((number - expected).abs() <= 0.5001e-4, "{what}: {found} {expected}");
}

/// The mean of a score over rows.
pub fn average<'a>(rows: impl IntoIterator<Item = &'a Value>, score: &str) -> f64 {
    let values: Vec<f64> = rows
        .into_iter()
        .map(|row| row[score].as_f64().unwrap_or_else(|| panic!("{score} of {row}")))
        .collect();
    assert!(!values.is_empty(), "no rows with {score}");
    values.iter().sum::<f64>() / values.len() as f64
}

/// The mean of a score over the rows of a treatment.
pub fn mean(rows: &[Value], treatment: &str, score: &str) -> f64 {
    average(rows.iter().filter(|row| row["treatment"] == treatment), score)
}

/// The primary effects are the differences of the means, within their intervals, or are refused for
/// a reason that the rows have.
#[track_caller]
pub fn effects_are_right(csv: &str, rows: &[Value], outcomes: usize) {
    let primary: Vec<_> = table(csv).into_iter().filter(|line| line["primary"] == "true").collect();
    assert_eq!(primary.len(), 2 * outcomes, "{csv}");
    for line in primary {
        let (outcome, treatment) = (&line["outcome"], &line["treatment"]);
        let what = format!("{treatment} on {outcome}");
        assert_eq!(line["estimator"], "paired", "{what}");
        if line["status"] == "refused" {
            let units = rows.len() / 3;
            let known = if units < 10 { "too few units" } else { "" };
            let constant = ["constant", "differ"];
            let constant = constant.iter().any(|w| line["reason"].contains(w));
            assert!(constant || (!known.is_empty() && line["reason"].contains(known)), "{line:?}");
            continue;
        }
        let difference = mean(rows, treatment, outcome) - mean(rows, "control", outcome);
        same(&line["estimate"], difference, &what);
        let number = |column: &str| line[column].parse::<f64>().unwrap();
        let (low, high) = (number("ci_low"), number("ci_high"));
        assert!(low < number("estimate") && number("estimate") < high, "{what}: {low} to {high}");
        assert!((0.0..=1.0).contains(&number("p_adjusted")), "{what}");
    }
}

/// Every data point is there once under each of three treatments.
#[track_caller]
pub fn paired(rows: &[Value], points: usize) {
    let all: BTreeSet<&str> = rows.iter().map(|row| text(row, "treatment")).collect();
    assert!(all.len() == 3 && all.contains("control"), "{all:?}");
    let mut treatments: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for row in rows {
        treatments.entry(text(row, "snippet_id")).or_default().push(text(row, "treatment"));
    }
    assert_eq!(treatments.len(), points);
    for (point, mut found) in treatments {
        found.sort_unstable();
        assert!(found.iter().eq(&all), "{point}: {found:?}");
    }
}
