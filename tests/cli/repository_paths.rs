//! The base folder of repository paths, and the names of folders of one name.

use crate::harness::{Project, says};
use crate::remembered_set::run_in;
use crate::repository::{Repository, at, day, def, workflow};

/// A workflow in `flows`, and clones next to it and above.
fn project() -> Project {
    let project = Project::empty();
    let text = workflow("", "").replace("repos: []", "repos: '${{ params.repos }}'");
    let text = text.replace("steps:", "params:\n  repos: { type: repos, default: ./r }\nsteps:");
    project.write("flows/w.yaml", text);
    for (name, number) in [("flows/r", 1), ("mine/repo", 2), ("theirs/repo", 3)] {
        let clone = Repository::with_work_tree(project.path(name));
        clone.commit(at(day(1)).write("m.py", def("f", number)));
    }
    project
}

/// Names and addresses of the repositories.
fn repositories(project: &Project, folder: &str, file: &str, more: &[&str]) -> Vec<[String; 2]> {
    let cache = project.path("cache").display().to_string();
    let args = [&["run", file, "--cache", &cache, "--format", "json"], more].concat();
    let ran = run_in(project, folder, &args).exits(0);
    let args = ["show", file, "repos", "--format", "json", "--cache", &cache];
    let rows = run_in(project, folder, &args).exits(0).json_lines();
    assert_eq!(ran.step("mined")["rows"].as_u64(), Some(rows.len() as u64), "{ran}");
    let text = |row: &serde_json::Value, name: &str| row[name].as_str().unwrap().to_string();
    rows.iter().map(|row| [text(row, "repo"), text(row, "clone_url")]).collect()
}

#[test]
fn paths_of_the_command_line_start_in_the_current_folder() {
    let project = project();
    let expected = [["repo".to_string(), "../mine/repo".to_string()]];
    let set = ["--set", "repos=mine/../mine/repo"];
    let above = repositories(&project, ".", "flows/w.yaml", &["--set", "repos=./mine/repo"]);
    assert_eq!(above, expected);
    let beside = repositories(&project, "mine", "../flows/w.yaml", &["--set", "repos=./repo"]);
    assert_eq!(beside, expected, "no path of this machine is in the result");
    let inside = repositories(&project, "flows", "w.yaml", &["--set", "repos=../mine/repo"]);
    assert_eq!(inside, expected);
    assert_eq!(repositories(&project, ".", "flows/w.yaml", &set)[0][0], "repo");
    // The default starts in the workflow's folder, wherever one is.
    let own = repositories(&project, "mine", "../flows/w.yaml", &[]);
    assert_eq!(own, [["r".to_string(), "./r".to_string()]]);
    // One that was written as an absolute path stays one.
    let whole = project.path("mine/repo").display().to_string();
    let set = format!("repos={whole}");
    assert_eq!(repositories(&project, ".", "flows/w.yaml", &["--set", &set])[0][1], whole);
    // So does a list in a file, whose own paths are the workflow's.
    project.write("mine/list.csv", "./r\n../theirs/repo\n");
    let listed = repositories(&project, ".", "flows/w.yaml", &["--set", "repos=mine/list.csv"]);
    assert_eq!(listed.iter().map(|row| row[0].as_str()).collect::<Vec<_>>(), ["r", "repo"]);
}

#[test]
fn one_project_gives_the_same_digests_wherever_it_lies() {
    let digests = |folder: &str, file: &str, set: &str| {
        let project = project();
        let args = ["run", file, "--format", "json", "--set", set];
        run_in(&project, folder, &args).exits(0).digests()
    };
    let above = digests(".", "flows/w.yaml", "repos=./mine/repo,./theirs/repo");
    assert_eq!(above, digests(".", "flows/w.yaml", "repos=mine/repo/, ./theirs/repo"));
    assert_eq!(above, digests("flows", "w.yaml", "repos=../mine/repo,../theirs/repo"));
    assert_ne!(above, digests(".", "flows/w.yaml", "repos=./theirs/repo"));
}

#[test]
fn two_clones_in_folders_of_one_name_are_told_apart() {
    let project = project();
    let set = ["--set", "repos=./mine/repo,./theirs/repo,flows/r/../r,./mine/repo"];
    let found = repositories(&project, ".", "flows/w.yaml", &set);
    let names: Vec<&str> = found.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(names, ["mine/repo", "r", "theirs/repo"]);
    // Names that were given twice are a conflict.
    project.write("list.csv", "repo,url\nx,./r\nx,../mine/repo\n");
    let args = ["run", "flows/w.yaml", "--set", "repos=list.csv"];
    let refused = run_in(&project, ".", &args).exits(2);
    says(&refused.stderr, &["would both be called `x`", "columns"]);
}

#[test]
fn what_is_not_there_is_named_in_full() {
    let project = project();
    for (list, said) in [
        ("repos=./nowhere", "project/./nowhere` does not exist"),
        ("repos=none.csv", "project/none.csv` does not exist"),
        ("repos=mine", "flows/../mine` is not a git repository"),
    ] {
        let args = ["check", "flows/w.yaml", "--set", list];
        let refused = run_in(&project, ".", &args).exits(2);
        let flat = refused.stderr.replace(['\n', '│', '·'], " ");
        let flat: String = flat.split_whitespace().collect::<Vec<_>>().join("");
        assert!(flat.contains(&said.replace(' ', "")), "{said}: {refused}");
    }
}

#[test]
fn an_embedding_workflow_gives_paths_of_its_own_folder() {
    let project = project();
    project.write(
        "outer.yaml",
        "galeras: 1
params:
  repos: { type: repos, default: ./theirs/repo }
steps:
  inner:
    uses: ./flows/w.yaml
    with: { repos: '${{ params.repos }}' }
  named:
    uses: ./flows/w.yaml
    with: { repos: mine/repo/../repo }
",
    );
    let addresses = |more: &[&str]| -> Vec<String> {
        let args = [&["run", "../outer.yaml", "--cache", "../cache"], more].concat();
        run_in(&project, "mine", &args).exits(0);
        let show = |step: &str| {
            let args = ["show", "outer.yaml", step, "--format", "json"];
            let rows = project.run(&args).exits(0).json_lines();
            rows[0]["clone_url"].as_str().unwrap().to_string()
        };
        vec![show("inner/repos"), show("named/repos")]
    };
    let named = "../mine/repo/../repo".to_string();
    assert_eq!(addresses(&[]), ["../theirs/repo".to_string(), named.clone()]);
    assert_eq!(addresses(&["--set", "repos=./repo"]), ["../mine/repo".to_string(), named]);
}
