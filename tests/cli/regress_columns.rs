//! `regress` and `correlate` on columns of other types and with odd names: the numbers are the
//! same as those of plain ones.

use serde_json::{Value, json};

use crate::harness::{Project, text};
use crate::regress_tables::{analysed, csv, find, made, noise, number, ran_with};

/// 60 units under two arms: outcome and covariate as numbers, `passed` as true and false.
fn table(header: &str, arms: [&str; 2]) -> String {
    made(header, 120, |i| {
        let (unit, y) = (i / 2, outcome(i));
        let arm = arms[(i % 2) as usize];
        format!("u{unit},{arm},{y},{},{},{}", y > 100, u8::from(y > 100), noise(unit, 2))
    })
}

fn outcome(i: u64) -> i64 {
    noise(i / 2, 0) + noise(i, 1) + if i % 2 == 1 { 40 } else { 0 }
}

const PLAIN: &str = "unit,arm,y,passed,bit,x";

/// The numbers in the rows of these ports of a step.
#[track_caller]
fn numbers_of(project: &Project, step: &str, ports: &[&str]) -> Vec<Vec<Value>> {
    let mut all = Vec::new();
    for port in ports {
        let rows = project.rows(&format!("{step}{port}"));
        assert!(!rows.is_empty(), "{port}");
        let cells = |row: &Value| -> Vec<Value> {
            row.as_object().unwrap().values().filter(|cell| cell.is_number()).cloned().collect()
        };
        all.extend(rows.iter().map(cells));
    }
    all
}

/// The numbers of the step `effects`, without what names columns and arms.
#[track_caller]
fn numbers(project: &Project) -> Vec<Vec<Value>> {
    let ports = ["", ".refutations", ".balance", ".overlap", ".sensitivity", ".modifiers"];
    numbers_of(project, "effects", &ports)
}

const STEP: &str = "outcomes: [y], unit: unit, confounders: [x], modifiers: [x],
      estimators: [paired, ols, weighting], refuters: [placebo, subset], simulations: 5";

#[track_caller]
fn plain_numbers() -> Vec<Vec<Value>> {
    let with = format!("treatment: arm, control: c, {STEP}");
    numbers(&analysed(&table(PLAIN, ["c", "t"]), &with))
}

#[test]
fn arms_may_be_numbers_or_true_and_false() {
    let plain = plain_numbers();
    for (arms, control) in [
        (["0", "1"], "0"),
        (["false", "true"], "false"),
        (["0.5", "1.5"], "0.5"),
        (["-3", "12"], "-3"),
    ] {
        let with = format!("treatment: arm, control: '{control}', {STEP}");
        let project = analysed(&table(PLAIN, arms), &with);
        assert_eq!(numbers(&project), plain, "{arms:?}");
        assert_eq!(text(&project.rows("effects")[0], "treatment"), arms[1]);
    }
    // True and false are one and zero.
    let with = "treatment: arm, control: c, unit: unit, estimators: [paired, ols],
      refuters: [placebo], simulations: 5";
    let steps = [("passed", "outcomes: [passed]"), ("bit", "outcomes: [bit]")];
    let project = ran_with(&table(PLAIN, ["c", "t"]), with, &steps);
    for port in ["", ".refutations", ".sensitivity"] {
        let of = |step: &str| numbers_of(&project, step, &[port]);
        assert_eq!(of("passed"), of("bit"), "{port}");
    }
    let rows = project.rows("passed");
    let share = |wanted: u64| {
        let passed = (0..120u64).filter(|i| i % 2 == wanted && outcome(*i) > 100);
        passed.count() as f64 / 60.0
    };
    let row = find(&rows, &[("estimator", "paired")]);
    assert!((number(row, "estimate") - (share(1) - share(0))).abs() < 1e-9, "{row}");
}

