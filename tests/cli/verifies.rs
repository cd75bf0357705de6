//! `verify`: whether stored results are what they were, and come out again.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::harness::{Outcome, Project, files_below, says};

const WORKFLOW: &str = "galeras: 1
params:
  most: { type: int, default: 900 }
steps:
  table: { op: read, with: { path: data.csv, key: [id] } }
  scaled:
    op: sql
    from: table
    with: { query: 'SELECT id, x, x * 2 AS y FROM input', key: [id] }
    assert: [ { expr: 'y >= x' } ]
  kept:
    op: validate
    from: scaled
    with: { rules: [ { name: small, check: 'x < ${{ params.most }}' } ] }
outputs:
  kept: { from: kept, path: kept.csv }
";

fn data() -> String {
    let rows = (0..1000).map(|i| format!("row{i:05},{i}\n"));
    std::iter::once("id,x\n".to_string()).chain(rows).collect()
}

/// A project with the workflow and its data, nothing computed.
fn project() -> Project {
    Project::new(WORKFLOW).with("data.csv", data())
}

fn verified(project: &Project) -> Outcome {
    project.run(&["verify", "w.yaml"])
}

fn stored(project: &Project, folder: &str) -> Vec<PathBuf> {
    files_below(&project.path("cache").join(folder))
}

/// The files of the tables that manifests name.
fn tables(project: &Project) -> Vec<PathBuf> {
    let mut named = Vec::new();
    for manifest in stored(project, "actions") {
        let manifest: Value = serde_json::from_slice(&fs::read(manifest).unwrap()).unwrap();
        let ports = manifest["ports"].as_array().unwrap();
        named.extend(ports.iter().map(|port| port["blob"].as_str().unwrap().to_string()));
    }
    let blobs = stored(project, "blobs").into_iter();
    let name = |blob: &PathBuf| blob.file_stem().unwrap().to_string_lossy().into_owned();
    blobs.filter(|blob| named.contains(&name(blob))).collect()
}

#[test]
fn results_that_nobody_touched_are_equal() {
    let project = project().ran();
    let said = verified(&project).exits(0);
    // Three manifests, and the tables that they name: `kept` has three.
    let files = stored(&project, "actions").len() + tables(&project).len();
    assert_eq!(files, 8);
    assert!(said.stdout.starts_with("8 of 8 files equal"), "{said}");
    let last = project.json(&["verify", "w.yaml"]).pop().unwrap();
    assert_eq!((&last["files"], &last["equal"]), (&files.into(), &files.into()), "{last}");
    // A damaged, a missing and a changed file are named.
    for folder in ["blobs", "actions"] {
        let project = self::project().ran();
        let files = if folder == "blobs" { tables(&project) } else { stored(&project, folder) };
        for file in files {
            let whole = fs::read(&file).unwrap();
            let name = file.file_name().unwrap().to_str().unwrap().to_string();
            let mut damaged = whole.clone();
            let middle = damaged.len() / 2;
            damaged[middle] ^= 1;
            fs::write(&file, &damaged).unwrap();
            says(&verified(&project).exits(4).stdout, &[&name, "result of "]);
            if folder == "blobs" {
                fs::remove_file(&file).unwrap();
                says(&verified(&project).exits(4).stdout, &[&name, "missing"]);
            }
            fs::write(&file, &whole).unwrap();
        }
        verified(&project).exits(0);
    }
}

#[test]
fn steps_that_are_computed_come_out_again() {
    let project = project();
    verified(&project).exits(1).reports(&["3 of 3 steps are not computed", "galeras run w.yaml"]);
    project.run_ok(&[]);
    project.change("x * 2", "x * 3");
    verified(&project).exits(1).reports(&["2 of 3 steps are not computed"]);
    // Recomputed steps give the same tables.
    let project = self::project().ran();
    let said = project.cli("verify w.yaml --recompute 3").exits(0);
    said.prints(&["5 of 5 tables equal, 3 of 3 rows equal"]);
    // Nothing was added to the store, and nothing is left behind.
    project.run_ok(&[]).all_hit();
    assert!(project.left_behind().is_empty(), "{:?}", project.left_behind());
    let drawn = |more: &str| {
        let line = format!("verify w.yaml --recompute 1 --format json{more}");
        let mut steps = project.cli(&line).exits(0).events("step_recomputed");
        assert_eq!(steps.len(), 1);
        steps.remove(0)["step"].to_string()
    };
    drawn("");
    let steps: BTreeSet<String> = (0..20).map(|seed| drawn(&format!(" --seed {seed}"))).collect();
    assert_eq!(steps.len(), 3, "a seed draws steps: {steps:?}");
    assert_eq!(drawn(" --seed 7"), drawn(" --seed 7"));
}

