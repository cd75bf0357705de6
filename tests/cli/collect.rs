//! `workflows/collect.yaml` on local repositories, and the checks of commits that it uses.

use crate::harness::Project;
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
    repo.commit(
        at(day(1))
            .message("Add the first module")
            .write("m.py", method("one", long, 1) + "\n\n" + &method("two", "Adds.", 2)),
    );
    repo.commit(
        at(day(2))
            .message("Change what it adds")
            .write("m.py", method("one", long, 9) + "\n\n" + &method("two", "Adds.", 2)),
    );
    // Moved, and nothing else.
    repo.commit(
        at(day(3))
            .message("Put the second one first")
            .write("m.py", method("two", "Adds.", 2) + "\n\n" + &method("one", long, 9)),
    );
    repo.commit(at(day(4)).message("wip").write("m.py", method("two", "Adds.", 3)));
    repo.commit(
        at(day(5))
            .message("Break it for once")
            .write("n.py", "def bad(a):\n    x = = 1\n    return a\n"),
    );
    repo.commit(
        at(day(6)).message("Write a longer docstring").write("m.py", method("two", long, 3)),
    );
    repo.commit(
        at(day(-40)).message("Long before the window").write("old.py", method("old", long, 1)),
    );
    repo
}

#[test]
fn the_shipped_workflow_collects_from_local_repositories() {
    let project = Project::new(&COLLECT.replacen("default: \"\"", "default: \"./a,./b\"", 1));
    history(&project, "a");
    history(&project, "b");
    let first = project.run_ok(&[]);
    let rejected = project.rows("changes.rejects");
    let mut rules: Vec<(String, String)> = rejected
        .iter()
        .map(|row| (row["repo"].as_str().unwrap().into(), row["rule"].as_str().unwrap().into()))
        .collect();
    rules.sort_unstable();
    rules.dedup();
    for repo in ["a", "b"] {
        for rule in ["method_changed", "message_meaningful"] {
            assert!(rules.contains(&(repo.into(), rule.into())), "{repo} {rule}: {rules:?}");
        }
    }
    let kept = project.rows("raw_data");
    let of = |repo: &str| {
        let mut names: Vec<(i64, &str)> = kept
            .iter()
            .filter(|row| row["repo"] == repo)
            .map(|row| (row["changed_lines"].as_i64().unwrap(), row["fun_name"].as_str().unwrap()))
            .collect();
        names.sort_unstable();
        names
    };
    assert_eq!(of("a"), [(2, "one"), (2, "two"), (3, "bad"), (3, "one"), (3, "two")]);
    assert_eq!(of("a"), of("b"));
    assert!(kept.iter().all(|row| row["path"] != "old.py"));
    // Methods with a syntax error stay, and are counted.
    let errors = |row: &&serde_json::Value| row["n_ast_errors"].as_i64().unwrap() > 0;
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
    for file in [
        "raw_data.parquet",
        "raw_data_docstring.parquet",
        "rejected.parquet",
        "changes.parquet",
        "duplicates.parquet",
        "tokenizer.json",
    ] {
        assert!(project.path("collect").join(file).exists(), "{file}");
    }
    let again = project.run_ok(&["--set", "repos=./a, ./b"]);
    again.all_hit();
    assert_eq!(again.digests(), first.digests());
    let jobs = project.run_ok(&["--jobs", "1", "--cache", "other", "--out", "other"]);
    assert_eq!(jobs.digests(), first.digests());
}

/// A method of many words, so that it can be a duplicate.
fn long(name: &str, words: &str, number: i64) -> String {
    let body: String = words
        .split(' ')
        .map(|word| format!("    {word} = other_{word}(argument_{word}, {word}_{word})\n"))
        .collect();
    format!("def {name}(a):\n{body}    return {number}\n")
}

fn versions() -> Project {
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
    project
}

#[track_caller]
fn found(project: &Project, set: &[&str]) -> Vec<(String, String)> {
    let mut args = vec!["--set", "repos=./r"];
    for value in set {
        args.extend(["--set", value]);
    }
    project.run_ok(&args);
    let show = [&["show", "w.yaml", "raw_data", "--format", "json"], &args[..]].concat();
    let rows = project.run(&show).exits(0).json_lines();
    let text = |row: &serde_json::Value, name: &str| row[name].as_str().unwrap().to_owned();
    let mut all: Vec<_> = rows.iter().map(|row| (text(row, "path"), text(row, "change"))).collect();
    all.sort_unstable();
    all
}

fn expect(rows: &[(&str, &str)]) -> Vec<(String, String)> {
    rows.iter().map(|(path, change)| ((*path).to_owned(), (*change).to_owned())).collect()
}

