//! `workflows/galeras.yaml` on three small repositories: what is in the five testbeds, that
//! Tables I and II are theirs, and which steps run after a change.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Value, json};

use crate::harness::{Outcome, has, text};
use crate::model_comparisons::same;
use crate::paper::{Shipped, method, paper, sorted};
use crate::repository::{at, day};

/// Steps of the testbeds by the names in the tables.
const TESTBEDS: [(&str, &str); 5] = [
    ("RandomCut", "random_cut"),
    ("WithDocString", "with_docstring"),
    ("FromDocString", "from_docstring"),
    ("CommitGen", "commit_gen"),
    ("SummarizationGen", "summarization_gen"),
];

/// Task, name and type of the testbeds in Table II.
const KINDS: [[&str; 3]; 5] = [
    ["Code completion", "RandomCut", "code ⇒ code"],
    ["Code completion", "WithDocString", "code-text ⇒ code"],
    ["Code completion", "FromDocString", "text ⇒ code"],
    ["Code generation", "CommitGen", "code ⇒ text"],
    ["Summarization", "SummarizationGen", "code ⇒ text"],
];

#[rustfmt::skip]
const FEATURES: [&str; 8] = [
    "n_ast_errors", "ast_levels", "n_ast_nodes", "n_whitespaces", "complexity", "nloc",
    "token_counts", "n_identifiers",
];

fn chars(row: &Value, column: &str) -> usize {
    text(row, column).chars().count()
}

fn ids(rows: &[Value]) -> BTreeSet<String> {
    sorted(rows, "id").into_iter().collect()
}

fn with_status(outcome: &Outcome, status: &str) -> BTreeSet<String> {
    let all = outcome.statuses();
    let words = all.split(' ').filter_map(|word| word.split_once('='));
    words.filter(|(_, s)| *s == status).map(|(step, _)| step.to_owned()).collect()
}

fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (n - 1.0)).sqrt())
}

#[test]
fn both_tables_are_those_of_the_testbeds() {
    let paper = paper();
    let outcome = paper.run_human().exits(0);
    let published = |line: &str| outcome.stdout.lines().any(|l| l.contains(line));
    assert!(published("table_1 (") && published("table_2 ("), "{outcome}");
    assert_eq!(paper.run_human().exits(0).stdout, outcome.stdout, "and so does a rerun");

    // RawData and RawDataDocstring, then the testbeds, each in a row as it is printed.
    let raw =
        [("RawData", "collected/raw_data"), ("RawDataDocstring", "collected/raw_data_docstring")];
    let all: Vec<(&str, &str)> = raw.into_iter().chain(TESTBEDS).collect();
    let table_1 = paper.csv("galeras/table_1.csv");
    let names: Vec<&str> = table_1.iter().map(|row| row["testbed"].as_str()).collect();
    assert_eq!(names, all.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    let numbers = paper.csv("galeras/table_1_numbers.csv");
    assert_eq!(numbers.len(), all.len() * FEATURES.len());
    for (at, (name, step)) in all.iter().enumerate() {
        let (name, rows) = (*name, paper.rows(step));
        assert_eq!(table_1[at]["dedup"], rows.len().to_string(), "{name}");
        for feature in FEATURES {
            let of = |row: &&BTreeMap<String, String>| {
                row["testbed"] == name && row["feature"] == feature
            };
            let told = numbers.iter().find(of).unwrap_or_else(|| panic!("{name} {feature}"));
            assert_eq!(told.keys().collect::<Vec<_>>(), ["feature", "mean", "n", "std", "testbed"]);
            let values: Vec<f64> = rows.iter().map(|row| row[feature].as_f64().unwrap()).collect();
            let (mean, deviation) = mean_and_deviation(&values);
            assert_eq!(told["n"], rows.len().to_string(), "{name} {feature}");
            same(&told["mean"], mean, &format!("mean of {name} {feature}"));
            same(&told["std"], deviation, &format!("deviation of {name} {feature}"));
            let two = |number: f64| format!("{:?}", (number * 100.0).round() / 100.0);
            assert_eq!(table_1[at][feature], format!("{} ± {}", two(mean), two(deviation)));
        }
    }
    let table_2 = paper.csv("galeras/table_2.csv");
    let kind = |row: &BTreeMap<String, String>| ["task", "testbed", "type"].map(|c| row[c].clone());
    assert_eq!(table_2.iter().map(kind).collect::<Vec<_>>(), KINDS);
    let mut found = 0;
    for (name, step) in TESTBEDS {
        let rows = paper.rows(step);
        let told = table_2.iter().find(|row| row["testbed"] == name).unwrap();
        let sampled = paper.rows(&format!("{step}_sample"));
        let duplicates = paper.rows(&format!("{step}.rejects"));
        assert_eq!((sampled.len(), rows.len() + duplicates.len()), (40, 40), "{name}");
        found += duplicates.len();
        assert_eq!(told["sampled"], "40");
        assert_eq!(told["duplicates"], duplicates.len().to_string(), "{name}");
        same(&told["percent"], duplicates.len() as f64 / 0.4, &format!("percent of {name}"));
        assert_eq!(told["size"], rows.len().to_string(), "{name}");
        // The shown tables are those in the files.
        let start = &name[..name.len().min(10)];
        let line = |l: &&str| l.contains(start) && l.contains(&told["size"]);
        assert!(outcome.stdout.lines().any(|l| line(&l)), "{name}\n{}", outcome.stdout);
    }
    assert!(found > 10, "{found} duplicates");
    for (_, file) in TESTBEDS {
        for end in ["", "_duplicates"] {
            let file = format!("galeras/{file}{end}.parquet");
            assert!(paper.project.path(&file).exists(), "{file}");
        }
    }
}

/// The words of code in the paper's pipeline.
fn tokens(code: &str) -> HashMap<&str, usize> {
    let mut counts = HashMap::new();
    for word in code.split(|c: char| !c.is_alphanumeric() && c != '_') {
        if word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            *counts.entry(word).or_insert(0) += 1;
        }
    }
    counts
}

