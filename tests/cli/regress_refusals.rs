//! `regress`: refusals of the data. A refusal is a row with a reason and without a number; the run
//! goes on. Mistakes in arguments are in `regress_mistakes`, effects that a graph does not identify
//! in `regress_graph`.

use serde_json::Value;

use crate::harness::{Project, every, hides, says, text};
use crate::regress_tables::{
    analysed, arm, effects, ended, equal, find, lacks, made, noise, number, ran_with, turns,
    workflow,
};

/// Rows of two arms: `arm`, `y`, and covariates `x` and `w` that do not separate the arms.
pub fn rows(n: u64, row: impl Fn(u64, &str, i64, i64, i64) -> String) -> String {
    made("arm,y,x,w", n, |i| row(i, arm(i), noise(i, 0), noise(i, 1), noise(i, 2)))
}

pub const TWO: &str = "treatment: arm, control: c, outcomes: [y]";

/// Fails unless every number of the row is missing and the reason is this one.
#[track_caller]
pub fn is_refused(row: &Value, reason: &str) {
    ended(row, "refused", reason);
    let numbers = ["estimate", "standard_error", "statistic", "df", "ci_low", "ci_high"];
    for column in numbers.iter().chain(&["p_value", "p_adjusted"]) {
        assert!(row[column].is_null(), "{column}: {row:#}");
    }
    let note = text(row, "note");
    assert!(note.ends_with(&format!(": refused, because {reason}.")), "{note}");
    hides(reason, &["NaN", "inf,", "#", "defect"]);
}

/// The step's estimators all refuse for this reason, so do its refuters and its summary, and the
/// run succeeds with a warning.
#[track_caller]
fn refuses(table: &str, with: &str, reason: &str) {
    let project = Project::new(&workflow(&[("effects", with)])).with("data.csv", table);
    let outcome = project.run_ok(&[]);
    let rows = project.rows("effects");
    assert!(!rows.is_empty());
    for row in &rows {
        is_refused(row, reason);
    }
    for row in &project.rows("effects.summary") {
        assert_eq!((text(row, "status"), text(row, "p_adj")), ("refused", ""), "{row}");
        for column in ["estimate", "ci_low", "ci_high"] {
            assert!(row[column].is_null(), "{row}");
        }
    }
    for row in project.rows("effects.refutations") {
        assert_eq!((text(&row, "status"), &row["simulations"]), ("not_applicable", &0.into()));
        assert!(text(&row, "reason").contains(reason), "{row}");
    }
    for row in project.rows("effects.overlap") {
        assert!(!text(&row, "note").contains('#'), "columns have names: {row}");
    }
    for row in project.rows("effects.sensitivity") {
        // Absent rows are counted and bounded; the test of all arms is not about these two.
        let other = ["omnibus", "attrition"].contains(&text(&row, "analysis"));
        assert!(row["value"].is_null() || other, "{row}");
    }
    let told = outcome.warnings().iter().any(|message| message.contains(reason));
    assert!(told, "a warning\n{outcome}");
}

#[test]
fn tables_that_are_too_small_or_constant() {
    let one = |arm: &str, other: &str| {
        made("arm,y", 20, |i| format!("{},{i}", if i == 7 { arm } else { other }))
    };
    let units = made("unit,arm,y", 36, |i| format!("{},{},{}", i % 9, turns(i / 9), noise(i, 1)));
    let nine = made("arm,y,x,w", 9, |i| format!("{},{i},1,2", turns(i)));
    let nan = rows(60, |i, arm, y, x, w| {
        let y = if i % 30 == 3 { "NaN".to_owned() } else { format!("{y}.5") };
        format!("{arm},{y},{x},{w}")
    });
    let constant = rows(40, |_, arm, _, x, w| format!("{arm},7,{x},{w}"));
    let same = made("arm,y", 20, |i| format!("c,{i}"));
    let paired = ", unit: unit, estimators: [paired, ols, difference]";
    let adjusted = ", confounders: [x], estimators: [difference, ols, aipw, matching]";
    let missing = "2 rows are without a value of `y` or `arm` (missing: drop leaves such rows out)";
    let cases = [
        (nine, "", "too few rows: 9, at least 10 are needed"),
        (units, paired, "too few units: 9, at least 10 are needed"),
        (one("t", "c"), "", "too few rows: 1 row of `t`, at least 2 are needed"),
        (one("c", "t"), "", "too few rows: 1 row of `c`, at least 2 are needed"),
        (same, "", "`arm` has one level only, so that there is nothing to compare"),
        (constant, adjusted, "`y` is constant: it is 7 in all rows"),
        (nan, "", missing),
    ];
    every(cases.map(|case| (case.2, case)), |(table, more, reason)| {
        refuses(&table, &format!("{TWO}{more}"), reason);
    });
}

