//! Proportions and pairs against statsmodels and SciPy, and where there is no number.

use super::*;
use crate::tests::{GeneralisedModels, close};

fn pair(value: &serde_json::Value) -> (usize, usize) {
    (value[0].as_u64().unwrap() as usize, value[1].as_u64().unwrap() as usize)
}

#[test]
fn proportions_equal_those_of_statsmodels() {
    let reference = GeneralisedModels::read();
    let mut intervals = 0;
    for row in reference.json["proportions"].as_array().unwrap() {
        let table =
            FourfoldTable { treated: pair(&row["treated"]), control: pair(&row["control"]) };
        for (name, measure) in [
            ("diff", RiskMeasure::Difference),
            ("ratio", RiskMeasure::Ratio),
            ("odds-ratio", RiskMeasure::OddsRatio),
        ] {
            let Some(expected) = row.get(name) else {
                let text = table.compare(measure, 0.05).unwrap_err().to_string();
                assert!(text.contains("one cell"), "{text}");
                continue;
            };
            for alpha in [0.05, 0.1] {
                let found = table.compare(measure, alpha).unwrap();
                close(found.value, &expected["value"], 1e-12);
                close(found.p_value, &row["p_value"], 1e-9);
                close(found.statistic.unwrap(), &row["z"], 1e-9);
                if let Some(interval) = expected.get(alpha.to_string()) {
                    close(found.interval.0, &interval[0], 1e-6);
                    close(found.interval.1, &interval[1], 1e-6);
                    intervals += 1;
                }
                // Interval and p-value are of one test.
                let null = if measure == RiskMeasure::Difference { 0.0 } else { 1.0 };
                let inside = found.interval.0 <= null && null <= found.interval.1;
                assert_eq!(inside, found.p_value >= alpha, "{table:?} {name}");
            }
        }
    }
    assert!(intervals > 20, "{intervals}");
}

#[test]
fn tables_without_a_comparison_are_refused() {
    let compare = |treated, control, measure| {
        FourfoldTable { treated, control }.compare(measure, 0.05).unwrap_err().to_string()
    };
    assert!(compare((0, 5), (0, 9), RiskMeasure::Difference).contains("no row has the outcome"));
    assert!(compare((5, 5), (9, 9), RiskMeasure::Ratio).contains("every row has the outcome"));
    assert!(compare((0, 0), (1, 9), RiskMeasure::Difference).contains("too few treated rows"));
    assert!(FourfoldTable::of(&[true, false], &[0.0, 0.5]).is_err());
    assert!(FourfoldTable::of(&[true], &[0.0, 1.0]).is_err());
    assert!(
        FourfoldTable { treated: (1, 2), control: (1, 3) }
            .compare(RiskMeasure::Ratio, 1.0)
            .is_err()
    );
}

#[test]
fn mcnemar_equals_statsmodels_and_the_binomial_interval() {
    let reference = GeneralisedModels::read();
    for row in reference.json["mcnemar"].as_array().unwrap() {
        let counts = |at: usize| row["counts"][at].as_u64().unwrap() as usize;
        let table = McNemar { gained: counts(0), lost: counts(1), unchanged: counts(2) };
        close(table.p_value(false), &row["exact"], 1e-10);
        close(table.p_value(true), &row["mid"], 1e-10);
        if row.get("odds_ratio").is_none() {
            let text = table.odds_ratio(false, 0.05).unwrap_err().to_string();
            assert!(text.contains("infinite") && text.contains("p-value"), "{text}");
            continue;
        }
        for (mid, name) in [(false, "exact_interval"), (true, "mid_interval")] {
            let found = table.odds_ratio(mid, 0.05).unwrap();
            close(found.value, &row["odds_ratio"], 1e-12);
            close(found.interval.0, &row[name][0], 1e-8);
            close(found.interval.1, &row[name][1], 1e-8);
            let inside = found.interval.0 <= 1.0 && 1.0 <= found.interval.1;
            assert_eq!(inside, found.p_value >= 0.05, "{table:?}");
        }
    }
}

#[test]
fn pairs_are_counted_by_what_changed() {
    let found = mcnemar(&[1.0, 1.0, 0.0, 0.0, 1.0], &[0.0, 1.0, 0.0, 1.0, 0.0]).unwrap();
    assert_eq!(found, McNemar { gained: 2, lost: 1, unchanged: 2 });
    assert!(mcnemar(&[0.5], &[1.0]).is_err());
    assert!(mcnemar(&[1.0], &[]).is_err());
    let same = McNemar { gained: 0, lost: 0, unchanged: 9 };
    assert_eq!(same.p_value(true), 1.0);
    assert!(same.odds_ratio(true, 0.05).unwrap_err().to_string().contains("nothing to test"));
    let down = McNemar { gained: 0, lost: 4, unchanged: 0 };
    assert!(down.odds_ratio(true, 0.05).unwrap_err().to_string().contains("odds ratio is 0"));
}
