//! `regress`: the reasons of refusals speak of the columns of the table.

use crate::harness::text;
use crate::regress_refusals::{PROPENSITY, TWO, is_refused, rows};
use crate::regress_tables::{analysed, csv, find, noise};

#[test]
fn reasons_name_the_columns_of_the_table() {
    // `w` does not vary under treatment, `x` is constant, `y` without `k` not.
    let made = (0..80u64).map(|i| {
        let arm = if noise(i, 4) % 2 == 0 { "t" } else { "c" };
        let w = if arm == "t" { 4 } else { noise(i, 2) };
        format!("{},{arm},{},3,{w}", i / 2, noise(i, 0))
    });
    let table = csv("unit,arm,y,x,w", made);
    let with = format!("{TWO}, confounders: [w], estimators: [lin, aipw]");
    for row in analysed(&table, &with).rows("effects") {
        let reason = text(&row, "reason");
        assert!(reason.contains('w') && !reason.contains('#'), "{reason}");
    }
    let with = format!("{TWO}, modifiers: [x]");
    let row = analysed(&table, &with).rows("effects.modifiers")[0].clone();
    assert_eq!((text(&row, "status"), text(&row, "reason")), ("refused", "`x` has one value only"));
    let pairs = csv(
        "unit,arm,y,x",
        (0..60u64).map(|i| format!("{},{},{},3", i / 2, ["t", "c"][i as usize % 2], noise(i, 0))),
    );
    let row = analysed(&pairs, &format!("{with}, unit: unit")).rows("effects.modifiers")[0].clone();
    assert_eq!((text(&row, "status"), text(&row, "reason")), ("refused", "`x` has one value only"));
    let with = format!("{TWO}, modifiers: [w]");
    let row = &analysed(&table, &with).rows("effects.modifiers")[0];
    let reason = text(row, "reason");
    assert!(reason.contains("`w`"), "{reason}");
    // An independence of columns that are not called `x` and `y`.
    let table = table.replacen("unit,arm,y,x,w", "unit,arm,y,deep,wide", 1);
    let with = format!("{TWO}, estimators: [difference], graph: 'dag {{ arm -> y; deep; wide }}'");
    let rows = analysed(&table, &with).rows("effects.graph");
    let row = find(&rows, &[("variables", "deep, wide")]);
    let found = (text(row, "status"), text(row, "reason"));
    assert_eq!(found, ("refused", "`deep` has one value only"));
}

#[test]
fn numbers_too_large_to_be_squared() {
    let table = rows(60, |i, arm, y, x, w| {
        let x = if i == 4 { "1e300".to_owned() } else { format!("{x}.5") };
        format!("{arm},{y},{x},{w}")
    });
    let with = format!("{TWO}, confounders: [w, x], {PROPENSITY}");
    for row in analysed(&table, &with).rows("effects") {
        let reason = text(&row, "reason").to_owned();
        is_refused(&row, &reason);
        assert!(reason.contains("`x`"), "{reason}");
    }
}

#[test]
fn reasons_name_instruments() {
    let table = csv(
        "arm,y,z,twice,one",
        (0..80u64).map(|i| {
            let z = noise(i, 1);
            let arm = if z + noise(i, 2) > 100 { "t" } else { "c" };
            format!("{arm},{},{z},{},7", noise(i, 0), 2 * z + 1)
        }),
    );
    for (instruments, reason) in [
        ("one", "`one` has one value only"),
        ("z, twice", "`twice` is a linear combination of the other covariates"),
    ] {
        let with = format!("{TWO}, estimators: [iv], instruments: [{instruments}]");
        is_refused(&analysed(&table, &with).rows("effects")[0], reason);
    }
}

#[test]
fn modifiers_that_are_missing_are_counted() {
    let table = csv(
        "unit,arm,y,x",
        (0..80u64).map(|i| {
            let x = if i / 2 % 20 == 3 { String::new() } else { noise(i / 2, 1).to_string() };
            format!("{},{},{},{x}", i / 2, ["t", "c"][i as usize % 2], noise(i, 0))
        }),
    );
    for unit in ["", ", unit: unit"] {
        let with = format!("{TWO}{unit}, modifiers: [x]");
        let row = analysed(&table, &with).rows("effects.modifiers")[0].clone();
        let reason = "4 rows have no value of it (missing: drop leaves such rows out)";
        assert_eq!((text(&row, "status"), text(&row, "reason")), ("refused", reason));
        let project = analysed(&table, &format!("{with}, missing: drop"));
        let row = &project.rows("effects.modifiers")[0];
        let n = if unit.is_empty() { 76 } else { 38 };
        assert_eq!((text(row, "status"), &row["n"]), ("ok", &n.into()));
        // Rows without it are left out of its balance too.
        let row = &project.rows("effects.balance")[0];
        assert_eq!(text(row, "status"), "ok", "{row}");
    }
}
