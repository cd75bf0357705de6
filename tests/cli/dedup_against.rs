//! `dedup` with an input `against`: rows near to other tables, their ports, and refusals.

use serde_json::{Value, json};

use crate::dedup::{kept, words};
use crate::dedup_reuse::digests_of_unique;
use crate::harness::{Project, has, lines, refused_with, says, text, values};

const READ: &str = "galeras: 1
steps:
  data:
    op: exec
    with:
      command: cat data.jsonl
      files: [data.jsonl]
      output: { id: utf8!, code: utf8, before: utf8, rank: int64 }
  corpus: { op: read, with: { path: corpus.jsonl, key: [task] } }
";

fn workflow(from: &str, with: &str) -> String {
    format!("{READ}  unique:\n    op: dedup\n    from: {from}\n    with: {with}\n")
}

fn tables(workflow: &str, data: &[Value], corpus: &[Value]) -> Project {
    Project::new(workflow).with("data.jsonl", lines(data)).with("corpus.jsonl", lines(corpus))
}

fn project(with: &str, data: &[Value], corpus: &[Value]) -> Project {
    let with = format!("{{ column: code, against_column: text, against_id: task, {with} }}");
    tables(&workflow("{ input: data, against: corpus }", &with), data, corpus)
}

fn row(id: &str, code: &str) -> Value {
    json!({"id": id, "code": code})
}

fn task(id: Value, code: &str) -> Value {
    json!({"task": id, "text": code, "set": format!("set of {id}"), "unread": 1})
}

/// `id | near_to` of the rows near to `against`.
fn near(project: &Project) -> Vec<String> {
    let rows = project.cells("unique.rejects", "rule id near_to");
    rows.iter().filter_map(|row| row.strip_prefix("near | ")).map(str::to_owned).collect()
}

#[test]
fn rows_near_to_another_table_are_set_aside_with_what_they_are_near_to() {
    let file = format!("{} {} {}", words(500, 900), words(0, 25), words(900, 1200));
    let data = [
        row("a-similar", &words(100, 125)),
        row("b-contained", &words(0, 25)),
        row("c-other", &words(2000, 2025)),
        row("d-same-as-c", &words(2000, 2025)),
        row("e-short", &words(0, 10)),
        json!({"id": "f-null", "code": null}),
    ];
    let corpus = [
        task(json!("T/1"), &words(101, 125)),
        task(json!("T/2"), &file),
        task(json!("T/3"), &words(0, 10)),
        json!({"task": "T/4", "text": null, "set": null}),
    ];
    let project = project("against_source: set", &data, &corpus).ran();
    assert_eq!(kept(&project), ["c-other", "e-short", "f-null"]);
    assert_eq!(near(&project), ["a-similar | T/1", "b-contained | T/2"]);
    let rejects = project.rows("unique.rejects");
    let columns: Vec<&str> = rejects[0].as_object().unwrap().keys().map(String::as_str).collect();
    let wanted = "id code before rank step rule reason duplicate_of near_to near_to_source jaccard \
                  multiset_jaccard containment_8 containment_13";
    assert_eq!(columns.join(" "), wanted);
    let [similar, contained, duplicate] = rejects.as_slice() else { panic!("{rejects:?}") };
    let similarities = "jaccard containment_8 containment_13";
    has(similar, similarities, json!([0.96, 17.0 / 18.0, 12.0 / 13.0]));
    has(contained, similarities, json!([25.0 / 725.0, 1.0, 1.0]));
    let seen = values(similar, "near_to_source duplicate_of");
    assert_eq!(seen, json!(["set of \"T/1\"", null]));
    assert!(text(similar, "reason").starts_with("similar to T/1 of set of"), "{similar}");
    says(text(contained, "reason"), &["contained in T/2", "1.000 of its 8-grams"]);
    let columns = "rule duplicate_of near_to near_to_source containment_8 containment_13";
    has(duplicate, columns, json!(["duplicate", "c-other", null, null, null, null]));
    assert_eq!(project.texts("unique.clusters", "id"), ["c-other", "d-same-as-c"]);
    let summary = project.only("unique.summary");
    let number = |name: &str| summary[name].as_f64().unwrap();
    let names =
        ["rows", "duplicates", "near", "near_similar", "kept", "compared", "too_short", "nulls"];
    assert_eq!(names.map(number), [6.0, 1.0, 2.0, 1.0, 3.0, 4.0, 1.0, 1.0]);
    let names = ["against_rows", "against_compared", "against_too_short", "against_nulls"];
    assert_eq!(names.map(number), [4.0, 2.0, 1.0, 1.0]);
    assert_eq!(number("near_percent"), 100.0 * 2.0 / 6.0);
    project.run(&["trace", "w.yaml", "b-contained"]).exits(0).prints(&["T/2"]);
}

