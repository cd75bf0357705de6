//! `sample` in strata and `cut` after docstrings: what a larger sample keeps, and where no cut
//! lies.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::harness::{Project, lines, says, text};

const STRATIFIED: &str = "galeras: 1
steps:
  data: { op: read, with: { path: data.jsonl } }
  s: { op: sample, from: data, with: { n: N, seed: 42, stratify: [kind, sort] } }
";

/// The drawn ids by stratum, for every size.
fn drawn(data: &str, sizes: &[usize]) -> Vec<BTreeMap<String, BTreeSet<String>>> {
    let project = Project::new(STRATIFIED).with("data.jsonl", data);
    let one = |n: &usize| {
        project.write("w.yaml", STRATIFIED.replace("n: N", &format!("n: {n}")));
        assert_eq!(project.run_ok(&[]).step("s")["rows"], *n);
        let mut strata: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for row in project.rows("s") {
            let stratum = strata.entry(format!("{} {}", row["kind"], row["sort"])).or_default();
            stratum.insert(row["id"].as_str().unwrap().to_owned());
        }
        strata
    };
    sizes.iter().map(one).collect()
}

#[track_caller]
fn keep_what_was_drawn(samples: &[BTreeMap<String, BTreeSet<String>>]) {
    for (small, large) in samples.iter().zip(&samples[1..]) {
        for (stratum, ids) in small {
            assert!(ids.is_subset(&large[stratum]), "{stratum}: {} rows", ids.len());
        }
    }
}

fn rows(count: usize, kinds: impl Fn(usize) -> (Value, Value)) -> String {
    let row = |i| {
        let (kind, sort) = kinds(i);
        json!({"id": format!("{i:05}"), "kind": kind, "sort": sort}).to_string() + "\n"
    };
    (0..count).map(row).collect()
}

#[test]
fn more_rows_keep_every_row_in_every_stratum() {
    // 600, 600 and 200 rows: by largest remainders, 11 rows have fewer of the last than 10 have.
    let data = rows(1_400, |i| (json!(i % 7 / 3), json!("x")));
    let sizes: Vec<usize> = (8..=14).chain(28..=33).collect();
    let samples = drawn(&data, &sizes);
    keep_what_was_drawn(&samples);
    let thirty = &samples[9];
    let counts: Vec<usize> = thirty.values().map(BTreeSet::len).collect();
    assert_eq!((counts.iter().sum::<usize>(), counts), (30, vec![13, 13, 4]));
    // A hundred rows more keep three thousand.
    // Strata of very different sizes, and nulls, which are a separate stratum.
    let kind = |i: usize| match i % 97 {
        0 => Value::Null,
        k => json!(format!("k{}", (k as f64).sqrt() as usize)),
    };
    let data = rows(10_000, |i| (kind(i), if i % 5 == 0 { Value::Null } else { json!("") }));
    let samples = drawn(&data, &[3_000, 3_001, 3_100, 9_999, 10_000]);
    keep_what_was_drawn(&samples);
    assert!(samples[0].len() > 15);
    // Every stratum has its share, to the next row or two.
    for (stratum, ids) in &samples[0] {
        let share = samples[4][stratum].len() as f64 * 0.3;
        assert!((ids.len() as f64 - share).abs() <= 2.0, "{stratum}: {} of {share}", ids.len());
    }
}

/// Methods by name, with the last characters of what a cut comes after.
fn methods() -> Vec<(&'static str, String, &'static str)> {
    let with_doc = |id, doc: &str, value: &str, end| {
        (id, format!("def f(x):\n    {doc}\n    y = x + 1\n    return {value}\n"), end)
    };
    let coroutine =
        "async def f(x, y='a b'):\n    \"\"\"A doc.\"\"\"\n    z = await x + y\n    return z\n";
    let none = "def f(x, y={'a': 1}):\n    z = 'no docstring: ' + x\n    return z + y\n";
    let late = "def f(x):\n    y = x\n    \"\"\"No docstring.\"\"\"\n    return y + 1 + 2 + 3\n";
    vec![
        with_doc("one_line", "\"\"\"Say what it does, and why.\"\"\"", "y * 2", "why.\"\"\""),
        with_doc("lines", "'''Say: what\n\n    it (does) = and\n    '''", "y * 2", "and\n    '''"),
        with_doc("raw", "r\"\"\"A \\d doc é, ü.\"\"\"", "y", "ü.\"\"\""),
        with_doc("plain", "'A doc of one line'", "y", "line'"),
        with_doc("parts", "'A doc ' 'in two parts'", "y", "parts'"),
        with_doc("comment", "# About it.\n    \"\"\"A doc after all.\"\"\"", "y", "all.\"\"\""),
        ("async", coroutine.into(), "doc.\"\"\""),
        ("none", none.into(), "1}):"),
        ("late", late.into(), "f(x):"),
    ]
}

fn cutting(with: &str) -> Project {
    let row = |id: &str, code: &str| json!({"id": id, "code": code});
    let mut rows: Vec<Value> = methods().iter().map(|(id, code, _)| row(id, code)).collect();
    rows.push(row("only", "def f(x):\n    \"\"\"Nothing but a docstring.\"\"\""));
    Project::steps(&format!(
        "  data: {{ op: read, with: {{ path: data.jsonl }} }}
  testbed: {{ op: cut, from: data, with: {{ seed: 3, {with} }} }}
"
    ))
    .with("data.jsonl", lines(&rows))
    .ran()
}

#[test]
fn a_cut_after_the_docstring_lies_in_no_docstring() {
    for at in ["space", "token", "line"] {
        for shares in
            ["min: 0, max: 0", "min: 0.1, max: 0.3", "min: 0.4, max: 0.65", "min: 0.95, max: 0.99"]
        {
            let project = cutting(&format!("after: docstring, at: {at}, {shares}"));
            let rows = project.rows("testbed");
            let methods = methods();
            assert_eq!(rows.len(), methods.len(), "{at} {shares}");
            for row in &rows {
                let (id, code, end) = methods.iter().find(|m| row["id"] == m.0).unwrap();
                let head = text(row, "random_cut");
                assert_eq!(format!("{head}{}", text(row, "cut_rest")), *code);
                let least = code.find(end).unwrap() + end.len();
                assert!(head.len() >= least, "{at} {shares} {id}: {head:?}");
            }
            let reject = project.only("testbed.rejects");
            assert_eq!(reject["id"], "only");
            says(text(&reject, "reason"), &["after the docstring"]);
        }
    }
    // Without a docstring, or far behind it, the cut is that after the signature.
    let cuts =
        |after: &str, shares: &str| cutting(&format!("after: {after}, {shares}")).rows("testbed");
    // At nine tenths every cut lies in the body.
    for (shares, same) in [("min: 0.1, max: 0.9", false), ("min: 0.9, max: 0.95", true)] {
        let (docstring, signature) = (cuts("docstring", shares), cuts("signature", shares));
        let moved = docstring.iter().filter(|row| !signature.contains(row));
        let moved: Vec<&str> = moved.map(|row| text(row, "id")).collect();
        assert!(if same { moved.is_empty() } else { moved.len() > 1 }, "{moved:?}");
        assert!(!moved.contains(&"none") && !moved.contains(&"late"), "{moved:?}");
    }
    // A share of one cuts at the last place.
    for at in ["space", "token", "line"] {
        let project = cutting(&format!("after: docstring, at: {at}, min: 1, max: 1"));
        assert_eq!(project.rows("testbed").len(), methods().len(), "{at}");
    }
}