#[test]
fn a_control_that_no_row_has_and_an_empty_table() {
    let table = rows(40, |_, arm, y, x, w| format!("{arm},{y},{x},{w}"));
    let found = effects(&table, &TWO.replace("control: c", "control: Control"));
    assert_eq!(found.len(), 2, "one row for each arm there is");
    for row in &found {
        is_refused(row, "no row has `Control` as `arm`: it is `c` and `t`");
    }
    let rows = effects(&table, &format!("{TWO}, treatments: [t, T1]"));
    is_refused(find(&rows, &[("treatment", "T1")]), "no row has `T1` as `arm`: it is `c` and `t`");
    // The other contrast has its number, adjusted for one test.
    let row = find(&rows, &[("treatment", "t"), ("status", "ok")]);
    assert_eq!(row["p_value"], row["p_adjusted"]);
    // An empty table.
    let steps = "  data:
    op: exec
    with: { command: 'true', output: { id: utf8!, arm: utf8, y: float64, u: utf8 } }
  effects: { op: regress, from: data, with: { treatment: arm, control: c, outcomes: [y], seed: 1 } }
  paired:
    op: regress
    from: data
    with: { treatment: arm, control: c, outcomes: [y], unit: u, treatments: [t], seed: 1 }
";
    let project = Project::steps(steps).ran();
    for step in ["effects", "paired"] {
        let row = project.only(step);
        is_refused(&row, "there is no row with a value of `arm`");
        assert_eq!((number(&row, "n"), number(&row, "n_missing")), (0.0, 0.0));
    }
}

#[test]
fn a_constant_outcome() {
    let table = rows(40, |_, arm, _, x, w| format!("{arm},7,{x},{w}"));
    let with = TWO.replace("[y]", "[y, w]");
    find(&effects(&table, &with), &[("outcome", "w"), ("status", "ok")]);
    // Constant within each arm, but not the same: nothing to judge the difference by.
    let table = rows(40, |_, arm, _, x, w| {
        format!("{arm},{},{x},{w}", arm.len() + usize::from(arm == "t"))
    });
    let reason = "the outcome is constant in both arms: the standard error would be zero";
    is_refused(&effects(&table, TWO)[0], reason);
}

#[test]
fn missing_outcomes_units_and_clusters_are_counted() {
    let table = rows(60, |i, arm, y, x, w| {
        let y = if i % 20 == 3 { String::new() } else { y.to_string() };
        let arm = if i == 5 { "" } else { arm };
        format!("{arm},{y},{x},{w}")
    });
    let told = "(missing: drop leaves such rows out)";
    refuses(&table, TWO, &format!("4 rows are without a value of `y` or `arm` {told}"));
    let row = &effects(&table, &format!("{TWO}, missing: drop"))[0];
    assert_eq!((number(row, "n"), number(row, "n_missing")), (56.0, 4.0));
    says(text(row, "note"), &["4 rows without a value that is needed are left out."]);
    // One row, in the singular.
    let one = rows(60, |i, arm, y, x, w| {
        let y = if i == 3 { String::new() } else { y.to_string() };
        format!("{arm},{y},{x},{w}")
    });
    refuses(&one, TWO, &format!("1 row is without a value of `y` or `arm` {told}"));
    // Units and clusters.
    let table = made("unit,place,arm,y", 60, |i| {
        let unit = if i == 7 { String::new() } else { format!("u{}", i / 2) };
        let place = if i < 2 { String::new() } else { format!("p{}", i / 10) };
        format!("{unit},{place},{},{}", turns(i), noise(i, 1))
    });
    let with = format!("{TWO}, unit: unit");
    refuses(&table, &with, &format!("1 row is without a value of `y` or `unit` or `arm` {told}"));
    let with = format!("{with}, cluster: place");
    let words = "3 rows are without a value of `y` or `unit` or `place` or `arm`";
    refuses(&table, &with, &format!("{words} {told}"));
    let row = &effects(&table, &format!("{with}, missing: drop"))[0];
    // u0 is gone, and u3 has one row left: it lacks an arm, and goes as well. The row that it lacks is
    // the one without a unit, which is counted already.
    assert_eq!((number(row, "n"), number(row, "n_missing")), (56.0, 3.0));
    assert_eq!((number(row, "n_pairs"), number(row, "n_clusters")), (28.0, 6.0));
}