#[test]
fn rows_of_the_other_table_are_in_no_cluster_and_the_rest_is_as_if_near_rows_had_not_been_there() {
    // `b` joins `a` and `c`, and is near to the corpus; without it they are not similar.
    let data = [row("a", &words(0, 22)), row("b", &words(2, 24)), row("c", &words(4, 26))];
    let alone = project("", &data, &[task(json!("t"), &words(900, 930))]).ran();
    assert_eq!(kept(&alone), ["a"]);
    let project = project("", &data, &[task(json!("t"), &words(2, 24))]);
    // By `containment_8` alone, `a` and `c` have 13 of 15 8-grams of it.
    let with = "against_id: task, containment_8: 0, against_threshold: 0.99,";
    project.rerun("against_id: task,", with);
    assert_eq!(near(&project), ["b | t"]);
    assert_eq!(kept(&project), ["a", "c"]);
    assert_eq!(project.rows("unique.clusters"), [] as [Value; 0]);
}

#[test]
fn the_nearest_row_is_named_and_thresholds_hold_for_what_they_name() {
    let data = [row("x", &words(0, 40))];
    let corpus = [
        task(json!(30), &words(0, 39)),
        task(json!(10), &words(0, 38)),
        task(json!(20), &words(0, 39)),
        task(json!(5), &format!("{} {}", words(0, 40), words(100, 1000))),
    ];
    // Ids may be numbers; they are compared as texts.
    assert_eq!(near(&project("", &data, &corpus).ran()), ["x | 20"]);
    let data = [row("x", &words(0, 40))];
    // 20 of 40 words, 13 of 33 8-grams, 8 of 28 13-grams.
    let half = [task(json!("half"), &format!("{} {}", words(0, 20), words(100, 120)))];
    let one = [task(json!("one"), &format!("{} {}", words(0, 13), words(100, 160)))];
    for (with, corpus, found) in [
        ("", &half, false),
        ("against_threshold: 0.33, against_multiset_threshold: 0", &half, true),
        ("against_threshold: 0.34, against_multiset_threshold: 0", &half, false),
        ("threshold: 0.33, multiset_threshold: 0.33", &half, true),
        ("threshold: 0.33, against_multiset_threshold: 0.34", &half, false),
        ("containment_8: 0.39", &half, true),
        ("containment_8: 0.4", &half, false),
        ("containment_13: 0.28", &half, true),
        ("containment_13: 0.29", &half, false),
        // A single 13-gram, as of GPT-3.
        ("containment_13: 0.000001", &one, true),
        ("min_tokens: 41, containment_13: 0.000001", &one, false),
        ("containment_8: 0, containment_13: 0", &one, false),
    ] {
        assert_eq!(!near(&project(with, &data, corpus).ran()).is_empty(), found, "{with}");
    }
}

#[test]
fn a_row_may_be_compared_with_all_with_others_or_with_itself() {
    let (a, b) = (words(0, 30), words(100, 130));
    let data = [
        json!({"id": "changed", "code": a, "before": words(200, 230)}),
        json!({"id": "moved", "code": words(300, 330), "before": a}),
        json!({"id": "same", "code": b, "before": b}),
    ];
    for (ids, wanted) in [
        ("any", &["changed | moved", "same | same"][..]),
        ("other", &["changed | moved"]),
        ("same", &["same | same"]),
    ] {
        let with = format!("{{ column: code, against_column: before, against_ids: {ids} }}");
        let workflow = workflow("{ input: data, against: data }", &with);
        let project = tables(&workflow, &data, &[task(json!(1), "x")]).ran();
        assert_eq!(near(&project), wanted, "{ids}");
    }
}

#[test]
fn only_columns_that_are_named_make_it_run_again() {
    let data = [row("x", &words(0, 40))];
    let corpus = task(json!("t"), &words(0, 40));
    let project = project("", &data, std::slice::from_ref(&corpus)).ran();
    let mut other = corpus.clone();
    (other["unread"], other["set"]) = (json!(2), json!("another"));
    for (task, wanted) in [(other, "hit"), (task(json!("u"), &words(0, 40)), "ran")] {
        project.write("corpus.jsonl", lines(&[task]));
        assert_eq!(project.run_ok(&[]).status("unique"), wanted);
    }
    assert_eq!(near(&project), ["x | u"]);
    // Defaults that are written out are defaults.
    let with = "against_id: task, containment_8: 0.7, against_ids: any,";
    assert_eq!(project.rerun("against_id: task,", with).status("unique"), "hit");
}

#[track_caller]
fn wrong(text: &str, code: &str, words: &[&str]) {
    let (data, corpus) = (lines(&[row("x", "x")]), lines(&[task(json!("t"), "x")]));
    refused_with(&[("data.jsonl", &data), ("corpus.jsonl", &corpus)], text, code, words);
}

