//! `tokenizer`: the model that is learned, where it goes, and what `dedup` makes of it.
//!
//! `tests/reference/tokenizer.json` holds what Python's tokenizers 0.23.3 learns; the script
//! next to it makes it, and checks that Python loads a model that Galeras wrote.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Outcome, Project, refused_with, says};

const PYTHON: &str = include_str!("../reference/tokenizer.json");

const WORKFLOW: &str = "galeras: 1
steps:
  data:
    op: exec
    with:
      sandbox: none
      command: touch ran; cat data.jsonl
      files: [data.jsonl]
      output: { id: utf8!, code: utf8, size: int64 }
  bpe: { op: tokenizer, from: data, with: { column: code } }
outputs:
  model: { from: bpe, path: out/tokenizer.json, column: model }
";

fn lines<'a>(texts: impl IntoIterator<Item = Option<&'a str>>) -> String {
    let rows = texts.into_iter().enumerate();
    rows.map(|(i, code)| json!({"id": format!("{i:05}"), "code": code}).to_string() + "\n")
        .collect()
}

fn project(with: &str, texts: &[&str]) -> Project {
    Project::new(&WORKFLOW.replace("column: code }", &format!("column: code, {with} }}")))
        .with("data.jsonl", lines(texts.iter().map(|text| Some(*text))))
}

fn methods() -> Vec<String> {
    let name = |i: usize| ["value", "index", "path", "node", "total", "width"][i % 6];
    let method = |i: usize| {
        let (a, b) = (name(i), name(i / 6));
        let rest: String =
            (0..i % 5 + 4).map(|j| format!("    {a}_{j} = self.{b}(x{j}) + {i}\n")).collect();
        format!("def {a}_{b}(self, {a}, {b}):\n{rest}    return {a} + {b}\n")
    };
    (0..400).map(method).collect()
}

fn methods_project(with: &str) -> Project {
    project(with, &methods().iter().map(String::as_str).collect::<Vec<_>>())
}

#[track_caller]
fn row(project: &Project) -> Value {
    project.only("bpe")
}

#[track_caller]
fn model(project: &Project) -> Value {
    serde_json::from_str(row(project)["model"].as_str().unwrap()).unwrap()
}

#[test]
fn what_is_learned_is_what_python_learns() {
    let peer: Value = serde_json::from_str(PYTHON).unwrap();
    let texts: Vec<&str> =
        peer["texts"].as_array().unwrap().iter().map(|t| t.as_str().unwrap()).collect();
    for wanted in peer["models"].as_array().unwrap() {
        let project = project(&format!("vocab_size: {}", wanted["vocab_size"]), &texts).ran();
        let model = model(&project);
        let vocab = model["model"]["vocab"].as_object().unwrap();
        assert_eq!(vocab.len(), wanted["reached"], "{}", wanted["vocab_size"]);
        for (at, byte) in wanted["bytes"].as_str().unwrap().chars().enumerate() {
            assert_eq!(vocab[&byte.to_string()], at, "{byte}");
        }
        for (token, at) in wanted["vocab"].as_object().unwrap() {
            assert_eq!(&vocab[token], at, "{token}");
        }
        assert_eq!(model["model"]["merges"], wanted["merges"]);
        let row = row(&project);
        assert_eq!((&row["vocab_size"], &row["texts"]), (&wanted["reached"], &json!(texts.len())));
        assert_eq!(row["kind"], "byte_bpe");
    }
}

#[test]
fn the_model_is_written_as_it_is() {
    let project = methods_project("vocab_size: 300");
    assert_eq!(project.run_ok(&[]).step("bpe")["rows"], 1);
    let model = row(&project)["model"].as_str().unwrap().to_owned();
    assert_eq!(project.read("out/tokenizer.json"), model);
    let model: Value = serde_json::from_str(&model).unwrap();
    assert_eq!(model["model"]["type"], "BPE");
    assert_eq!(model["added_tokens"], json!([]));
    assert_eq!(model["pre_tokenizer"]["add_prefix_space"], false);
    // It is left alone when it is right, and written again when it is not.
    assert_eq!(project.run_ok(&[]).events("output")[0]["written"], false);
    project.write("out/tokenizer.json", "{}");
    assert_eq!(project.run_ok(&["--overwrite"]).events("output")[0]["written"], true);
    assert_eq!(serde_json::from_str::<Value>(&project.read("out/tokenizer.json")).unwrap(), model);
    // Threads and the order of rows change nothing.
    let project = methods_project("vocab_size: 700");
    let digest = |outcome: &Outcome| outcome.step("bpe")["digest"].as_str().unwrap().to_owned();
    let first = digest(&project.run_ok(&["--jobs", "1"]));
    for jobs in ["2", "4"] {
        let found = digest(&project.run_ok(&["--jobs", jobs, "--cache", jobs, "--overwrite"]));
        assert_eq!(found, first);
    }
    // The same texts under other ids: their order is another one.
    let turned: Vec<String> = methods().into_iter().rev().collect();
    project.write("data.jsonl", lines(turned.iter().map(|text| Some(text.as_str()))));
    let again = project.run_ok(&["--jobs", "2"]);
    assert_eq!(again.statuses(), "data=ran bpe=ran");
    assert_eq!(digest(&again), first);
    // Only the named column counts.
    let project = methods_project("").ran();
    let sized = project.read("data.jsonl").replace("}\n", ",\"size\":3}\n");
    project.write("data.jsonl", sized);
    assert_eq!(project.run_ok(&[]).statuses(), "data=ran bpe=hit");
    // Nulls are left out, and no text gives the bytes.
    for (data, texts) in [(String::new(), 0), (lines([None, None]), 0), (lines([Some("")]), 1)] {
        let project = self::project("", &[]).with("data.jsonl", data);
        project.run_ok(&["--allow-all", "--allow-empty"]);
        let row = row(&project);
        assert_eq!((&row["vocab_size"], &row["texts"]), (&json!(256), &json!(texts)));
    }
    let project =
        self::project("", &[]).with("data.jsonl", lines([Some("ab ab"), None, Some("ab")]));
    project.run_ok(&[]);
    assert_eq!(row(&project)["texts"], 2);
    assert_eq!(self::model(&project)["model"]["merges"], json!([["a", "b"]]));
}

