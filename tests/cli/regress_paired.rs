//! `regress` with a unit: the paired estimates, clusters, contrasts of all arms, adjusted
//! p-values and effect modification. `tests/reference/regress.json` holds what SciPy and
//! statsmodels find; the script next to it makes it.

use serde_json::{Value, json};

use crate::harness::{Project, has, says, text};
use crate::regress_tables::{
    self, CLOSED, OPTIMUM, alike, analysed, csv, equal, find, holds, number, ran_with, status,
    workflow,
};

pub fn reference() -> Value {
    serde_json::from_str(include_str!("../reference/regress.json")).unwrap()
}

const THREE: &str = "treatment: arm, control: c, unit: unit";

#[track_caller]
fn three_arms<N: AsRef<str>, M: AsRef<str>>(steps: &[(N, M)]) -> (Value, Project) {
    let peer = reference()["three_arms"].clone();
    let project = ran_with(peer["csv"].as_str().unwrap(), THREE, steps);
    (peer, project)
}

/// The row of one contrast and outcome of the peers.
#[track_caller]
fn row_of<'a>(rows: &'a [Value], peer: &Value, estimator: &str) -> &'a Value {
    let of = |column: &'static str| (column, peer[column].as_str().unwrap());
    find(rows, &[of("outcome"), of("treatment"), of("control"), ("estimator", estimator)])
}

/// Estimate, standard error, statistic, degrees of freedom, interval and p-value.
#[track_caller]
fn agrees(row: &Value, peer: &Value) {
    let columns = ["estimate", "standard_error", "statistic", "df", "ci_low", "ci_high", "p_value"];
    regress_tables::agrees(row, peer, &columns);
}

/// The slope of a modifier with its interval and p-values.
#[track_caller]
fn slopes(row: &Value, peer: &Value) {
    alike(row, peer, "estimate standard_error ci_low ci_high", CLOSED);
    alike(row, peer, "p_value q_value", OPTIMUM);
}

#[test]
fn all_contrasts_are_paired_t_tests_adjusted_by_holm() {
    let (peer, project) = three_arms(&[
        ("effects", "outcomes: [y, z], contrasts: all"),
        ("low", "outcomes: [y, z], contrasts: all, alpha: 0.1"),
    ]);
    let (rows, low) = (project.rows("effects"), project.rows("low"));
    assert_eq!(rows.len(), 6);
    for contrast in peer["contrasts"].as_array().unwrap() {
        let row = row_of(&rows, contrast, "paired");
        agrees(row, contrast);
        agrees(row_of(&low, contrast, "paired"), &contrast["level_90"]);
        holds(row, "p_adjusted", contrast["holm"].as_f64().unwrap(), OPTIMUM);
        has(row, "n n_pairs n_treatment n_control", json!([120, 60, 60, 60]));
        has(row, "se_kind estimand primary", json!(["paired t", "ate", true]));
        let note = text(row, "note");
        says(note, &["Mean paired difference", "60 pairs", "Holm-adjusted p", "95 % CI", "t(59)"]);
        assert!(text(row_of(&low, contrast, "paired"), "note").contains("90 % CI"));
    }
}

#[test]
fn contrasts_with_control_only_are_adjusted_for_fewer_tests() {
    let (peer, project) = three_arms(&[
        ("effects", "outcomes: [y, z]"),
        ("chosen", "outcomes: [y, z], treatments: [t2]"),
        ("turned", "outcomes: [y, z], treatments: [t2, t1], contrasts: all"),
    ]);
    let rows = project.rows("effects");
    assert_eq!(rows.len(), 4);
    let contrasts = peer["contrasts"].as_array().unwrap();
    for (contrast, holm) in contrasts.iter().zip(peer["holm_control_only"].as_array().unwrap()) {
        let row = row_of(&rows, contrast, "paired");
        agrees(row, contrast);
        holds(row, "p_adjusted", holm.as_f64().unwrap(), OPTIMUM);
    }
    let chosen = project.rows("chosen");
    assert_eq!(chosen.len(), 2);
    assert!(chosen.iter().all(|row| row["treatment"] == "t2" && row["control"] == "c"));
    // Each arm is compared with those named before it: now t1 with t2.
    let turned = project.rows("turned");
    assert_eq!(turned.len(), 6);
    for row in turned.iter().filter(|row| row["control"] == "t2") {
        let other = contrasts
            .iter()
            .find(|contrast| contrast["control"] == "t1" && contrast["outcome"] == row["outcome"]);
        let estimate = other.unwrap()["estimate"].as_f64().unwrap();
        holds(row, "estimate", -estimate, CLOSED);
    }
}

