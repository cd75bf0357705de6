//! The way of a newcomer: `init`, `run`, look around. The only tests on the whole corpus.

use crate::harness::Project;

#[test]
fn what_init_writes_runs() {
    let project = Project::empty();
    let made = project.run(&["init", "first"]).exits(0);
    assert!(made.stdout.contains("  cd first\n  galeras run workflow.yaml\n"), "{made}");
    assert!(!project.read("first/workflow.yaml").contains("quickstart.yaml"));
    project.run(&["check", "first/workflow.yaml"]).exits(0);
    let file = "first/workflow.yaml";
    let run = |more: &[&str]| {
        let args = [&["run", file, "--format", "json", "--out", "first"], more].concat();
        project.run(&args).exits(0)
    };
    let first = run(&["--set", "n=50"]);
    assert!(first.step("methods")["rows"].as_u64().unwrap() > 10_000, "{first}");
    assert_eq!(first.step("testbed")["rows"], 50);
    assert_eq!(first.step("table_1")["rows"], 8);
    assert_eq!(first.events("assertion").len(), 0, "{first}");
    let kept = first.step("valid")["rows"].as_u64().unwrap();
    let rejected =
        std::fs::read_to_string(project.path("first/quickstart/rejected.jsonl")).unwrap();
    let methods = first.step("features")["rows"].as_u64().unwrap();
    assert_eq!(kept + rejected.lines().count() as u64, methods);
    assert!(project.path("first/quickstart/testbed.parquet").exists());
    assert_eq!(project.read("first/quickstart/table_1.csv").lines().count(), 9);
    for step in ["prompts", "answers", "scores"] {
        assert_eq!(first.step(step)["rows"], 150, "{step}: three treatments");
    }
    let table = project.read("first/quickstart/table_2.csv");
    assert_eq!(table.lines().count(), 9);
    assert_eq!(table.lines().next(), Some("score,control,T1,T2"));

    // Git sees what was written by hand, and nothing else.
    let git = |args: &[&str]| {
        let ran = std::process::Command::new("git")
            .args(args)
            .current_dir(project.path("first"))
            .output()
            .unwrap();
        String::from_utf8(ran.stdout).unwrap()
    };
    git(&["init", "-q"]);
    let seen = git(&["status", "--porcelain", "--untracked-files=all"]);
    assert_eq!(seen, "?? .gitignore\n?? workflow.yaml\n");

    // Again: nothing runs. A larger testbed: only what hangs on the number.
    let again = run(&["--set", "n=50"]);
    again.all_hit();
    assert_eq!(again.digests(), first.digests());
    let larger = run(&["--set", "n=60"]);
    assert_eq!(
        larger.statuses(),
        "methods=hit features=hit valid=hit unique=hit sampled=ran testbed=ran table_1=ran \
         prompts=ran answers=ran scores=ran table_2=ran effects=ran"
    );
    let testbed = larger.step("testbed");
    assert_eq!((&testbed["computed_rows"], &testbed["reused_rows"]), (&10.into(), &50.into()));

    // A row leads back to its file.
    let args = ["show", file, "testbed", "--set", "n=60", "--rows", "1", "--format", "json"];
    let row = project.run(&args).exits(0).json_lines().remove(0);
    let traced =
        project.run(&["trace", file, row["id"].as_str().unwrap(), "--set", "n=60"]).exits(0);
    assert!(traced.stdout.contains(row["path"].as_str().unwrap()), "{traced}");
    assert!(traced.stdout.contains("python-stdlib"), "{traced}");

    // So does a score, by way of its prompt.
    let args = ["show", file, "scores", "--set", "n=60", "--rows", "1", "--format", "json"];
    let score = project.run(&args).exits(0).json_lines().remove(0);
    let traced =
        project.run(&["trace", file, score["id"].as_str().unwrap(), "--set", "n=60"]).exits(0);
    for column in ["prompt_id", "snippet_id", "path"] {
        assert!(traced.stdout.contains(score[column].as_str().unwrap()), "{column}: {traced}");
    }
    assert_eq!(traced.stdout.matches("made from row").count(), 2, "{traced}");
}

#[test]
fn init_overwrites_nothing() {
    let project = Project::empty();
    project.write("workflow.yaml", "mine");
    let made = project.run(&["init"]).exits(2);
    assert!(made.stderr.contains("workflow.yaml"), "{made}");
    assert_eq!(project.read("workflow.yaml"), "mine");
    project.write("other/.gitignore", "mine\n");
    let made = project.run(&["init", "other"]).exits(0);
    assert!(made.stdout.contains("lines to other/.gitignore"), "{made}");
    let ignored = project.read("other/.gitignore");
    assert!(ignored.starts_with("mine\n# galeras\n/cache/\n"), "{ignored}");
    // What is there already is not added, however it is written.
    project.write("third/.gitignore", ignored.replace('/', ""));
    project.run(&["init", "third"]).exits(0);
    assert_eq!(project.read("third/.gitignore"), ignored.replace('/', ""));
    project.write("file", "");
    project.run(&["init", "file"]).exits(4);
}

#[test]
fn part_of_the_corpus_is_chosen_by_pattern() {
    let project = Project::new(
        "galeras: 1
steps:
  methods:
    op: methods
    with: { corpus: python-stdlib, include: ['json/*.py'] }
",
    );
    let outcome = project.run_ok(&[]);
    let rows = project.rows("methods");
    assert!(
        rows.len() > 10 && rows.iter().all(|r| r["path"].as_str().unwrap().starts_with("json/"))
    );
    assert!(rows.iter().all(|r| r["repo"] == "python-stdlib"), "{outcome}");
    assert!(rows.iter().any(|r| r["qualified_name"] == "JSONEncoder.encode"));
}

#[test]
fn people_see_a_line_per_step_and_a_summary() {
    let project = Project::new(
        "galeras: 1
steps:
  methods:
    op: methods
    with: { corpus: python-stdlib, include: ['json/*.py'] }
outputs:
  methods: { from: methods, path: methods.csv }
",
    );
    let shown = project.run(&["run", "w.yaml"]).exits(0);
    assert!(shown.stdout.is_empty(), "{shown}");
    for word in ["methods", "ran", "NEW", "rows", "methods.csv"] {
        assert!(shown.stderr.contains(word), "{word}\n{shown}");
    }
    assert!(!shown.stderr.contains('\u{1b}'), "no colours: {shown}");
    assert!(shown.stderr.lines().all(|l| l.chars().count() <= 80), "{shown}");
    let again = project.run(&["run", "w.yaml"]).exits(0);
    assert!(again.stderr.contains("hit") && !again.stderr.contains("NEW"), "{again}");
}
