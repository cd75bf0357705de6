//! `dedup` and input that it has to refuse, or to bear: a clear error or the right answer, in
//! bounded time.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Project, has, hides, lines, refused_with, says};

/// A release build takes a few seconds for the largest of these tables.
const BOUND: Duration = Duration::from_secs(30);

const HEAD: &str = "galeras: 1
steps:
  data:
    op: exec
    with:
      sandbox: none
      command: touch ran; cat data.jsonl
      files: [data.jsonl]
      output: { id: utf8!, code: utf8, size: int64, path: utf8, more: 'list<int64>' }
";

fn workflow(from: &str, with: &str) -> String {
    format!("{HEAD}  unique:\n    op: dedup\n    from: {from}\n    with: {with}\n")
}

fn texts<'a>(texts: impl IntoIterator<Item = Option<&'a str>>) -> String {
    let row = |(i, code): (usize, Option<&str>)| json!({"id": format!("{i:06}"), "code": code});
    lines(&texts.into_iter().enumerate().map(row).collect::<Vec<_>>())
}

/// 25 words that other numbers do not have.
fn words(number: usize) -> String {
    (0..25).map(|i| format!("w{number}_{i} ")).collect()
}

#[track_caller]
fn refused(workflow: &str, code: &str, said: &[&str]) {
    refused_with(&[("data.jsonl", &texts([None]))], workflow, code, said);
}

#[track_caller]
fn refused_anywhere(workflow: &str, words: &[&str]) {
    let project = Project::new(workflow).with("data.jsonl", "").with("t.json", "{}");
    let outcome = project.run_json(&[]).exits(2);
    assert_eq!(outcome.diagnostics().len(), 1, "{outcome}");
    outcome.prints(words);
}

#[track_caller]
fn wrong(with: &str, code: &str, said: &[&str]) {
    refused(&workflow("data", &format!("{{ column: code, {with} }}")), code, said);
}

/// The run over the lines, which has to be a success within the bound, and its summary.
#[track_caller]
fn summary(with: &str, data: &str) -> (Project, Value) {
    let project = Project::new(&workflow("data", &format!("{{ column: code, {with} }}")));
    project.write("data.jsonl", data);
    let outcome = project.run_ok(&[]);
    assert!(outcome.took < BOUND, "{:?}", outcome.took);
    let row = project.only("unique.summary");
    let number = |name: &str| row[name].as_i64().unwrap();
    assert_eq!(number("rows"), number("kept") + number("duplicates"), "{row}");
    assert_eq!(number("rows"), number("compared") + number("too_short") + number("nulls"), "{row}");
    assert_eq!(outcome.step("unique")["rows"], row["kept"]);
    (project, row)
}

#[test]
fn no_rows_at_all_and_nulls_among_others() {
    for method in ["exact", "minhash"] {
        let (project, summary) = summary(&format!("method: {method}"), "");
        let names = "rows kept duplicates clusters largest_cluster percent";
        has(&summary, names, json!([0, 0, 0, 0, 0, 0.0]));
        for port in ["unique", "unique.rejects", "unique.clusters"] {
            assert_eq!(project.rows(port), [] as [Value; 0], "{port}");
        }
    }
    let code = words(0);
    let (_, nothing) = summary("min_tokens: 0", &texts([None; 40]));
    has(&nothing, "rows kept nulls compared", json!([40, 40, 40, 0]));
    let (project, summary) = summary("", &texts([None, Some(&*code), None, Some(&*code), None]));
    has(&summary, "nulls compared duplicates", json!([3, 2, 1]));
    assert_eq!(project.texts("unique", "id"), ["000000", "000001", "000002", "000004"]);
    assert_eq!(project.texts("unique.rejects", "id"), ["000003"]);
}

#[test]
fn texts_without_a_word_and_of_ten_megabytes() {
    let empty = ["", " ", "\n\t", "1 + 2", "\u{0}", "é", "\u{feff}"].map(Some);
    for min_tokens in [0, 1] {
        let with = format!("min_tokens: {min_tokens}, multiset_threshold: 0");
        let (_, summary) = summary(&with, &texts(empty.into_iter().cycle().take(70)));
        has(&summary, "kept duplicates too_short", json!([70, 0, 70]));
    }
    let (_, one) = summary("min_tokens: 0", &texts(["x", "(x)", "y", ""].map(Some)));
    has(&one, "compared duplicates too_short", json!([3, 1, 1]));
    let long: String = (0..1_100_000).map(|i| format!("w{i:07} ")).collect();
    assert!(long.len() > 9_000_000);
    let one_word = "x".repeat(10_000_000);
    let small = words(0);
    let all = [&*long, &small, &long, &one_word, &small].map(Some);
    let (project, summary) = summary("", &texts(all));
    has(&summary, "compared too_short duplicates", json!([4, 1, 2]));
    let pairs = project.cells("unique.rejects", "id duplicate_of");
    assert_eq!(pairs, ["000002 | 000000", "000004 | 000001"]);
}

