//! `workflows/collect.yaml` on local repositories, and the checks of commits that it uses.

use serde_json::Value;

use crate::harness::{Project, flat, says, text};
use crate::repository::{Repository, at, day};

const COLLECT: &str = include_str!("../../workflows/collect.yaml");

fn method(name: &str, docstring: &str, number: i64) -> String {
    format!("def {name}(a):\n    \"\"\"{docstring}\"\"\"\n    return a + {number}\n")
}

/// One repository: five data points, one of them with a syntax error, and one commit for each rule
/// that sets some aside.
fn history(project: &Project, name: &str) -> Repository {
    let repo = Repository::bare(project.path(name));
    let long = "Adds a number to another.";
    let (one, two) = (|number| method("one", long, number), method("two", "Adds.", 2));
    let bad = "def bad(a):\n    x = = 1\n    return a\n".to_owned();
    for (on, message, file, content) in [
        (1, "Add the first module", "m.py", one(1) + "\n\n" + &two),
        (2, "Change what it adds", "m.py", one(9) + "\n\n" + &two),
        // Moved, and nothing else.
        (3, "Put the second one first", "m.py", two + "\n\n" + &one(9)),
        (4, "wip", "m.py", method("two", "Adds.", 3)),
        (5, "Break it for once", "n.py", bad),
        (6, "Write a longer docstring", "m.py", method("two", long, 3)),
        (-40, "Long before the window", "old.py", method("old", long, 1)),
    ] {
        repo.commit(at(day(on)).message(message).write(file, content));
    }
    repo
}

#[test]
fn the_shipped_workflow_collects_from_local_repositories() {
    let workflow = COLLECT.replacen("default: \"\"", "default: \"./a,./b\"", 1);
    let every = "    type: bool\n    default: false\n    help: only commits whose message";
    assert!(workflow.contains(every));
    let project = Project::new(&workflow.replace(every, &every.replace("false", "true")));
    history(&project, "a");
    history(&project, "b");
    let first = project.run_ok(&[]);
    let rules = project.cells("changes.rejects", "repo rule");
    for repo in ["a", "b"] {
        for rule in ["method_changed", "message_meaningful"] {
            assert!(rules.contains(&format!("{repo} | {rule}")), "{repo} {rule}: {rules:?}");
        }
    }
    let kept = project.rows("raw_data");
    let of = |repo: &str| {
        ["2 | one", "2 | two", "3 | bad", "3 | one", "3 | two"].map(|m| format!("{repo} | {m}"))
    };
    let methods = project.cells("raw_data", "repo changed_lines fun_name");
    assert_eq!(methods, [of("a"), of("b")].concat());
    assert!(kept.iter().all(|row| row["path"] != "old.py"));
    // Methods with a syntax error stay, and are counted.
    let errors = |row: &&Value| row["n_ast_errors"].as_i64().unwrap() > 0;
    let broken: Vec<_> = kept.iter().filter(errors).map(|row| row["fun_name"].clone()).collect();
    assert_eq!(broken, ["bad", "bad"]);
    // The facts of the repository are there; a list knows no licence.
    for row in &kept {
        assert_eq!(row["default_branch"], "main", "{row}");
        assert!(row["head_sha"].is_string() && row["license"].is_null(), "{row}");
    }
    let documented = project.rows("raw_data_docstring");
    assert_eq!(documented.len(), 6, "three of the four have more than three words");
    let counts = project.read("collect/repositories.csv");
    assert_eq!(counts.lines().count(), 3);
    assert!(counts.contains(",5,5,4,1\n"), "five methods of four commits: {counts}");
    let files = "raw_data.parquet raw_data_docstring.parquet rejected.parquet changes.parquet \
                 duplicates.parquet tokenizer.json";
    for file in files.split(' ') {
        assert!(project.path("collect").join(file).exists(), "{file}");
    }
    project.run_ok(&["--set", "repos=./a, ./b"]).all_hit_as(&first);
    // As published, a commit without a message to speak of counts.
    let published = ["message=false".to_owned()];
    project.run_file("w.yaml", &published).exits(0);
    let rejects = project.rows_of("w.yaml", "changes.rejects", &published);
    assert!(rejects.iter().all(|row| row["rule"] != "message_meaningful"), "{rejects:?}");
    let jobs = project.run_ok(&["--jobs", "1", "--cache", "other", "--out", "other"]);
    assert_eq!(jobs.digests(), first.digests());
}