/// The arguments have one mistake, at the mark `«`.
#[track_caller]
fn wrong(with: &str, code: &str, words: &[&str]) -> Outcome {
    let workflow = WORKFLOW.replace("{ column: code }", with);
    refused_with(&[("data.jsonl", "")], &workflow, code, words)
}

#[test]
fn sizes_of_vocabularies_columns_and_kinds_that_there_are_not() {
    for (size, said) in [("255", "256"), ("0", "256"), ("-1", "vocab_size"), ("1000001", "1000000")]
    {
        let with = format!("{{ column: code, vocab_size: «{size} }}");
        says(&wrong(&with, "wrong-value", &[]).stdout.replace(',', ""), &[said]);
    }
    for size in ["256", "257", "1000000"] {
        let project = project(&format!("vocab_size: {size}"), &["ab ab", "ab"]).ran();
        let reached = row(&project)["vocab_size"].as_u64().unwrap();
        assert_eq!(reached, if size == "256" { 256 } else { 257 });
    }
    for (with, code, said) in [
        ("{ column: «cod }", "unknown-column", "did you mean `code`?"),
        ("{ column: «size }", "wrong-type", "int64"),
        ("{ column: code, kind: «unigram }", "wrong-value", "byte_bpe"),
        ("{ column: code, «vocab: 300 }", "unknown-argument", "vocab_size"),
    ] {
        wrong(with, code, &[said]);
    }
}

/// `methods_project` with `unique`, a `dedup` by the tokens of `bpe`.
fn deduplicating() -> Project {
    let project = methods_project("vocab_size: 300");
    let steps = "  unique:
    op: dedup
    from: { input: data, tokenizer: bpe }
    with: { column: code, tokens: bpe, threshold: 0.7 }
outputs:
";
    project.change("outputs:\n", steps);
    project
}

/// The step by its port, and by the file that is written from it.
const BY_FILE: [(&str, &str); 2] = [
    ("from: { input: data, tokenizer: bpe }", "from: data"),
    ("tokens: bpe,", "tokens: bpe, tokenizer_file: given.json,"),
];

fn digests(outcome: &Outcome) -> Vec<(String, String)> {
    let of = |(step, port, digest)| (step == "unique").then_some((port, digest));
    outcome.digests().into_iter().filter_map(of).collect()
}

#[test]
fn a_tokenizer_from_a_step_and_from_a_file_give_the_same() {
    let project = deduplicating();
    let by_port = project.run_ok(&[]);
    let summary = &project.rows("unique.summary")[0];
    assert!(summary["duplicates"].as_u64().unwrap() > 20, "{summary}");
    project.write("given.json", project.read("out/tokenizer.json"));
    for (port, file) in BY_FILE {
        project.change(port, file);
    }
    let by_file = project.run_ok(&[]);
    assert_eq!(by_file.status("unique"), "ran");
    assert_eq!(digests(&by_file), digests(&by_port));
    assert_eq!(digests(&by_file).len(), 4);

    // Its content counts, and not its place.
    project.write("models/other.json", project.read("given.json"));
    project.rerun("given.json", "models/other.json").all_hit();
    let other = project.read("given.json").replacen("\"type\": \"BPE\"", "\"type\":  \"BPE\"", 1);
    assert_ne!(other, project.read("given.json"));
    project.write("models/other.json", other);
    let changed = project.run_ok(&[]);
    assert_eq!(changed.statuses(), "data=hit bpe=hit unique=ran");
    assert_eq!(digests(&changed), digests(&by_port));
}

#[test]
fn another_vocabulary_reruns_dedup() {
    let project = deduplicating();
    project.run_ok(&[]);
    project.change("vocab_size: 300", "vocab_size: 301");
    assert_eq!(project.run_ok(&[]).statuses(), "data=hit bpe=ran unique=ran");
    // More than there is to learn, and still more: the same model.
    project.rerun("vocab_size: 301", "vocab_size: 50000");
    project.change("vocab_size: 50000", "vocab_size: 60000");
    assert_eq!(project.run_ok(&[]).statuses(), "data=hit bpe=ran unique=hit");
    // Words of a quarter of a megabyte are learned and compared.
    let project = deduplicating();
    // Data in one line: of one letter, and of all of them.
    let letters: String =
        (0..1_u64 << 18).map(|n| char::from(b'a' + (n * n % 8_191 % 26) as u8)).collect();
    let texts = ["x".repeat(1 << 18), letters.clone(), letters];
    project.write("data.jsonl", lines(texts.iter().map(|text| Some(text.as_str()))));
    let outcome = project.run_ok(&[]);
    assert!(outcome.took < Duration::from_secs(60), "{:?}", outcome.took);
    assert_eq!(row(&project)["vocab_size"], 300);
    assert_eq!(project.rows("unique").len(), 2);
}
