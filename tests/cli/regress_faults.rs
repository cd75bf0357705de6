//! `regress`: data of which every number could be computed, and would be wrong or mean something
//! else than it seems.

use crate::harness::{Project, hides, says, text};
use crate::regress_refusals::{TWO, is_refused};
use crate::regress_tables::{analysed, arm, effects, find, made, noise, number, turns, workflow};

#[track_caller]
fn warned(table: &str, with: &str) -> (Project, Vec<String>) {
    let project = Project::new(&workflow(&[("effects", with)])).with("data.csv", table);
    let messages = project.run_ok(&[]).warnings();
    (project, messages)
}

#[test]
fn a_unit_in_two_clusters_is_refused_by_every_estimator() {
    // Unit 3 has one row in the cluster of unit 40.
    let table = made("arm,y,unit,place", 120, |i| {
        let cluster = if i == 6 { 20 } else { i / 4 };
        format!("{},{},{},{cluster}", turns(i + 1), noise(i, 1), i / 2)
    });
    let with = "treatment: arm, control: c, outcomes: [y], unit: unit, cluster: place,
      estimators: [paired, ols, difference]";
    let rows = effects(&table, with);
    assert_eq!(rows.len(), 3);
    for row in &rows {
        is_refused(row, "1 unit has rows in two clusters or more: a unit must lie within one");
    }
    let row = |i: u64| format!("{},{},{},{}", turns(i), noise(i, 1), i / 2, i % 7);
    let rows = effects(&made("arm,y,unit,place", 60, row), with);
    is_refused(&rows[0], "30 units have rows in two clusters or more: a unit must lie within one");
}

#[test]
fn ids_that_repeat_over_repositories_are_refused_unless_confirmed() {
    // Functions 0 to 19 of three repositories, under both arms.
    let row = |i: u64| format!("{},{},{},r{}", turns(i), noise(i, 1), i / 2 % 20, i / 40);
    let table = made("arm,y,function,repo", 120, row);
    let with = "treatment: arm, control: c, outcomes: [y], unit: function,
      estimators: [paired, difference]";
    for row in &effects(&table, with) {
        let reason = "20 units have rows of several repositories (`repo`): ids that repeat are not \
                      one data point (make them unique in a `sql` step, or confirm them by \
                      `cluster: function`)";
        is_refused(row, reason);
    }
    let rows = effects(&table, &format!("{with}, cluster: function"));
    let row = find(&rows, &[("estimator", "paired"), ("status", "ok")]);
    assert_eq!(number(row, "n_pairs"), 20.0);
    // Ids that differ between repositories need no word.
    let row = |i: u64| format!("{},{},{},r{}", turns(i), noise(i, 1), i / 2, i / 40);
    let rows = effects(&made("arm,y,function,repo", 120, row), with);
    let row = find(&rows, &[("estimator", "paired"), ("status", "ok")]);
    assert_eq!(number(row, "n_pairs"), 60.0);
}

#[test]
fn covariates_that_the_treatment_changes_are_refused_in_a_cross_section() {
    // The size of the prompt of one data point differs between the arms.
    let row = |i: u64| {
        let (arm, size) = (turns(i), 50 + i / 2 % 31);
        format!("{arm},{},{},{size},p{}", noise(i, 1), size + 7 * (i % 2), i / 2)
    };
    let table = made("arm,y,words,size,snippet_id", 120, row);
    let with = format!("{TWO}, estimators: [ols]");
    let row = &effects(&table, &format!("{with}, confounders: [words]"))[0];
    let reason = "`words` is a bad control: it differs between the rows of 60 data points, so that \
                  the treatment may have changed it";
    is_refused(row, reason);
    let row = &effects(&table, &format!("{with}, confounders: [size]"))[0];
    assert_eq!(text(row, "status"), "ok", "{row:#}");
}

#[test]
fn integers_beyond_the_doubles_are_refused_for_what_they_are() {
    for base in [9_007_199_254_740_990_u64, 9_223_372_036_854_775_000] {
        let rows = effects(&made("arm,y", 60, |i| format!("{},{}", arm(i), base + i % 7)), TWO);
        let reason = text(&rows[0], "reason");
        assert!(reason.starts_with("`y` has integers of 2^53 or more in "), "{reason}");
        says(reason, &["subtract a constant"]);
    }
    // Doubles so far from zero that they differ in their last digits only.
    let row = |i: u64| format!("{},{}", arm(i), 1.0e15 + 0.125 * (i % 4) as f64);
    let rows = effects(&made("arm,y", 60, row), TWO);
    let reason = text(&rows[0], "reason");
    assert!(reason.starts_with("`y` varies by 0.375"), "{reason}");
}