#[test]
fn missing_confounders_stop_what_uses_them() {
    let table = rows(60, |i, arm, y, x, w| {
        let x = if i % 20 == 3 { String::new() } else { x.to_string() };
        let w = if i == 4 { String::new() } else { w.to_string() };
        format!("{arm},{y},{x},{w}")
    });
    let with = format!("{TWO}, confounders: [x, w], estimators: [ols, difference, aipw]");
    let project = ran_with(&table, &with, &[("effects", ""), ("drop", "missing: drop")]);
    let rows = project.rows("effects");
    let reason = "values are missing: 3 of `x`, 1 of `w` (missing: drop leaves such rows out)";
    is_refused(find(&rows, &[("estimator", "ols")]), reason);
    is_refused(find(&rows, &[("estimator", "aipw")]), reason);
    let row = find(&rows, &[("estimator", "difference"), ("status", "ok")]);
    assert_eq!(number(row, "n"), 60.0, "it needs no confounder");
    for row in project.rows("drop") {
        assert_eq!((text(&row, "status"), number(&row, "n")), ("ok", 56.0));
        assert_eq!(number(&row, "n_missing"), 4.0);
    }
}

#[test]
fn infinite_values() {
    let table = rows(60, |i, arm, y, x, w| {
        let y = if i % 30 == 3 { "inf".to_owned() } else { format!("{y}.5") };
        let x = if i == 4 { "-inf".to_owned() } else { format!("{x}.5") };
        format!("{arm},{y},{x},{w}")
    });
    for missing in ["", ", missing: drop"] {
        refuses(&table, &format!("{TWO}{missing}"), "`y` is infinite in 2 rows");
        let with = TWO.replace("[y]", "[w]");
        for row in effects(&table, &format!("{with}, confounders: [x]{missing}")) {
            is_refused(&row, "`x` is infinite in 1 row");
        }
    }
}

/// Pairs with covariates of the unit, `size`, and of the answer, `tokens`.
fn pairs() -> String {
    let row = |unit: u64, arm: &str| {
        let (answer, tokens) = match arm {
            "t" => (noise(unit, 1) + 9, noise(unit, 2) + i64::from(unit.is_multiple_of(4))),
            _ => (noise(unit, 3), noise(unit, 2)),
        };
        format!("{unit},{arm},{answer},{},{tokens}", noise(unit, 4))
    };
    made("unit,arm,y,size,tokens", 80, |i| row(i / 2, turns(i)))
}

#[test]
fn matching_where_every_propensity_is_the_same() {
    let estimators = "estimators: [paired, matching, stratification, weighting, aipw, ols]";
    let with = format!("{TWO}, unit: unit, confounders: [size], {estimators}");
    let project = analysed(&pairs(), &with);
    let rows = project.rows("effects");
    let reason = "every propensity score is 0.5000: the confounders do not predict the treatment, \
                  so the score cannot tell which units are alike";
    is_refused(find(&rows, &[("estimator", "matching")]), reason);
    let effect = number(find(&rows, &[("estimator", "paired")]), "estimate");
    for estimator in ["stratification", "weighting", "aipw"] {
        let row = find(&rows, &[("estimator", estimator), ("status", "ok")]);
        equal(number(row, "estimate"), effect, 1e-9, estimator);
        let what = match estimator {
            "aipw" => "only its regressions adjust",
            _ => "nothing is adjusted: this is the difference in means",
        };
        says(text(row, "note"), &[&format!("Every propensity score is 0.5000, so that {what}.")]);
    }
    let overlap = &project.rows("effects.overlap")[0];
    assert_eq!((number(overlap, "distinct_scores"), number(overlap, "outside")), (1.0, 0.0));
    says(text(overlap, "note"), &["nothing to adjust for"]);
    let balance = &project.rows("effects.balance")[0];
    assert_eq!((number(balance, "smd"), number(balance, "variance_ratio")), (0.0, 1.0));
}