/// A method of many words, so that it can be a duplicate.
fn long(name: &str, words: &str, number: i64) -> String {
    let line = |w: &str| format!("    {w} = other_{w}(argument_{w}, {w}_{w})\n");
    let body: String = words.split(' ').map(line).collect();
    format!("def {name}(a):\n{body}    return {number}\n")
}

/// The rows of `raw_data` after a run with these settings.
#[track_caller]
fn rows(project: &Project, set: &[&str]) -> Vec<Value> {
    project.run_file("w.yaml", set).exits(0);
    project.rows_of("w.yaml", "raw_data", set)
}

/// The run with these settings ends with an error, as no repository is left.
#[track_caller]
fn finds_nothing(project: &Project, set: &[&str]) {
    let told = project.run_file("w.yaml", set).exits(3).stdout;
    says(&told, &["step `chosen` read 1 row and gave none; `chosen.rejects` has 1 row"]);
    assert!(project.rows_of("w.yaml", "raw_data", set).is_empty(), "{set:?}");
}

/// `path change` of the methods that are found with a setting.
#[track_caller]
fn found(project: &Project, set: &str) -> Vec<String> {
    let rows = rows(project, &["repos=./r", set]);
    rows.iter().map(|row| format!("{} {}", text(row, "path"), text(row, "change"))).collect()
}

#[test]
fn of_versions_and_copies_the_last_stays_and_params_choose() {
    let project = Project::new(COLLECT);
    let repo = Repository::bare(project.path("r"));
    let words = "alpha beta gamma delta epsilon zeta eta theta";
    let other = "uno due tre quattro cinque sei sette otto";
    let tests = "eins zwei drei vier fuenf sechs sieben acht";
    repo.commit(
        at(day(1))
            .message("Add the first module")
            .write("m.py", long("one", words, 1) + "\n\n" + &long("two", other, 1))
            .write("tests/check.py", long("check", tests, 1)),
    );
    repo.commit(
        at(day(2))
            .message("Change what it returns")
            .write("m.py", long("one", words, 2) + "\n\n" + &long("two", other, 1))
            .write("copy.py", long("one", words, 3)),
    );
    for tokens in ["tokens=bpe", "tokens=word"] {
        let rows = found(&project, tokens);
        // Of three versions of `one` one is left, of the last commit: the copy or the changed one.
        assert_eq!(rows.len(), 3, "{tokens}: {rows:?}");
        says(&rows.join("\n"), &["m.py added", "tests/check.py added"]);
    }
    // With nothing but equal texts for duplicates all are there: numbers are not words.
    assert!(project.read("collect/summary.csv").lines().nth(1).unwrap().starts_with("5,2,40"));
    let wrong = project.run(&["run", "w.yaml", "--set", "repos=./r", "--set", "tokens=words"]);
    wrong.exits(2).reports(&["did you mean `word`?"]);
    // Parameters choose methods and repositories.
    let tests = "tests/check.py added".to_owned();
    assert_eq!(found(&project, "tests=only"), std::slice::from_ref(&tests));
    assert!(!found(&project, "tests=exclude").contains(&tests));
    let added = found(&project, "added_only=true");
    assert!(added.len() == 3 && added.iter().all(|row| row.ends_with(" added")), "{added:?}");
    // Owners who refused, by the name of the repository, and a folder of no known licence.
    for (set, rule) in [("exclude=a/b, R", "not_excluded"), ("licenses=MIT", "license_allowed")] {
        finds_nothing(&project, &["repos=./r", set]);
        let rule = format!("\"rule\":\"{rule}\"");
        says(&project.read("collect/excluded.jsonl"), &[&rule]);
    }
    assert_eq!(found(&project, "exclude=a/b,rr").len(), 3);
    // A list in a file may give the licence.
    project.write("list.csv", "repo,url,license,stars\nr,./r,MIT,12\n");
    let listed = rows(&project, &["repos=list.csv", "licenses=Apache-2.0, mit"]);
    assert_eq!(listed.len(), 3);
    assert!(listed.iter().all(|row| row["license"] == "MIT" && row["stars"] == 12), "{listed:?}");
    finds_nothing(&project, &["repos=list.csv", "licenses=Apache-2.0"]);
}

