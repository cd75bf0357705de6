//! The common parts of the tests of `regress` and `correlate`: a table, the steps that read it, and
//! the rows of results. There are no tests here.

use std::fmt::Write as _;

use serde_json::Value;

use crate::harness::{Project, says, text};

/// A workflow that reads `data.csv` and has these steps: name and arguments of `regress`.
pub fn workflow(steps: &[(&str, &str)]) -> String {
    let mut text = String::from(
        "galeras: 1
steps:
  data: { op: read, with: { path: data.csv, position: { column: row }, key: [row] } }
",
    );
    for (name, with) in steps {
        let seed = if with.contains("seed:") { "" } else { ", seed: 1" };
        let refuters = if with.contains("refuters:") { "" } else { ", refuters: []" };
        writeln!(text, "  {name}:\n    op: regress\n    from: data").unwrap();
        writeln!(text, "    with: {{ {with}{seed}{refuters} }}").unwrap();
    }
    text
}

#[track_caller]
pub fn ran(csv: &str, steps: &[(&str, &str)]) -> Project {
    Project::new(&workflow(steps)).with("data.csv", csv).ran()
}

/// A project that has run steps whose arguments are `with` and those of the step.
#[track_caller]
pub fn ran_with<N: AsRef<str>, M: AsRef<str>>(csv: &str, with: &str, steps: &[(N, M)]) -> Project {
    let arguments: Vec<String> = (steps.iter().map(|(_, more)| more.as_ref()))
        .map(|more| [with, more].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>())
        .map(|parts| parts.join(", "))
        .collect();
    let names = steps.iter().map(|(name, _)| name.as_ref());
    let steps: Vec<(&str, &str)> = names.zip(arguments.iter().map(String::as_str)).collect();
    ran(csv, &steps)
}

#[track_caller]
pub fn analysed(csv: &str, with: &str) -> Project {
    ran(csv, &[("effects", with)])
}

/// The estimates of a table.
#[track_caller]
pub fn effects(csv: &str, with: &str) -> Vec<Value> {
    analysed(csv, with).rows("effects")
}

/// The one row with these texts in these columns.
#[track_caller]
pub fn find<'a>(rows: &'a [Value], wanted: &[(&str, &str)]) -> &'a Value {
    let fits = |row: &&Value| wanted.iter().all(|(column, text)| row[*column] == *text);
    let mut found = rows.iter().filter(fits);
    let row = found.next().unwrap_or_else(|| panic!("no row with {wanted:?} in {rows:#?}"));
    assert!(found.next().is_none(), "one row with {wanted:?} in {rows:#?}");
    row
}

/// Fails unless the row has this status, and a reason with these words.
#[track_caller]
pub fn reasons(row: &Value, status: &str, words: &[&str]) {
    assert_eq!(text(row, "status"), status, "{row:#}");
    says(text(row, "reason"), words);
}

/// Fails unless the row has this status and this reason.
#[track_caller]
pub fn ended(row: &Value, status: &str, reason: &str) {
    assert_eq!((text(row, "status"), text(row, "reason")), (status, reason), "{row:#}");
}

/// Fails unless the one row with these texts holds a number as its `value`.
#[track_caller]
pub fn has_value(rows: &[Value], wanted: &[(&str, &str)], theirs: f64, relative: f64) {
    holds(find(rows, wanted), "value", theirs, relative);
}

#[track_caller]
pub fn number(row: &Value, column: &str) -> f64 {
    row[column].as_f64().unwrap_or_else(|| panic!("{column} of {row:#}"))
}

/// The relative error that formulas may have; tables hold twelve digits.
pub const CLOSED: f64 = 1e-9;
/// The relative error that the optimum of a likelihood may have.
pub const OPTIMUM: f64 = 1e-6;

/// Fails unless two numbers are equal within a relative error.
#[track_caller]
pub fn equal(ours: f64, theirs: f64, relative: f64, about: &str) {
    let apart = (ours - theirs).abs();
    assert!(apart <= relative * theirs.abs(), "{about}: ours {ours:e}, theirs {theirs:e}");
}

/// Fails unless a column of the row holds the number.
#[track_caller]
pub fn holds(row: &Value, column: &str, theirs: f64, relative: f64) {
    equal(number(row, column), theirs, relative, &format!("{column} of {row:#}"));
}

/// Fails unless columns hold the numbers of a peer: `column`, or `column=name of the peer`.
#[track_caller]
pub fn alike(row: &Value, peer: &Value, columns: &str, relative: f64) {
    for column in columns.split(' ') {
        let (column, name) = column.split_once('=').unwrap_or((column, column));
        holds(row, column, number(peer, name), relative);
    }
}

/// Fails unless these columns hold the numbers that a peer has under the same names.
#[track_caller]
pub fn agrees(row: &Value, peer: &Value, columns: &[&str]) {
    assert_eq!((text(row, "status"), &row["reason"]), ("ok", &Value::Null), "{row}");
    for column in columns {
        let relative = if *column == "p_value" { OPTIMUM } else { CLOSED };
        holds(row, column, number(peer, column), relative);
    }
}

/// Fails unless the row has no estimate, and a reason with these words.
#[track_caller]
pub fn lacks(row: &Value, words: &[&str]) {
    assert_eq!(text(row, "status"), "refused", "{row:#}");
    assert!(row["estimate"].is_null(), "{row:#}");
    says(text(row, "reason"), words);
}

#[track_caller]
pub fn estimate(project: &Project, step: &str, estimator: &str) -> Value {
    find(&project.rows(step), &[("estimator", estimator)]).clone()
}

#[track_caller]
pub fn status(project: &Project, step: &str, estimator: &str) -> (String, String) {
    let row = estimate(project, step, estimator);
    (text(&row, "status").to_owned(), row["reason"].as_str().unwrap_or_default().to_owned())
}

/// A table in CSV: the names of columns, and rows of numbers and words.
pub fn csv(header: &str, rows: impl IntoIterator<Item = String>) -> String {
    rows.into_iter().fold(format!("{header}\n"), |text, row| text + &row + "\n")
}

/// A table in CSV of `n` rows.
pub fn made(header: &str, n: u64, row: impl FnMut(u64) -> String) -> String {
    csv(header, (0..n).map(row))
}

/// One of two arms that looks random.
pub fn arm(i: u64) -> &'static str {
    if noise(i, 4) % 2 == 0 { "t" } else { "c" }
}

/// One of two arms by turns.
pub fn turns(i: u64) -> &'static str {
    ["t", "c"][i as usize % 2]
}

/// A number from 0 to 100 that looks random: the `i`th of the sequence `k`.
pub fn noise(i: u64, k: u64) -> i64 {
    let mixed = (i * i * (31 + 2 * k) + i * (17 + 7 * k) + 5 * k) % 10_007;
    (mixed * 7_919 % 10_007 % 101) as i64
}