#[test]
fn more_words_than_the_memory_holds_are_an_error_that_says_so() {
    let long: String = (0..200_000).map(|i| format!("w{i:07} ")).collect();
    let project = Project::new(&workflow("data", "{ column: code }"));
    project.write("data.jsonl", texts([Some(long.as_str()), Some(&long)]));
    let outcome = project.run_json(&["--memory", "1MiB"]).exits(1);
    says(&outcome.detail("unique"), &["vocabulary", "--memory"]);
    project.run_ok(&["--memory", "64MiB"]);
}

#[test]
fn thresholds_out_of_bounds_and_the_largest_and_smallest() {
    wrong("threshold: «0", "out-of-range", &["above 0", "every row would be a duplicate"]);
    wrong("threshold: «0.0", "out-of-range", &["above 0"]);
    for (name, value) in [
        ("threshold", "-1"),
        ("threshold", "2"),
        ("threshold", "1.0000001"),
        ("multiset_threshold", "-0.1"),
        ("multiset_threshold", "1.5"),
        ("min_tokens", "-1"),
    ] {
        wrong(&format!("{name}: «{value}"), "wrong-value", &[name]);
    }
    wrong("min_tokens: «1.5", "wrong-type", &["min_tokens"]);
    for word in ["NaN", "nan", "'0.8'", "high", "[0.8]", "80%"] {
        wrong(&format!("threshold: «{word}"), "wrong-type", &["threshold"]);
    }
    for word in [".nan", ".inf", "-.inf", "1e999"] {
        let with = format!("{{ column: code, threshold: {word} }}");
        let project = Project::new(&workflow("data", &with)).with("data.jsonl", "");
        let outcome = project.run_json(&[]).exits(2);
        assert_eq!(outcome.diagnostics(), ["wrong-value w.yaml:13:38"], "{word}: {outcome}");
        assert!(outcome.stdout.contains("not a finite number"), "{word}: {outcome}");
    }
    let code = words(0);
    let (nearly, twice) = (format!("{code} more"), format!("{code}{code}"));
    let data = texts([&*code, &code, &nearly, &twice].map(Some));
    for (with, duplicates) in [
        ("threshold: 1, multiset_threshold: 1", 1),
        ("threshold: 1, multiset_threshold: 0", 2),
        ("threshold: 0.8, multiset_threshold: 0", 3),
        ("threshold: 0.000001, multiset_threshold: 0", 3),
        ("threshold: 0.000001, multiset_threshold: 0, method: minhash", 3),
    ] {
        let (_, summary) = summary(with, &data);
        assert_eq!(summary["duplicates"], duplicates, "{with}");
    }
}

#[test]
fn columns_that_do_not_fit_and_tables_that_are_not_keyed_by_an_id() {
    let step = |with: &str| workflow("data", with);
    refused(&step("{ column: «cod }"), "unknown-column", &["`cod`", "did you mean `code`?"]);
    refused(&step("{ column: «size }"), "wrong-type", &["`size` has type int64", "text"]);
    refused(&step("{ column: «more }"), "wrong-type", &["`more`", "text"]);
    wrong("order_by: [path, «sise]", "unknown-column", &["`sise`", "did you mean `size`?"]);
    wrong("order_by: [«more]", "wrong-type", &["`more`"]);
    wrong("order_by: «path", "wrong-type", &["order_by"]);
    refused_anywhere(&step("{ threshold: 0.8 }"), &["missing-argument", "column"]);
    wrong("«treshold: 0.8", "unknown-argument", &["did you mean `threshold`?"]);
    wrong("tokens: «words", "wrong-value", &["did you mean `word`?"]);
    wrong("method: «lsh", "wrong-value", &["exact", "minhash"]);
    query_refused("SELECT code, path FROM input", "path", &["`id`"]);
    query_refused("SELECT code, path, id FROM input", "path", &["key is `id`", "path"]);
    query_refused("SELECT code, path, id FROM input", "path, id", &["key is `id`", "path, id"]);
    query_refused("SELECT code, size AS id FROM input", "id", &["`id` has type int64"]);
    after_a_query("SELECT id, code FROM input", "id").run_ok(&[]);
}

