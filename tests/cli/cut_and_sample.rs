//! `cut` and `sample`: what every result of theirs has to be like.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::harness::{Project, lines, says, text};

fn project(steps: &str) -> Project {
    let row = |i: usize| {
        let doc = if i.is_multiple_of(3) { "    \"\"\"Doc: é, ü.\"\"\"\n" } else { "" };
        let body: String = (0..i % 9).map(|j| format!("\tb{j} = a * {i}  # x\n")).collect();
        let code = format!("def f{i}(a, b=1):\n{doc}{body}    return a + b\n");
        json!({"id": format!("{i:03}"), "kind": format!("k{}", i % 4), "code": code})
    };
    let rows: Vec<_> = (0..60).map(row).collect();
    let steps = format!("  data: {{ op: read, with: {{ path: data.jsonl }} }}\n{steps}");
    Project::steps(&steps).with("data.jsonl", lines(&rows))
}

fn ids(project: &Project, port: &str) -> HashSet<String> {
    project.texts(port, "id").into_iter().collect()
}

fn cut(with: &str) -> String {
    format!("  testbed: {{ op: cut, from: data, with: {{ seed: 7, {with} }} }}\n")
}

fn sampled(n: usize, seed: usize) -> String {
    format!("  s{n}_{seed}: {{ op: sample, from: data, with: {{ n: {n}, seed: {seed} }} }}\n")
}

/// If a docstring is most of a method, a share of the whole shows nothing of the body.
#[test]
fn the_two_parts_of_a_cut_are_the_text_and_a_share_of_the_rest_shows_the_body() {
    let doc = "Says what it does, at length, again. ".repeat(20);
    let code =
        format!("def f(a):\n    \"\"\"{doc}\"\"\"\n    b = a + 1\n    c = b * 2\n    return c\n");
    let rows: Vec<_> = (0..40).map(|i| json!({"id": format!("{i:03}"), "code": code})).collect();
    for (share, some) in [("text", false), ("rest", true)] {
        let project = project(&cut(&format!("after: docstring, share_of: {share}")));
        let cut = project.with("data.jsonl", lines(&rows)).ran().rows("testbed");
        assert_eq!(cut.len(), 40);
        let mut places = HashSet::new();
        for row in &cut {
            let head = text(row, "random_cut");
            let body = head.rsplit("\"\"\"").next().unwrap();
            assert_eq!(head.matches("\"\"\"").count(), 2, "{head:?}");
            assert_eq!(!body.trim().is_empty(), some, "{share}: {body:?}");
            assert!(!text(row, "cut_rest").trim().is_empty());
            places.insert(row["cut_at"].to_string());
        }
        assert_eq!(places.len() > 1, some, "{share}: {places:?}");
    }
    for at in ["space", "token", "line"] {
        for after in ["signature", "none"] {
            let project = project(&cut(&format!("at: {at}, after: {after}"))).ran();
            let rows = project.rows("testbed");
            assert_eq!(rows.len() + project.rows("testbed.rejects").len(), 60);
            assert!(rows.len() > 30, "{at} {after}: {} rows", rows.len());
            for row in &rows {
                let (code, head, rest) =
                    (text(row, "code"), text(row, "random_cut"), text(row, "cut_rest"));
                assert_eq!(format!("{head}{rest}"), code);
                assert_eq!(row["cut_at"].as_u64().unwrap() as usize, head.chars().count());
                assert!(!rest.is_empty());
                if after == "signature" {
                    assert!(head.contains("):"), "{at}: {head:?}");
                }
                match at {
                    "space" => assert!(rest.starts_with(' ') || rest.starts_with('\n'), "{rest:?}"),
                    "line" => assert!(head.ends_with('\n') || rest.starts_with('\n'), "{head:?}"),
                    _ => {}
                }
            }
        }
    }
}

#[test]
fn a_cut_depends_on_the_seed_and_the_row_only() {
    let project = project(&cut("")).ran();
    let before = project.rows("testbed");
    let other = || {
        project.run_ok(&["--cache", "other"]);
        project.cli("show w.yaml testbed --format json --cache other").exits(0).json_lines()
    };
    // Half of the rows are gone: the others are cut as before.
    let half: String =
        project.read("data.jsonl").lines().step_by(2).map(|l| format!("{l}\n")).collect();
    project.write("data.jsonl", half);
    for row in other() {
        assert!(before.contains(&row), "{row}");
    }
    project.change("seed: 7", "seed: 8");
    assert!(other().iter().filter(|r| before.contains(r)).count() < 20);
}

