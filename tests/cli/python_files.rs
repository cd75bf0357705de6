//! Python files of any kind: each gives methods or a recorded reject, and the run ends well.

use serde_json::{Value, json};

use crate::harness::{Outcome, Project, every, patience, text};

const WORKFLOW: &str = "galeras: 1
steps:
  methods: { op: methods, with: { dir: src } }
  features: { op: ast, from: methods }
  testbed: { op: cut, from: features, with: { seed: 1 } }
";

const GOOD: &str = "def good(a, b):\n    \"\"\"Adds.\"\"\"\n    return a + b\n";

/// A project with `src/good.py` and one more file; every step runs.
#[track_caller]
fn run_on(name: &str, content: impl AsRef<[u8]>) -> (Project, Outcome) {
    let project = Project::new(WORKFLOW).with("src/good.py", GOOD);
    project.write(&format!("src/{name}"), content);
    let outcome = project.run_ok(&[]);
    assert_eq!(outcome.statuses(), "methods=ran features=ran testbed=ran");
    let good: Vec<Value> = project.rows("methods");
    assert!(good.iter().any(|m| m["fun_name"] == "good"), "the other file is not harmed");
    // Nothing is lost: every method is measured or rejected with a reason.
    let count = |port: &str| project.rows(port).len();
    assert_eq!(count("methods"), count("features") + count("features.rejects"));
    assert_eq!(count("features"), count("testbed") + count("testbed.rejects"));
    for port in ["methods.rejects", "features.rejects", "testbed.rejects"] {
        for row in project.rows(port) {
            assert!(row["reason"].as_str().is_some_and(|r| r.len() > 5), "{row}");
            assert_eq!(row["step"], port.split('.').next().unwrap());
        }
    }
    project.verifies("cache");
    (project, outcome)
}

fn methods_of(project: &Project, path: &str) -> Vec<Value> {
    project.rows("methods").into_iter().filter(|m| m["path"] == path).collect()
}

/// The file is rejected, with a reason that has `word`.
#[track_caller]
fn rejected(project: &Project, path: &str, word: &str) {
    let reject = project.only("methods.rejects");
    assert_eq!(reject["path"], path);
    assert!(text(&reject, "reason").to_lowercase().contains(word), "{reject}");
}

#[test]
fn an_ordinary_file_gives_its_methods() {
    let code = "class A:\n    @property\n    def p(self):\n        return 1\n\n\nasync def q():\n    pass\n";
    let (project, _) = run_on("pkg/mod.py", code);
    let found = methods_of(&project, "pkg/mod.py");
    assert_eq!(found.len(), 2);
    let p = found.iter().find(|m| m["fun_name"] == "p").unwrap();
    let about = ["qualified_name", "file_name", "code"].map(|column| text(p, column));
    assert_eq!(about, ["A.p", "mod.py", "def p(self):\n        return 1"]);
    assert_eq!((&p["start_line"], &p["end_line"]), (&json!(3), &json!(4)));
    assert_eq!(text(p, "id").len(), 32);
}

#[test]
fn what_is_nested_100_000_deep_is_read_in_time() {
    let brackets = format!("    return {}1{}", "(".repeat(100_000), ")".repeat(100_000));
    let levels = (1..=2_000).map(|level| format!("{}if x:\n", " ".repeat(level)));
    let blocks = format!("{}{}pass", levels.collect::<String>(), " ".repeat(2_001));
    let mut cases = vec![("brackets", brackets), ("blocks", blocks)];
    for open in ["[", "f(", "if x: ", "not ", "lambda: ", "x.", "(\n"] {
        cases.push((open, format!("    return {}", open.repeat(100_000))));
    }
    every(cases, |body| {
        let (_, outcome) = run_on("deep.py", format!("def f():\n{body}\n"));
        assert!(outcome.took < patience(20), "{:?}", outcome.took);
    });
    // Functions, with nested ones wanted.
    let project = Project::new(&WORKFLOW.replace("dir: src", "dir: src, nested: true"));
    let deep = (0..1_500).map(|level| format!("{}def f{level}():\n", " ".repeat(level)));
    let deep = format!("{}{}pass\n", deep.collect::<String>(), " ".repeat(1_500));
    project.write("src/deep.py", deep);
    project.write("src/good.py", GOOD);
    let outcome = project.run_ok(&[]);
    assert!(outcome.took < patience(20), "{:?}", outcome.took);
    let rejects = project.rows("methods.rejects").len();
    assert!(rejects == 1 || methods_of(&project, "deep.py").len() == 1_500);
}