#[test]
fn outcomes_whose_squares_vanish_have_their_effect() {
    let table = |unit: &str| {
        let row = |i: u64| format!("{},{}{unit},{}", arm(i), noise(i, 1), noise(i, 2));
        made("arm,y,x", 200, row)
    };
    let with = format!("{TWO}, confounders: [x], estimators: [difference, ols, weighting, aipw]");
    let whole = effects(&table(""), &with);
    for unit in ["e-200", "e-300", "e+200"] {
        let scale: f64 = format!("1{unit}").parse().unwrap();
        for (row, whole) in effects(&table(unit), &with).iter().zip(&whole) {
            for column in ["estimate", "standard_error"] {
                let (ours, theirs) = (number(row, column) / scale, number(whole, column));
                assert!((ours / theirs - 1.0).abs() < 1e-9, "{column}: {row:#}");
            }
        }
    }
}

#[test]
fn a_treatment_of_numbers_is_refused_in_few_words() {
    let table = made("dose,y", 4000, |i| format!("{}.5,{}", i * 7 % 4001, noise(i, 1)));
    for (control, start) in [
        ("none", "no row has `none` as `dose`: it is "),
        ("7.5", "`dose` has 4,000 values, and at most 100 are compared as arms: name some under"),
    ] {
        let with = format!("treatment: dose, control: '{control}', outcomes: [y]");
        let row = analysed(&table, &with).only("effects");
        let reason = text(&row, "reason");
        assert!(reason.starts_with(start) && reason.len() < 250, "{reason}");
    }
    // Arms that are named are compared, however many others there are.
    let row = |i: u64| format!("{},{}", if i < 80 { i % 2 } else { i }, noise(i, 1));
    let with = "treatment: dose, control: '0', treatments: ['1'], outcomes: [y]";
    let row = analysed(&made("dose,y", 4000, row), with).only("effects");
    assert_eq!(text(&row, "status"), "ok");
    // Arms that look the same are named.
    let arms = ["c", "t", "T", "t "];
    let row = |i: u64| format!("{},{}", arms[i as usize % 4], noise(i, 1));
    let (_, messages) = warned(&made("arm,y", 200, row), TWO);
    let wanted =
        "`arm` has the arms \"T\", \"t\" and \"t \", which differ by case or white space only";
    assert!(messages.iter().any(|message| message.contains(wanted)), "{messages:#?}");
    let (_, messages) = warned(&fine(), TWO);
    assert!(!messages.iter().any(|message| message.contains("white space")), "{messages:#?}");
}

/// Arms that pandas writes for a missing value are missing, unless an argument names them.
#[test]
fn arms_called_like_a_missing_value_are_missing() {
    let table = |control: &str| {
        let arms = [control, "NaN", "None", ""];
        made("arm,y", 200, |i| format!("\"{}\",{}", arms[i as usize % 4], noise(i, 1)))
    };
    let (project, messages) = warned(&table("c"), TWO);
    let wanted =
        "`arm` is \"\" in 50 rows, \"NaN\" in 50 rows, \"None\" in 50 rows: this counts as missing";
    assert!(messages.iter().any(|message| message.contains(wanted)), "{messages:#?}");
    is_refused(
        &project.only("effects"),
        "`arm` has one level only, so that there is nothing to compare",
    );
    let with = TWO.replace("control: c", "control: None, treatments: [c]");
    let rows = effects(&table("c"), &format!("{with}, missing: drop"));
    assert_eq!((rows.len(), text(&rows[0], "status")), (1, "ok"), "{rows:#?}");
    assert_eq!((number(&rows[0], "n"), number(&rows[0], "n_missing")), (100.0, 100.0));
}

/// 200 rows without anything to flag.
fn fine() -> String {
    made("arm,y", 200, |i| format!("{},{}", arm(i), noise(i, 1)))
}

/// The note of the primary estimate and a warning have these words; for fine data neither has.
#[track_caller]
fn flagged(table: &str, wanted: &str) {
    let (project, messages) = warned(table, TWO);
    let rows = project.rows("effects");
    let row = find(&rows, &[("status", "ok")]);
    assert!(text(row, "note").contains(wanted), "{row:#}");
    assert!(messages.iter().any(|message| message.contains(wanted)), "{messages:#?}");
}