#[test]
fn arguments_that_do_not_fit_are_refused() {
    let both = "{ input: data, against: corpus }";
    let fit = "against_column: text, against_id: task";
    for (argument, value) in [
        ("against_column", "text"),
        ("against_id", "task"),
        ("against_source", "set"),
        ("against_ids", "same"),
        ("against_threshold", "0.5"),
        ("against_multiset_threshold", "0.5"),
        ("containment_8", "0.5"),
        ("containment_13", "0.5"),
    ] {
        let with = format!("{{ column: code, {argument}: «{value} }}");
        let needs = format!("`{argument}` needs the input `against`");
        wrong(&workflow("data", &with), "conflicting-arguments", &[&needs, "from: {"]);
    }
    let above = "`against_threshold` must be above 0";
    for (with, code, words) in [
        ("against_column: «txt, against_id: task", "unknown-column", &["txt", "text"][..]),
        ("against_column: «unread, against_id: task", "wrong-type", &["int64", "text is needed"]),
        (&format!("{fit}, against_source: «sett"), "unknown-column", &["set"]),
        (&format!("{fit}, against_threshold: «0"), "out-of-range", &[above]),
        (&format!("{fit}, against_ids: «mine"), "wrong-value", &["other"]),
    ] {
        wrong(&workflow(both, &format!("{{ column: code, {with} }}")), code, words);
    }
    let from = "{ input: data, «against: corpus }";
    let help = "name another column in `against_column`";
    let with = "{ column: code, against_id: task }";
    wrong(&workflow(from, with), "unknown-column", &["no column `code`", help]);
    let unknown = workflow("{ input: data, «agains: corpus }", "{ column: code }");
    wrong(&unknown, "wrong-inputs", &["no input `agains`", "against"]);
    // A row without a name is an error.
    let corpus = [json!({"task": "t", "text": words(0, 30), "set": null})];
    let project = project("", &[row("x", &words(0, 30))], &corpus);
    project.change("against_id: task", "against_id: set");
    project.fails("unique", &["`set`", "against_id"]);
}

#[test]
fn empty_tables_are_near_to_nothing_and_several_go_through_a_union() {
    for (data, corpus) in [
        (vec![], vec![task(json!("t"), &words(0, 30))]),
        (vec![row("x", &words(0, 30))], vec![]),
        (vec![], vec![]),
    ] {
        let project = project("", &data, &corpus);
        // A file without rows has no columns; an `exec` declares them.
        let columns = "{ task: utf8!, text: utf8, set: utf8, unread: int64 }";
        let exec = format!("command: cat corpus.jsonl, files: [corpus.jsonl], output: {columns}");
        project
            .rerun("op: read, with: { path: corpus.jsonl", &format!("op: exec, with: {{ {exec}"));
        let summary =
            values(&project.only("unique.summary"), "near near_percent rows against_rows");
        assert_eq!(summary, json!([0, 0.0, data.len(), corpus.len()]));
        assert_eq!(kept(&project).len(), data.len());
    }
    let (a, b) = (words(0, 30), words(100, 130));
    let more = "  train: { op: sql, from: corpus, with: { query: 'SELECT * FROM input WHERE task < 2', key: [task] } }
  test: { op: sql, from: corpus, with: { query: 'SELECT * FROM input WHERE task >= 2', key: [task] } }
  both: { op: union, from: { train: train, test: test }, with: { label: split } }
";
    let yaml = workflow(
        "{ input: data, against: both }",
        "{ column: code, against_column: text, against_id: task, against_source: split }",
    );
    let data = [row("a", &a), row("b", &b)];
    let corpus = [task(json!(1), &a), task(json!(2), &a), task(json!(3), &b)];
    let project = tables(&(yaml + more), &data, &corpus).ran();
    let found = project.cells("unique.rejects", "id near_to near_to_source");
    assert_eq!(found, ["a | 1 | train", "b | 3 | test"]);
}

#[test]
fn nothing_but_the_rows_counts() {
    // Pieces of one text, some in both tables, in another order and with changes.
    let piece = |n: usize| match n % 5 {
        0 => words(n, n + 30),
        1 => words(n - 1, n + 30),
        2 => format!("{} {}", words(n - 2, n + 28), words(5000 + n, 5003 + n)),
        3 => format!("{} {}", words(9000, 9200), words(n, n + 25)),
        _ => words(7000 + n, 7020 + n),
    };
    let data: Vec<Value> =
        (0..600).map(|n| row(&format!("r{:03}", n * 7 % 600), &piece(n))).collect();
    let corpus: Vec<Value> = (0..900).map(|n| task(json!(n), &piece(n * 3))).collect();
    let digests = |data: &[Value], corpus: &[Value], flags: &[&str]| {
        let project = project("against_source: set", data, corpus);
        let outcome = project.run_ok(flags);
        assert!(near(&project).len() > 100 && kept(&project).len() > 10);
        digests_of_unique(&outcome)
    };
    let first = digests(&data, &corpus, &["--jobs", "2"]);
    let turned: Vec<Value> = corpus.iter().rev().cloned().collect();
    let others: Vec<Value> = data.iter().rev().cloned().collect();
    for flags in [&["--jobs", "1"][..], &["--jobs", "4"], &["--memory", "1MiB"]] {
        assert_eq!(digests(&others, &turned, flags), first, "{flags:?}");
    }
}
