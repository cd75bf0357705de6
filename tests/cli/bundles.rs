//! `bundle`: a workflow with its results in one file, which opens without the program, says nothing
//! of the machine that it was made on, and of which one changed byte is found.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;

use serde_json::Value;
use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

use crate::harness::{Outcome, Project, says};

pub(crate) const WORKFLOW: &str = "galeras: 1
name: study
description: What the data say.
params:
  most: { type: int, default: 90 }
  data: { type: path, default: ../data/rows.csv }
steps:
  table: { op: read, with: { path: '${{ params.data }}', key: [id] } }
  scaled: { op: sql, from: table, with: { query: 'SELECT id, x, x * 2 AS y FROM input', key: [id] } }
  kept:
    op: validate
    from: scaled
    with: { rules: [ { name: small, check: 'x < ${{ params.most }}' } ] }
    assert: [ { expr: 'y >= x' } ]
outputs:
  kept: { from: kept, path: kept.csv }
  rejected: { from: kept.rejects, path: out/rejected.parquet }
";

pub(crate) fn data() -> String {
    let rows = (0..100).map(|i| format!("row{i:05},{i}\n"));
    std::iter::once("id,x\n".to_string()).chain(rows).collect()
}

/// A project whose workflow, in its own folder, reads a file in another one.
pub(crate) fn project() -> Project {
    Project::empty().with("flows/w.yaml", WORKFLOW).with("data/rows.csv", data())
}

pub(crate) fn computed() -> Project {
    let project = project();
    project.run(&["run", "flows/w.yaml"]).exits(0);
    project
}

fn bundle_of_all() -> (Project, String) {
    let project = computed();
    bundled(&project, &[]).exits(0);
    let bundle = project.path("b.zip").to_string_lossy().into_owned();
    (project, bundle)
}

pub(crate) fn bundled(project: &Project, more: &[&str]) -> Outcome {
    project.run(&[&["bundle", "flows/w.yaml", "-o", "b.zip"], more].concat())
}

/// `run flows/w.yaml` with more arguments, all of whose results are there.
#[track_caller]
fn finds_all(project: &Project, more: &[&str]) {
    let args = [&["run", "flows/w.yaml", "--format", "json"], more].concat();
    project.run(&args).exits(0).all_hit();
}

pub(crate) type Files = BTreeMap<String, Vec<u8>>;

pub(crate) fn entries(bundle: &Path) -> Files {
    let mut zip = ZipArchive::new(File::open(bundle).unwrap()).unwrap();
    let mut files = BTreeMap::new();
    for at in 0..zip.len() {
        let mut entry = zip.by_index(at).unwrap();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        let name = String::from_utf8(entry.name_raw().to_vec()).unwrap();
        files.insert(name, bytes);
    }
    files
}

