//! `export`: a data set with the rows that may be handed on, and all that strangers need to use it.

use std::fs::File;

use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

use crate::harness::{Outcome, Project, has, hides, says, text};

const WORKFLOW: &str = "galeras: 1
name: study
description: Methods of some repositories.
steps:
  repositories: { op: read, with: { path: repos.csv, key: [repo] } }
  methods: { op: read, with: { path: methods.csv, key: [id] } }
  counted:
    op: sql
    from: methods
    with: { query: 'SELECT repo, count(*) AS n FROM input GROUP BY repo', key: [repo] }
  total: { op: sql, from: methods, with: { query: 'SELECT count(*) AS n FROM input', key: [n] } }
outputs:
  methods: { from: methods, path: methods.parquet }
";

const REPOSITORIES: &str = "repo,license,clone_url
ada/lovely,MIT,https://example.org/ada/lovely
bob/free,Apache-2.0,https://example.org/bob/free
cyd/copyleft,GPL-3.0,https://example.org/cyd/copyleft
dan/unknown,NOASSERTION,https://example.org/dan/unknown
";

/// The address of a repository, as its owner gives it.
const BOB: &str = "https://github.com/bob/free.git";

fn project() -> Project {
    let project = Project::new(WORKFLOW).with("repos.csv", REPOSITORIES);
    let repos = ["ada/lovely", "bob/free", "cyd/copyleft", "dan/unknown", "eve/absent"];
    let row = |i: usize| format!("m{i:03},{},\"def f():\n  return {i}\",{i}\n", repos[i % 5]);
    let rows: String = (0..50).map(row).collect();
    project.write("methods.csv", format!("id,repo,code,size\n{rows}"));
    project.run(&["run", "w.yaml"]).exits(0);
    project
}

fn exported(project: &Project, more: &[&str]) -> Outcome {
    project.run(&[&["export", "w.yaml", "-o", "set", "--format", "json"], more].concat())
}

fn told(said: &Outcome) -> Value {
    said.json_lines().pop().unwrap()
}

fn rows(project: &Project, name: &str) -> usize {
    let file = File::open(project.path("set/data").join(name)).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
    reader.map(|batch| batch.unwrap().num_rows()).sum()
}

#[test]
fn rows_without_a_permissive_licence_are_left_out_and_any_licence_is_a_decision() {
    let project = project();
    let said = exported(&project, &[]).exits(0);
    let table = &told(&said)["tables"][0];
    assert_eq!(table["rows"], 20, "{said}");
    assert_eq!(table["licenses"], json!({"Apache-2.0": 10, "MIT": 10}));
    let left = &table["left_out"];
    assert_eq!(left["its licence, GPL-3.0, is not a permissive one"], 10, "{left}");
    assert_eq!(left["its licence is not known"], 20, "{left}");
    assert_eq!(rows(&project, "methods.parquet"), 20);
    let card = project.read("set/README.md");
    assert!(card.starts_with("---\npretty_name: \"study\"\n"), "{card}");
    says(&card, &["license: \"other\"", "num_examples: 20", text(table, "digest")]);
    says(&card, &["| `methods` | methods | 20 | 30 |", "| methods | out: 50 |"]);
    let attribution = project.read("set/ATTRIBUTION.md");
    says(&attribution, &["| ada/lovely | MIT | 10 |"]);
    hides(&attribution, &["cyd/copyleft"]);
    says(&project.read("set/CITATION.cff"), &["The authors of study"]);
    assert!(project.path("set/workflow/w.yaml").exists());
    let croissant: Value = serde_json::from_str(&project.read("set/croissant.json")).unwrap();
    assert_eq!(croissant["recordSet"][0]["field"].as_array().unwrap().len(), 4);
    assert!(project.left_behind().is_empty());
    // The same results give the same data set.
    let first = told(&said);
    let files = ["README.md", "croissant.json", "CITATION.cff", "data/methods.parquet"];
    let read = || files.map(|name| std::fs::read(project.path("set").join(name)).unwrap());
    let before = read();
    assert_eq!((&first, before), (&told(&exported(&project, &["--overwrite"]).exits(0)), read()));
    let project = self::project();
    let said = exported(&project, &["--any-license", "--exclude", "ADA", "--exclude", BOB]);
    let table = told(&said.exits(0))["tables"][0].clone();
    let wanted = json!([30, {"its owner said no": 20}, {"": 20, "GPL-3.0": 10}]);
    has(&table, "rows left_out licenses", wanted);
    assert!(project.read("set/README.md").contains("--any-license"));
    let project = self::project();
    let said = exported(&project, &["counted", "methods"]).exits(0);
    let names: Vec<Value> =
        told(&said)["tables"].as_array().unwrap().iter().map(|t| t["name"].clone()).collect();
    assert_eq!(names, ["counted", "methods"]);
    assert_eq!(rows(&project, "counted.parquet"), 2);
    let said = exported(&project, &["total", "--overwrite"]).exits(2);
    assert!(said.stderr.contains("`total` do not say where they come from"), "{said}");
    exported(&project, &["total", "--overwrite", "--any-license"]).exits(0);
    let said = exported(&project, &["total", "--overwrite", "--any-license", "--exclude", "ada"]);
    said.exits(2).reports(&["`total` have no column `repo`", "those of ada cannot be left out"]);
    assert!(!project.path("set/data/methods.parquet").exists(), "of the earlier export");
    exported(&project, &["nothing", "--overwrite"]).exits(2).reports(&["nothing"]);
}

#[test]
fn a_folder_with_other_files_is_left_alone() {
    let project = project().with("set/own.txt", "mine");
    exported(&project, &[]).exits(2).reports(&["not empty"]);
    exported(&project, &["--overwrite"]).exits(0);
    assert_eq!(project.read("set/own.txt"), "mine");
    // Nothing is written before all is computed.
    std::fs::remove_dir_all(project.path("set")).unwrap();
    project.change("count(*) AS n FROM input GROUP", "count(*) + 0 AS n FROM input GROUP");
    exported(&project, &[]).exits(1).reports(&["galeras run w.yaml"]);
    assert!(!project.path("set").exists());
}