#[test]
fn a_sample_has_its_size_and_its_share_of_every_group_and_rows_added_displace_few() {
    let samples = [(10, 1), (15, 1), (15, 2), (1000, 1), (0, 1)].map(|(n, seed)| sampled(n, seed));
    let stratified = "{ fraction: 0.2, seed: 1, stratify: [kind] }";
    let stratified = format!("  s: {{ op: sample, from: data, with: {stratified} }}\n");
    let project = project(&(samples.concat() + &stratified)).ran();
    // A larger one keeps the rows of a smaller one.
    let (small, large) = (ids(&project, "s10_1"), ids(&project, "s15_1"));
    assert_eq!((small.len(), large.len()), (10, 15));
    assert!(small.is_subset(&large));
    assert_ne!(large, ids(&project, "s15_2"));
    // More rows than there are is all of them.
    assert_eq!((ids(&project, "s1000_1").len(), ids(&project, "s0_1").len()), (60, 0));
    let rows = project.rows("s");
    assert_eq!(rows.len(), 12);
    for kind in ["k0", "k1", "k2", "k3"] {
        assert_eq!(rows.iter().filter(|r| r["kind"] == kind).count(), 3, "{kind}");
    }
    // A sample and its rejects are the table.
    let (before, rest) = (ids(&project, "s15_1"), ids(&project, "s15_1.rejects"));
    assert!(before.is_disjoint(&rest));
    assert_eq!(before.len() + rest.len(), 60);
    let more = |l: &str| l.replace("\"id\":\"0", "\"id\":\"9") + "\n";
    let more: String = project.read("data.jsonl").lines().take(10).map(more).collect();
    project.write("data.jsonl", project.read("data.jsonl") + &more);
    let told = project.run_ok(&[]).warnings();
    assert_eq!(told, ["the table has 70 rows, fewer than `n: 1000`: all of them are kept"]);
    let after = ids(&project, "s15_1");
    assert_eq!(after.len(), 15);
    let gone = before.difference(&after).count();
    let new: Vec<_> = after.difference(&before).collect();
    assert!(gone <= 10 && new.iter().all(|id| id.starts_with('9')), "{new:?}");
}

fn described(with: &str) -> Project {
    Project::steps(&format!(
        "  data: {{ op: read, with: {{ path: data.csv }} }}
  table: {{ op: describe, from: data, with: {{ {with} }} }}
"
    ))
}

#[test]
fn statistics_are_those_of_the_textbook_and_of_a_regression_on_a_constant() {
    let project = described("columns: [x], by: [g]");
    project.write("data.csv", "id,g,x\n1,a,1\n2,a,2\n3,a,4\n4,a,\n5,b,3\n");
    let rows = project.ran().rows("table");
    let a = rows.iter().find(|r| r["g"] == "a").unwrap();
    let number = |name: &str| a[name].as_f64().unwrap();
    assert_eq!(a["n"], 3);
    assert!((number("mean") - 7.0 / 3.0).abs() < 1e-12);
    assert!((number("std") - (7.0_f64 / 3.0).sqrt()).abs() < 1e-12);
    assert_eq!(["min", "q1", "median", "q3", "max"].map(number), [1.0, 1.5, 2.0, 3.0, 4.0]);
    let b = rows.iter().find(|r| r["g"] == "b").unwrap();
    assert!(b["n"] == 1 && b["std"].is_null() && b["standard_error"].is_null(), "{b}");
    // scipy.stats.t.interval(0.95, 2, 7/3, sqrt(7)/3)
    let interval = ["standard_error", "ci_low", "ci_high"].map(number);
    let wanted = [0.881_917_103_688_197, -1.461_249_700_263_426_4, 6.127_916_366_930_093];
    for (ours, theirs) in interval.iter().zip(wanted) {
        assert!((ours - theirs).abs() < 1e-9, "{interval:?}");
    }
    let peer: Value =
        serde_json::from_str(include_str!("../reference/describe_clusters.json")).unwrap();
    let data = text(&peer, "csv");
    let columns = "columns: [x, y, passed, share], by: [g]";
    let alpha = &peer["alpha"];
    for (list, more) in [
        ("independent", ""),
        ("expected", ", cluster: repo"),
        ("exact_independent", ", interval: exact"),
        ("exact", ", cluster: repo, interval: exact"),
    ] {
        let with = format!("{columns}{more}, alpha: {alpha}");
        let rows = described(&with).with("data.csv", data).ran().rows("table");
        for wanted in peer[list].as_array().unwrap() {
            let same = |r: &&Value| r["g"] == wanted["group"] && r["column"] == wanted["column"];
            let row = rows.iter().find(same).unwrap();
            let clustered = more.contains("cluster");
            assert!(!clustered || row["n_clusters"] == wanted["n_clusters"], "{row}");
            for name in ["mean", "standard_error", "ci_low", "ci_high"] {
                let (ours, theirs) = (row[name].as_f64().unwrap(), wanted[name].as_f64().unwrap());
                let near = 1e-9 * theirs.abs().max(1e-3);
                assert!((ours - theirs).abs() < near, "{name}: {ours}, {theirs}: {wanted}");
            }
        }
    }
    let with = format!("{columns}, cluster: repo, alpha: {alpha}");
    let project = described(&with).with("data.csv", data);
    let (first, rest) = data.split_once("\n0,a,").unwrap();
    let rest = rest.split_once(',').unwrap().1;
    project.write("data.csv", format!("{first}\n0,a,,{rest}"));
    let failed = project.run(&["run", "w.yaml"]).exits(1);
    failed.reports(&["1 rows have no cluster: `repo` is null"]);
}

