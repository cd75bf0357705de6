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
fn a_folder_without_a_file_that_matches() {
    let project = Project::new(&methods("dir: src, include: ['**/*.pyx']"));
    for name in ["a.py", "b/c.py", "b/README", "d.java"] {
        project.write(&format!("src/{name}"), "x = 1\n");
    }
    let said = warning(&project);
    assert_eq!(
        said,
        "there are no methods: `include` (`**/*.pyx`) matches none of the files of the folder \
         `src`, which has 2 .py, 1 without a suffix, 1 .java"
    );
}

#[test]
fn a_folder_of_which_everything_is_excluded_and_one_that_is_empty() {
    let project = Project::new(&methods("dir: src, exclude: ['**/*.py']"));
    project.write("src/a.py", "def f():\n    return 1\n");
    says(&warning(&project), &["1 file", "`exclude` leaves out all of them"]);
    let project = Project::new(&methods("dir: src"));
    std::fs::create_dir(project.path("src")).unwrap();
    assert!(warning(&project).contains("has no files"));
}

#[test]
fn the_corpus() {
    let said = warning(&Project::new(&methods("corpus: python-stdlib, include: ['jsn/*.py']")));
    says(&said, &["`jsn/*.py`", "718 .py"]);
}

#[test]
fn what_matches_is_no_warning() {
    let project = Project::new(&methods("corpus: python-stdlib, include: ['json/*.py']"));
    assert!(project.run_ok(&[]).events("warning").is_empty());
}

#[test]
fn a_repository_whose_commits_change_other_files() {
    let project = Project::steps(
        "  repos: { op: query, with: { repos: [./repo] } }
  m:
    op: mine
    from: repos
    with: { since: 2020-01-01, until: 2030-01-01, include: ['lib/**/*.py'] }
",
    );
    let repository = Repository::with_work_tree(project.path("repo"));
    repository.commit(at(day(1)).write("a.py", "def f():\n    return 1\n").write("R.md", "x\n"));
    repository.commit(at(day(2)).write("a.py", "def f():\n    return 2\n"));
    let said = warning(&project);
    says(
        &said,
        &["none of the 2 commits in the window changes a file", "`lib/**/*.py`", "2 .py, 1 .md"],
    );
}

#[test]
fn patterns_of_other_languages_are_refused_before_anything_runs() {
    for (step, patterns, wrong) in [
        ("op: methods\n    with: { dir: ., include: PATTERNS }", "['**/*.java']", 1),
        (
            "op: methods\n    with: { corpus: python-stdlib, include: PATTERNS }",
            "['*.{js,ts}', '**/*.py', '*.go']",
            2,
        ),
        (
            "op: mine\n    from: repos\n    with: { since: 2020-01-01, until: 2030-01-01, include: PATTERNS }",
            "['src/*.rs']",
            1,
        ),
    ] {
        let project = Project::new(&format!(
            "galeras: 1\nsteps:\n  repos:\n    op: query\n    with: {{ repos: [./repo] }}\n  m:\n    {}\n",
            step.replace("PATTERNS", patterns)
        ));
        project.write("repo/.keep", "");
        let outcome = project.run(&["check", "w.yaml", "--format", "json"]).exits(2);
        assert_eq!(outcome.stdout.matches("other-language").count(), wrong, "{outcome}");
    }
}