pub(crate) fn repacked(files: &Files, to: &Path) {
    let mut zip = ZipWriter::new(File::create(to).unwrap());
    for (name, bytes) in files {
        zip.start_file(name.as_str(), SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap();
}

fn unpacked(project: &Project) -> Project {
    let other = Project::empty();
    entries(&project.path("b.zip")).iter().for_each(|(name, bytes)| other.write(name, bytes));
    other
}

#[test]
fn a_bundle_has_everything_and_the_same_bytes_twice() {
    let project = computed();
    let said = bundled(&project, &[]).exits(0);
    assert!(said.stdout.starts_with("b.zip: ") && said.stdout.contains("3 results"), "{said}");
    let bundle = project.path("b.zip");
    let first = fs::read(&bundle).unwrap();
    bundled(&project, &[]).exits(0);
    assert!(first == fs::read(&bundle).unwrap(), "the bytes differ");
    let files = entries(&bundle);
    let wanted = "README.md report.html bundle.json files.b3sum ro-crate-metadata.json \
                  workflow/flows/w.yaml workflow/data/rows.csv outputs/kept.csv \
                  outputs/out/rejected.parquet tables/kept.rejects.csv tables/scaled.out.csv";
    for name in wanted.split(' ') {
        assert!(files.contains_key(name), "{name} is not in {:?}", files.keys());
    }
    assert_eq!(files["outputs/kept.csv"], fs::read(project.path("kept.csv")).unwrap());
    let report = String::from_utf8_lossy(&files["report.html"]).replace("&#x2f;", "/");
    assert!(report.contains("galeras run workflow/flows/w.yaml"), "commands that work in it");
    assert!(report.contains("row00004") && !report.contains("--cache"), "rows, and its own store");
    // A run that computes nothing is another run of the same results.
    project.run(&["run", "flows/w.yaml"]).exits(0);
    bundled(&project, &[]).exits(0);
    assert!(first == fs::read(&bundle).unwrap(), "the bytes differ after a run of hits");
    let count = |prefix: &str| files.keys().filter(|name| name.starts_with(prefix)).count();
    // The tables of results; parts of row-precise reuse stay in the store.
    assert_eq!(count("cache/blobs/"), 5);
    assert_eq!((count("cache/actions/"), count("cache/checks/")), (3, 1));
    assert_eq!(files.len(), files["files.b3sum"].iter().filter(|b| **b == b'\n').count() + 1);
    let readme = String::from_utf8_lossy(&files["README.md"]).into_owned();
    assert!(readme.contains("| kept.rejects | 10 |"), "{readme}");
    let metadata: Value = serde_json::from_slice(&files["ro-crate-metadata.json"]).unwrap();
    let graph = metadata["@graph"].as_array().unwrap();
    let parts = graph.iter().find(|entity| entity["@id"] == "./").unwrap()["hasPart"].clone();
    assert!(parts.to_string().contains("outputs/kept.csv"), "{parts}");
    assert!(project.left_behind().is_empty(), "{:?}", project.left_behind());
}

#[test]
fn a_bundle_is_run_by_a_stranger_computes_to_the_same_and_is_a_remote() {
    let (project, bundle) = bundle_of_all();
    let other = unpacked(&project);
    let file = "workflow/flows/w.yaml";
    let ran = other.run(&["run", file, "--format", "json", "--out", "new"]).exits(0);
    ran.all_hit();
    assert_eq!(other.read("new/kept.csv"), project.read("kept.csv"));
    let again = other.run(&["run", file, "--format", "json", "--cache", "new-cache"]).exits(0);
    assert_eq!(again.digests(), ran.digests());
    other.run(&["verify", file, "--recompute", "3"]).exits(0).prints(&["5 of 5 tables equal"]);
    let other = self::project();
    other.run(&["pull", "flows/w.yaml", "--from", &bundle]).exits(0).prints(&["3 results"]);
    finds_all(&other, &[]);
    let third = self::project();
    finds_all(&third, &["--remote", &bundle]);
    assert_eq!(third.read("kept.csv"), project.read("kept.csv"));
    for (args, word) in [
        (["push", "flows/w.yaml", "--remote", &bundle], "a bundle is not sent to"),
        (["pull", "flows/w.yaml", "--from", "none.zip"], "there is no bundle none.zip"),
    ] {
        other.run(&args).exits(2).reports(&[word]);
    }
    assert!(other.left_behind().is_empty() && third.left_behind().is_empty());
}

#[test]
fn a_flipped_byte_is_found_and_damaged_missing_and_further_files_are_named() {
    let (project, _) = bundle_of_all();
    let verified = project.run(&["verify", "b.zip", "--recompute", "3"]).exits(0);
    verified.prints(&[" files equal", "5 of 5 tables equal"]);
    let whole = fs::read(project.path("b.zip")).unwrap();
    // A seeded walk over the file, which ends at its last byte.
    let places = (0..40_usize).map(|n| (n * 7919 + 13) % whole.len()).chain([whole.len() - 1]);
    for at in places {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        fs::write(project.path("d.zip"), damaged).unwrap();
        assert_eq!(project.run(&["verify", "d.zip"]).code, Some(4), "byte {at}");
    }
    fs::write(project.path("d.zip"), &whole[..whole.len() / 2]).unwrap();
    project.run(&["verify", "d.zip"]).exits(4);
    let files = entries(&project.path("b.zip"));
    let blob = files.keys().find(|name| name.starts_with("cache/blobs/")).unwrap().clone();
    let check = |change: &dyn Fn(&mut Files), name: &str, why: &str| {
        let mut files = files.clone();
        change(&mut files);
        repacked(&files, &project.path("d.zip"));
        let said = project.run(&["verify", "d.zip"]).exits(4);
        let line = said.stdout.lines().find(|line| line.starts_with(name));
        assert!(line.is_some_and(|line| line.contains(why)), "{name}: {why}\n{said}");
        said
    };
    let flip = |files: &mut Files| files.get_mut(&blob).unwrap()[20] ^= 1;
    check(&flip, &blob, "does not match the list");
    let remove = |files: &mut Files| drop(files.remove("README.md"));
    check(&remove, "README.md", "it is missing");
    let add = |files: &mut Files| drop(files.insert("new.txt".into(), vec![1]));
    check(&add, "new.txt", "not in the list");
    let lead_out = |files: &mut Files| drop(files.insert("../evil.txt".into(), vec![1]));
    check(&lead_out, "../evil.txt", "outside of the bundle");
    assert!(!project.root().parent().unwrap().join("evil.txt").exists());
    // Packed again with nothing changed, all files are equal, and the new packing is reported.
    assert_eq!(check(&|_| {}, "d.zip", "packed again").stdout.lines().count(), 2);
    project.write("e.zip", "PK nothing");
    project.run(&["verify", "e.zip"]).exits(4).reports(&["not a zip file"]);
}

#[test]
fn a_table_that_is_left_out_keeps_its_digest_and_nothing_says_whose_machine_it_was() {
    let project = computed();
    let without = ["--without", "scaled", "--without", "kept.rejects"];
    bundled(&project, &without).exits(0).prints(&["without 2 tables"]);
    let files = entries(&project.path("b.zip"));
    assert!(!files.contains_key("outputs/out/rejected.parquet"), "{:?}", files.keys());
    assert!(!files.contains_key("tables/scaled.out.csv") && !files.contains_key("report.html"));
    assert!(!String::from_utf8_lossy(&files["README.md"]).contains("report.html"));
    let record: Value = serde_json::from_slice(&files["bundle.json"]).unwrap();
    let scaled = &record["steps"][1]["tables"][0];
    assert!(scaled["file"].is_null() && scaled["digest"].is_string(), "{scaled}");
    let blob = scaled["blob"].as_str().unwrap();
    assert!(!files.keys().any(|name| name.contains(blob)));
    project.run(&["verify", "b.zip"]).exits(0);
    // A workflow that needs no omitted table is complete.
    let other = self::project();
    let output = "  rejected: { from: kept.rejects, path: out/rejected.parquet }\n";
    other.edit("flows/w.yaml", output, "");
    finds_all(&other, &["--remote", project.path("b.zip").to_str().unwrap()]);
    bundled(&project, &["--without", "scalde"]).exits(2).reports(&["scaled"]);
    let project = self::project().with("elsewhere/given.csv", data().replace("row", "own"));
    let set = format!("data={}", project.path("elsewhere/given.csv").display());
    let me = [("USER", "zaphodbb"), ("LOGNAME", "zaphodbb"), ("API_KEY", "sk-planted-planted")];
    project.run_with(&["run", "flows/w.yaml", "--set", &set], &me).exits(0);
    project.run_with(&["bundle", "flows/w.yaml", "--set", &set, "-o", "b.zip"], &me).exits(0);
    let top = project.root().parent().unwrap().to_string_lossy().into_owned();
    let files = entries(&project.path("b.zip"));
    assert!(files.contains_key("workflow/given/data/given.csv"), "{:?}", files.keys());
    for (name, bytes) in &files {
        let text = String::from_utf8_lossy(bytes);
        for private in [top.as_str(), "zaphodbb", "sk-planted-planted"] {
            assert!(!text.contains(private) && !name.contains(private), "{private} in {name}");
        }
    }
    // A setting that is a path is one of the bundle.
    let other = unpacked(&project);
    let set = "data=workflow/given/data/given.csv";
    let args = ["run", "workflow/w.yaml", "--set", set, "--format", "json"];
    other.run(&args).exits(0).all_hit();
}

#[test]
fn what_must_not_be_handed_on_is_refused_and_a_folder_of_ratings_goes_along() {
    let project = computed();
    let with_key = |args: &[&str]| project.run_with(args, &[("MY_TOKEN", "tok-planted-planted")]);
    let bundle = ["bundle", "flows/w.yaml", "-o", "b.zip"];
    project.edit("flows/w.yaml", "galeras: 1\n", "galeras: 1\n# tok-planted-planted\n");
    let said = with_key(&bundle).exits(2).reports(&["workflow/flows/w.yaml, line 2", "MY_TOKEN"]);
    assert!(!said.stderr.contains("tok-planted") && !project.path("b.zip").exists(), "{said}");
    project.edit("flows/w.yaml", "# tok-planted-planted\n", "");
    // In the cell of a table.
    project.edit("data/rows.csv", "row00007,", "tok-planted-planted7,");
    project.run(&["run", "flows/w.yaml"]).exits(0);
    says(&with_key(&bundle).exits(2).stderr, &["table.out", "column id"]);
    // By an absolute path.
    let absolute = project.path("data/rows.csv").to_string_lossy().into_owned();
    project.edit("flows/w.yaml", "../data/rows.csv", &absolute);
    project.run(&["run", "flows/w.yaml"]).exits(0);
    project.run(&bundle).exits(2).reports(&["absolute path"]);
    let project = self::project();
    // Results that are not computed are not bundled.
    bundled(&project, &[]).exits(1).reports(&["galeras run flows/w.yaml"]);
    assert!(!project.path("b.zip").exists());
    let with = "{ questions: { fine: Is it fine? }, ratings: said }";
    let review = format!("  judged: {{ op: review, from: kept, with: {with} }}\noutputs:");
    project.edit("flows/w.yaml", "outputs:", &review);
    let no = r#"{"id":"row00003","question":"fine","answer":"no","time":"2026-01-01T12:00:00Z"}"#;
    project.write("flows/said/ann.jsonl", format!("{no}\n"));
    project.write("flows/said/README.md", "Who said what.\n");
    project.write("flows/said/.gitattributes", "*.jsonl merge=union\n");
    project.run(&["run", "flows/w.yaml"]).exits(0);
    bundled(&project, &[]).exits(0);
    let other = unpacked(&project);
    assert_eq!(other.read("workflow/flows/said/ann.jsonl"), format!("{no}\n"));
    let ran = other.run(&["run", "workflow/flows/w.yaml", "--format", "json"]).exits(0);
    ran.all_hit();
    assert_eq!(ran.step("judged")["rows"], 89);
    // Words are not paths, even if a folder of this program has such a name.
    let words = "Rows that are unpacked in cache/workflow.";
    project.edit("flows/w.yaml", "What the data say.", words);
    bundled(&project, &[]).exits(0);
    let report = &entries(&project.path("b.zip"))["report.html"];
    assert!(String::from_utf8_lossy(report).contains("Rows that are unpacked"));
}
