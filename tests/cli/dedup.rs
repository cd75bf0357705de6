//! `dedup`: which rows are duplicates of each other.
//!
//! `tests/reference/dedup.json` holds what dpu_utils 0.6.1 finds; the script next to it makes
//! it. Not here: which row is kept and what the ports say (`dedup_ports`), the same result
//! everywhere and what a rerun costs (`dedup_reuse`), bad input (`dedup_bad_input`).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::harness::{Project, text};

pub const DPU_UTILS: &str = include_str!("../reference/dedup.json");

/// A project whose step `unique` finds the duplicates among the rows of `data.jsonl`.
pub fn project(with: &str) -> Project {
    Project::steps(&format!(
        "  data:
    op: exec
    with:
      command: cat data.jsonl
      files: [data.jsonl]
      output: {{ id: utf8!, code: utf8, rank: int64, day: utf8 }}
  unique: {{ op: dedup, from: data, with: {{ column: code, {with} }} }}
"
    ))
}

/// A project with texts by id, and its run.
#[track_caller]
pub fn ran(with: &str, texts: &[(&str, &str)]) -> Project {
    let project = project(with);
    write(&project, texts.iter().map(|(id, code)| json!({"id": id, "code": code})));
    project.run_ok(&[]);
    project
}

pub fn write(project: &Project, rows: impl IntoIterator<Item = Value>) {
    let lines: String = rows.into_iter().map(|row| format!("{row}\n")).collect();
    project.write("data.jsonl", lines);
}

/// The words `t<from>` to `t<to - 1>`.
pub fn words(from: usize, to: usize) -> String {
    (from..to).map(|i| format!("t{i}")).collect::<Vec<_>>().join(" ")
}

/// The clusters of two rows and more, sorted.
pub fn clusters(project: &Project) -> Vec<Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in project.rows("unique.clusters") {
        found.entry(text(&row, "cluster").into()).or_default().push(text(&row, "id").into());
    }
    let mut found: Vec<Vec<String>> = found.into_values().collect();
    found.iter_mut().for_each(|cluster| cluster.sort());
    found.sort();
    found
}

pub fn kept(project: &Project) -> Vec<String> {
    project.rows("unique").iter().map(|row| text(row, "id").to_owned()).collect()
}

#[track_caller]
pub fn summary(project: &Project) -> Value {
    let rows = project.rows("unique.summary");
    assert_eq!(rows.len(), 1, "{rows:?}");
    rows[0].clone()
}

/// The arguments of a case as YAML.
fn arguments(with: &Value) -> String {
    let arguments = with.as_object().unwrap().iter();
    let word = |value: &Value| value.to_string().replace('"', "");
    arguments.map(|(name, value)| format!("{name}: {}, ", word(value))).collect()
}

/// The duplicates of dpu_utils among the `texts`, with the settings `asked`.
#[track_caller]
fn agrees_with_dpu_utils(name: &str, texts: &Value, asked: &Value) {
    let project = project(&arguments(&asked["with"]));
    let texts = texts.as_object().unwrap();
    write(&project, texts.iter().map(|(id, code)| json!({"id": id, "code": code})));
    project.run_ok(&[]);
    let wanted: Vec<Vec<String>> = serde_json::from_value(asked["clusters"].clone()).unwrap();
    assert_eq!(clusters(&project), wanted, "{name}");
    // Which one of each is kept is left to chance there.
    let others: BTreeSet<&String> = wanted.iter().flat_map(|cluster| &cluster[1..]).collect();
    let mut rest: Vec<&String> = texts.keys().filter(|id| !others.contains(id)).collect();
    rest.sort();
    assert_eq!(kept(&project).iter().collect::<Vec<_>>(), rest, "{name}");
    let compared = asked["compared"].as_array().unwrap().len();
    let summary = summary(&project);
    assert_eq!(summary["compared"], compared, "{name}: {summary}");
    assert_eq!(summary["too_short"], texts.len() - compared, "{name}: {summary}");
}

#[test]
fn the_cases_of_dpu_utils_give_the_same() {
    let peer: Value = serde_json::from_str(DPU_UTILS).unwrap();
    let cases = peer["cases"].as_object().unwrap();
    assert!(cases.len() > 15);
    for (name, case) in cases {
        // Without any document, dpu_utils raises an error; here there are no duplicates then.
        agrees_with_dpu_utils(name, &case["texts"], case);
    }
}

#[test]
fn a_token_after_a_space_counts_unlike_in_dpu_utils() {
    let code: String = (b'a'..=b'y').map(|c| format!(" {0}{0}{0}", char::from(c))).collect();
    let project = project("tokens: bpe");
    project.change("dedup, from: data,", "dedup, from: { input: data, tokenizer: bpe },");
    let bpe = "  bpe: { op: tokenizer, from: data, with: { column: code } }\n";
    project.write("w.yaml", project.read("w.yaml") + bpe);
    write(&project, ["a", "b"].map(|id| json!({"id": id, "code": code})));
    project.run_ok(&[]);
    let model: Value = serde_json::from_str(text(&project.rows("bpe")[0], "model")).unwrap();
    assert!(model["model"]["vocab"]["Ġaaa"].is_number(), "a word is one token with its space");
    assert_eq!(summary(&project)["compared"], 2);
    assert_eq!(clusters(&project), [["a", "b"]]);
}

#[test]
fn true_and_false_are_no_keywords_as_in_dpu_utils() {
    for (dropped, kept) in [("None", "True"), ("yield", "False")] {
        let a = words(0, 20);
        let with = |word: &str| words(0, 20) + &format!(" {word}").repeat(15);
        assert!(clusters(&ran("", &[("a", &a), ("b", &with(dropped))])).is_empty());
        let drop = "keywords: drop";
        assert_eq!(clusters(&ran(drop, &[("a", &a), ("b", &with(dropped))])), [["a", "b"]]);
        assert!(clusters(&ran(drop, &[("a", &a), ("b", &with(kept))])).is_empty());
    }
}