/// A step whose program gives something else each time it is asked.
const FICKLE: &str = "galeras: 1
steps:
  rows:
    op: exec
    with:
      sandbox: none
      command: |
        echo x >> ../count
        printf '{\"id\": \"a\", \"n\": 1, \"m\": 1}\\n{\"id\": \"b\", \"n\": %s, \"m\": 2}\\n' $(wc -l < ../count)
      output: { id: utf8, n: int64, m: int64 }
";

#[test]
fn what_does_not_come_out_again_is_shown_by_rows_and_columns() {
    let project = Project::new(FICKLE);
    assert_eq!(project.run_json(&[]).exits(0).status("rows"), "ran");
    let words = ["rows differs", "1 changed, 1 the same", "changed  n (1)", "0 of 1 tables equal"];
    project.cli("verify w.yaml --recompute 1 --allow exec,unsandboxed").exits(4).prints(&words);
    // Without the consent nothing is run.
    let said = project.cli("verify w.yaml --recompute 1").exits(1).prints(&["0 of 0 tables equal"]);
    said.reports(&["no step could be computed again", "0 of 1 steps can be computed again here"]);
}

/// Steps that compute row by row: one that gives several rows for one, with a table of all together,
/// and one whose rows drop out.
const ROWS: &str = "galeras: 1
steps:
  table: { op: read, with: { path: data.csv, key: [id] } }
  asked:
    op: prompt
    from: table
    with: { treatments: { plain: 'x is {{ x }}', polite: 'please, {{ x }}' } }
  kept: { op: validate, from: table, with: { rules: [ { name: small, check: 'x < 900' } ] } }
";

#[test]
fn single_rows_come_out_again() {
    let project = Project::new(ROWS).with("data.csv", data()).ran();
    let rows = |n: &str, seed: &str| {
        let args = ["verify", "w.yaml", "--recompute", n, "--seed", seed];
        let said = project.json(&args).pop().unwrap();
        (said["rows"].as_u64().unwrap(), said["equal_rows"].as_u64().unwrap())
    };
    for seed in ["0", "1", "2"] {
        assert_eq!(rows("20", seed), (20, 20));
    }
    // No more than there are: a thousand of each of both steps.
    assert_eq!(rows("5000", "0"), (2000, 2000));
    let said = project.run(&["verify", "w.yaml", "--recompute", "20"]).exits(0);
    assert!(said.stdout.contains("tables equal, 20 of 20 rows equal"), "{said}");
    assert!(project.left_behind().is_empty(), "{:?}", project.left_behind());
    // Rows that were not computed from their input are found.
    // The results of other rules under the keys of these: a store that lies consistently.
    let honest = fs::read_to_string(project.path("w.yaml")).unwrap();
    let other = Project::new(&honest.replace("x < 900", "x <> 500")).with("data.csv", data()).ran();
    forge(&project, &other, "kept");
    // All rows are drawn: those from 900 on and the one in the middle are others.
    let said = project.cli("verify w.yaml --recompute 2000 --format json").exits(4);
    let last = said.json_lines().pop().unwrap();
    assert_eq!((&last["rows"], &last["equal_rows"]), (&2000.into(), &1899.into()), "{last}");
    let of_steps = said.events("rows_recomputed");
    let kept = of_steps.iter().find(|event| event["step"] == "kept").unwrap();
    assert_eq!((&kept["rows"], &kept["equal"]), (&1000.into(), &899.into()), "{kept}");
    project.run(&["verify", "w.yaml", "--recompute", "3"]).exits(4).prints(&["kept differs"]);
}

/// Replaces the tables of a result with those of another store, in a manifest with a digest that
/// fits.
fn forge(project: &Project, other: &Project, step: &str) {
    let manifest = |project: &Project| {
        let files = stored(project, "actions").into_iter();
        let read = |file: PathBuf| {
            let value: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
            (value["labels"]["step"] == step).then_some((file, value))
        };
        files.filter_map(read).next().unwrap()
    };
    let ((file, mut forged), (_, theirs)) = (manifest(project), manifest(other));
    forged["ports"] = theirs["ports"].clone();
    for blob in stored(other, "blobs") {
        let own = project.path("cache").join(blob.strip_prefix(other.path("cache")).unwrap());
        fs::create_dir_all(own.parent().unwrap()).unwrap();
        fs::copy(blob, own).unwrap();
    }
    fs::write(file, crate::forged_stores::sealed(&forged)).unwrap();
}