/// The steps `data`, `other` (a query over it) and `unique` (of that).
fn after_a_query(query: &str, key: &str) -> Project {
    let other = format!(
        "  other:\n    op: sql\n    from: data\n    with: {{ query: '{query}', key: [{key}] }}\n  unique:"
    );
    let workflow = workflow("other", "{ column: code }").replace("  unique:", &other);
    Project::new(&workflow).with("data.jsonl", texts([None]))
}

#[track_caller]
fn query_refused(query: &str, key: &str, said: &[&str]) {
    let project = after_a_query(query, key);
    let outcome = project.run_json(&[]).exits(2);
    let found = outcome.events("diagnostic");
    assert_eq!(found.len(), 1, "{outcome}");
    // The step as a whole, in line 14.
    assert!(found[0]["line"].as_u64().unwrap() >= 14, "{outcome}");
    says(&found[0].to_string(), said);
    assert!(!project.path("ran").exists() && project.stored_nothing());
}

/// `unique` by the tokens of a tokenizer; `bpe` is one.
fn with_tokenizer(from: &str, with: &str) -> String {
    let bpe = "  bpe: { op: tokenizer, from: data, with: { column: code } }\n";
    workflow(from, &format!("{{ column: code, {with} }}")) + bpe
}

#[test]
fn tokenizers_that_are_missing_or_too_many_or_none() {
    let both = "{ input: data, tokenizer: bpe }";
    let one_too_few = with_tokenizer("data", "tokens: «bpe");
    let words = ["`tokens: bpe` needs a tokenizer", "tokenizer_file"];
    refused(&one_too_few, "missing-argument", &words);
    let dropping = with_tokenizer(both, "tokens: bpe, keywords: «drop");
    refused(&dropping, "conflicting-arguments", &["`keywords: drop` goes with `tokens: word`"]);
    for (from, with, said) in [
        (both, "tokens: bpe, tokenizer_file: t.json", "not both"),
        (both, "threshold: 0.8", "`tokens: word` needs no tokenizer"),
        (both, "tokens: word, tokenizer_file: t.json", "`tokens: word` needs no tokenizer"),
        ("data", "tokenizer_file: t.json", "`tokens: word` needs no tokenizer"),
    ] {
        refused_anywhere(&with_tokenizer(from, with), &["conflicting-arguments", said]);
    }
    let missing = with_tokenizer("data", "tokens: bpe, tokenizer_file: «t.json");
    refused(&missing, "missing-file", &["t.json"]);
    let project = Project::new(&missing.replace('«', "")).with("data.jsonl", texts([Some("x")]));
    let run = |content: &[u8]| {
        project.write("t.json", content);
        let outcome = project.run(&["run", "w.yaml"]);
        assert!(matches!(outcome.code, Some(1 | 2)), "{content:?}: {outcome}");
        hides(&outcome.stderr, &["panicked"]);
        outcome.reports(&["t.json"])
    };
    for content in ["", "{}", "[]", "no JSON", "{\"model\":{\"type\":\"BPE\"}}", "\u{0}"] {
        run(content.as_bytes()).reports(&["tokenizer"]);
    }
    run(&[0xff, 0xfe, 0x00]);
}

#[test]
fn inputs_that_dedup_does_not_have_and_a_table_of_two_models() {
    let with = "tokens: bpe";
    let misspelt = with_tokenizer("{ input: data, «tokeniser: bpe }", with);
    refused(&misspelt, "wrong-inputs", &["no input `tokeniser`", "`input`", "tokenizer"]);
    let unnamed = with_tokenizer("{ «tokenizer: bpe }", with);
    refused(&unnamed, "wrong-inputs", &["needs an input called `input`"]);
    let no_model = with_tokenizer("{ input: data, tokenizer: data }", with);
    let words = ["has no text column `model`", "give it the result of a `tokenizer` step"];
    let none = workflow("data", "{ column: code }").replace("    from: data\n", "");
    for (workflow, words) in [(no_model, &words[..]), (none, &["wrong-inputs"])] {
        let project = Project::new(&workflow).with("data.jsonl", "");
        project.run_json(&[]).exits(2).prints(words);
    }
    let project = Project::new(&with_tokenizer("{ input: data, tokenizer: two }", "tokens: bpe"));
    let query = "SELECT id, code AS model FROM input";
    project.append(&format!("  two: {{ op: sql, from: data, with: {{ query: '{query}' }} }}\n"));
    project.write("data.jsonl", texts([Some("x"), Some("y")]));
    let outcome = project.run_json(&["--keep-going"]).exits(1);
    says(&outcome.detail("unique"), &["one row with a `model`"]);
}
