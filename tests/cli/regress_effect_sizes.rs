//! `regress`: effect sizes, equivalence, groups, families of tests and the sentences for a paper.
//! `tests/reference/effect_sizes.json` holds what statsmodels and SciPy find.

use serde_json::{Value, json};

use crate::harness::{Project, says, text};
use crate::regress_tables::{
    CLOSED, alike, analysed, csv, equal, find, holds, made, noise, number, ran_with, turns,
    workflow,
};

pub fn peer(part: &str) -> Value {
    let text = include_str!("../reference/effect_sizes.json");
    serde_json::from_str::<Value>(text).unwrap()[part].clone()
}

/// The rows of a peer as a table: arm, outcome, cluster, and the pair.
fn table(peer: &Value) -> String {
    let rows = peer["rows"].as_array().unwrap().iter().enumerate().map(|(at, row)| {
        let arm = if row[0] == true { "t" } else { "c" };
        format!("{arm},{},k{},u{}", row[1], row[2], at / 2)
    });
    csv("arm,y,place,unit", rows)
}

const ARMS: &str = "treatment: arm, control: c, outcomes: [y]";

/// The row of a measure holds the numbers of the peer; intervals of sandwiches rest on numerical
/// derivatives there.
#[track_caller]
fn measures(rows: &[Value], measure: &str, peer: &Value) {
    let row = find(rows, &[("measure", measure), ("status", "ok")]);
    let value = peer.get("delta").or(peer.get("d")).unwrap();
    holds(row, "value", value.as_f64().unwrap(), CLOSED);
    for (column, at) in [("ci_low", 0), ("ci_high", 1)] {
        holds(row, column, peer["interval"][at].as_f64().unwrap(), 1e-6);
    }
    holds(row, "df", peer["df"].as_f64().unwrap(), CLOSED);
    match peer["se"].as_f64() {
        Some(error) => holds(row, "standard_error", error, 1e-6),
        None => assert!(row["standard_error"].is_null(), "{row}"),
    }
}

/// A12 is delta on another scale.
#[track_caller]
fn a12_is_delta(rows: &[Value], delta: &str, a12: &str) {
    let (delta, a12) = (find(rows, &[("measure", delta)]), find(rows, &[("measure", a12)]));
    for column in ["value", "ci_low", "ci_high"] {
        equal(number(a12, column), 0.5 * (number(delta, column) + 1.0), 1e-10, column);
    }
}

#[test]
fn effect_sizes_of_independent_arms_are_those_of_the_peers() {
    let peer = peer("between");
    let steps = [("plain", ""), ("clustered", "cluster: place")];
    let project = ran_with(&table(&peer), ARMS, &steps);
    let rows = project.rows("plain.effect_sizes");
    assert_eq!(rows.len(), 4, "nothing within units");
    measures(&rows, "cliffs_delta", &peer["independent"]);
    measures(&rows, "cohens_d", &peer["d"]);
    let (d, g) = (find(&rows, &[("measure", "cohens_d")]), find(&rows, &[("measure", "hedges_g")]));
    let factor = peer["d"]["correction"].as_f64().unwrap();
    for column in ["value", "ci_low", "ci_high"] {
        equal(number(g, column), factor * number(d, column), CLOSED, column);
    }
    let rows = project.rows("clustered.effect_sizes");
    measures(&rows, "cliffs_delta", &peer["clustered"]);
    measures(&rows, "cohens_d", &peer["clustered_d"]);
    a12_is_delta(&rows, "cliffs_delta", "a12");
}