#[test]
fn the_summary_has_a_line_for_each_primary_estimate() {
    let (peer, project) =
        three_arms(&[("effects", "outcomes: [y, z], contrasts: all, estimators: [ols, paired]")]);
    let rows = project.rows("effects.summary");
    assert_eq!(rows.len(), 6, "paired is primary wherever it stands");
    for contrast in peer["contrasts"].as_array().unwrap() {
        let name = match text(contrast, "control") {
            "c" => text(contrast, "treatment").to_owned(),
            control => format!("{} - {control}", text(contrast, "treatment")),
        };
        let wanted = [("treatment", &*name), ("outcome", text(contrast, "outcome"))];
        let row = find(&rows, &wanted);
        assert_eq!((&row["n"], text(row, "status")), (&json!(60), "ok"));
        alike(row, contrast, "estimate ci_low ci_high", 5e-4);
        let p: f64 = text(row, "p_adj").parse().unwrap();
        equal(p, contrast["holm"].as_f64().unwrap(), 5e-2, "p");
    }
}

#[test]
fn clusters_of_units_have_robust_standard_errors() {
    let kinds = ["CR0", "CR1", "CR2", "CR3"];
    let with = "outcomes: [y, z], contrasts: all, cluster: place";
    let step = |kind: &str| (kind.to_lowercase(), format!("{with}, standard_errors: {kind}"));
    let mut steps = kinds.map(step).to_vec();
    steps.push(("usual".into(), with.into()));
    let (peer, project) = three_arms(&steps);
    let usual = project.rows("usual");
    for kind in kinds {
        let rows = project.rows(&kind.to_lowercase());
        for contrast in peer["contrasts"].as_array().unwrap() {
            let row = row_of(&rows, contrast, "paired");
            agrees(row, &contrast[kind]);
            assert_eq!(text(row, "se_kind"), format!("{kind} of pair differences"));
            assert_eq!((&row["n_clusters"], &row["n_pairs"]), (&json!(9), &json!(60)));
            if kind == "CR2" {
                assert_eq!(row_of(&usual, contrast, "paired"), row, "CR2 is the default");
            }
        }
    }
}

#[test]
fn regressions_are_clustered_by_unit_or_by_cluster() {
    let kinds = ["CR0", "CR1", "CR2", "CR3"];
    let with = "outcomes: [y, z], contrasts: all, confounders: [size]";
    let mut steps = Vec::new();
    for kind in kinds {
        let name = kind.to_lowercase();
        let kind = format!("{with}, standard_errors: {kind}");
        steps.push((name.clone(), format!("{kind}, estimators: [ols, lin]")));
        steps.push((format!("place_{name}"), format!("{kind}, cluster: place, estimators: [ols]")));
    }
    let (peer, project) = three_arms(&steps);
    for kind in kinds {
        let rows = project.rows(&kind.to_lowercase());
        let places = project.rows(&format!("place_{}", kind.to_lowercase()));
        for contrast in peer["contrasts"].as_array().unwrap() {
            for estimator in ["ols", "lin"] {
                let row = row_of(&rows, contrast, estimator);
                agrees(row, &contrast[format!("{estimator}_{kind}")]);
                assert_eq!((&row["n_clusters"], text(row, "se_kind")), (&json!(60), kind));
                assert_eq!(text(row, "adjusted_for"), "size");
            }
            let row = row_of(&places, contrast, "ols");
            agrees(row, &contrast[format!("place_{kind}")]);
            assert_eq!(row["n_clusters"], 9);
        }
    }
}

