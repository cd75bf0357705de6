//! `mixed`: what lme4 and lmerTest print for their own data, from a file to the ports; text columns
//! and their base, variances and their shares; what is refused, and what is wrong before anything
//! runs. The data are in `tests/reference/mixed`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::harness::{Project, every, package, refused_with, says, text, values};
use crate::regress_tables::{csv, find, noise};

fn workflow(with: &str) -> String {
    format!(
        "galeras: 1
steps:
  data: {{ op: read, with: {{ path: data.csv, position: {{ column: row }}, key: [row] }} }}
  fitted: {{ op: mixed, from: data, with: {{ {with} }} }}
"
    )
}

#[track_caller]
fn fitted(table: &str, with: &str) -> Project {
    Project::new(&workflow(with)).with("data.csv", table).ran()
}

fn published(name: &str) -> String {
    let path = package().join("reference/mixed").join(format!("{name}.csv"));
    std::fs::read_to_string(path).unwrap()
}

/// Fails unless the column rounds to `printed` with so many decimals.
#[track_caller]
fn prints(row: &Value, column: &str, printed: f64, decimals: i32) {
    let found = row[column].as_f64().unwrap_or_else(|| panic!("{column} of {row:#}"));
    let half = 0.501 * 10_f64.powi(-decimals);
    assert!((found - printed).abs() <= half, "{column}: {found}, printed {printed}");
}

#[test]
fn sleepstudy_is_as_lmertest_prints_it() {
    let with =
        "outcomes: [reaction], fixed: [days], random: [subject], slopes: { subject: [days] }";
    let project = fitted(&published("sleepstudy"), with);
    let rows = project.rows("fitted");
    let days = find(&rows, &[("term", "days")]);
    prints(days, "estimate", 10.467, 3);
    prints(days, "standard_error", 1.546, 3);
    prints(days, "df", 17.0, 3);
    prints(days, "t", 6.771, 3);
    assert!((days["p_value"].as_f64().unwrap() * 1e6 - 3.26).abs() < 0.006, "{days}");
    let change = "Per unit of `days`, reaction changes by 10.5 (95 % CI ";
    let fit = "t with 17 degrees of freedom); linear mixed model with random effects of `subject` by \
               REML, n = 180.";
    says(text(days, "note"), &[change, fit]);
    prints(find(&rows, &[("term", "(intercept)")]), "estimate", 251.405, 3);
    assert!(!text(days, "note").contains("taken as equal"), "{days}");
    let components = project.rows("fitted.components");
    assert_eq!(components.len(), 4);
    let slope = find(&components, &[("effect", "days"), ("other", "")]);
    prints(slope, "variance", 35.07, 2);
    prints(slope, "sd", 5.922, 3);
    assert!(slope["share"].is_null() && slope["icc"].is_null());
    let pair = find(&components, &[("effect", "days"), ("other", "(intercept)")]);
    prints(pair, "correlation", 0.066, 3);
    prints(find(&components, &[("group", "(residual)")]), "sd", 25.592, 3);
    let fit = &project.rows("fitted.fit")[0];
    prints(fit, "criterion", 1743.628, 3);
    let columns = "converged singular groups parameters";
    assert_eq!(values(fit, columns), json!([true, false, "subject: 18", 6]));
}

#[test]
fn outcomes_of_yes_and_no_are_fitted_by_laplace() {
    // The numbers of tests/reference/mixed_binary.py.
    let with = "outcomes: [right], fixed: [prompt], random: [model, problem], family: binomial";
    let project = fitted(&published("answers"), with);
    let rows = project.rows("fitted");
    let prompt = find(&rows, &[("term", "prompt")]);
    prints(prompt, "estimate", 0.6675, 4);
    prints(prompt, "standard_error", 0.2505, 4);
    assert!(prompt["df"].is_null(), "{prompt}");
    let change = "Per unit of `prompt`, the log odds of right change by 0.67 (95 % CI ";
    let fit = "z; odds ratio 1.949); mixed logistic model with random effects of `model` and `problem` \
               by Laplace, n = 360.";
    says(text(prompt, "note"), &[change, fit]);
    let components = project.rows("fitted.components");
    prints(find(&components, &[("group", "problem")]), "sd", 0.9693, 4);
    prints(find(&components, &[("group", "(residual)")]), "sd", 1.8138, 4);
    let columns = "method converged singular parameters";
    let fit = &project.rows("fitted.fit")[0];
    assert_eq!(values(fit, columns), json!(["Laplace", true, false, 4]));
    prints(fit, "criterion", 437.2770, 4);
}

