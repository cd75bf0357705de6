//! `dedup`: which row of a cluster is kept, and what the ports say of each.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::dedup::{DPU_UTILS, clusters, kept, project, ran, summary, words, write};
use crate::harness::{says, text};

fn ids(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| text(row, "id")).collect()
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

#[test]
fn the_kept_row_is_the_first_or_last_by_the_order_and_nulls_never_win() {
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
        let project = project(with);
        let row =
            |(id, rank, day)| json!({"id": id, "rank": rank, "day": day, "code": words(0, 25)});
        write(&project, RANKED.into_iter().map(row));
        project.run_ok(&[]);
        assert_eq!(kept(&project), [wanted], "{with}");
        let rejects = project.rows("unique.rejects");
        assert!(rejects.iter().all(|row| row["duplicate_of"] == wanted), "{with}");
        let members = project.rows("unique.clusters");
        assert!(members.iter().all(|row| row["cluster"] == wanted && row["size"] == 6), "{with}");
    }
}

#[test]
fn nulls_win_where_there_is_nothing_else() {
    for (with, wanted) in [("order_by: [rank]", "a"), ("order_by: [rank], keep: last", "b")] {
        let project = project(with);
        write(&project, ["a", "b"].map(|id| json!({"id": id, "code": words(0, 25)})));
        project.run_ok(&[]);
        assert_eq!(kept(&project), [wanted], "{with}");
    }
}

/// Each text has 21 of the 25 words of the one before.
fn chain(length: usize) -> Vec<(String, String)> {
    (0..length).map(|i| (format!("c{i}"), words(2 * i, 2 * i + 23))).collect()
}

#[test]
fn rows_that_are_similar_through_others_are_one_cluster() {
    let texts = chain(6);
    let rows: Vec<_> = texts.iter().map(|(id, code)| (id.as_str(), code.as_str())).collect();
    let project = ran("order_by: [id]", &rows);
    assert_eq!(clusters(&project), [["c0", "c1", "c2", "c3", "c4", "c5"]]);
    let rejects = project.rows("unique.rejects");
    for (reject, (id, code)) in rejects.iter().zip(&texts[1..]) {
        let (set, multiset) = similarities(code, &texts[0].1);
        assert_eq!((text(reject, "id"), text(reject, "duplicate_of")), (id.as_str(), "c0"));
        let found = (&reject["jaccard"], &reject["multiset_jaccard"]);
        assert_eq!(found, (&json!(set), &json!(multiset)));
        let through = text(reject, "reason").contains("through other");
        assert_eq!(through, set < 0.8, "{reject}");
    }
    assert!(rejects[4]["jaccard"].as_f64().unwrap() < 0.5, "{}", rejects[4]);
}

#[test]
fn similarities_are_those_with_the_kept_row_of_the_cluster() {
    let peer: Value = serde_json::from_str(DPU_UTILS).unwrap();
    // Words that do not count would have to be left out here as well.
    let counts = |word: &&str| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let texts = peer["many"]["texts"].as_object().unwrap().iter();
    let texts: BTreeMap<String, String> = texts
        .map(|(id, code)| {
            let words: Vec<&str> = code.as_str().unwrap().split(' ').filter(counts).collect();
            (id.clone(), words.join(" "))
        })
        .collect();
    let project = project("keep: last, threshold: 0.7");
    write(&project, texts.iter().map(|(id, code)| json!({"id": id, "code": code})));
    project.run_ok(&[]);
    let members = project.rows("unique.clusters");
    assert!(members.len() > 100);
    for row in &members {
        let (set, multiset) = similarities(&texts[text(row, "id")], &texts[text(row, "cluster")]);
        assert_eq!(row["jaccard"], set, "{row}");
        assert_eq!(row["multiset_jaccard"], multiset, "{row}");
        assert_eq!(row["kept"], row["id"] == row["cluster"]);
    }
    // `rejects` says the same.
    let told = |row: &Value, of: &str| {
        [&row["id"], &row[of], &row["jaccard"], &row["multiset_jaccard"]].map(Clone::clone)
    };
    let others: Vec<_> = members.iter().filter(|row| row["kept"] == false).collect();
    let rejects = project.rows("unique.rejects");
    assert_eq!(rejects.len(), others.len());
    for (reject, other) in rejects.iter().zip(others) {
        assert_eq!(told(reject, "duplicate_of"), told(other, "cluster"));
    }
}

#[test]
fn what_is_kept_and_set_aside_is_the_table() {
    let (a, b) = (words(0, 25), words(50, 75));
    let (nearly, short) = (words(0, 24), words(0, 10));
    let project = project("");
    let texts = [Some(&a), Some(&b), Some(&nearly), None, Some(&short), Some(&a), Some(&b), None];
    let rows = texts.into_iter().enumerate();
    write(&project, rows.map(|(i, code)| json!({"id": format!("r{i}"), "code": code, "rank": i})));
    let outcome = project.run_ok(&[]);
    let kept = project.rows("unique");
    assert_eq!(ids(&kept), ["r0", "r1", "r3", "r4", "r7"], "{outcome}");
    assert_eq!(kept[1], json!({"id": "r1", "code": b, "rank": 1, "day": null}));
    let rejects = project.rows("unique.rejects");
    assert_eq!(ids(&rejects), ["r2", "r5", "r6"]);
    let first = rejects[0].as_object().unwrap();
    let columns: Vec<&str> = first.keys().map(String::as_str).collect();
    let input = ["id", "code", "rank", "day"];
    let added = ["step", "rule", "reason", "duplicate_of", "jaccard", "multiset_jaccard"];
    assert_eq!(columns, [&input[..], &added].concat());
    assert_eq!((&first["step"], &first["rule"]), (&json!("unique"), &json!("duplicate")));
    assert_eq!((&first["rank"], &first["jaccard"]), (&json!(2), &json!(0.96)));
    let reason = first["reason"].as_str().unwrap();
    says(reason, &["similar to r0", "0.960"]);

    let summary = summary(&project);
    let number = |name: &str| summary[name].as_f64().unwrap();
    assert_eq!(number("rows"), number("kept") + number("duplicates"));
    assert_eq!(number("rows"), number("compared") + number("too_short") + number("nulls"));
    let numbers = ["rows", "duplicates", "clusters", "largest_cluster", "nulls", "too_short"];
    assert_eq!(numbers.map(number), [8.0, 3.0, 2.0, 3.0, 2.0, 1.0]);
    assert_eq!((number("percent"), number("expected_recall")), (37.5, 1.0));
    let sizes = project.rows("unique.clusters");
    assert_eq!(sizes.iter().map(|row| row["size"].as_i64().unwrap()).sum::<i64>(), 13);
}

#[test]
fn a_duplicate_can_be_traced_to_the_row_that_is_kept() {
    let same = words(0, 25);
    let project = ran("", &[("first", &same), ("second", &same)]);
    let trace = project.run(&["trace", "w.yaml", "second"]).exits(0);
    says(&trace.stdout, &["unique", "first"]);
}