#[test]
fn arms_with_different_numbers_of_values_are_a_warning() {
    let data = "id,model,lines,x,y\n1,a,1,1,1\n2,b,1,1,1\n3,a,2,1,1\n4,b,2,,1\n5,a,3,1,1\n6,b,3,1,1\n\
                7,a,3,1,1\n8,b,3,1,1\n";
    let null = "means leave out null values: `x` is null in 1 of 8 rows";
    for (with, wanted) in [
        ("columns: [y, x], by: [model]", &[null, "`x` has 3 to 4 values by `model`"][..]),
        ("columns: [y, x], by: [lines, model]", &[null, "`x` has 0 to 1 values by `model`"]),
        ("columns: [y], by: [lines, model]", &[]),
        // The sizes of other groups mean nothing.
        ("columns: [y, x], by: [lines]", &[null]),
        ("columns: [x]", &[null]),
    ] {
        let told = described(with).with("data.csv", data).run_ok(&[]).warnings();
        assert_eq!(told.len(), wanted.len(), "{with}: {told:?}");
        told.iter().zip(wanted).for_each(|(told, words)| says(told, &[words]));
    }
    // Columns without any value, and texts.
    let data = "id,g,x,y,text\n1,a,,,\n2,a,,2,t\n3,b,,,\n";
    let all = "`x` is null in all 3 rows and has no mean, `y` is null in 2 of 3 rows, \
               `text` is null in 2 of 3 rows";
    let with = "columns: [x, y, text], by: [g]";
    let typed = described(with).with("data.csv", data);
    typed.change("path: data.csv", "path: data.csv, types: { x: float64 }");
    says(&typed.run_ok(&[]).warnings()[0], &[all]);
}

/// Groups of 20 rows: all of a pass, one of b fails. `share` is a rate in a, mostly 1 in b, and
/// `faults` is a count, although a has none. `verdict` has the rates of its texts.
#[test]
fn intervals_of_rates_stay_within_0_and_1_and_do_not_vanish() {
    let mut data = String::from("id,g,passed,share,faults,verdict\n");
    for id in 0..40 {
        let (group, fails) = if id < 20 { ("a", false) } else { ("b", id == 30) };
        let share = if fails { 0.3 } else { 1.0 };
        let (faults, verdict) = if fails { (2, "fail") } else { (0, "pass") };
        data += &format!("{id},{group},{},{share},{faults},{verdict}\n", !fails);
    }
    let project = described("columns: [passed, share, faults, verdict], by: [g]");
    let rows = project.with("data.csv", &data).ran().rows("table");
    // statsmodels' proportion_confint(method="wilson"); for `share` of b statsmodels' binomial GLM on
    // a constant, with rows as clusters and Student's t; for the faults of b SciPy's t.interval.
    for (group, column, low, high) in [
        ("a", "passed", 0.838_874_841_947_180_4, 1.0),
        ("b", "passed", 0.763_868_806_553_257_7, 0.991_118_551_199_204_4),
        ("a", "share", 0.838_874_841_947_180_4, 1.0),
        ("b", "share", 0.759_116_747_402_969_3, 0.995_871_552_607_689_2),
        ("a", "faults", 0.0, 0.0),
        ("b", "faults", -0.109_302_405_440_830_86, 0.309_302_405_440_830_9),
        ("a", "verdict = pass", 0.838_874_841_947_180_4, 1.0),
        ("b", "verdict = pass", 0.763_868_806_553_257_7, 0.991_118_551_199_204_4),
        ("a", "verdict = fail", 0.0, 0.161_125_158_052_819_6),
        ("b", "verdict = fail", 0.008_881_448_800_795_6, 0.236_131_193_446_742_3),
    ] {
        let same = |r: &&Value| r["g"] == group && r["column"] == column;
        let row = rows.iter().find(same).unwrap();
        for (name, wanted) in [("ci_low", low), ("ci_high", high)] {
            let found = row[name].as_f64().unwrap();
            assert!((found - wanted).abs() < 1e-9, "{name}: {found}, {wanted}: {row}");
        }
    }
}