#[test]
fn nul_bytes_and_bytes_that_are_no_text() {
    let (project, _) = run_on("nul.py", b"def f():\n    return '\0'\n\n\ndef g():\n    return 2\n");
    let found = methods_of(&project, "nul.py");
    let rejects = project.rows("methods.rejects");
    if rejects.is_empty() {
        let f = found.iter().find(|m| m["fun_name"] == "f").expect("f is a method");
        assert_eq!(f["code"], "def f():\n    return '\0'");
    } else {
        rejected(&project, "nul.py", "nul");
    }
    run_on("nul.py", [0; 10_000]);
    let (project, _) = run_on("latin.py", b"def f():\n    return '\xe9\xff'\n");
    rejected(&project, "latin.py", "utf-8");
    project.run_ok(&[]).all_hit();
}

/// A declared encoding, a byte order mark, tabs.
#[test]
fn what_a_file_is_written_in_does_not_change_its_methods() {
    let latin = b"# -*- coding: latin-1 -*-\ndef f():\n    return '\xe9'\n";
    let tabs = "class A:\n\tdef f(self):\n\t\tif self:\n\t\t\treturn 1\n";
    for (name, content, line, code) in [
        ("latin.py", &latin[..], 2, "def f():\n    return 'é'"),
        ("bom.py", "\u{feff}def f():\n    return 1\n".as_bytes(), 1, "def f():\n    return 1"),
        ("tabs.py", tabs.as_bytes(), 2, "def f(self):\n\t\tif self:\n\t\t\treturn 1"),
    ] {
        let (project, _) = run_on(name, content);
        let found = methods_of(&project, name);
        assert_eq!((found.len(), text(&found[0], "code")), (1, code), "{name}");
        assert_eq!(found[0]["start_line"], line, "{name}");
        let features = project.rows("features");
        assert!(features.iter().all(|f| f["n_ast_errors"] == 0), "{features:?}");
    }
    // Line ends of Windows.
    let (project, _) = run_on("crlf.py", "def f(a):\r\n    b = a\r\n    return b\r\n");
    let found = methods_of(&project, "crlf.py");
    assert_eq!(found.len(), 1);
    assert_eq!((&found[0]["start_line"], &found[0]["end_line"]), (&json!(1), &json!(3)));
    assert_eq!(project.rows("testbed").len(), 2);
    // One line of 50 megabytes.
    let (project, outcome) =
        run_on("long.py", format!("def f():\n    return '{}'\n", "x".repeat(50 << 20)));
    assert!(outcome.took < patience(30), "{:?}", outcome.took);
    rejected(&project, "long.py", "limit");
}

#[test]
fn empty_files_files_without_methods_and_methods_of_one_name() {
    let (project, _) = run_on("empty.py", "");
    assert_eq!(project.rows("methods").len(), 1);
    let (project, _) = run_on("none.py", "x = 1\n");
    assert_eq!(project.rows("methods").len(), 1);
    assert!(project.rows("methods.rejects").is_empty());
    let text = "def f():\n    return 1\n\n\ndef f():\n    return 1\n";
    let (project, _) = run_on("twice.py", text);
    assert_eq!(methods_of(&project, "twice.py").len(), 2);
}

#[test]
fn links_are_not_followed_and_names_of_files_may_be_odd() {
    let project = Project::new(WORKFLOW).with("src/good.py", GOOD);
    project.write("outside/secret.py", "def secret():\n    return 1\n");
    let link = |target: &str, name: &str| {
        std::os::unix::fs::symlink(project.path(target), project.path(name)).unwrap();
    };
    link("outside/secret.py", "src/link.py");
    link("outside", "src/folder");
    link("src", "src/loop");
    link("nowhere", "src/broken.py");
    project.run_ok(&[]);
    let found = project.rows("methods");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["path"], "good.py");
    // Names of files may be odd.
    let project = Project::new(WORKFLOW);
    for name in ["src/a b.py", "src/é.py", "src/'quote\".py", "src/new\nline.py", "src/%41.py"] {
        project.write(name, GOOD);
    }
    project.write("src/good.txt", GOOD);
    let name: std::ffi::OsString =
        std::os::unix::ffi::OsStringExt::from_vec(b"src/\xff.py".to_vec());
    std::fs::write(project.root().join(name), GOOD).unwrap();
    project.run_ok(&[]);
    let found = project.rows("methods").len() + project.rows("methods.rejects").len();
    assert_eq!(found, 6);
}

#[test]
fn files_are_included_and_excluded_by_pattern() {
    let project = Project::new(WORKFLOW);
    project.change("dir: src", "dir: src, include: ['**/*.py'], exclude: ['**/test_*.py']");
    project.write("src/a/b.py", GOOD);
    project.write("src/a/test_b.py", GOOD);
    project.run_ok(&[]);
    assert_eq!(project.rows("methods").len(), 1);
    project.change("'**/*.py'", "'[.py'");
    let outcome = project.run_json(&[]).exits(2);
    assert_eq!(outcome.diagnostics().len(), 1, "{outcome}");
    // An empty folder gives an empty table.
    let project = Project::new(WORKFLOW);
    std::fs::create_dir(project.path("src")).unwrap();
    assert_eq!(project.run_ok(&[]).step("testbed")["rows"], 0);
}
