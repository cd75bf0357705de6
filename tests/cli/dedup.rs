//! `dedup`: which rows are duplicates of each other, and which of them are kept.
//! `tests/reference/dedup.json` has the results of dpu_utils 0.6.1; the script next to it makes it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::harness::{Project, every, has, lines, says, text, values};

fn peer() -> Value {
    serde_json::from_str(include_str!("../reference/dedup.json")).unwrap()
}

fn project(with: &str) -> Project {
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

#[track_caller]
fn computed(with: &str, rows: &[Value]) -> Project {
    project(with).with("data.jsonl", lines(rows)).ran()
}

#[track_caller]
fn ran(with: &str, texts: &[(&str, &str)]) -> Project {
    let rows: Vec<_> = texts.iter().map(|(id, code)| json!({"id": id, "code": code})).collect();
    computed(with, &rows)
}

fn coded(texts: &Map<String, Value>) -> Vec<Value> {
    texts.iter().map(|(id, code)| json!({"id": id, "code": code})).collect()
}

/// The words `t<from>` to `t<to - 1>`.
pub fn words(from: usize, to: usize) -> String {
    (from..to).map(|i| format!("t{i}")).collect::<Vec<_>>().join(" ")
}

fn clusters(project: &Project) -> Vec<Vec<String>> {
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
    project.texts("unique", "id")
}

fn arguments(with: &Value) -> String {
    let arguments = with.as_object().unwrap().iter();
    let word = |value: &Value| value.to_string().replace('"', "");
    arguments.map(|(name, value)| format!("{name}: {}, ", word(value))).collect()
}

#[test]
fn the_cases_of_dpu_utils_give_the_same() {
    let peer = peer();
    let cases = peer["cases"].as_object().unwrap();
    assert!(cases.len() > 15);
    // Without any document, dpu_utils raises an error; here there are no duplicates then.
    every(cases, |case| {
        let texts = case["texts"].as_object().unwrap();
        let project = computed(&arguments(&case["with"]), &coded(texts));
        let wanted: Vec<Vec<String>> = serde_json::from_value(case["clusters"].clone()).unwrap();
        assert_eq!(clusters(&project), wanted);
        // Which one of each is kept is left to chance there.
        let others: BTreeSet<&String> = wanted.iter().flat_map(|cluster| &cluster[1..]).collect();
        let mut rest: Vec<&String> = texts.keys().filter(|id| !others.contains(id)).collect();
        rest.sort();
        assert_eq!(kept(&project).iter().collect::<Vec<_>>(), rest);
        let compared = case["compared"].as_array().unwrap().len();
        let wanted = json!([compared, texts.len() - compared]);
        has(&project.only("unique.summary"), "compared too_short", wanted);
    });
}

#[test]
fn true_and_false_are_no_keywords_as_in_dpu_utils_and_unlike_there_a_token_after_a_space_counts() {
    for (dropped, kept) in [("None", "True"), ("yield", "False")] {
        let a = words(0, 20);
        let with = |word: &str| words(0, 20) + &format!(" {word}").repeat(15);
        assert!(clusters(&ran("", &[("a", &a), ("b", &with(dropped))])).is_empty());
        let drop = "keywords: drop";
        assert_eq!(clusters(&ran(drop, &[("a", &a), ("b", &with(dropped))])), [["a", "b"]]);
        assert!(clusters(&ran(drop, &[("a", &a), ("b", &with(kept))])).is_empty());
    }
    let code: String = (b'a'..=b'y').map(|c| format!(" {0}{0}{0}", char::from(c))).collect();
    let project = project("tokens: bpe");
    project.change("dedup, from: data,", "dedup, from: { input: data, tokenizer: bpe },");
    project.append("  bpe: { op: tokenizer, from: data, with: { column: code } }\n");
    let rows = ["a", "b"].map(|id| json!({"id": id, "code": code}));
    let project = project.with("data.jsonl", lines(&rows)).ran();
    let model: Value = serde_json::from_str(text(&project.rows("bpe")[0], "model")).unwrap();
    assert!(model["model"]["vocab"]["Ġaaa"].is_number(), "a word is one token with its space");
    assert_eq!(project.only("unique.summary")["compared"], 2);
    assert_eq!(clusters(&project), [["a", "b"]]);
}

#[test]
fn the_kept_row_is_the_first_by_default_or_by_the_order_and_nulls_never_win() {
    let same = words(0, 25);
    let project = ran("", &[("10", &same), ("9", &same), ("09", &same), ("x", &words(50, 75))]);
    assert_eq!(kept(&project), ["09", "x"], "ids are texts");
    assert!(project.rows("unique.rejects").iter().all(|row| row["duplicate_of"] == "09"));
    project.run(&["trace", "w.yaml", "10"]).exits(0).prints(&["unique", "09"]);
    for (with, wanted) in [
        ("", "a"),
        ("keep: first", "a"),
        ("keep: last", "f"),
        ("order_by: [rank]", "c"),
        ("order_by: [rank], keep: last", "e"),
        ("order_by: [rank, day]", "d"),
        ("order_by: [rank, day], keep: last", "b"),
        ("order_by: [day]", "d"),
        ("order_by: [day], keep: last", "f"),
        ("order_by: [day, rank], keep: last", "c"),
        ("order_by: [id]", "a"),
        ("order_by: [id], keep: last", "f"),
    ] {
        let row =
            |(id, rank, day)| json!({"id": id, "rank": rank, "day": day, "code": words(0, 25)});
        let project = computed(with, &RANKED.map(row));
        assert_eq!(kept(&project), [wanted], "{with}");
        let rejects = project.rows("unique.rejects");
        assert!(rejects.iter().all(|row| row["duplicate_of"] == wanted), "{with}");
        let members = project.rows("unique.clusters");
        assert!(members.iter().all(|row| row["cluster"] == wanted && row["size"] == 6), "{with}");
    }
    // Nulls win where there is nothing else.
    for (with, wanted) in [("order_by: [rank]", "a"), ("order_by: [rank], keep: last", "b")] {
        let same = words(0, 25);
        assert_eq!(kept(&ran(with, &[("a", &same), ("b", &same)])), [wanted], "{with}");
    }
}

#[test]
fn thresholds_are_inclusive_and_rows_below_min_tokens_are_never_duplicates() {
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
    // With a threshold of one only equal sets are duplicates.
    let (a, b, c) = (words(0, 25), words(0, 25) + " t0", words(0, 26));
    let rows = [("a", a.as_str()), ("b", &b), ("c", &c)];
    assert_eq!(clusters(&ran("threshold: 1", &rows)), [["a", "b"]]);
    assert!(clusters(&ran("threshold: 1, multiset_threshold: 1", &rows)).is_empty());
    let (short, enough, again) = (words(0, 19), words(20, 40), "x ".repeat(20));
    let codes = [&short, &short, &enough, &enough, &again, &again, &short].map(String::as_str);
    let rows: Vec<_> = ["a", "b", "c", "d", "e", "f", "g"].into_iter().zip(codes).collect();
    let project = ran("", &rows);
    assert_eq!(clusters(&project), [["c", "d"], ["e", "f"]], "repetitions count");
    assert_eq!(kept(&project), ["a", "b", "c", "e", "g"]);
    let project = ran("min_tokens: 19", &rows);
    assert_eq!(clusters(&project), [vec!["a", "b", "g"], vec!["c", "d"], vec!["e", "f"]]);
    let project = ran("min_tokens: 21", &rows);
    assert!(clusters(&project).is_empty() && project.only("unique.summary")["too_short"] == 7);
    // Too few documents are not an error.
    let project = ran("", &[("a", "def f(): pass")]);
    assert_eq!(kept(&project), ["a"]);
    assert_eq!(project.rows("unique.clusters"), [] as [Value; 0]);
    has(&project.only("unique.summary"), "compared too_short", json!([0, 1]));
}

#[test]
fn keywords_are_dropped_before_counting_and_minhash_finds_only_duplicates() {
    let a = format!("def f(x):\n    if {}:\n        return not x", words(0, 18));
    let b = format!("async while f in x: {} yield lambda for", words(0, 18));
    let rows = [("a", a.as_str()), ("b", &b)];
    assert!(clusters(&ran("", &rows)).is_empty());
    let dropped = ran("keywords: drop", &rows);
    assert_eq!(clusters(&dropped), [["a", "b"]]);
    assert_eq!(dropped.rows("unique.clusters")[1]["jaccard"], 1.0);
    // `f`, `x` and 18 more are 20 words, and `x` again in one of them.
    assert!(clusters(&ran("keywords: drop, min_tokens: 21", &rows)).is_empty());
    let rows = coded(peer()["many"]["texts"].as_object().unwrap());
    for threshold in ["0.8", "0.5", "0.95"] {
        let [exact, minhash] = ["exact", "minhash"]
            .map(|method| computed(&format!("method: {method}, threshold: {threshold}"), &rows));
        let recall = minhash.only("unique.summary")["expected_recall"].as_f64().unwrap();
        assert!((0.95..=1.0).contains(&recall), "{threshold}: {recall}");
        assert_eq!(exact.only("unique.summary")["expected_recall"], 1.0);
        let (all, found) = (clusters(&exact), clusters(&minhash));
        for cluster in &found {
            let within = |larger: &Vec<String>| cluster.iter().all(|id| larger.contains(id));
            assert!(all.iter().any(within), "{threshold}: {cluster:?}");
        }
        let count = |clusters: &[Vec<String>]| clusters.iter().map(|c| c.len() - 1).sum::<usize>();
        assert!(count(&found) * 10 >= count(&all) * 9, "{} of {}", count(&found), count(&all));
    }
}

/// Set and multiset Jaccard similarity by definition, of texts whose words are all kept.
fn similarities(a: &str, b: &str) -> (f64, f64) {
    let mut counts: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    a.split(' ').for_each(|word| counts.entry(word).or_default()[0] += 1);
    b.split(' ').for_each(|word| counts.entry(word).or_default()[1] += 1);
    let both = counts.values().filter(|[a, b]| *a > 0 && *b > 0).count();
    let minima: usize = counts.values().map(|[a, b]| a.min(b)).sum();
    let maxima: usize = counts.values().map(|[a, b]| a.max(b)).sum();
    (both as f64 / counts.len() as f64, minima as f64 / maxima as f64)
}

/// Rows of one cluster with `id`, `rank` and `day`.
const RANKED: [(&str, Option<i64>, Option<&str>); 6] = [
    ("a", None, None),
    ("b", Some(5), Some("2022-02-01")),
    ("c", Some(2), Some("2022-03-01")),
    ("d", Some(2), Some("2022-01-01")),
    ("e", Some(5), None),
    ("f", None, Some("2022-03-01")),
];

/// Each text has 21 of the 25 words of the one before.
fn chain(length: usize) -> Vec<(String, String)> {
    (0..length).map(|i| (format!("c{i}"), words(2 * i, 2 * i + 23))).collect()
}

#[test]
fn rows_similar_through_others_are_one_cluster_and_similarities_are_those_with_its_kept_row() {
    let texts = chain(6);
    let rows: Vec<_> = texts.iter().map(|(id, code)| (id.as_str(), code.as_str())).collect();
    let project = ran("order_by: [id]", &rows);
    assert_eq!(clusters(&project), [["c0", "c1", "c2", "c3", "c4", "c5"]]);
    let rejects = project.rows("unique.rejects");
    for (reject, (id, code)) in rejects.iter().zip(&texts[1..]) {
        let (set, multiset) = similarities(code, &texts[0].1);
        assert_eq!((text(reject, "id"), text(reject, "duplicate_of")), (id.as_str(), "c0"));
        has(reject, "jaccard multiset_jaccard", json!([set, multiset]));
        assert_eq!(text(reject, "reason").contains("through other"), set < 0.8, "{reject}");
    }
    assert!(rejects[4]["jaccard"].as_f64().unwrap() < 0.5, "{}", rejects[4]);
    // Words that do not count would have to be left out here as well.
    let counts = |word: &&str| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let mut peer = peer();
    let texts = peer["many"]["texts"].as_object_mut().unwrap();
    for code in texts.values_mut() {
        let words: Vec<&str> = code.as_str().unwrap().split(' ').filter(counts).collect();
        *code = words.join(" ").into();
    }
    let project = computed("keep: last, threshold: 0.7", &coded(texts));
    let members = project.rows("unique.clusters");
    assert!(members.len() > 100);
    for row in &members {
        let code = |column| texts[text(row, column)].as_str().unwrap();
        let (set, multiset) = similarities(code("id"), code("cluster"));
        let wanted = json!([set, multiset, row["id"] == row["cluster"]]);
        has(row, "jaccard multiset_jaccard kept", wanted);
    }
    // `rejects` has the same rows.
    let told = |row: &Value, of: &str| values(row, &format!("id {of} jaccard multiset_jaccard"));
    let others = members.iter().filter(|row| row["kept"] == false);
    let others: Vec<_> = others.map(|row| told(row, "cluster")).collect();
    let rejects = project.rows("unique.rejects");
    let rejects: Vec<_> = rejects.iter().map(|row| told(row, "duplicate_of")).collect();
    assert_eq!(rejects, others);
}

/// Each of 40 texts begins four words after the one before it: neighbours share 46 of 54 words.
#[test]
fn a_chain_is_one_cluster_unless_clusters_are_direct() {
    let text = |at: usize| words(4 * at, 4 * at + 50);
    let row = |at: usize| json!({"id": format!("r{at:02}"), "code": text(at)});
    let rows: Vec<Value> = (0..40).map(row).collect();
    assert_eq!(kept(&computed("", &rows)), ["r00"]);
    // Of every two rows the second is similar to the first: 46 / 54 is more than 0.8, 42 / 58 is not.
    let project = computed("cluster: direct", &rows);
    let wanted: Vec<String> = (0..40).step_by(2).map(|at| format!("r{at:02}")).collect();
    assert_eq!(kept(&project), wanted);
    for row in project.rows("unique.rejects") {
        has(&row, "jaccard", json!([46.0 / 54.0]));
        assert!(row["reason"].as_str().unwrap().starts_with("similar to"), "{row}");
    }
    let last = computed("cluster: direct, keep: last", &rows);
    let wanted: Vec<String> = (1..40).step_by(2).map(|at| format!("r{at:02}")).collect();
    assert_eq!(kept(&last), wanted);
    // A row alone is in no cluster.
    let project = computed("cluster: direct", &rows[..3]);
    assert_eq!(kept(&project), ["r00", "r02"]);
    assert_eq!(project.rows("unique.clusters").len(), 2);
}

#[test]
fn what_is_kept_and_set_aside_is_the_table() {
    let (a, b) = (words(0, 25), words(50, 75));
    let (nearly, short) = (words(0, 24), words(0, 10));
    let texts = [Some(&a), Some(&b), Some(&nearly), None, Some(&short), Some(&a), Some(&b), None];
    let row = |(i, code)| json!({"id": format!("r{i}"), "code": code, "rank": i});
    let project = computed("", &texts.into_iter().enumerate().map(row).collect::<Vec<_>>());
    assert_eq!(kept(&project), ["r0", "r1", "r3", "r4", "r7"]);
    let wanted = json!({"id": "r1", "code": b, "rank": 1, "day": null});
    assert_eq!(project.rows("unique")[1], wanted);
    assert_eq!(project.texts("unique.rejects", "id"), ["r2", "r5", "r6"]);
    let first = project.rows("unique.rejects").remove(0);
    let columns: Vec<&str> = first.as_object().unwrap().keys().map(String::as_str).collect();
    let wanted = "id code rank day step rule reason duplicate_of jaccard multiset_jaccard";
    assert_eq!(columns.join(" "), wanted);
    has(&first, "step rule rank jaccard", json!(["unique", "duplicate", 2, 0.96]));
    says(text(&first, "reason"), &["similar to r0", "0.960"]);

    let summary = project.only("unique.summary");
    let number = |name: &str| summary[name].as_f64().unwrap();
    assert_eq!(number("rows"), number("kept") + number("duplicates"));
    assert_eq!(number("rows"), number("compared") + number("too_short") + number("nulls"));
    let numbers = ["rows", "duplicates", "clusters", "largest_cluster", "nulls", "too_short"];
    assert_eq!(numbers.map(number), [8.0, 3.0, 2.0, 3.0, 2.0, 1.0]);
    assert_eq!((number("percent"), number("expected_recall")), (37.5, 1.0));
    let sizes = project.rows("unique.clusters");
    assert_eq!(sizes.iter().map(|row| row["size"].as_i64().unwrap()).sum::<i64>(), 13);
}