#[test]
fn nested_and_crossed_columns_have_shares_of_the_variance() {
    let with = "outcomes: [strength], random: [batch, sample], reml: false";
    let project = fitted(&published("pastes"), with);
    let rows = project.rows("fitted.components");
    let variance = |group: &str| find(&rows, &[("group", group)])["variance"].as_f64().unwrap();
    let total = variance("batch") + variance("sample") + variance("(residual)");
    let sample = find(&rows, &[("group", "sample")]);
    prints(sample, "sd", 2.9041, 4);
    prints(sample, "share", variance("sample") / total, 9);
    // Two rows of one sample are of one batch as well.
    prints(sample, "icc", (variance("sample") + variance("batch")) / total, 9);
    prints(find(&rows, &[("group", "batch")]), "icc", variance("batch") / total, 9);
    assert!(find(&rows, &[("group", "(residual)")])["icc"].is_null());
    prints(&project.rows("fitted.fit")[0], "criterion", 247.9945, 4);

    // The same groups, by two columns of which neither has them alone.
    let cask: String = published("pastes")
        .lines()
        .map(|line| line.replace(",A:", ",").replace("batch,sample", "batch,cask"))
        .map(|line| match line.split_once(':') {
            Some((head, rest)) => format!("{},{rest}\n", head.split(',').next().unwrap()),
            None => format!("{line}\n"),
        })
        .collect();
    let with = "outcomes: [strength], random: [batch], interactions: [[batch, cask]]";
    let project = fitted(&cask, with);
    prints(&project.rows("fitted.fit")[0], "criterion", 246.9907, 4);
    let rows = project.rows("fitted.components");
    prints(find(&rows, &[("group", "batch x cask")]), "sd", 2.9041, 4);

    let project = fitted(&published("penicillin"), "outcomes: [diameter], random: [plate, sample]");
    prints(&project.rows("fitted.fit")[0], "criterion", 330.8606, 4);
    assert_eq!(find(&project.rows("fitted.components"), &[("group", "sample")])["groups"], 6);
    // A singular fit says so.
    let project = fitted(&published("dyestuff2"), "outcomes: [yield], random: [batch]");
    let fit = &project.rows("fitted.fit")[0];
    assert_eq!((text(fit, "status"), &fit["singular"]), ("ok", &json!(true)));
    prints(fit, "criterion", 161.8283, 4);
    let rows = project.rows("fitted.components");
    let batch = find(&rows, &[("group", "batch")]);
    assert_eq!(batch["variance"], 0.0);
    assert!(text(batch, "note").contains("the fit is singular"), "{batch}");
    assert!(text(&project.rows("fitted")[0], "note").contains("a singular fit"));
}

/// 80 rows of 8 groups, an arm of three values, and a number.
fn arms() -> String {
    let row = |at: u64| {
        let arm = ["plain", "few-shot", "chain"][(at % 3) as usize];
        let y = noise(at, 1) + 20 * (at % 3) as i64 + 9 * (at as i64 / 10);
        format!("g{},{arm},{},{y}", at / 10, noise(at, 2))
    };
    csv("g,arm,x,y", (0..80).map(row))
}

#[test]
fn text_is_compared_with_its_base_and_neither_order_nor_threads_count() {
    let rows = fitted(&arms(), "outcomes: [y], fixed: [arm, x], random: [g]").rows("fitted");
    let terms = rows.iter().map(|row| (text(row, "term"), text(row, "level")));
    let wanted = [("(intercept)", ""), ("arm", "few-shot"), ("arm", "plain"), ("x", "")];
    assert_eq!(rows.len(), 4);
    assert_eq!(BTreeSet::from_iter(terms), wanted.into());
    let plain = find(&rows, &[("level", "plain")]);
    assert_eq!(plain["base"], "chain");
    assert!(text(plain, "note").starts_with("Where `arm` is plain, y differs from chain by "));
    let with = "outcomes: [y], fixed: [arm, x], base: { arm: plain }, random: [g]";
    let others = fitted(&arms(), with).rows("fitted");
    let chain = find(&others, &[("level", "chain")]);
    let opposite = plain["estimate"].as_f64().unwrap();
    prints(chain, "estimate", -opposite, 8);
    prints(chain, "standard_error", plain["standard_error"].as_f64().unwrap(), 8);
    assert_eq!(chain["base"], "plain");
    assert!(rows[0]["base"].is_null());
    let numbered = |turn: &dyn Fn(usize) -> usize| {
        let table = arms();
        let lines: Vec<&str> = table.lines().collect();
        let rows = (0..80).map(|at| format!("{},{}", lines[turn(at) + 1], turn(at)));
        csv("g,arm,x,y,n", rows)
    };
    let steps = "  data: { op: read, with: { path: data.csv, key: [n] } }
  fitted: { op: mixed, from: data, with: { outcomes: [y, x], fixed: [arm], random: [g] } }
";
    let project = Project::steps(steps).with("data.csv", numbered(&|at| at));
    let first = project.run_ok(&["--jobs", "1"]).step("fitted")["digest"].clone();
    project.write("data.csv", numbered(&|at| (at * 37 + 11) % 80));
    for jobs in ["1", "4"] {
        let again = project.run_ok(&["--jobs", jobs, "--cache", &format!("cache{jobs}")]);
        assert_eq!(again.step("fitted")["digest"], first);
    }
}

