//! `correlate`: the coefficients, intervals and p-values of SciPy, by groups and with missing
//! values; refusals, and mistakes that are found before anything runs.
//! `tests/reference/regress.json` has the results of SciPy; the script next to it makes it.

use serde_json::{Value, json};

use crate::harness::{Project, every, has, refused_with, text, values};
use crate::regress_paired::reference;
use crate::regress_tables::{CLOSED, OPTIMUM, csv, equal, find, holds, noise};

fn workflow(steps: &[(&str, &str)]) -> String {
    let data =
        "data: { op: read, with: { path: data.csv, position: { column: row }, key: [row] } }";
    let step = |(name, with): &(&str, &str)| {
        format!("  {name}:\n    op: correlate\n    from: data\n    with: {{ {with} }}\n")
    };
    let steps: String = steps.iter().map(step).collect();
    format!("galeras: 1\nsteps:\n  {data}\n{steps}")
}

#[track_caller]
fn ran(csv: &str, steps: &[(&str, &str)]) -> Project {
    Project::new(&workflow(steps)).with("data.csv", csv).ran()
}

#[track_caller]
fn rows(csv: &str, with: &str) -> Vec<Value> {
    ran(csv, &[("found", with)]).rows("found")
}

#[track_caller]
fn agrees(row: &Value, peer: &Value) {
    assert_eq!((text(row, "status"), &row["reason"]), ("ok", &Value::Null), "{row}");
    for column in ["coefficient", "ci_low", "ci_high"] {
        holds(row, column, peer[column].as_f64().unwrap(), CLOSED);
    }
    holds(row, "p_value", peer["p_value"].as_f64().unwrap(), OPTIMUM);
    assert_eq!(row["n"], peer["n"], "{row}");
}

const METHODS: [&str; 3] = ["pearson", "spearman", "kendall"];

#[test]
fn coefficients_are_scipys() {
    let peer = &reference()["correlations"];
    for method in METHODS {
        let with = "outcomes: [a, b], variables: [c, d, e], missing: drop";
        let found = format!("{with}, method: {method}");
        let level = format!("outcomes: [a], variables: [b], method: {method}, alpha: 0.01");
        let project = ran(text(peer, "csv"), &[("found", &found), ("level", &level)]);
        let rows = project.rows("found");
        assert_eq!(rows.len(), 6);
        for wanted in peer[method]["all"].as_array().unwrap() {
            let (outcome, variable) = (text(wanted, "outcome"), text(wanted, "variable"));
            let row = find(&rows, &[("outcome", outcome), ("variable", variable)]);
            agrees(row, wanted);
            assert_eq!(text(row, "method"), method);
            let missing = if variable == "e" { 10 } else { 0 };
            assert_eq!(row["n_missing"], missing, "{row}");
            let told = "10 rows without one of the two are left out.";
            assert_eq!(text(row, "note").contains(told), variable == "e", "{row}");
        }
        let level = project.rows("level");
        agrees(&level[0], &peer[method]["level_99"]);
        assert!(text(&level[0], "note").contains("99 % CI"), "{}", level[0]);
    }
    // Pearson's is the default.
    let rows = rows(text(peer, "csv"), "outcomes: [a], variables: [c]");
    assert_eq!(text(&rows[0], "method"), "pearson");
    let names: Vec<&str> = rows[0].as_object().unwrap().keys().map(String::as_str).collect();
    let wanted = "outcome variable method status reason coefficient ci_low ci_high p_value n \
                  n_clusters n_missing note";
    assert_eq!(names.join(" "), wanted);
}

#[test]
fn groups_are_correlated_apart_also_that_without_a_value() {
    let peer = &reference()["correlations"];
    for method in METHODS {
        let with = format!("outcomes: [a], variables: [b, d], by: [kind], method: {method}");
        let rows = rows(text(peer, "csv"), &with);
        let groups = peer[method]["groups"].as_array().unwrap();
        assert_eq!((rows.len(), groups.len()), (6, 6));
        for wanted in groups {
            let of = |row: &Value| values(row, "kind variable");
            let row = rows.iter().find(|row| of(row) == of(wanted));
            agrees(row.unwrap_or_else(|| panic!("{wanted} in {rows:#?}")), wanted);
        }
    }
}