fn similar(a: &HashMap<&str, usize>, b: &HashMap<&str, usize>, threshold: f64) -> bool {
    let of = |counts: &HashMap<&str, usize>, word: &str| counts.get(word).copied().unwrap_or(0);
    let words: BTreeSet<&str> = a.keys().chain(b.keys()).copied().collect();
    let both = words.iter().filter(|w| of(a, w) > 0 && of(b, w) > 0).count();
    let least: usize = words.iter().map(|w| of(a, w).min(of(b, w))).sum();
    let most: usize = words.iter().map(|w| of(a, w).max(of(b, w))).sum();
    both as f64 >= threshold * words.len() as f64 && least as f64 >= 0.7 * most as f64
}

/// The ids that stay if of every cluster the first one does.
fn first_of_clusters(rows: &[Value], threshold: f64) -> BTreeSet<String> {
    let code = "code_no_docstring";
    let counts: Vec<_> = rows.iter().map(|row| tokens(text(row, code))).collect();
    let long = |at: usize| counts[at].values().sum::<usize>() >= 20;
    let mut cluster: Vec<usize> = (0..rows.len()).collect();
    for one in 0..rows.len() {
        for other in 0..one {
            if long(one) && long(other) && similar(&counts[one], &counts[other], threshold) {
                let (from, to) = (cluster[one], cluster[other]);
                cluster.iter_mut().filter(|c| **c == from).for_each(|c| *c = to);
            }
        }
    }
    let mut first: HashMap<usize, String> = HashMap::new();
    for (at, row) in rows.iter().enumerate() {
        let id = text(row, "id").to_owned();
        let best = first.entry(cluster[at]).or_insert_with(|| id.clone());
        *best = id.min(best.clone());
    }
    first.into_values().collect()
}