#[track_caller]
fn reason(table: &str, with: &str) -> String {
    let project = fitted(table, with);
    let row = project.rows("fitted.fit")[0].clone();
    let reason = row["reason"].as_str().unwrap_or_else(|| panic!("{row:#}")).to_owned();
    for port in ["fitted", "fitted.components"] {
        for row in project.rows(port) {
            assert_eq!((text(&row, "status"), text(&row, "reason")), ("refused", reason.as_str()));
        }
    }
    assert!(row["criterion"].is_null() && !project.rows("fitted").is_empty());
    reason
}

#[test]
fn what_cannot_be_fitted_is_refused() {
    let plain = "outcomes: [y], random: [g]";
    let gap = arms().replacen("g0,plain", ",plain", 1).replacen("chain,", ",", 1);
    let wanted = "1 row has no value of the outcome, a fixed column or a group (missing: drop \
                  leaves such rows out)";
    assert_eq!(reason(&gap, plain), wanted);
    let wanted = "2 rows have no value";
    assert!(reason(&gap, "outcomes: [y], fixed: [arm], random: [g]").starts_with(wanted));
    let kept = fitted(&gap, "outcomes: [y], fixed: [arm], random: [g], missing: drop");
    let fit = &kept.rows("fitted.fit")[0];
    assert_eq!(values(fit, "n n_missing"), json!([78, 2]));
    assert!(text(fit, "note").contains("2 rows without a value are left out."), "{fit}");

    let base = "outcomes: [y], fixed: [arm], base: { arm: none }, random: [g]";
    let wanted = "`arm` is never `none`, its base, but `chain`, `few-shot`, `plain`";
    assert_eq!(reason(&arms(), base), wanted);
    let told = reason(&arms(), "outcomes: [y], fixed: [g], random: [g]");
    assert!(told.starts_with("`g` has groups that the fixed effects tell apart"), "{told}");
    let one = csv("g,y", (0..20).map(|at| format!("a,{}", noise(at, 1))));
    assert_eq!(reason(&one, plain), "`g` has one group only");
    let each = csv("g,y", (0..20).map(|at| format!("{at},{}", noise(at, 1))));
    assert!(reason(&each, plain).starts_with("`g` has 20 groups in 20 rows"));
    let flat = csv("g,y", (0..20).map(|at| format!("{},7", at % 4)));
    assert_eq!(reason(&flat, plain), "`y` has one value only");
    let row = |at: u64| match at {
        3 => "1,inf".to_owned(),
        _ => format!("{},{}.5", at % 4, noise(at, 1)),
    };
    let infinite = csv("g,y", (0..20).map(row));
    assert_eq!(reason(&infinite, plain), "`y` is infinite in 1 row");
    assert_eq!(reason("g,y\na,1.5\n", plain), "too few rows: 1, at least 3 are needed");
    let twice = csv("g,h,y", (0..24).map(|at| format!("{},h{},{}", at % 4, at % 4, noise(at, 1))));
    let told = reason(&twice, "outcomes: [y], random: [g, h]");
    assert!(told.starts_with("`h` groups the rows as an earlier one does"), "{told}");
}