#[test]
fn effects_change_with_modifiers() {
    let (peer, project) =
        three_arms(&[("effects", "outcomes: [y, z], contrasts: all, modifiers: [size, depth]")]);
    let rows = project.rows("effects.modifiers");
    let mut groups = 0;
    for contrast in peer["contrasts"].as_array().unwrap() {
        for (modifier, slope) in contrast["modifiers"].as_object().unwrap() {
            let of = |column: &'static str| (column, contrast[column].as_str().unwrap());
            let about = [of("outcome"), of("treatment"), of("control")];
            let here: Vec<Value> = rows
                .iter()
                .filter(|row| about.iter().all(|(column, text)| row[*column] == *text))
                .filter(|row| row["modifier"] == *modifier)
                .cloned()
                .collect();
            let bin = |at: usize| here.iter().find(|row| row["bin"] == at).unwrap();
            slopes(bin(0), slope);
            assert_eq!((&bin(0)["n"], &bin(0)["low"]), (&json!(60), &Value::Null));
            for (at, group) in slope["groups"].as_array().unwrap().iter().enumerate() {
                let row = bin(at + 1);
                for column in ["low", "high"] {
                    // An edge may be zero.
                    let edge = group[column].as_f64().unwrap();
                    assert!((number(row, column) - edge).abs() < 1e-9, "{row}");
                }
                alike(row, group, "estimate standard_error", CLOSED);
                assert_eq!((&row["n"], &row["p_value"]), (&group["n"], &Value::Null), "{row}");
                groups += 1;
            }
            assert_eq!(here.len(), 1 + slope["groups"].as_array().unwrap().len());
        }
    }
    assert_eq!(rows.len(), 12 + groups);
    // Without units, modifiers interact with the treatment.
    let peer = reference()["independent"].clone();
    let with = "treatment: arm, control: c, outcomes: [y], modifiers: [x, w]";
    let project = analysed(peer["csv"].as_str().unwrap(), with);
    let rows = project.rows("effects.modifiers");
    for (modifier, slope) in peer["modifiers"].as_object().unwrap() {
        let row = rows.iter().find(|row| row["modifier"] == *modifier && row["bin"] == 0).unwrap();
        slopes(row, slope);
    }
    let balance = project.rows("effects.balance");
    assert_eq!(balance.len(), 2, "modifiers are in the table of balance");
    assert!(balance.iter().all(|row| row["status"] == "ok" && row["smd_weighted"].is_null()));
}

#[test]
fn robust_locations_and_friedmans_test_are_scipys() {
    let (peer, project) = three_arms(&[("effects", "outcomes: [y, z], contrasts: all")]);
    let rows = project.rows("effects.sensitivity");
    for contrast in peer["contrasts"].as_array().unwrap() {
        let of = |column: &'static str| (column, contrast[column].as_str().unwrap());
        let about = [of("outcome"), of("treatment"), of("control")];
        for (measure, value) in contrast["location"].as_object().unwrap() {
            let wanted = [&about[..], &[("analysis", "location"), ("measure", measure)]].concat();
            holds(find(&rows, &wanted), "value", value.as_f64().unwrap(), OPTIMUM);
        }
        let wanted = [&about[..], &[("measure", "standardised_effect")]].concat();
        let effect = contrast["standardised_effect"].as_f64().unwrap();
        holds(find(&rows, &wanted), "value", effect, CLOSED);
    }
    for (outcome, test) in peer["friedman"].as_object().unwrap() {
        let about = [("outcome", outcome.as_str()), ("analysis", "omnibus")];
        for (measure, name) in [("friedman_chi2", "chi2"), ("friedman_p", "p")] {
            let row = find(&rows, &[&about[..], &[("measure", measure)]].concat());
            holds(row, "value", test[name].as_f64().unwrap(), OPTIMUM);
            assert_eq!((text(row, "treatment"), text(row, "control")), ("t1, t2", "c"));
        }
    }
}