#[test]
fn every_row_passes_the_filters_of_its_testbed_and_no_two_are_alike() {
    let mut paper = paper();
    paper.run(&[]).exits(0);
    for (name, step) in TESTBEDS {
        let rows = paper.rows(step);
        assert!(rows.len() > 10, "{name}");
        let sampled = paper.rows(&format!("{step}_sample"));
        assert_eq!(ids(&rows), first_of_clusters(&sampled, 0.8), "{name}");
        for row in &rows {
            let number = |column: &str| row[column].as_u64().unwrap() as usize;
            assert!(number("token_counts") > 10 || chars(row, "code") > 100, "{name}: {row}");
            let other = ["stub", "line"].iter().any(|w| text(row, "fun_name").starts_with(w));
            assert!(!other, "{name}: {row}");
            assert!(text(row, "commit_time").starts_with("2022"), "{name}: {row}");
            assert!(number("n_ast_errors") == 0 && number("nloc") > 2, "{name}: {row}");
            if name != "RandomCut" {
                let words = text(row, "docstring").split_whitespace().count();
                assert_eq!(words, number("d_n_words"), "{name}: {row}");
                let long = words > 10 || chars(row, "docstring") > 50;
                assert!(words > 3 && (name == "CommitGen" || long), "{name}: {row}");
            }
            if name == "CommitGen" {
                assert!(row["code_before"].is_string() && row["change"] == "modified", "{row}");
                let words = text(row, "commit_message").split_whitespace().count();
                assert!(words > 10 || chars(row, "commit_message") > 50, "{row}");
            }
        }
    }
    // The same data points, drawn apart.
    assert_ne!(paper.rows("from_docstring_sample"), paper.rows("summarization_gen_sample"));
    // Every method that was changed is in the testbed, or lost by a rule that is named.
    let changed = paper.rows("collected/features").len();
    for (name, step) in TESTBEDS {
        let stages = paper.rows(&format!("{step}_attrition"));
        has(&stages[0], "place rule change", json!([0, "changed_methods", changed]));
        let changes = stages.iter().map(|row| row["change"].as_i64().unwrap());
        assert_eq!(changes.sum::<i64>() as usize, paper.rows(step).len(), "{name}: {stages:?}");
    }
    let mut lost: BTreeMap<String, i64> = BTreeMap::new();
    let rejecting = "collected/changes collected/raw_data verified long_enough with_docstrings \
                     documented docstring_cuts with_docstring_points with_docstring_sample \
                     with_docstring";
    for step in rejecting.split(' ') {
        for row in paper.rows(&format!("{step}.rejects")) {
            let rule = match step {
                "collected/raw_data" => "copies",
                "docstring_cuts" => "cut",
                "with_docstring_sample" => "sample",
                "with_docstring" => "near_duplicates",
                _ => text(&row, "rule"),
            };
            *lost.entry(rule.to_owned()).or_default() -= 1;
        }
    }
    assert!(lost.len() > 5, "{lost:?}");
    let stages = paper.rows("with_docstring_attrition");
    let change = |row: &Value| (text(row, "rule").to_owned(), row["change"].as_i64().unwrap());
    let told: BTreeMap<String, i64> =
        stages[1..].iter().map(change).filter(|(_, change)| *change != 0).collect();
    assert_eq!(told, lost);
    // No filter lets everything through, or nothing.
    for last in ["documented", "commit_gen_points"] {
        let steps = ["verified", "long_enough", "with_docstrings", last];
        let counts = steps.map(|step| paper.rows(step).len());
        assert!(counts.is_sorted_by(|a, b| a > b), "{counts:?} {last}");
    }
    let rejected = paper.rows("verified.rejects");
    let rules: BTreeSet<&str> = rejected.iter().map(|row| text(row, "rule")).collect();
    assert_eq!(rules.into_iter().collect::<Vec<_>>(), ["no_one_line_body", "no_pass_body"]);
    assert_eq!(rejected.len(), 3 * 20 * 2, "a stub and a line of each commit");
    // Published data have methods of one line.
    paper.set("one_line", "true");
    paper.run(&["--select", "verified"]).exits(0);
    let rejected = paper.rows("verified.rejects");
    assert!(rejected.iter().all(|row| row["rule"] == "no_pass_body"), "{rejected:?}");
    assert_eq!(rejected.len(), 3 * 20);
    paper.set("one_line", "false");
    cuts_show_some_of_the_body_and_no_docstring(&paper);
    // Of all rows that a step reads, no two that stay are alike: by tokens that the test counts.
    let kept = paper.rows("collected/raw_data");
    let counts: Vec<_> = kept.iter().map(|row| tokens(text(row, "code"))).collect();
    let long = |at: usize| counts[at].values().sum::<usize>() >= 20;
    for one in 0..kept.len() {
        for other in 0..one {
            let alike = long(one) && long(other) && similar(&counts[one], &counts[other], 0.8);
            assert!(!alike, "{}\n{}", kept[one], kept[other]);
        }
    }
    // Of the versions of a method the last one stays.
    let gone = paper.rows("collected/raw_data.rejects");
    assert!(gone.len() > 100, "{}", gone.len());
    for row in &gone {
        let of = kept.iter().find(|kept| kept["id"] == row["duplicate_of"]).unwrap();
        assert!(text(of, "commit_time") >= text(row, "commit_time"), "{row}");
    }
    // By the tokens of a tokenizer that was trained on them there are no fewer rows than rounds of
    // a method's versions, and the testbeds are drawn as before.
    let words = kept.len();
    paper.set("tokens", "bpe");
    let outcome = paper.run(&[]).exits(0);
    assert_eq!(outcome.status("collected/tokenizer"), "hit");
    assert_eq!(outcome.status("collected/raw_data"), "ran");
    let by_bpe = paper.rows("collected/raw_data").len();
    assert!(by_bpe <= words && by_bpe > 200, "{by_bpe} of {words}");
}