/// The arguments with the mark at the only mistake, the code, words of the message.
#[rustfmt::skip]
const MISTAKES: &[(&str, &str, &[&str])] = &[
    ("outcomes: [«yy], random: [g]", "unknown-column", &["did you mean `y`?"]),
    ("outcomes: [«s], random: [g]", "wrong-type", &["a number"]),
    ("outcomes: [y, «y], random: [g]", "duplicate-column", &["named twice"]),
    ("outcomes: [y], fixed: [«y], random: [g]", "conflicting-arguments", &["an outcome"]),
    ("outcomes: [y], random: [«y]", "conflicting-arguments", &["an outcome"]),
    ("outcomes: [y], random: [g, «g]", "duplicate-column", &["named twice"]),
    ("outcomes: [y], random: «[]", "conflicting-arguments", &["random effect", "regress"]),
    ("outcomes: [y], random: [g], interactions: [«[g]]", "conflicting-arguments", &["at least two columns"]),
    ("outcomes: [y], fixed: [x], random: [g], base: { x: «1 }", "wrong-type", &["string"]),
    ("outcomes: [y], random: [g], slopes: { g: [«x] }", "conflicting-arguments", &["not one of `fixed`", "around a mean"]),
    ("outcomes: [y], random: [g], correlated: «false", "conflicting-arguments", &["there are none"]),
    ("outcomes: [y], random: [g], alpha: «1.0", "out-of-range", &["between 0 and 1"]),
];

#[test]
fn mistakes_are_found_before_anything_runs() {
    let data = [("data.csv", "x,y,s,g\n1,2,a,u\n2,3,b,v\n")];
    every(MISTAKES.iter().map(|case| (case.0, case)), |(with, code, words)| {
        refused_with(&data, &workflow(with), code, words);
    });
}

/// An effect within groups without a slope has a standard error that is too small: lme4 prints 0.804
/// for `sleepstudy` instead of 1.546 with the slope.
#[test]
fn an_effect_that_may_differ_between_groups_is_warned_about() {
    let warnings = |table: &str, with: &str| {
        let project = Project::new(&workflow(with)).with("data.csv", table);
        let warnings = project.run_ok(&[]).warnings();
        let told = warnings.into_iter().filter(|text| text.contains("one effect of"));
        (project, told.collect::<Vec<_>>())
    };
    let (project, told) = warnings(
        &published("sleepstudy"),
        "outcomes: [reaction], fixed: [days], random: [subject]",
    );
    assert_eq!(told.len(), 1, "{told:?}");
    says(&told[0], &["`days` for all groups of `subject`", "slopes: { subject: [days] }"]);
    let rows = project.rows("fitted");
    let days = find(&rows, &[("term", "days")]);
    prints(days, "standard_error", 0.804, 3);
    says(text(days, "note"), &["The effect is taken as equal in all groups of `subject`"]);
    // A logistic model has no slopes.
    let with = "outcomes: [right], fixed: [prompt], random: [model, problem], family: binomial";
    let (_, told) = warnings(&published("answers"), with);
    says(&told[0], &["(add `interactions: [[model, prompt]]`)"]);
    assert!(!told[0].contains("slopes"), "{told:?}");
    // Eight groups, two arms within each, and two or more rows of each.
    let row = |at: u64| format!("g{},{},{}", at / 8, ["a", "b"][at as usize % 2], noise(at, 1));
    let within = csv("g,arm,y", (0..64).map(row));
    let with = "outcomes: [y], fixed: [arm], random: [g]";
    assert_eq!(warnings(&within, with).1.len(), 1);
    assert!(warnings(&within, &format!("{with}, interactions: [[g, arm]]")).1.is_empty());
    // One row of each arm in a group, and arms that do not vary within groups.
    let row = |at: u64| format!("g{},{},{}", at / 2, ["a", "b"][at as usize % 2], noise(at, 1));
    assert!(warnings(&csv("g,arm,y", (0..64).map(row)), with).1.is_empty());
    let row = |at: u64| format!("g{},{},{}", at / 8, ["a", "b"][at as usize / 8 % 2], noise(at, 1));
    assert!(warnings(&csv("g,arm,y", (0..64).map(row)), with).1.is_empty());
    // Texts that pandas reads as missing are not an arm.
    let row = |at: u64| {
        format!("g{},\"{}\",{}", at / 8, ["a", "NaN", "b"][at as usize % 3], noise(at, 1))
    };
    let missing = csv("g,arm,y", (0..66).map(row));
    let (project, _) = warnings(&missing, with);
    let fit = project.only("fitted.fit");
    says(text(&fit, "reason"), &["22 rows have no value"]);
}
