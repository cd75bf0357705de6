//! `regress`: what the design of the data forbids or changes: clusters, confounders of modifiers,
//! arms without overlap, units in one arm, weights of the estimand.
//! `tests/reference/regress.json` has the numbers of statsmodels and SciPy, and a script next to it.

use serde_json::{Value, json};

use crate::harness::{Project, says, text};
use crate::regress_paired::reference;
use crate::regress_refusals::{TWO, is_refused};
use crate::regress_tables::{
    OPTIMUM, agrees, alike, analysed, csv, effects, ended, estimate, find, lacks, made, noise,
    number, ran_with, reasons, status, turns,
};

/// Rows whose covariate moves arm and outcome, under `TWO` and more, and the numbers of the peers.
fn confounded<M: AsRef<str>>(steps: &[(&str, M)]) -> (Value, Project) {
    let peer = reference()["confounded"].clone();
    let project = ran_with(text(&peer, "csv"), TWO, steps);
    (peer, project)
}

const NUMBERS: [&str; 5] = ["estimate", "standard_error", "ci_low", "ci_high", "p_value"];

#[test]
fn modifiers_are_adjusted_for_confounders_and_know_clusters() {
    let (peer, project) = confounded(&[
        ("adjusted", "confounders: [x], modifiers: [m, flag]"),
        ("places", "confounders: [x], modifiers: [m, flag], cluster: place"),
        ("plain", "modifiers: [m, flag]"),
    ]);
    for (step, slope, groups) in
        [("adjusted", "slope", "groups"), ("places", "slope_place", "groups_place")]
    {
        let rows = project.rows(&format!("{step}.modifiers"));
        for name in ["m", "flag"] {
            let peer = &peer["modifiers"][name];
            let of = |bin: usize| {
                rows.iter().find(|row| row["modifier"] == name && row["bin"] == bin).unwrap()
            };
            agrees(of(0), &peer[slope], &NUMBERS);
            says(text(of(0), "note"), &["adjusted for `x`"]);
            let groups = peer[groups].as_array().unwrap();
            assert_eq!(groups.len(), if name == "flag" { 2 } else { 5 });
            for (at, group) in groups.iter().enumerate() {
                agrees(of(at + 1), group, &NUMBERS[..4]);
                says(text(of(at + 1), "note"), &["(95 % CI "]);
            }
        }
    }
    let rows = project.rows("places.modifiers");
    says(text(&rows[0], "note"), &["errors by clusters"]);
    // Two values are two groups, each with its own.
    let flags: Vec<&Value> = rows.iter().filter(|row| row["modifier"] == "flag").collect();
    assert_eq!((&flags[1]["high"], &flags[2]["low"]), (&0.0.into(), &1.0.into()));
    assert!(text(flags[2], "note").starts_with("Where `flag` is 1.000 ("), "{}", flags[2]);
    // Without confounders the fifths are Welch's.
    let rows = project.rows("plain.modifiers");
    for (at, group) in peer["modifiers"]["m"]["welch"].as_array().unwrap().iter().enumerate() {
        let row = rows.iter().find(|row| row["modifier"] == "m" && row["bin"] == at + 1).unwrap();
        agrees(row, group, &["ci_low", "ci_high"]);
        assert_eq!(row["n"], group["n"]);
    }
}

#[test]
fn modifiers_of_pairs_know_clusters() {
    let peer = reference()["three_arms"].clone();
    let with = "treatment: arm, control: c, outcomes: [y, z], contrasts: all, unit: unit,
      cluster: place, modifiers: [size, depth], estimators: [paired]";
    let project = analysed(peer["csv"].as_str().unwrap(), with);
    let rows = project.rows("effects.modifiers");
    for contrast in peer["contrasts"].as_array().unwrap() {
        for (name, slope) in contrast["modifiers_place"].as_object().unwrap() {
            let here = |row: &&Value| {
                let same = |column: &&str| row[*column] == contrast[*column];
                row["bin"] == 0
                    && row["modifier"] == **name
                    && ["outcome", "treatment", "control"].iter().all(same)
            };
            agrees(rows.iter().find(here).unwrap(), slope, &NUMBERS);
        }
    }
    // Tests that take units as independent are not made.
    let rows = project.rows("effects.sensitivity");
    for measure in ["gamma_star", "wilcoxon_p", "wilcoxon_z", "sign_p", "friedman_chi2"] {
        let mut found = rows.iter().filter(|row| row["measure"] == measure).peekable();
        assert!(found.peek().is_some(), "{measure}");
        for row in found {
            assert!(row["value"].is_null(), "{row}");
            lacks(row, &["cluster"]);
        }
    }
    assert!(rows.iter().all(|row| row["measure"] != "variance_ratio_unpaired"));
}