/// The text that is cut is that of `column`, at a place behind what `end` gives.
#[track_caller]
fn cuts_are_right(rows: &[Value], column: &str, end: impl Fn(&Value) -> usize) {
    for row in rows {
        let whole = text(row, column);
        let (head, rest) = (text(row, "random_cut"), text(row, "cut_rest"));
        assert_eq!(format!("{head}{rest}"), whole);
        assert!(head.len() >= end(row), "{head:?}");
        assert_eq!(row["cut_at"].as_u64().unwrap() as usize, head.chars().count());
        assert!(rest.starts_with(' ') || rest.starts_with('\n'), "{rest:?}");
        assert_eq!(head, head.trim_end());
        // Later than 65 % only where there is no other place behind the signature or docstring.
        let share = chars(row, "random_cut") as f64 / chars(row, column) as f64;
        assert!(share <= 0.65 || !head[end(row)..].contains(' '), "{share} {head:?}");
    }
}

#[track_caller]
fn cuts_show_some_of_the_body_and_no_docstring(paper: &Shipped) {
    let after = |row: &Value| {
        let signature = text(row, "signature");
        text(row, "code_no_docstring").find(signature).unwrap() + signature.len()
    };
    for (step, documented) in [("random_cut", false), ("with_docstring", true)] {
        let rows = paper.rows(step);
        cuts_are_right(&rows, "code_no_docstring", after);
        for row in &rows {
            let cut = text(row, "random_cut");
            assert!(cut.starts_with("def ") && !cut.contains("\"\"\""), "{step}: {row}");
            let front = &cut[after(row)..];
            assert!(!front.trim().is_empty(), "{step}: no body in front: {row}");
            assert!(!text(row, "cut_rest").trim().is_empty(), "{step}: nothing behind: {row}");
            // The docstring is for the prompt.
            assert!(!documented || !text(row, "docstring").trim().is_empty(), "{step}: {row}");
        }
        assert!(rows.iter().any(|row| row["docstring"].is_string()), "{step}");
    }
}

/// The steps that ran. SummarizationGen has the data points of FromDocString, so that one of the
/// two takes the other's result: both are left out.
fn ran_apart(outcome: &Outcome) -> Vec<String> {
    let twins = ["from_docstring", "summarization_gen"];
    let ran = with_status(outcome, "ran").into_iter();
    ran.filter(|step| !twins.iter().any(|twin| step.starts_with(twin))).collect()
}