#[test]
fn a_covariate_of_the_answer_is_a_bad_control() {
    let estimators = "estimators: [paired, ols, lin, weighting]";
    let with = format!("{TWO}, unit: unit, confounders: [size, tokens], {estimators}");
    let project = analysed(&pairs(), &with);
    let rows = project.rows("effects");
    let reason = "`tokens` is a bad control: it differs between the rows of 10 units, so that the \
                  treatment may have changed it";
    for estimator in ["ols", "lin", "weighting"] {
        is_refused(find(&rows, &[("estimator", estimator)]), reason);
    }
    assert_eq!(find(&rows, &[("estimator", "paired")])["status"], "ok");
    assert!(project.rows("effects.overlap").iter().all(|row| row["reason"] == reason));
    let rows = project.rows("effects.sensitivity");
    assert_eq!(text(find(&rows, &[("analysis", "robustness_ols")]), "reason"), reason);
    // Nor does an effect change with it.
    let with = format!("{TWO}, unit: unit, modifiers: [tokens]");
    let row = &analysed(&pairs(), &with).rows("effects.modifiers")[0];
    ended(row, "refused", "it differs between the rows of 10 units, so it is no modifier");
}

pub const PROPENSITY: &str = "estimators: [ols, matching, stratification, weighting, aipw]";

/// The reason where covariates separate the arms.
const SEPARATED: &str = "no overlap: the covariates tell all treated units from all controls \
     without error (complete separation), so that no unit has its like in the other arm";

#[test]
fn arms_that_a_covariate_tells_apart_do_not_overlap() {
    let table = made("arm,y,x,w", 80, |i| {
        let x = noise(i, 1);
        format!("{},{},{x},{}", if x > 50 { "t" } else { "c" }, noise(i, 0), noise(i, 2))
    });
    let with = format!("{TWO}, confounders: [x, w], modifiers: [w], {PROPENSITY}");
    let project = ran_with(&table, &with, &[("effects", ""), ("ridge", "penalty: 1.0")]);
    // A penalty keeps the scores off 0 and 1, and the arms as far apart as they are.
    for step in ["effects", "ridge"] {
        let rows = project.rows(step);
        for estimator in ["ols", "matching", "stratification", "weighting", "aipw"] {
            is_refused(find(&rows, &[("estimator", estimator)]), SEPARATED);
        }
        for port in ["overlap", "modifiers"] {
            assert_eq!(text(&project.rows(&format!("{step}.{port}"))[0], "reason"), SEPARATED);
        }
        let rows = project.rows(&format!("{step}.sensitivity"));
        assert_eq!(text(find(&rows, &[("measure", "robustness_value")]), "reason"), SEPARATED);
    }
    // Some rows only: a regression extrapolates to them.
    // Above 80 all are treated.
    let table = made("arm,y,x,high", 120, |i| {
        let x = noise(i, 1);
        let arm = if x > 80 || noise(i, 3) > 50 { "t" } else { "c" };
        format!("{arm},{},{x},{}", noise(i, 0), i64::from(x > 80))
    });
    let rows = effects(&table, &format!("{TWO}, confounders: [high], {PROPENSITY}"));
    for estimator in ["matching", "stratification", "weighting", "aipw"] {
        lacks(find(&rows, &[("estimator", estimator)]), &["(quasi-complete separation)"]);
    }
    let row = find(&rows, &[("estimator", "ols"), ("status", "ok")]);
    says(text(row, "note"), &["for them the regression extrapolates."]);
}

