//! Steps that read files and find none that they can read say so, and what is there instead.

use crate::harness::{Project, says};
use crate::repository::{Repository, at, day};

fn methods(with: &str) -> String {
    format!("galeras: 1\nsteps:\n  m:\n    op: methods\n    with: {{ {with} }}\n")
}

#[track_caller]
fn warning(project: &Project) -> String {
    let outcome = project.run_ok(&[]);
    let warnings = outcome.events("warning");
    assert_eq!(warnings.len(), 1, "{outcome}");
    assert_eq!(warnings[0]["step"], "m", "{outcome}");
    warnings[0]["message"].as_str().unwrap().to_owned()
}

#[test]
fn folders_a_corpus_and_a_repository_without_a_file_that_matches() {
    let project = Project::new(&methods("dir: src, include: ['**/*.pyx']"));
    for name in ["a.py", "b/c.py", "b/README", "d.java"] {
        project.write(&format!("src/{name}"), "x = 1\n");
    }
    let wanted = "there are no methods: `include` (`**/*.pyx`) matches none of the files of \
                  the folder `src`, which has 2 .py, 1 without a suffix, 1 .java";
    assert_eq!(warning(&project), wanted);
    let project = Project::new(&methods("dir: src, exclude: ['**/*.py']"));
    project.write("src/a.py", "def f():\n    return 1\n");
    says(&warning(&project), &["1 file", "`exclude` leaves out all of them"]);
    let project = Project::new(&methods("dir: src"));
    std::fs::create_dir(project.path("src")).unwrap();
    assert!(warning(&project).contains("has no files"));
    // A corpus.
    let corpus = |include: &str| {
        Project::new(&methods(&format!("corpus: python-stdlib, include: ['{include}']")))
    };
    says(&warning(&corpus("jsn/*.py")), &["`jsn/*.py`", "718 .py"]);
    assert!(corpus("json/*.py").run_ok(&[]).events("warning").is_empty());
    // A repository whose commits change other files.
    let steps = "  repos: { op: query, with: { repos: [./repo] } }
  m:
    op: mine
    from: repos
    with: { since: 2020-01-01, until: 2030-01-01, include: ['lib/**/*.py'] }
";
    let project = Project::steps(steps);
    let repository = Repository::with_work_tree(project.path("repo"));
    repository.commit(at(day(1)).write("a.py", "def f():\n    return 1\n").write("R.md", "x\n"));
    repository.commit(at(day(2)).write("a.py", "def f():\n    return 2\n"));
    let none = "none of the 2 commits in the window changes a file";
    says(&warning(&project), &[none, "`lib/**/*.py`", "2 .py, 1 .md"]);
}

#[test]
fn patterns_of_other_languages_are_refused_before_anything_runs() {
    let corpus = "['*.{js,ts}', '**/*.py', '*.go']";
    let window = "since: 2020-01-01, until: 2030-01-01";
    for (step, wrong) in [
        ("op: methods\n    with: { dir: ., include: ['**/*.java'] }".to_owned(), 1),
        (format!("op: methods\n    with: {{ corpus: python-stdlib, include: {corpus} }}"), 2),
        (format!("op: mine\n    from: repos\n    with: {{ {window}, include: ['src/*.rs'] }}"), 1),
    ] {
        let repos = "  repos:\n    op: query\n    with: { repos: [./repo] }\n";
        let project = Project::steps(&format!("{repos}  m:\n    {step}\n"));
        project.write("repo/.keep", "");
        let outcome = project.run(&["check", "w.yaml", "--format", "json"]).exits(2);
        assert_eq!(outcome.stdout.matches("other-language").count(), wrong, "{outcome}");
    }
}