#[test]
fn rows_that_decide_an_interval_are_flagged() {
    let one = made("arm,y", 200, |i| format!("{},{}", arm(i), u8::from(i == 70)));
    flagged(&one, "`y` is 0 in all but 1 row: so few decide the estimate");
    // Quantiles of Cauchy's distribution, in some order.
    let tail = |i: u64| (std::f64::consts::PI * ((i * 77 % 200) as f64 + 0.5) / 200.0 - 1.57).tan();
    let heavy = made("arm,y", 200, |i| format!("{},{}", arm(i), tail(i)));
    flagged(&heavy, "`y` has a heavy tail: one row of 200 carries ");
    let row = |i: u64| format!("{},{}.{i}", arm(i), noise(i, 1));
    let twice = made("arm,y", 200, |i| row(i % 100));
    flagged(&twice, "200 of 200 rows are copies of others in arm, outcome and covariates");
    let (project, messages) = warned(&fine(), TWO);
    let note = text(&project.rows("effects")[0], "note").to_owned();
    hides(&format!("{note} {messages:?}"), &["heavy", "copies", "all but"]);
}

#[test]
fn implied_independencies_are_adjusted_for_their_number() {
    // Nine independent columns: 36 independencies hold, and some have a small p by chance.
    let names: Vec<String> = (0..9).map(|column| format!("x{column}")).collect();
    let table = made(&format!("arm,y,{}", names.join(",")), 60, |i| {
        let numbers: Vec<String> = (0..9).map(|k| noise(i, 5 + k).to_string()).collect();
        format!("{},{},{}", arm(i), noise(i, 1), numbers.join(","))
    });
    let graph = format!("dag {{ arm -> y; {} }}", names.join("; "));
    let with = format!("{TWO}, estimators: [difference], graph: '{graph}'");
    let rows = analysed(&table, &with).rows("effects.graph");
    let mut p: Vec<(f64, f64)> = (rows.iter())
        .filter(|row| row["kind"] == "independence" && !row["p_value"].is_null())
        .map(|row| (number(row, "p_value"), number(row, "p_adjusted")))
        .collect();
    p.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert!(p.len() >= 36, "{}", p.len());
    // Holm's: the smallest times their number, and none below the one before.
    let (mut least, tested): (f64, usize) = (0.0, p.len());
    for (at, (p, adjusted)) in p.iter().enumerate() {
        least = least.max(p * (tested - at) as f64).min(1.0);
        assert!((adjusted - least).abs() <= 1e-9 * least, "{at}: {p} {adjusted} {least}");
    }
}

#[test]
fn few_rows_and_clusters_have_errors_that_hold_in_them() {
    let table = made("arm,y,x,place", 400, |i| {
        format!("{},{},{},{}", arm(i), noise(i, 1) + noise(i, 2), noise(i, 2), i % 12)
    });
    let estimators = "confounders: [x], estimators: [difference, weighting, aipw, ols]";
    let rows = effects(&table, &format!("{TWO}, {estimators}, cluster: place"));
    for (estimator, kind) in [
        ("difference", "CR2"),
        ("ols", "CR2"),
        ("weighting", "jackknife, clustered"),
        ("aipw", "jackknife, clustered"),
    ] {
        let row = find(&rows, &[("estimator", estimator), ("se_kind", kind)]);
        assert!(number(row, "df") < 12.0, "{row:#}");
    }
    let rows = effects(&table, &format!("{TWO}, {estimators}"));
    for (estimator, kind) in [("ols", "HC3"), ("weighting", "jackknife"), ("aipw", "jackknife")] {
        let row = find(&rows, &[("estimator", estimator), ("se_kind", kind)]);
        assert!(number(row, "df") < 400.0, "{row:#}");
    }
}

#[test]
fn intervals_that_do_not_hold_in_few_rows_are_refused() {
    let table = made("arm,y,x,z", 40, |i| {
        format!("{},{},{},{}", turns(i + 1), noise(i, 1), noise(i, 2), noise(i, 3))
    });
    for (estimator, found) in [
        ("[matching]", "rows of an arm for matching: 20, at least 30"),
        ("[aipw], folds: 4", "rows for folds: 40, at least 100"),
        ("[iv], instruments: [z]", "rows for an instrument: 40, at least 50"),
    ] {
        let with = format!("{TWO}, confounders: [x], estimators: {estimator}");
        let reason = format!("too few {found} are needed");
        assert_eq!(text(&effects(&table, &with)[0], "reason"), reason);
    }
    // So is matching of clusters that are treated as a whole.
    let table = made("arm,y,x,place", 240, |i| {
        format!("{},{},{},{}", turns(i + 1), noise(i, 1), noise(i, 2), i % 24)
    });
    let with = format!("{TWO}, confounders: [x], estimators: [matching], cluster: place");
    let rows = effects(&table, &with);
    let reason = text(&rows[0], "reason");
    assert!(reason.starts_with("each cluster lies in one arm"), "{reason}");
}
