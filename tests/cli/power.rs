//! `power`: what a study detects, from a pilot or from assumed standard deviations.
//! `tests/reference/effect_sizes.json` holds what statsmodels finds.

use serde_json::Value;

use crate::harness::{Project, refused, says, text, told};
use crate::regress_effect_sizes::peer;
use crate::regress_tables::{CLOSED, csv, find, holds, noise, number};

fn assumed(with: &str) -> String {
    let with: String = with.lines().map(|line| format!("      {line}\n")).collect();
    format!("galeras: 1\nsteps:\n  plan:\n    op: power\n    with:\n{with}")
}

#[track_caller]
fn planned(with: &str) -> Vec<Value> {
    Project::new(&assumed(with)).ran().rows("plan")
}

#[test]
fn power_and_sizes_are_those_of_statsmodels() {
    for case in peer("power").as_array().unwrap() {
        let of = |name: &str| case[name].as_f64().unwrap();
        let (effect, n, alpha) = (of("effect"), of("n"), of("alpha"));
        let design = format!("units: [{n}]\neffects: [{effect}]\nalpha: {alpha}");
        let rows = planned(&format!("{design}\nassume: {{ bleu: {{ unit: 1 }} }}"));
        assert_eq!(rows.len(), 1);
        holds(&rows[0], "power", of("paired"), 1e-6);
        holds(&rows[0], "detectable_effect", of("detectable"), 1e-6);
        assert_eq!(number(&rows[0], "units_needed"), of("needed").ceil());
        assert_eq!((text(&rows[0], "treatment"), text(&rows[0], "status")), ("any", "ok"));
        let rows = planned(&format!("{design}\npaired: false\nassume: {{ bleu: {{ unit: 1 }} }}"));
        holds(&rows[0], "power", of("independent"), 1e-6);
        assert_eq!(number(&rows[0], "units_needed"), 2.0 * of("needed_per_arm").ceil());
    }
}

/// A project that has run these steps on a pilot: name and arguments.
#[track_caller]
fn piloted(csv: &str, steps: &[(&str, &str)]) -> Project {
    let head =
        "  data: { op: read, with: { path: data.csv, position: { column: row }, key: [row] } }\n";
    let step = |(name, with): &(&str, &str)| {
        let with = format!("treatment: arm, unit: unit, {with}");
        format!("  {name}: {{ op: power, from: data, with: {{ {with} }} }}\n")
    };
    let steps: String = steps.iter().map(step).collect();
    Project::steps(&format!("{head}{steps}")).with("data.csv", csv).ran()
}

#[test]
fn a_pilot_gives_the_standard_deviations_of_its_mean_squares() {
    let peer = peer("pilot");
    let rows = peer["rows"].as_array().unwrap().iter().map(|row| {
        let unit = row[2].as_u64().unwrap();
        let arm = if row[0] == true { "t" } else { "c" };
        format!("{arm},{},u{unit},k{}", row[1], unit / 3)
    });
    let design = "control: c, outcomes: [y], units: [40, 90], samples: [1, 5]";
    let clustered = format!("{design}, cluster: place, cluster_size: 3");
    let steps = [("plain", design), ("clustered", &clustered)];
    let project = piloted(&csv("arm,y,unit,place", rows), &steps);
    let of = |name: &str| peer[name].as_f64().unwrap();
    let row = &project.rows("plain.components")[0];
    holds(row, "sd_sample", of("sample"), CLOSED);
    holds(row, "sd_unit", of("unit"), CLOSED);
    holds(row, "pilot_effect", of("effect"), CLOSED);
    assert_eq!((number(row, "pilot_units"), number(row, "pilot_samples")), (12.0, 3.0));
    let rows = project.rows("plain");
    assert_eq!(rows.len(), 4);
    for row in &rows {
        let (n, r) = (number(row, "units"), number(row, "samples"));
        let variance = (of("unit").powi(2) + 2.0 * of("sample").powi(2) / r) / n;
        holds(row, "standard_error", variance.sqrt(), CLOSED);
        // Without effects, that which is found with 80 %.
        holds(row, "power", 0.8, 1e-9);
        assert_eq!(row["effect"], row["detectable_effect"]);
        assert_eq!((number(row, "units_needed"), number(row, "df")), (n, n - 1.0));
    }
    let row = &project.rows("clustered.components")[0];
    holds(row, "sd_unit", of("unit_in_cluster"), CLOSED);
    holds(row, "sd_cluster", of("cluster"), CLOSED);
    assert_eq!(number(row, "pilot_clusters"), 4.0);
    for row in project.rows("clustered") {
        let (n, r) = (number(&row, "units"), number(&row, "samples"));
        let parts = 3.0 * of("cluster").powi(2) + of("unit_in_cluster").powi(2);
        let variance = (parts + 2.0 * of("sample").powi(2) / r) / n;
        holds(&row, "standard_error", variance.sqrt(), CLOSED);
        holds(&row, "df", n / 3.0 - 1.0, CLOSED);
    }
}