const POINTS: &str = "galeras: 1
steps:
  points: { op: read, with: { path: points.jsonl } }
  valid:
    op: validate
    from: points
    with:
      rules:
        - RULE
";

fn points(rule: &str) -> Project {
    let project = Project::new(&POINTS.replace("RULE", rule));
    let rows = [
        r#"{"id":"a","day":"2021-12-31T23:59:59Z","commit_message":"Fix the parser","code":"x","code_before":null}"#,
        r#"{"id":"b","day":"2022-01-01T00:00:00Z","commit_message":"fix: it (#3)","code":"x","code_before":"x"}"#,
        r#"{"id":"c","day":"2022-12-31T23:59:59Z","commit_message":"Bump a from 1 to 2","code":"x y","code_before":"x  y"}"#,
        r#"{"id":"d","day":"2023-01-01T00:00:00Z","commit_message":"A, b, c: d","code":"x","code_before":"y"}"#,
    ];
    project.write("points.jsonl", rows.join("\n"));
    project
}

#[test]
fn the_checks_of_commits_keep_what_they_say() {
    for (rule, wanted) in [
        ("method_changed", &["a", "c", "d"][..]),
        ("method_changed, with: { ignore_whitespace: true }", &["a", "d"]),
        ("message_meaningful, with: { min_words: 2 }", &["a"]),
        ("message_meaningful, with: { min_words: 1 }", &["a", "b"]),
    ] {
        let project = points(&format!("{{ use: {rule} }}")).ran();
        assert_eq!(project.texts("valid", "id"), wanted, "{rule}");
    }
    let window =
        "{ use: commit_in_window, with: { since: 2022-01-01, until: 2023-01-01, column: at } }";
    let project = points(window);
    project.change(
        "  valid:\n    op: validate\n    from: points",
        "  dated:
    op: sql
    from: points
    with: { query: \"SELECT id, to_timestamp_micros(day) AS at FROM input\" }
  valid:
    op: validate
    from: dated",
    );
    project.run_ok(&[]);
    assert_eq!(project.texts("valid", "id"), ["b", "c"]);
    assert_eq!(project.rows("valid.rejects")[0]["rule"], "commit_in_window");
}

#[test]
fn mistakes_in_named_checks_are_found_before_anything_runs() {
    for (rule, said) in [
        ("{ use: method_change }", "method_changed"),
        ("{ use: commit_in_window }", "missing field `since`"),
        (
            "{ use: commit_in_window, with: { since: soon, until: 2023-01-01 } }",
            "`soon` is not a date",
        ),
        (
            "{ use: commit_in_window, with: { since: 2022-01-01, until: 2023-01-01 } }",
            "commit_time",
        ),
        ("{ use: message_meaningful, with: { words: 3 } }", "has no argument `words`"),
        ("{ use: method_changed, check: 'true', name: x }", "either `check` or `use`"),
        ("{ check: 'true' }", "needs a `name`"),
        ("{ name: x }", "`check`"),
        ("{ name: x, check: 'true', with: {} }", "belongs to `use`"),
    ] {
        says(&flat(&points(rule).run(&["check", "w.yaml"]).exits(2).stderr), &[said]);
    }
}