#[track_caller]
fn reason(table: &str, with: &str) -> String {
    let rows = rows(table, &format!("outcomes: [x], variables: [y]{with}"));
    assert_eq!(rows.len(), 1, "{rows:?}");
    let row = &rows[0];
    assert_eq!(text(row, "status"), "refused", "{row}");
    for column in ["coefficient", "ci_low", "ci_high", "p_value"] {
        assert!(row[column].is_null(), "{row}");
    }
    let reason = text(row, "reason").to_owned();
    assert!(text(row, "note").contains(&format!("refused, because {reason}.")), "{row}");
    reason
}

#[test]
fn missing_and_infinite_values_are_refused_and_counted() {
    // `x` and `y` of 12 rows, with this `y` in some.
    let table = |value: &str, of: fn(usize) -> bool| {
        let y = |i: usize| if of(i) { value.into() } else { format!("{}.5", i * i) };
        csv("x,y", (0..12).map(|i| format!("{i},{}", y(i))))
    };
    let wanted = "1 of 12 rows lack one of the two values (missing: drop leaves such rows out)";
    assert_eq!(reason(&table("NaN", |i| i == 7), ""), wanted);
    for value in ["inf", "-inf"] {
        for with in ["", ", missing: drop", ", method: spearman"] {
            let table = table(value, |i| i % 6 == 1);
            assert_eq!(reason(&table, with), "values are infinite in 2 rows");
        }
    }
    let row = |i: usize| {
        let x = if i % 10 == 3 { String::new() } else { i.to_string() };
        let y = if i % 15 == 4 { String::new() } else { (i * i % 17).to_string() };
        format!("{x},{y}")
    };
    let table = csv("x,y", (0..30).map(row));
    for method in METHODS {
        let told = reason(&table, &format!(", method: {method}"));
        let wanted = "5 of 30 rows lack one of the two values (missing: drop leaves such rows out)";
        assert_eq!(told, wanted);
    }
    let rows = rows(&table, "outcomes: [x], variables: [y], missing: drop");
    assert_eq!((&rows[0]["n"], &rows[0]["n_missing"]), (&json!(25), &json!(5)));
}

#[test]
fn constants_and_few_rows_are_refused() {
    let constant = csv("x,y", (0..20).map(|i| format!("{i},7")));
    let other = csv("x,y", (0..20).map(|i| format!("7,{i}")));
    for method in METHODS {
        let with = format!(", method: {method}");
        assert_eq!(reason(&constant, &with), "`y` has one value only");
        assert_eq!(reason(&other, &with), "`x` has one value only");
    }
    let two = csv("x,y", (0..2).map(|i| format!("{i},{}", 3 * i)));
    assert_eq!(reason(&two, ""), "too few rows: 2, at least 3 are needed");
    // Three rows have a coefficient, but Fisher's transformation no interval.
    let three = csv("x,y", ["1,2", "2,3", "3,5"].map(String::from));
    let rows = rows(&three, "outcomes: [x], variables: [y]");
    equal(rows[0]["coefficient"].as_f64().unwrap(), 0.9819805060619659, CLOSED, "r");
    assert!(rows[0]["ci_low"].is_null() && rows[0]["ci_high"].is_null(), "{}", rows[0]);
    assert!(!text(&rows[0], "note").contains("CI"), "{}", rows[0]);
}

#[test]
fn a_line_is_a_correlation_of_one_and_an_empty_table_has_one_row_that_says_so() {
    let table = csv("x,y", (0..30).map(|i| format!("{i},{}", -3 * i)));
    for method in METHODS {
        let row = &rows(&table, &format!("outcomes: [x], variables: [y], method: {method}"))[0];
        has(row, "coefficient status", json!([-1.0, "ok"]));
        assert!(row["p_value"].as_f64().unwrap() < 1e-25, "{row}");
    }
    let steps = "  data: { op: exec, with: { command: 'true', output: { id: utf8!, x: float64, y: int64, k: utf8 } } }
  found: { op: correlate, from: data, with: { outcomes: [x], variables: [y] } }
  grouped: { op: correlate, from: data, with: { outcomes: [x], variables: [y], by: [k] } }
";
    let project = Project::steps(steps).ran();
    assert_eq!(text(&project.only("found"), "reason"), "too few rows: 0, at least 3 are needed");
    assert!(project.rows("grouped").is_empty());
}