#[test]
fn what_forbids_an_estimate_forbids_its_modification() {
    let graphs = [
        // Something that is not observed confounds.
        ("u [latent]; u -> arm; u -> y; arm -> y; m -> y", "not identified"),
        // The treatment changes the modifier.
        ("arm -> m; m -> y; arm -> y", "by the graph the treatment changes it"),
    ];
    for (graph, reason) in graphs {
        let with = format!("graph: 'dag {{ {graph} }}', modifiers: [m]");
        let (_, project) = confounded(&[("effects", with)]);
        lacks(&project.only("effects.modifiers"), &[reason]);
    }
}

#[test]
fn weights_are_those_of_the_estimand() {
    let names = ["ate", "att", "atc", "ato"];
    let with = "confounders: [x], estimators: [weighting]";
    let (peer, project) =
        confounded(&names.map(|name| (name, format!("{with}, estimand: {name}"))));
    for name in names {
        let peer = &peer["balance"][name];
        let balance = &project.rows(&format!("{name}.balance"))[0];
        // Weighted differences may be near zero.
        let apart = number(balance, "smd_weighted") - number(peer, "smd_weighted");
        assert!(apart.abs() < 1e-8, "{name}: {balance}");
        let overlap = &project.rows(&format!("{name}.overlap"))[0];
        alike(overlap, peer, "effective_treatment effective_control", OPTIMUM);
    }
}

#[test]
fn clusters_have_students_t_and_there_must_be_ten() {
    // The peer has the plain sandwich.
    let with = "confounders: [x], cluster: place, standard_errors: CR0, estimators: [weighting, \
                stratification, aipw, ols]";
    let (peer, project) = confounded(&[("effects", with)]);
    let row = estimate(&project, "effects", "weighting");
    let columns = "estimate standard_error ci_low ci_high p_value df";
    alike(&row, &peer["weighting"], columns, OPTIMUM);
    let few = text(&peer, "csv").lines().enumerate().map(|(at, line)| match at {
        0 => format!("{line},few\n"),
        _ => format!("{line},{}\n", at % 9),
    });
    let with = format!("{TWO}, {}", with.replace("place", "few"));
    let project = analysed(&few.collect::<String>(), &with);
    for (estimator, needed) in [("weighting", 10), ("stratification", 20), ("aipw", 10)] {
        let row = estimate(&project, "effects", estimator);
        is_refused(&row, &format!("too few clusters: 9, at least {needed} are needed"));
    }
    assert_eq!(status(&project, "effects", "ols").0, "ok", "CR2 is made for few clusters");
    // An arm in one cluster is refused.
    let table = made("arm,y,x,place", 60, |i| {
        let (arm, place) = if i < 20 { ("t", 0) } else { ("c", 1 + i % 11) };
        format!("{arm},{},{},{place}", noise(i, 0), noise(i, 1))
    });
    let with = format!("{TWO}, confounders: [x], cluster: place, estimators: [ols, aipw]");
    for row in effects(&table, &with) {
        let reason = "all rows of `t` lie in one cluster, so that its effect cannot be told from \
                      that of the treatment";
        is_refused(&row, reason);
    }
    // With clusters the default knows them.
    let (_, project) = confounded(&[("effects", "cluster: place")]);
    assert_eq!(project.cells("effects", "estimator se_kind"), ["ols | CR2"]);
}