#[test]
fn effect_sizes_of_pairs_are_those_of_the_peers() {
    let peer = peer("within");
    let steps = [("plain", "unit: unit"), ("clustered", "unit: unit, cluster: place")];
    let project = ran_with(&table(&peer), ARMS, &steps);
    for (step, of_measures) in [
        ("plain", ["pairs", "within", "dz"]),
        ("clustered", ["clustered", "within_clustered", "clustered_dz"]),
    ] {
        let rows = project.rows(&format!("{step}.effect_sizes"));
        let names = ["cliffs_delta", "cliffs_delta_within", "cohens_dz"];
        for (name, of) in names.iter().zip(of_measures) {
            measures(&rows, name, &peer[of]);
        }
        a12_is_delta(&rows, "cliffs_delta_within", "a12_within");
        assert!(rows.iter().all(|row| text(row, "note").ends_with('.')));
    }
    // A unit without one arm is not compared, by no measure.
    let more = format!("{}c,9.0,k0,alone\n", table(&peer));
    let project = analysed(&more, &format!("{ARMS}, unit: unit, missing: drop"));
    measures(&project.rows("effects.effect_sizes"), "cliffs_delta", &peer["pairs"]);
}

#[test]
fn confounders_are_named_where_an_effect_size_does_not_adjust() {
    let table = made("arm,y,x", 60, |i| {
        format!("{},{},{}", if i % 3 == 0 { "t" } else { "c" }, noise(i, 1), noise(i, 2))
    });
    let graph = "graph: 'dag { x -> arm; x -> y; arm -> y }'";
    let steps = [("adjusted", "confounders: [x]"), ("graphed", graph)];
    let project = ran_with(&table, ARMS, &steps);
    for row in project.rows("adjusted.effect_sizes") {
        assert!(text(&row, "note").ends_with("Not adjusted for `x`."), "{row}");
    }
    assert!(text(&project.rows("adjusted.findings")[0], "sentence").contains("not adjusted"));
    for row in project.rows("graphed.effect_sizes") {
        assert_eq!(row["status"], "refused", "the graph says that the arms differ by x: {row}");
    }
}

/// The rows of three groups, one of them without a name.
fn grouped() -> (String, Vec<Value>) {
    let peer = peer("groups");
    let rows = peer["rows"].as_array().unwrap().iter().map(|row| {
        let text = |at: usize| row[at].as_str().unwrap();
        format!("{},{},{},{},{}", text(0), text(1), text(2), row[3], row[4])
    });
    (csv("g,unit,arm,y,z", rows), peer["tests"].as_array().unwrap().clone())
}

const GROUPED: &str = "treatment: arm, control: c, outcomes: [y, z], unit: unit, by: [g]";

/// The row of a test of the peers.
#[track_caller]
fn of_test<'a>(rows: &'a [Value], test: &Value) -> &'a Value {
    let mut found = rows.iter().filter(|row| {
        row["g"].as_str().unwrap_or_default() == test["group"]
            && row["outcome"] == test["outcome"]
            && row["treatment"] == test["treatment"]
    });
    let row = found.next().unwrap_or_else(|| panic!("no row of {test}"));
    assert!(found.next().is_none(), "{test}");
    row
}