#[test]
fn collinear_and_constant_confounders() {
    let table = rows(80, |_, arm, y, x, _| format!("{arm},{y},{x},{}", 5 - 2 * x));
    let with = format!("{TWO}, confounders: [x, w], {PROPENSITY}");
    refuses(&table, &with, "`w` is a linear combination of the other covariates");
    let found = effects(&table, &format!("{TWO}, confounders: [w, x], estimators: [lin]"));
    is_refused(&found[0], "`x` is a linear combination of the other covariates");
    let table = rows(80, |_, arm, y, x, _| format!("{arm},{y},{x},3"));
    refuses(&table, &with, "`w` has one value only");
    // The treatment itself is no confounder.
    let table = rows(80, |_, arm, y, x, _| format!("{arm},{y},{x},{}", u8::from(arm == "t")));
    for row in effects(&table, &format!("{TWO}, confounders: [x, w], estimators: [ols, lin]")) {
        is_refused(&row, SEPARATED);
    }
}

#[test]
fn a_leverage_of_one_and_a_fit_without_error() {
    // One row alone has `w`: its residual is zero whatever its outcome.
    let table = rows(60, |i, arm, y, x, _| format!("{arm},{y},{x},{}", u8::from(i == 11)));
    let kinds = ["classic", "HC0", "HC1", "HC2", "HC3"];
    let with = format!("{TWO}, confounders: [x, w], estimators: [ols]");
    let steps = kinds.map(|kind| (kind.to_lowercase(), format!("standard_errors: {kind}")));
    let project = ran_with(&table, &with, &steps);
    for kind in ["classic", "hc0", "hc1"] {
        assert_eq!(project.rows(kind)[0]["status"], "ok", "{kind}");
    }
    for kind in ["hc2", "hc3"] {
        lacks(&project.rows(kind)[0], &["leverage of 1", "HC2 and HC3 are not defined"]);
    }
    // A fit without error.
    let table = rows(60, |_, arm, _, x, w| {
        format!("{arm},{},{x},{w}", 4 + 3 * x + if arm == "t" { 5 } else { 0 })
    });
    let with = format!("{TWO}, confounders: [x, w], estimators: [ols, lin, aipw]");
    for row in effects(&table, &with) {
        lacks(&row, &[]);
        assert!(row["p_value"].is_null());
    }
    let row = |i: u64| format!("{},{},{}", i / 2, turns(i), i / 2 * 3 + i % 2);
    // All differences are -1.
    let pairs = made("unit,arm,y", 40, row);
    lacks(&effects(&pairs, &format!("{TWO}, unit: unit"))[0], &["-1"]);
}

#[test]
fn too_few_rows_for_strata() {
    let table = rows(36, |_, arm, y, x, w| format!("{arm},{y},{x},{w}"));
    let with = format!("{TWO}, confounders: [x], estimators: [stratification]");
    let project = ran_with(&table, &with, &[("usual", ""), ("many", "strata: 12")]);
    is_refused(&project.rows("usual")[0], "too few strata: 1, at least 2 are needed");
    let reason = "too few strata with more than ten rows in each arm: 0, at least 1 are needed";
    is_refused(&project.rows("many")[0], reason);
}

#[test]
fn estimators_that_do_not_estimate_the_estimand_are_not_applicable() {
    let table = rows(200, |_, arm, y, x, w| format!("{arm},{y},{x},{w}"));
    for estimand in ["att", "atc", "ato"] {
        let with = format!("{TWO}, confounders: [x], estimand: {estimand}");
        let all = "estimators: [difference, ols, lin, aipw, weighting]";
        let project = ran_with(&table, &with, &[("effects", all), ("usual", "")]);
        for row in project.rows("effects") {
            let estimator = text(&row, "estimator");
            if estimator == "weighting" || (estimator, estimand) == ("aipw", "att") {
                assert_eq!((text(&row, "status"), text(&row, "estimand")), ("ok", estimand));
                continue;
            }
            let reason = format!("`{estimator}` does not estimate the {estimand}");
            ended(&row, "not_applicable", &reason);
            assert!(row["estimate"].is_null(), "{row}");
        }
        // Without a choice of estimators the estimand is weighted for.
        let usual = project.cells("usual", "estimator status estimand");
        assert_eq!(usual, [format!("weighting | ok | {estimand}")]);
    }
}