#[test]
fn too_few_documents_are_no_error() {
    let project = ran("", &[("a", "def f(): pass")]);
    assert_eq!(kept(&project), ["a"]);
    assert_eq!(project.rows("unique.clusters"), [] as [Value; 0]);
    let summary = summary(&project);
    assert_eq!((&summary["compared"], &summary["too_short"]), (&json!(0), &json!(1)));
}

#[test]
fn the_first_row_is_kept_by_default() {
    let same = words(0, 25);
    let project = ran("", &[("10", &same), ("9", &same), ("09", &same), ("x", &words(50, 75))]);
    assert_eq!(kept(&project), ["09", "x"], "ids are texts");
    assert!(project.rows("unique.rejects").iter().all(|row| row["duplicate_of"] == "09"));
}

#[test]
fn thresholds_are_inclusive() {
    // 8 of 10 is the same floating-point number as 0.8 is when it is read, and so on.
    for (common, all, share, above) in [
        (8, 10, "0.8", "0.8000001"),
        (7, 10, "0.7", "0.7000001"),
        (3, 10, "0.3", "0.3000001"),
        (1, 10, "0.1", "0.1000001"),
        (9, 10, "0.9", "0.9000001"),
        (29, 100, "0.29", "0.2900001"),
        (57, 100, "0.57", "0.5700000000000001"),
        (1, 3, "0.3333333333333333", "0.3333333333333334"),
    ] {
        let (a, b) = (words(0, common), words(0, all));
        let found = |set: &str, multiset: &str| {
            let with = format!("min_tokens: 1, threshold: {set}, multiset_threshold: {multiset}");
            clusters(&ran(&with, &[("a", &a), ("b", &b)])).len()
        };
        assert_eq!((found(share, "0"), found(above, "0")), (1, 0), "set {share}");
        assert_eq!((found("0.01", share), found("0.01", above)), (1, 0), "multiset {share}");
    }
}

#[test]
fn with_a_threshold_of_one_only_equal_sets_are_duplicates() {
    let (a, b, c) = (words(0, 25), words(0, 25) + " t0", words(0, 26));
    let rows = [("a", a.as_str()), ("b", &b), ("c", &c)];
    assert_eq!(clusters(&ran("threshold: 1", &rows)), [["a", "b"]]);
    assert!(clusters(&ran("threshold: 1, multiset_threshold: 1", &rows)).is_empty());
}

#[test]
fn rows_below_min_tokens_are_never_duplicates() {
    let (short, enough) = (words(0, 19), words(20, 40));
    let repeated = "x ".repeat(20);
    let rows = [
        ("a", short.as_str()),
        ("b", &short),
        ("c", &enough),
        ("d", &enough),
        ("e", &repeated),
        ("f", &repeated),
        ("g", &short),
    ];
    let project = ran("", &rows);
    assert_eq!(clusters(&project), [["c", "d"], ["e", "f"]], "repetitions count");
    assert_eq!(kept(&project), ["a", "b", "c", "e", "g"]);
    let project = ran("min_tokens: 19", &rows);
    assert_eq!(clusters(&project), [vec!["a", "b", "g"], vec!["c", "d"], vec!["e", "f"]]);
    let project = ran("min_tokens: 21", &rows);
    assert!(clusters(&project).is_empty() && summary(&project)["too_short"] == 7);
}

#[test]
fn keywords_are_dropped_before_anything_is_counted() {
    let a = format!("def f(x):\n    if {}:\n        return not x", words(0, 18));
    let b = format!("async while f in x: {} yield lambda for", words(0, 18));
    let rows = [("a", a.as_str()), ("b", &b)];
    assert!(clusters(&ran("", &rows)).is_empty());
    let dropped = ran("keywords: drop", &rows);
    assert_eq!(clusters(&dropped), [["a", "b"]]);
    assert_eq!(dropped.rows("unique.clusters")[1]["jaccard"], 1.0);
    // `f`, `x` and 18 more are 20 words, and `x` once more in one of them.
    assert!(clusters(&ran("keywords: drop, min_tokens: 21", &rows)).is_empty());
}

#[test]
fn minhash_finds_some_of_the_duplicates_and_no_others() {
    let peer: Value = serde_json::from_str(DPU_UTILS).unwrap();
    let texts = peer["many"]["texts"].as_object().unwrap();
    for threshold in ["0.8", "0.5", "0.95"] {
        let [exact, minhash] = ["exact", "minhash"].map(|method| {
            let project = project(&format!("method: {method}, threshold: {threshold}"));
            write(&project, texts.iter().map(|(id, code)| json!({"id": id, "code": code})));
            project.run_ok(&[]);
            project
        });
        let recall = summary(&minhash)["expected_recall"].as_f64().unwrap();
        assert!((0.95..=1.0).contains(&recall), "{threshold}: {recall}");
        assert_eq!(summary(&exact)["expected_recall"], 1.0);
        let all = clusters(&exact);
        let found = clusters(&minhash);
        for cluster in &found {
            let within = |larger: &Vec<String>| cluster.iter().all(|id| larger.contains(id));
            assert!(all.iter().any(within), "{threshold}: {cluster:?}");
        }
        let count = |clusters: &[Vec<String>]| clusters.iter().map(|c| c.len() - 1).sum::<usize>();
        assert!(count(&found) * 10 >= count(&all) * 9, "{} of {}", count(&found), count(&all));
    }
}