#[test]
fn a_placebo_needs_units_in_both_arms() {
    // 40 units with rows in one arm only.
    let halves = made("unit,arm,y,x", 80, |i| {
        let unit = i % 40;
        let arm = if noise(unit, 7) > 50 { "t" } else { "c" };
        format!("{unit},{arm},{},{}", noise(i, 0), noise(unit, 2))
    });
    let refuters = "simulations: 3, refuters: [placebo, subset]";
    let with =
        format!("{TWO}, unit: unit, estimators: [paired, ols], confounders: [x], {refuters}");
    let rows = analysed(&halves, &with).rows("effects.refutations");
    let row = find(&rows, &[("estimator", "ols"), ("refuter", "placebo")]);
    reasons(row, "not_applicable", &["units with one arm only"]);
    find(&rows, &[("estimator", "ols"), ("refuter", "subset"), ("status", "ok")]);
    // Ten pairs are refuted.
    let table = made("unit,arm,y", 20, |i| format!("{},{},{}", i / 2, turns(i), noise(i, 0)));
    let with = format!("{TWO}, unit: unit, refuters: [subset, placebo], simulations: 5");
    for row in analysed(&table, &with).rows("effects.refutations") {
        assert_eq!((text(&row, "status"), &row["simulations"]), ("ok", &5.into()), "{row}");
        assert!(!text(&row, "note").contains("1e-300"), "{row}");
    }
}

#[test]
fn friedmans_test_is_refused_with_the_estimates() {
    let table = |units: u64, gap: Option<u64>| {
        made("unit,arm,y", 3 * units, |i| {
            let arm = ["c", "t", "u"][i as usize % 3];
            let y = if gap == Some(i) { String::new() } else { noise(i, 0).to_string() };
            format!("{},{arm},{y}", i / 3)
        })
    };
    for (table, reason) in [
        (table(9, None), "too few units with rows under all arms: 9, at least 10 are needed"),
        (table(30, Some(7)), "1 row is without a value that is needed"),
    ] {
        let rows = analysed(&table, &format!("{TWO}, unit: unit")).rows("effects.sensitivity");
        let row = find(&rows, &[("measure", "friedman_chi2")]);
        assert_eq!((text(row, "status"), &row["value"]), ("refused", &Value::Null), "{row}");
        assert!(text(row, "reason").starts_with(reason), "{row}");
    }
    let project = analysed(&table(10, None), &format!("{TWO}, unit: unit"));
    find(&project.rows("effects.sensitivity"), &[("measure", "friedman_chi2"), ("status", "ok")]);
}

#[test]
fn a_unit_that_is_the_cluster_is_a_unit() {
    let peer = reference()["three_arms"].clone();
    let with = format!("{TWO}, unit: unit, modifiers: [size]");
    let project = ran_with(text(&peer, "csv"), &with, &[("unit", ""), ("both", "cluster: unit")]);
    for port in ["", ".sensitivity", ".modifiers"] {
        let rows = |step: &str| project.rows(&format!("{step}{port}"));
        assert_eq!(rows("unit"), rows("both"), "{port}");
    }
}

#[test]
fn a_group_with_an_arm_in_one_cluster_has_no_effect() {
    // If m is 1, all treated rows are in the first place.
    let table = made("arm,y,m,place", 200, |i| {
        let m = i % 2;
        let arm = if noise(i, 3) > 50 { "t" } else { "c" };
        let place = if m == 1 && arm == "t" { 0 } else { i % 23 };
        format!("{arm},{},{m},{place}", noise(i, 0))
    });
    let with = format!("{TWO}, cluster: place, modifiers: [m]");
    let rows = analysed(&table, &with).rows("effects.modifiers");
    assert_eq!(text(&rows[1], "status"), "ok", "{rows:?}");
    let reason = "too few clusters of an arm: 1, at least 2 are needed";
    ended(&rows[2], "refused", reason);
    let note = "no effect is given, because too few clusters of an arm: 1, at least 2 are needed.";
    assert!(text(&rows[2], "note").ends_with(note), "{}", rows[2]);
    // The two zeros are one arm.
    let arms = ["1.5", "0.0", "1.5", "-0.0"];
    let table = made("arm,y", 60, |i| format!("{},{}", arms[i as usize % 4], noise(i, 0)));
    let rows = effects(&table, "treatment: arm, control: '0.0', outcomes: [y]");
    assert_eq!((rows.len(), &rows[0]["n_control"]), (1, &30.into()), "{rows:?}");
}