#[test]
fn odd_names_of_columns_and_arms_and_types_of_units_and_clusters() {
    let odd = "treatment: Arm Name, control: 'é, \"c\"', outcomes: [Y.1], unit: select,
      confounders: ['größe''s'], modifiers: ['größe''s'], estimators: [paired, ols, weighting],
      refuters: [placebo, subset], simulations: 5";
    let arms = ["\"é, \"\"c\"\"\"", "#0"];
    let project = analysed(&table("select,Arm Name,Y.1,passed,bit,größe's", arms), odd);
    assert_eq!(numbers(&project), plain_numbers());
    let rows = project.rows("effects");
    let row = find(&rows, &[("estimator", "ols"), ("outcome", "Y.1"), ("treatment", "#0")]);
    assert_eq!((text(row, "control"), text(row, "adjusted_for")), ("é, \"c\"", "größe's"));
    assert!(text(row, "note").contains("effect of #0 against é, \"c\" on Y.1"), "{row}");
    // Units may be numbers, and clusters times.
    let rows = (0..120u64).map(|i| {
        let arm = ["c", "t"][(i % 2) as usize];
        let day = i / 2 % 9 + 1;
        format!("{},{arm},{},2024-01-0{day},{day}", i / 2, noise(i, 1) + noise(i / 2, 0))
    });
    let with = "treatment: arm, control: c, outcomes: [y], unit: unit";
    let steps = [("day", "cluster: day"), ("number", "cluster: number")];
    let project = ran_with(&csv("unit,arm,y,day,number", rows), with, &steps);
    let day = project.rows("day");
    assert_eq!(day, project.rows("number"));
    assert_eq!(day[0]["n_clusters"], 9);
}

#[test]
fn numbers_that_are_none_are_no_arms_units_or_clusters() {
    let rows = |place: usize| {
        made("unit,arm,place,y", 120, |i| {
            let mut cells = [
                format!("{}.5", i / 2),
                format!("{}.5", i % 2),
                format!("{}.5", i / 20),
                (noise(i, 1) + noise(i / 2, 0)).to_string(),
            ];
            if i % 50 == 7 {
                cells[place] = "NaN".into();
            }
            cells.join(",")
        })
    };
    let with = "treatment: arm, control: '0.5', outcomes: [y], unit: unit, cluster: place";
    for place in 0..3 {
        let project = ran_with(&rows(place), with, &[("refuse", ""), ("drop", "missing: drop")]);
        let refused = project.rows("refuse");
        assert_eq!(refused.len(), 1, "one arm besides control: {refused:#?}");
        let reason = "3 rows are without a value of `y` or `unit` or `place` or `arm` (missing: \
                      drop leaves such rows out)";
        assert_eq!(text(&refused[0], "reason"), reason);
        let row = &project.rows("drop")[0];
        // The other rows of these units are left out with them.
        assert_eq!((number(row, "n"), number(row, "n_missing")), (114.0, 3.0), "{row}");
        assert_eq!((number(row, "n_pairs"), number(row, "n_clusters")), (57.0, 6.0), "{row}");
    }
}

#[test]
fn columns_of_groups_keep_their_types_in_correlations() {
    let rows = (0..120u64).map(|i| {
        let day = i % 2 + 1;
        format!("{day},2024-01-0{day},{},{},{}", day == 1, noise(i, 0), noise(i, 0) + noise(i, 1))
    });
    let steps =
        "  data: { op: read, with: { path: data.csv, position: { column: row }, key: [row] } }
  found: { op: correlate, from: data, with: { outcomes: [x], variables: [y, on], by: [k, day] } }
  other: { op: correlate, from: data, with: { outcomes: [on], variables: [y] } }
";
    let project = Project::steps(steps).with("data.csv", csv("k,day,on,x,y", rows)).ran();
    let rows = project.rows("found");
    assert_eq!(rows.len(), 4);
    for row in &rows {
        if row["variable"] == "on" {
            assert_eq!(text(row, "reason"), "`on` has one value only");
            continue;
        }
        assert_eq!((&row["k"].is_i64(), &row["method"]), (&true, &json!("pearson")), "{row}");
        assert!(text(row, "day").starts_with("2024-01-0"), "{row}");
    }
    assert_eq!(text(&project.rows("other")[0], "status"), "ok");
    // An arm may be called like a contrast.
    let rows = (0..80u64).map(|i| {
        let arm = ["c", "a", "b", "b - a"][(i % 4) as usize];
        format!("{},{arm},{}", i / 4, noise(i, 0))
    });
    let with = "treatment: arm, control: c, outcomes: [y], unit: unit, contrasts: all";
    let project = analysed(&csv("unit,arm,y", rows), with);
    assert_eq!(project.rows("effects").len(), 6);
    assert_eq!(project.rows("effects.summary").len(), 6);
}