#[test]
fn neither_order_nor_threads_change_a_result() {
    let peer = reference()["correlations"].clone();
    let table = peer["csv"].as_str().unwrap();
    let lines: Vec<&str> = table.lines().collect();
    let numbered = |order: &dyn Fn(usize) -> usize| {
        let rows = (1..lines.len()).map(|at| format!("{},{}", lines[order(at)], order(at)));
        csv(&format!("{},n", lines[0]), rows)
    };
    let straight = numbered(&|at| at);
    let n = lines.len() - 1;
    let turned = numbered(&|at| (at * 37) % n + 1);
    let steps = "  data: { op: read, with: { path: data.csv, key: [n] } }
  found: { op: correlate, from: data, with: { outcomes: [a, b], variables: [c, d], by: [kind] } }
";
    let project = Project::steps(steps).with("data.csv", &straight);
    let first = project.run_ok(&["--jobs", "1"]).step("found")["digest"].clone();
    project.write("data.csv", &turned);
    for jobs in ["1", "2", "4"] {
        let again = project.run_ok(&["--jobs", jobs, "--cache", &format!("cache{jobs}")]);
        assert_eq!(again.step("found")["digest"], first);
    }
    let row = |i: u64| {
        let x = noise(i, 0);
        format!("{i},{},{x}.{},{}.3", i % 7, noise(i, 1), x + 3 * noise(i, 2))
    };
    let table = csv("n,k,x,y", (0..60_000).map(row));
    for method in METHODS {
        let with = format!("outcomes: [x], variables: [y], by: [k], method: {method}");
        let project = Project::new(&workflow(&[("found", &with)])).with("data.csv", &table);
        let digest = |cache: &str, jobs: &str| {
            let outcome = project.run_ok(&["--cache", cache, "--jobs", jobs]);
            outcome.step("found")["digest"].clone()
        };
        let first = digest("first", "2");
        for jobs in ["1", "2", "4"] {
            assert_eq!(digest(&format!("again{jobs}"), jobs), first, "{method}");
        }
    }
}

/// The arguments with the mark at the only mistake, the code, words of the message.
#[rustfmt::skip]
const MISTAKES: &[(&str, &str, &[&str])] = &[
    ("outcomes: [«xx], variables: [y]", "unknown-column", &["did you mean `x`?"]),
    ("outcomes: [x], variables: [«q]", "unknown-column", &["`q`"]),
    ("outcomes: [x], variables: [«s]", "wrong-type", &["utf8", "a number"]),
    ("outcomes: [«s], variables: [y]", "wrong-type", &["utf8"]),
    ("outcomes: [x], variables: [y, «x]", "duplicate-column", &["already an outcome"]),
    ("outcomes: [x, «x], variables: [y]", "duplicate-column", &["named twice"]),
    ("outcomes: [x], variables: [y], by: [«t]", "unknown-column", &["`t`"]),
    ("outcomes: [x], variables: [y], by: [s, «s]", "duplicate-column", &["named twice"]),
    ("outcomes: [x], variables: [y], alpha: «1.0", "out-of-range", &["between 0 and 1"]),
    ("outcomes: [x], variables: [y], alpha: «0", "out-of-range", &["between 0 and 1"]),
    ("outcomes: [x], variables: [y], method: «person", "wrong-value", &["did you mean `pearson`?"]),
];

#[test]
fn mistakes_are_found_before_anything_runs() {
    let data = [("data.csv", "x,y,s\n1,2,a\n2,3,b\n")];
    every(MISTAKES.iter().map(|case| (case.0, case)), |(with, code, words)| {
        refused_with(&data, &workflow(&[("found", *with)]), code, words);
    });
}

#[test]
fn the_two_zeros_are_one_group_and_several_columns_make_combinations() {
    let row =
        |i: u64| format!("{},{},{}", noise(i, 0), noise(i, 1), ["0.0", "-0.0"][i as usize / 30]);
    let found = rows(&csv("y,x,g", (0..60).map(row)), "outcomes: [y], variables: [x], by: [g]");
    assert_eq!((found.len(), &found[0]["n"]), (1, &60.into()), "{found:?}");
    assert!(text(&found[0], "note").starts_with("Where `g` is 0.0: Pearson's r of"), "{found:?}");
    // The group column is a number here, and keeps its type.
    let table = csv("k,b,x,y", (0..48).map(|i| format!("{},{},{i},{}", i % 3, i % 2 == 0, i * i)));
    let rows = rows(&table, "outcomes: [x], variables: [y], by: [k, b]");
    assert_eq!(rows.len(), 6);
    for row in &rows {
        assert!(row["k"].is_i64() && row["b"].is_boolean(), "{row}");
        assert_eq!((&row["n"], text(row, "status")), (&json!(8), "ok"));
    }
}