#[test]
fn rows_have_weights_two_clusters_and_a_time() {
    // The numbers of tests/reference/regress_designs.py.
    let mut lines = include_str!("../reference/causal/formula_splitmix42.csv").lines();
    let header = format!("{},place,model,w,late", lines.next().unwrap());
    let rows = lines.zip(0usize..).map(|(line, row)| {
        let (place, model, late) = (row / 50, row * 7 % 23, u8::from(row * 13 % 29 < 14));
        format!("{line},p{place},m{model},{},{late}", 0.5 + (row * 37 % 101) as f64 / 40.0)
    });
    let two = "confounders: [x1, x2]";
    let project = ran_with(
        &csv(&header, rows),
        "treatment: t, control: '0', outcomes: [y]",
        &[
            (
                "both",
                format!("{two}, cluster: place, second_cluster: model, estimators: [ols, aipw]"),
            ),
            ("weighted", format!("{two}, weights: w, estimators: [ols, difference]")),
            ("places", format!("{two}, weights: w, cluster: place, estimators: [ols]")),
            ("did", "confounders: [x1], after: late, estimators: [did]".to_owned()),
            ("wild", format!("{two}, cluster: model, estimators: [wild_cluster, ols]")),
        ],
    );
    for (step, estimator, peer, words) in [
        ("both", "ols", json!({ "standard_error": 0.0769301731531841, "df": 19 }), "two-way CR3"),
        (
            "weighted",
            "ols",
            json!({ "estimate": 1.8461350471161397, "standard_error": 0.06336789629529319 }),
            "Rows are weighted by `w`, which leaves the precision of ",
        ),
        (
            "weighted",
            "difference",
            json!({ "estimate": 2.5963831567061955, "standard_error": 0.17429551144617672 }),
            "HC3",
        ),
        ("places", "ols", json!({ "standard_error": 0.06364858765978078 }), "CR3"),
        (
            "did",
            "did",
            json!({ "estimate": 0.26914591212721484, "standard_error": 0.18386267778424525 }),
            "parallel trends",
        ),
    ] {
        let row = estimate(&project, step, estimator);
        let names: Vec<&str> = peer.as_object().unwrap().keys().map(String::as_str).collect();
        agrees(&row, &peer, &names);
        says(text(&row, "note"), &[words]);
    }
    let (status, reason) = status(&project, "both", "aipw");
    assert_eq!(status, "not_applicable");
    says(&reason, &["`aipw` does not take `second_cluster`", "`ols`"]);
    let [wild, ols] = ["wild_cluster", "ols"].map(|name| estimate(&project, "wild", name));
    agrees(&wild, &ols, &["estimate"]);
    assert!(number(&wild, "ci_low") < number(&wild, "estimate"));
    assert!((number(&wild, "ci_low") / number(&ols, "ci_low") - 1.0).abs() < 0.05, "{wild} {ols}");
}

#[test]
fn simultaneous_intervals_are_between_those_of_one_test_and_bonferronis() {
    let peer = reference()["three_arms"].clone();
    let with = "treatment: arm, control: c, outcomes: [y, z], contrasts: all, unit: unit";
    let project = ran_with(
        text(&peer, "csv"),
        with,
        &[("holm", ""), ("rates", "adjust: benjamini_hochberg"), ("alone", "adjust_over: []")],
    );
    let half = |row: &Value, high: &str| number(row, high) - number(row, "estimate");
    let rows = project.rows("holm");
    assert_eq!(rows.len(), 6);
    for row in rows {
        let ratio = half(&row, "simultaneous_high") / half(&row, "ci_high");
        // By the normal distribution Bonferroni's ratio for six tests is 1.346.
        assert!((1.1..1.5).contains(&ratio), "{ratio}: {row}");
    }
    for row in project.rows("rates") {
        assert!(row["simultaneous_low"].is_null(), "{row}");
    }
    for row in project.rows("alone") {
        assert_eq!(row["simultaneous_high"], row["ci_high"], "{row}");
    }
}