#[test]
fn of_versions_and_copies_the_last_stays_by_either_kind_of_tokens() {
    let project = versions();
    let all = expect(&[("m.py", "added"), ("tests/check.py", "added")]);
    for tokens in ["tokens=bpe", "tokens=word"] {
        let rows = found(&project, &[tokens]);
        // Of three versions of `one` one is left, of the last commit: the copy or the changed one.
        assert_eq!(rows.len(), 3, "{tokens}: {rows:?}");
        assert!(all.iter().all(|row| rows.contains(row)), "{tokens}: {rows:?}");
    }
    // With nothing but equal texts for duplicates all are there: the numbers are no words.
    assert!(project.read("collect/summary.csv").lines().nth(1).unwrap().starts_with("5,2,40"));
    let wrong = project.run(&["run", "w.yaml", "--set", "repos=./r", "--set", "tokens=words"]);
    assert!(wrong.exits(2).stderr.contains("did you mean `word`?"));
}

#[test]
fn params_choose_methods_and_repositories() {
    let project = versions();
    let tests = expect(&[("tests/check.py", "added")]);
    assert_eq!(found(&project, &["tests=only"]), tests);
    assert!(!found(&project, &["tests=exclude"]).contains(&tests[0]));
    let added = found(&project, &["added_only=true"]);
    assert!(added.len() == 3 && added.iter().all(|(_, change)| change == "added"), "{added:?}");
    // Owners who said no, by the name of the repository.
    assert_eq!(found(&project, &["exclude=a/b, R"]), []);
    let excluded = project.read("collect/excluded.jsonl");
    assert!(excluded.contains("\"rule\":\"not_excluded\""), "{excluded}");
    assert_eq!(found(&project, &["exclude=a/b,rr"]).len(), 3);
    // Nothing is known of the licence of a folder; a list in a file may say it.
    assert_eq!(found(&project, &["licenses=MIT"]), []);
    assert!(project.read("collect/excluded.jsonl").contains("\"rule\":\"license_allowed\""));
    project.write("list.csv", "repo,url,license,stars\nr,./r,MIT,12\n");
    let listed = ["--set", "repos=list.csv", "--set", "licenses=Apache-2.0, mit"];
    project.run_ok(&listed);
    let show = ["show", "w.yaml", "raw_data", "--format", "json"];
    let rows = project.run(&[&show[..], &listed].concat()).exits(0).json_lines();
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|row| row["license"] == "MIT" && row["stars"] == 12), "{rows:?}");
    let other = ["--set", "repos=list.csv", "--set", "licenses=Apache-2.0"];
    project.run_ok(&other);
    assert!(project.run(&[&show[..], &other].concat()).exits(0).json_lines().is_empty());
}

const POINTS: &str = "galeras: 1
steps:
  points: { op: read, with: { path: points.jsonl } }
  valid:
    op: validate
    from: points
    with:
      rules:
RULES";

fn points(rules: &str) -> Project {
    let project = Project::new(&POINTS.replace("RULES", rules));
    let rows = [
        r#"{"id":"a","day":"2021-12-31T23:59:59Z","commit_message":"Fix the parser","code":"x","code_before":null}"#,
        r#"{"id":"b","day":"2022-01-01T00:00:00Z","commit_message":"fix: it (#3)","code":"x","code_before":"x"}"#,
        r#"{"id":"c","day":"2022-12-31T23:59:59Z","commit_message":"Bump a from 1 to 2","code":"x y","code_before":"x  y"}"#,
        r#"{"id":"d","day":"2023-01-01T00:00:00Z","commit_message":"A, b, c: d","code":"x","code_before":"y"}"#,
    ];
    project.write("points.jsonl", rows.join("\n"));
    project
}

/// The ids that pass, and those that fail with their rules.
fn checked(rules: &str) -> (Vec<String>, Vec<String>) {
    let project = points(rules);
    project.run_ok(&[]);
    let ids = |step: &str| -> Vec<String> {
        let rows = project.rows(step);
        rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
    };
    (ids("valid"), ids("valid.rejects"))
}

#[test]
fn the_checks_of_commits_keep_what_they_say() {
    assert_eq!(checked("        - { use: method_changed }").0, ["a", "c", "d"]);
    let dense = "        - { use: method_changed, with: { ignore_whitespace: true } }";
    assert_eq!(checked(dense).0, ["a", "d"]);
    assert_eq!(checked("        - { use: message_meaningful, with: { min_words: 2 } }").0, ["a"]);
    let any = "        - { use: message_meaningful, with: { min_words: 1 } }";
    assert_eq!(checked(any).0, ["a", "b"]);
    let window = "        - { use: commit_in_window, with: { since: 2022-01-01, until: 2023-01-01, column: at } }";
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
    let ids: Vec<_> = project.rows("valid").iter().map(|row| row["id"].clone()).collect();
    assert_eq!(ids, ["b", "c"]);
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
        let project = points(&format!("        - {rule}"));
        let outcome = project.run(&["check", "w.yaml"]).exits(2);
        let text: String = outcome.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.replace("│ ", "").contains(said), "{rule}: {}", outcome.stderr);
    }
}