#[test]
fn groups_are_analysed_apart_and_adjusted_together() {
    let (data, tests) = grouped();
    let families = [
        ("all", "contrasts, outcomes, groups", "all"),
        ("one_outcome", "contrasts, groups", "one_outcome"),
        ("contrasts_only", "contrasts", "contrasts_only"),
    ];
    let mut steps =
        families.map(|(name, over, _)| (name, format!("adjust_over: [{over}]"))).to_vec();
    steps.extend([("usual", String::new()), ("each", "adjust_over: []".into())]);
    let project = ran_with(&data, GROUPED, &steps);
    for (step, _, family) in families {
        let rows = project.rows(step);
        assert_eq!(rows.len(), 12);
        for test in &tests {
            let row = of_test(&rows, test);
            alike(row, test, "estimate", CLOSED);
            alike(row, test, &format!("p_value=p p_adjusted={family}"), 1e-6);
        }
    }
    assert_eq!(project.rows("usual"), project.rows("all"), "the default is one family");
    for row in project.rows("each") {
        assert_eq!(row["p_adjusted"], row["p_value"]);
    }
    for port in ["", ".findings", ".summary", ".effect_sizes", ".equivalence"] {
        let groups = project.cells(&format!("usual{port}"), "g");
        let sizes: Vec<usize> = groups.chunk_by(|a, b| a == b).map(<[_]>::len).collect();
        assert_eq!(sizes, [groups.len() / 3; 3], "{port}");
    }
    let rows = project.rows("usual.findings");
    let b = rows.iter().find(|row| row["g"] == "b").unwrap();
    assert!(text(b, "sentence").starts_with("Where `g` is b: "), "{b}");
    let missing = rows.iter().find(|row| row["g"] != "a" && row["g"] != "b").unwrap();
    assert!(text(missing, "sentence").starts_with("Where `g` is "), "{missing}");
    // A group is what a filter makes of the rows, but for the family.
    let project = Project::steps(&format!(
        "  data: {{ op: read, with: {{ path: data.csv, position: {{ column: row }}, key: [row] }} }}
  one:
    op: sql
    from: data
    with: {{ query: \"SELECT * FROM input WHERE g = 'b'\", key: [row] }}
  alone: {{ op: regress, from: one, with: {{ {}, seed: 1, simulations: 20 }} }}
  groups: {{ op: regress, from: data, with: {{ {GROUPED}, seed: 1, simulations: 20 }} }}
",
        GROUPED.replace(", by: [g]", "")
    ));
    project.write("data.csv", data);
    project.run_ok(&[]);
    // Refuters draw by the units of the whole table.
    for port in ["effect_sizes", "sensitivity"] {
        let mut group = project.rows(&format!("groups.{port}"));
        group.retain(|row| row["g"] == "b");
        for row in &mut group {
            row.as_object_mut().unwrap().remove("g");
            let note = text(row, "note").replace("Where `g` is b: ", "");
            row["note"] = note.into();
        }
        assert_eq!(group, project.rows(&format!("alone.{port}")), "{port}");
    }
}

#[test]
fn many_groups_that_are_refused_do_not_flood_the_screen() {
    let row = |i: u64| format!("{},{},{}", i / 2, turns(i + 1), noise(i, 0));
    let project = Project::new(&workflow(&[("effects", &format!("{ARMS}, by: [g]"))]))
        .with("data.csv", made("g,arm,y", 90, row));
    let mut warnings = project.run_ok(&[]).warnings();
    warnings.retain(|told| told.contains("is not estimated: ") || told.contains("more of these"));
    assert_eq!(warnings.len(), 21, "{warnings:#?}");
    assert!(warnings[0].contains("where `g` is 0: the effect of `t`"), "{warnings:#?}");
    assert!(warnings[20].contains("25 more of these"), "{warnings:#?}");
    assert_eq!(project.rows("effects").len(), 45);
    // A table without rows has no groups, and the run reports it.
    let steps =
        "  data: { op: read, with: { path: data.csv, position: { column: row }, key: [row] } }
  none: { op: sql, from: data, with: { query: SELECT * FROM input WHERE y > 1000, key: [row] } }
  effects:
    op: regress
    from: none
    with: { treatment: arm, control: c, outcomes: [y], by: [g], seed: 1 }
";
    let project = Project::steps(steps).with("data.csv", "g,arm,y\n1,c,2\n");
    let outcome = project.run_ok(&[]);
    assert!(outcome.stdout.contains("no row, and so no group"), "{outcome}");
    for port in ["", ".findings", ".graph"] {
        assert!(project.rows(&format!("effects{port}")).is_empty());
    }
}

#[test]
fn margins_are_tested_as_statsmodels_does_and_adjusted() {
    let (data, tests) = grouped();
    let steps = [
        ("equal", "equivalence: { margin: 0.3 }"),
        ("own", "equivalence: { margin: 9, margins: { y: 0.3, z: 0.3 } }"),
        ("worse", "equivalence: { margin: 0.3, test: noninferiority, lower_is_better: [z] }"),
        ("none", ""),
    ];
    let project = ran_with(&data, GROUPED, &steps);
    let (rows, findings) = (project.rows("equal.equivalence"), project.rows("equal.findings"));
    assert_eq!(rows, project.rows("own.equivalence"));
    let one_sided = project.rows("worse.equivalence");
    for test in &tests {
        let row = of_test(&rows, test);
        alike(row, test, "p_value=p_margin p_adjusted=margin_all", 1e-6);
        let (p, q) = (number(test, "all"), number(test, "margin_all"));
        let verdict = match (p <= 0.05, q <= 0.05) {
            (true, true) => "trivial",
            (true, false) => "different",
            (false, true) => "equivalent",
            (false, false) => "inconclusive",
        };
        let finding = of_test(&findings, test);
        assert_eq!((text(row, "verdict"), text(finding, "verdict")), (verdict, verdict), "{test}");
        // At the margin that is excluded the unadjusted test is just significant.
        let reach = number(row, "ci_high").abs().max(number(row, "ci_low").abs());
        holds(row, "excluded", reach, CLOSED);
        let row = of_test(&one_sided, test);
        alike(row, test, "p_value=p_worse", 1e-6);
        let lower = test["outcome"] == "z";
        assert_eq!((row["low"].is_null(), row["high"].is_null()), (lower, !lower), "{row}");
    }
    for row in project.rows("none.equivalence") {
        assert_eq!((text(&row, "test"), &row["p_value"]), ("none", &Value::Null));
        assert!(number(&row, "excluded") > 0.0);
    }
}

#[test]
fn margins_in_standard_deviations_agree_with_the_interval_of_the_effect_size() {
    let peer = peer("within");
    let of = |units: &str| format!("equivalence: {{ margin: 0.5, units: {units} }}");
    let pairs = |units: &str| format!("unit: unit, alpha: 0.025, {}", of(units));
    let steps = [
        ("sd", pairs("sd")),
        ("sd_difference", pairs("sd_difference")),
        ("adjusted", format!("confounders: [x], {}", of("sd"))),
        ("plain", "unit: unit".into()),
    ];
    let csv = table(&peer);
    let rows = csv.lines().enumerate().map(|(at, line)| match at {
        0 => format!("{line},x\n"),
        at => format!("{line},{}\n", noise(at as u64, 3)),
    });
    let project = ran_with(&rows.collect::<String>(), ARMS, &steps);
    let sizes = project.rows("plain.effect_sizes");
    for (step, measure) in [("sd", "cohens_d"), ("sd_difference", "cohens_dz")] {
        let row = &project.rows(&format!("{step}.equivalence"))[0];
        let size = find(&sizes, &[("measure", measure)]);
        // 1 - 2 alpha is 95 %.
        alike(row, size, "estimate=value ci_low ci_high", CLOSED);
        let within = number(row, "ci_high") < 0.5 && number(row, "ci_low") > -0.5;
        assert_eq!(number(row, "p_value") <= 0.025, within, "{row}");
    }
    let row = &project.rows("adjusted.equivalence")[0];
    assert_eq!(row["status"], "refused");
    says(text(row, "reason"), &["units: raw"]);
}

#[test]
fn more_errors_are_worse() {
    // 0.8 more errors with the treatment, whose standard error is a tenth.
    let table = made("arm,n_errors", 400, |i| {
        let more = if turns(i) == "t" { 0.8 } else { 0.0 };
        format!("{},{}", turns(i), noise(i, 0) as f64 / 30.0 + more)
    });
    let of = |list: &str| {
        format!("equivalence: {{ margin: 0.3, test: noninferiority, {list}: [n_errors] }}")
    };
    let with = "treatment: arm, control: c, outcomes: [n_errors]";
    let steps = [("lower", of("lower_is_better")), ("higher", of("higher_is_better"))];
    let project = ran_with(&table, with, &steps);
    for (step, verdict, words) in [
        (
            "lower",
            "inferior",
            "worse by 0.3 or more (less is better) is not excluded at the 5 % level",
        ),
        (
            "higher",
            "superior",
            "worse by 0.3 or more (more is better) is excluded at the 5 % level",
        ),
    ] {
        let row = &project.rows(&format!("{step}.findings"))[0];
        assert_eq!(text(row, "verdict"), verdict, "{row}");
        says(text(row, "sentence"), &[words, "(one-sided test, 90 % CI "]);
    }
}

#[test]
fn what_is_excluded_agrees_with_the_interval() {
    let table = made("arm,y", 60, |i| format!("{},{}", turns(i), noise(i, 0)));
    let row = &analysed(&table, ARMS).rows("effects.findings")[0];
    let reach = number(row, "ci_low").abs().max(number(row, "ci_high"));
    assert_eq!(number(row, "excluded"), reach, "{row}");
    let sentence = text(row, "sentence");
    let end = sentence.split("; the interval excludes an effect beyond ±").nth(1).unwrap();
    let beyond = end.strip_suffix('.').unwrap();
    let within = sentence.split("95 % CI ").nth(1).unwrap().split(';').next().unwrap();
    assert!(
        within.split(" to ").any(|bound| bound.trim_start_matches('-') == beyond),
        "{sentence}"
    );
    // The estimate and both ends have the decimals of the standard error.
    let decimals = |number: &str| number.split_once('.').map_or(0, |(_, part)| part.len());
    let estimate = sentence.split(": ").nth(1).unwrap().split(" (").next().unwrap();
    assert!(within.split(" to ").all(|end| decimals(end) == decimals(estimate)), "{sentence}");
    // One test has one p-value.
    assert!(!sentence.contains("adjusted p") && sentence.contains("; p = "), "{sentence}");
}

#[test]
fn findings_have_a_sentence_for_the_paper() {
    let table = made("unit,arm,bleu", 400, |i| {
        let (unit, arm) = (i / 4, ["c", "T1", "T2", "T3"][(i % 4) as usize]);
        let shift = match arm {
            "T2" => 31.0,
            "T3" => -0.5,
            _ => 0.0,
        };
        format!("{unit},{arm},{}", noise(unit, 0) as f64 + shift + noise(i, 1) as f64 / 10.0)
    });
    let with = "treatment: arm, control: c, outcomes: [bleu], unit: unit, \
                equivalence: { margin: 3 }";
    let project = analysed(&table, with);
    let rows = project.rows("effects.findings");
    assert_eq!(rows.len(), 3);
    let of = |arm: &str| find(&rows, &[("treatment", arm)]);
    let raised = text(of("T2"), "sentence");
    assert!(raised.starts_with("T2 raised bleu by 3"), "{raised}");
    says(raised, &["95 % CI ", " for this test alone; Holm-adjusted p ", "; A12 = 0."]);
    says(
        raised,
        &["n = 100 data points", "; an effect beyond ±3 is not excluded at the 5 % level"],
    );
    assert_eq!(of("T2")["verdict"], "different");
    let none = text(of("T1"), "sentence");
    assert!(none.starts_with("No effect of T1 on bleu was shown: "), "{none}");
    let excluded =
        "; an effect beyond ±3 is excluded at the 5 % level (two one-sided tests, 90 % CI ";
    says(none, &[excluded, " for this test alone; Holm-adjusted p "]);
    assert_eq!((&of("T1")["verdict"], &of("T1")["n"]), (&json!("equivalent"), &json!(100)));
    let full = project.rows("effects");
    for row in &rows {
        let estimate = find(&full, &[("treatment", text(row, "treatment"))]);
        alike(row, estimate, "estimate", 5e-4);
        assert!(number(row, "a12_low") < number(row, "a12"));
        assert!(number(row, "a12") < number(row, "a12_high"));
    }
    // A refused estimate is a sentence without a number.
    let table = made("arm,y", 8, |i| format!("{},{}", turns(i + 1), noise(i, 0)));
    let project = analysed(&table, ARMS);
    let row = &project.rows("effects.findings")[0];
    assert_eq!((text(row, "status"), &row["a12"]), ("refused", &Value::Null));
    let sentence = text(row, "sentence");
    assert!(sentence.contains("is not estimated: too few rows"), "{sentence}");
    let row = &project.rows("effects.equivalence")[0];
    assert!(row["verdict"].is_null() && row["excluded"].is_null(), "{row}");
}