#[test]
fn more_arms_and_outcomes_are_more_tests() {
    let with = "units: [100]\neffects: [0.3]\nassume: { y: { unit: 1 }, z: { unit: 2 } }";
    let level = |more: &str| number(&planned(&format!("{with}\n{more}"))[0], "level");
    for (more, tests) in [("", 2.0), ("arms: 4", 6.0), ("tests: 1", 1.0)] {
        assert!((level(more) - 0.05 / tests).abs() < 1e-12, "{more}");
    }
    // A margin adds the power of equivalence.
    let with = "units: [100]\neffects: [0.3]\nassume: { y: { unit: 1 } }\nmargin: 0.3";
    let row = &planned(with)[0];
    // scipy: quad over the standard deviation, as in the reference script, with a shift of 0.
    assert!((0.80..0.85).contains(&number(row, "equivalence_power")), "{row}");
    assert!((95.0..=100.0).contains(&number(row, "units_for_equivalence")), "{row}");
    says(text(row, "note"), &["100 data points", "within ±0.3", "over 1 test"]);
}

#[test]
fn a_pilot_that_says_nothing_is_refused_row_by_row() {
    let rows = (0..40u64).map(|i| {
        let arm = ["c", "t", "u", ""][(i % 4) as usize];
        let y = if arm == "u" { String::new() } else { noise(i, 0).to_string() };
        format!("{},{arm},{y},7", i / 4)
    });
    let steps = [
        ("missing", "units: [50], effects: [3], control: c, outcomes: [y, same]"),
        ("dropped", "units: [50], effects: [3], control: c, outcomes: [y], missing: drop"),
        ("stranger", "units: [50], effects: [3], control: none, outcomes: [same]"),
    ];
    let project = piloted(&csv("unit,arm,y,same", rows), &steps);
    for row in project.rows("missing") {
        assert_eq!((text(&row, "status"), &row["power"]), ("refused", &Value::Null), "{row}");
        assert!(text(&row, "note").contains(text(&row, "reason")), "{row}");
    }
    let rows = project.rows("dropped");
    assert_eq!(text(find(&rows, &[("treatment", "t")]), "status"), "ok");
    let refused = find(&rows, &[("treatment", "u")]);
    assert!(text(refused, "reason").contains("too few units"), "{refused}");
    for row in project.rows("stranger") {
        assert!(text(&row, "reason").contains("no row has `none` as `arm`"), "{row}");
    }
}

#[track_caller]
fn wrong(with: &str, code: &str, word: &str) {
    refused(&assumed(with), code, &[word]);
}

#[test]
fn mistakes_are_found_before_anything_runs() {
    let sound = "units: [100]\nassume: { y: { unit: 1 } }";
    wrong("units: [«1]\nassume: { y: { unit: 1 } }", "out-of-range", "2 to");
    wrong(&format!("{sound}\neffects: [«0]"), "out-of-range", "never found");
    wrong(&format!("{sound}\npower: «0.01"), "out-of-range", "between `alpha` and 1");
    wrong(&format!("{sound}\nmargin: «-1"), "out-of-range", "above 0");
    wrong(&format!("{sound}\nsamples: [2, «2]"), "conflicting-arguments", "twice");
    wrong(&format!("{sound}\nunit: «y"), "conflicting-arguments", "from: <step>");
    wrong("units: [9]\nassume: { y: { unit: «-1 } }", "out-of-range", "0 or more");
    let cluster = "units: [9]\nassume: { y: { unit: 1, cluster: «1 } }";
    wrong(cluster, "conflicting-arguments", "cluster_size");
    // A missing argument is reported at the step.
    let outcome = Project::new(&assumed("units: [9]")).run_json(&[]).exits(2);
    assert_eq!(outcome.diagnostics(), ["conflicting-arguments w.yaml:3:3"], "{outcome}");
    assert!(told(&outcome.events("diagnostic")[0]).contains("pilot or assumed"), "{outcome}");
}