#[test]
fn reasons_name_the_columns_of_the_table() {
    // `w` does not vary under treatment, `x` is constant, `y` without `k` not.
    let table = made("unit,arm,y,x,w", 80, |i| {
        let w = if arm(i) == "t" { 4 } else { noise(i, 2) };
        format!("{},{},{},3,{w}", i / 2, arm(i), noise(i, 0))
    });
    let with = format!("{TWO}, confounders: [w], estimators: [lin, aipw]");
    for row in effects(&table, &with) {
        let reason = text(&row, "reason");
        assert!(reason.contains('w') && !reason.contains('#'), "{reason}");
    }
    let row = |i: u64| format!("{},{},{},3", i / 2, turns(i), noise(i, 0));
    let pairs = made("unit,arm,y,x", 60, row);
    for (table, unit) in [(&table, ""), (&pairs, ", unit: unit")] {
        let project = analysed(table, &format!("{TWO}, modifiers: [x]{unit}"));
        ended(&project.rows("effects.modifiers")[0], "refused", "`x` has one value only");
    }
    let row = &analysed(&table, &format!("{TWO}, modifiers: [w]")).rows("effects.modifiers")[0];
    says(text(row, "reason"), &["`w`"]);
    // An independence of columns that are not called `x` and `y`.
    let table = table.replacen("unit,arm,y,x,w", "unit,arm,y,deep,wide", 1);
    let with = format!("{TWO}, estimators: [difference], graph: 'dag {{ arm -> y; deep; wide }}'");
    let rows = analysed(&table, &with).rows("effects.graph");
    ended(find(&rows, &[("variables", "deep, wide")]), "refused", "`deep` has one value only");
}

#[test]
fn numbers_too_large_to_be_squared() {
    let table = rows(60, |i, arm, y, x, w| {
        let x = if i == 4 { "1e300".to_owned() } else { format!("{x}.5") };
        format!("{arm},{y},{x},{w}")
    });
    let with = format!("{TWO}, confounders: [w, x], {PROPENSITY}");
    for row in effects(&table, &with) {
        let reason = text(&row, "reason");
        is_refused(&row, reason);
        says(reason, &["`x`"]);
    }
    // Reasons name instruments.
    let table = made("arm,y,z,twice,one", 80, |i| {
        let z = noise(i, 1);
        let arm = if z + noise(i, 2) > 100 { "t" } else { "c" };
        format!("{arm},{},{z},{},7", noise(i, 0), 2 * z + 1)
    });
    for (instruments, reason) in [
        ("one", "`one` has one value only"),
        ("z, twice", "`twice` is a linear combination of the other covariates"),
    ] {
        let with = format!("{TWO}, estimators: [iv], instruments: [{instruments}]");
        is_refused(&effects(&table, &with)[0], reason);
    }
}

#[test]
fn modifiers_that_are_missing_are_counted() {
    let table = made("unit,arm,y,x", 80, |i| {
        let x = if i / 2 % 20 == 3 { String::new() } else { noise(i / 2, 1).to_string() };
        format!("{},{},{},{x}", i / 2, turns(i), noise(i, 0))
    });
    for unit in ["", ", unit: unit"] {
        let with = format!("{TWO}{unit}, modifiers: [x]");
        let row = &analysed(&table, &with).rows("effects.modifiers")[0];
        let reason = "4 rows have no value of it (missing: drop leaves such rows out)";
        ended(row, "refused", reason);
        let project = analysed(&table, &format!("{with}, missing: drop"));
        let row = &project.rows("effects.modifiers")[0];
        let n = if unit.is_empty() { 76 } else { 38 };
        assert_eq!((text(row, "status"), &row["n"]), ("ok", &n.into()));
        // Rows without it are left out of its balance too.
        assert_eq!(text(&project.rows("effects.balance")[0], "status"), "ok");
    }
}