#[test]
fn another_threshold_is_work_for_the_deduplication_only() {
    let mut paper = paper();
    let first = paper.run(&[]).exits(0);
    paper.run(&[]).exits(0).all_hit_as(&first);
    let kept = paper.rows("with_docstring_sample").len();
    let raw = paper.rows("collected/raw_data").len();
    // A copy under another name is not a duplicate any more.
    paper.set("threshold", "0.97");
    let higher = paper.run(&[]).exits(0);
    for step in ["collected/mined", "collected/features", "collected/changes"] {
        assert_eq!(higher.status(step), "hit", "{step}");
    }
    for step in ["collected/raw_data", "random_cut", "with_docstring", "commit_gen"] {
        assert_eq!(higher.status(step), "ran", "{step}");
    }
    assert!(paper.rows("collected/raw_data").len() > raw);
    assert!(paper.rows("with_docstring_sample").len() == kept);
    for step in ["random_cut", "with_docstring", "commit_gen"] {
        let sample = paper.rows(&format!("{step}_sample"));
        assert_eq!(ids(&paper.rows(step)), first_of_clusters(&sample, 0.97), "{step}");
    }
}

#[test]
fn one_more_data_point_keeps_those_before() {
    let mut paper = paper();
    let first = paper.run(&[]).exits(0);
    let samples: Vec<String> = TESTBEDS.iter().map(|(_, step)| format!("{step}_sample")).collect();
    let of = |paper: &Shipped| -> Vec<BTreeSet<String>> {
        samples.iter().map(|step| ids(&paper.rows(step))).collect()
    };
    let before = of(&paper);
    assert!(before.iter().all(|ids| ids.len() == 40));
    paper.set("n", "41");
    let larger = paper.run(&[]).exits(0);
    let apart = ["commit_gen", "random_cut", "with_docstring"];
    let tables = ["duplicates", "features", "table_1", "table_1_numbers", "table_2", "testbeds"];
    let mut expected: Vec<String> = tables.map(str::to_owned).into();
    expected.extend(apart.iter().flat_map(|step| {
        [step.to_string(), format!("{step}_sample"), format!("{step}_attrition")]
    }));
    expected.sort_unstable();
    assert_eq!(ran_apart(&larger), expected);
    for ((small, large), step) in before.iter().zip(of(&paper)).zip(&samples) {
        assert_eq!(large.len(), 41, "{step}");
        assert!(small.is_subset(&large), "{step}");
    }
    // And back: nothing to do, and the same.
    paper.set("n", "40");
    paper.run(&[]).exits(0).all_hit_as(&first);
    // The seed alone decides, and threads do not.
    let alone = paper.run(&["--jobs", "1", "--cache", "one", "--out", "one"]).exits(0);
    assert_eq!(alone.digests(), first.digests());
    let before = ids(&paper.rows("random_cut_sample"));
    paper.set("seed", "43");
    let other = paper.run(&[]).exits(0);
    assert_eq!(with_status(&other, "ran").iter().filter(|s| s.starts_with("collected")).count(), 0);
    assert_ne!(ids(&paper.rows("random_cut_sample")), before);
}

#[test]
fn a_new_commit_is_mined_and_the_rest_stays() {
    let paper = paper();
    paper.run(&[]).exits(0);
    let before = ids(&paper.rows("random_cut_points"));
    let commit = at(day(360)).message("Add another one of them");
    paper.repos[1].commit(commit.write("another.py", method("another_one", 5_000, None, 3)));
    let mined = paper.run(&[]).exits(0).step("collected/mined");
    has(&mined, "status reused_rows", json!(["ran", 2]));
    let after = ids(&paper.rows("random_cut_points"));
    assert!(before.is_subset(&after));
    assert_eq!(after.len(), before.len() + 1);
    let traced = after.difference(&before).next().unwrap();
    paper.trace(traced).exits(0).prints(&["another.py"]);
}