#[test]
fn several_answers_of_a_unit_are_averaged_first() {
    let peer = reference()["samples"].clone();
    let with = "treatment: arm, control: c, outcomes: [y], unit: unit, missing: drop,
      estimators: [paired, ols, difference]";
    let project = analysed(peer["csv"].as_str().unwrap(), with);
    let rows = project.rows("effects");
    let row = find(&rows, &[("estimator", "paired")]);
    agrees(row, &peer["paired"]);
    assert_eq!((&row["n"], &row["n_pairs"]), (&peer["rows"], &peer["pairs"]));
    let averaged = "Several rows of a unit under one arm are averaged first.";
    says(text(row, "note"), &["6 units lack an arm and are left out.", averaged, "34 pairs"]);
    // A regression uses the same units.
    agrees(find(&rows, &[("estimator", "ols"), ("se_kind", "CR2")]), &peer["ols"]);
    let row = find(&rows, &[("estimator", "difference")]);
    alike(row, &peer["welch"], "statistic df", CLOSED);
    alike(row, &peer["welch"], "p_value", OPTIMUM);
    says(text(row, "note"), &["The standard error ignores that rows are paired."]);
    assert_eq!(project.rows("effects.summary")[0]["n"], peer["pairs"]);
}

fn pairs(units: usize) -> String {
    let pair =
        |unit: usize| [format!("u{unit},t,{},k", 2 * unit + 1), format!("u{unit},c,{unit},k")];
    csv("unit,arm,y,town", (0..units).flat_map(pair))
}

#[test]
fn ten_pairs_and_two_clusters_are_the_least() {
    let with = "treatment: arm, control: c, outcomes: [y], unit: unit";
    assert_eq!(status(&analysed(&pairs(10), with), "effects", "paired").0, "ok");
    let clustered = format!("{with}, cluster: town");
    for (units, with, reason) in [
        (9, with, "too few units: 9, at least 10 are needed"),
        (20, &clustered, "too few clusters: 1, at least 2 are needed"),
    ] {
        let found = status(&analysed(&pairs(units), with), "effects", "paired");
        assert_eq!(found, ("refused".into(), reason.into()));
    }
    // The paired estimate is primary, whether it is named or not.
    for estimators in ["", ", estimators: [ols]", ", estimators: [ols, paired]"] {
        let with = format!("treatment: arm, control: c, outcomes: [y], unit: unit{estimators}");
        let project = analysed(&pairs(20), &with);
        let rows = project.rows("effects");
        let primary: Vec<&Value> = rows.iter().filter(|row| row["primary"] == true).collect();
        assert_eq!((primary.len(), text(primary[0], "estimator")), (1, "paired"), "{estimators}");
        assert_eq!(rows.len(), if estimators.is_empty() { 1 } else { 2 });
        assert_eq!(project.only("effects.summary")["estimate"], primary[0]["estimate"]);
    }
}

#[test]
fn the_summary_fits_a_terminal() {
    let peer = reference()["three_arms"].clone();
    let with = format!("{THREE}, outcomes: [y, z], contrasts: all");
    let project =
        Project::new(&workflow(&[("effects", &with)])).with("data.csv", text(&peer, "csv"));
    project.append("outputs:\n  summary: { from: effects.summary, path: s.csv, show: true }\n");
    let shown = project.run(&["run", "w.yaml"]).exits(0);
    // Only the name of the difference may be cut from the screen.
    let cut = shown.stdout.replace("… 1 more column: measure (in the file)", "");
    assert!(!cut.contains('…'), "nothing else is cut\n{shown}");
    assert!(shown.stdout.lines().all(|line| line.chars().count() <= 80), "{shown}");
    for row in project.rows("effects.summary") {
        let [low, high] =
            ["ci_low", "ci_high"].map(|column| format!("{:.1}", number(&row, column)));
        let words = ["outcome", "treatment", "p_adj"].map(|column| text(&row, column));
        says(&shown.stdout, &[&words[..], &[low.as_str(), high.as_str()]].concat());
    }
}
