//! `bundle`: a workflow with its results in one file, which opens without the program, says nothing
//! of the machine that it was made on, and of which one changed byte is found.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;

use serde_json::Value;
use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

use galeras_test_servers::static_files::{Manners, StaticFiles};

use crate::harness::{Outcome, Project, Running};

const WORKFLOW: &str = "galeras: 1
name: study
description: What the data say.
params:
  most: { type: int, default: 90 }
  data: { type: path, default: ../data/rows.csv }
steps:
  table:
    op: read
    with: { path: '${{ params.data }}', key: [id] }
  scaled:
    op: sql
    from: table
    with: { query: 'SELECT id, x, x * 2 AS y FROM input', key: [id] }
  kept:
    op: validate
    from: scaled
    with: { rules: [ { name: small, check: 'x < ${{ params.most }}' } ] }
    assert: [ { expr: 'y >= x' } ]
outputs:
  kept: { from: kept, path: kept.csv }
  rejected: { from: kept.rejects, path: out/rejected.parquet }
";

fn data() -> String {
    let rows = (0..100).map(|i| format!("row{i:05},{i}\n"));
    std::iter::once("id,x\n".to_string()).chain(rows).collect()
}

/// A project whose workflow, in a folder of its own, reads a file in another one.
fn project() -> Project {
    let project = Project::empty();
    project.write("flows/w.yaml", WORKFLOW);
    project.write("data/rows.csv", data());
    project
}

fn computed() -> Project {
    let project = project();
    project.run(&["run", "flows/w.yaml"]).exits(0);
    project
}

fn bundled(project: &Project, more: &[&str]) -> Outcome {
    project.run(&[&["bundle", "flows/w.yaml", "-o", "b.zip"], more].concat())
}

/// The files in a bundle by name.
fn entries(bundle: &Path) -> BTreeMap<String, Vec<u8>> {
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

fn repacked(files: &BTreeMap<String, Vec<u8>>, to: &Path) {
    let mut zip = ZipWriter::new(File::create(to).unwrap());
    for (name, bytes) in files {
        zip.start_file(name.as_str(), SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap();
}

/// Packs files as the program would: the list has their digests, and the end that of all of it.
fn forged(mut files: BTreeMap<String, Vec<u8>>, to: &Path) {
    files.remove("files.b3sum");
    let line = |(name, bytes): (&String, &Vec<u8>)| format!("{}  {name}\n", blake3::hash(bytes));
    let list: String = files.iter().map(line).collect();
    files.insert("files.b3sum".into(), list.into_bytes());
    repacked(&files, to);
    let mut bytes = fs::read(to).unwrap();
    // The length of the comment is what the file ends with so far.
    let seal = "galeras bundle blake3:";
    let end = bytes.len() - 2;
    bytes.truncate(end);
    bytes.extend((seal.len() as u16 + 64).to_le_bytes());
    let digest = blake3::hash(&bytes);
    bytes.extend(format!("{seal}{digest}").into_bytes());
    fs::write(to, bytes).unwrap();
}

fn unpacked(bundle: &Path, to: &Path) {
    for (name, bytes) in entries(bundle) {
        let place = to.join(name);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, bytes).unwrap();
    }
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
    for name in [
        "README.md",
        "report.html",
        "bundle.json",
        "files.b3sum",
        "ro-crate-metadata.json",
        "workflow/flows/w.yaml",
        "workflow/data/rows.csv",
        "outputs/kept.csv",
        "outputs/out/rejected.parquet",
        "tables/kept.rejects.csv",
        "tables/scaled.out.csv",
    ] {
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
fn a_stranger_runs_it_without_computing_and_computes_it_to_the_same() {
    let project = computed();
    bundled(&project, &[]).exits(0);
    let other = Project::empty();
    unpacked(&project.path("b.zip"), &other.root());
    let file = "workflow/flows/w.yaml";
    let ran = other.run(&["run", file, "--format", "json", "--out", "new"]).exits(0);
    ran.all_hit();
    assert_eq!(other.read("new/kept.csv"), project.read("kept.csv"));
    let again = other.run(&["run", file, "--format", "json", "--cache", "new-cache"]).exits(0);
    assert_eq!(again.digests(), ran.digests());
    let said = other.run(&["verify", file, "--recompute", "3"]).exits(0);
    assert!(said.stdout.contains("5 of 5 tables equal"), "{said}");
}

#[test]
fn results_come_from_a_bundle_as_from_any_remote() {
    let project = computed();
    bundled(&project, &[]).exits(0);
    let bundle = project.path("b.zip").to_string_lossy().into_owned();
    let other = self::project();
    let pulled = other.run(&["pull", "flows/w.yaml", "--from", &bundle]).exits(0);
    assert!(pulled.stdout.contains("3 results"), "{pulled}");
    other.run(&["run", "flows/w.yaml", "--format", "json"]).exits(0).all_hit();
    let third = self::project();
    let args = ["run", "flows/w.yaml", "--format", "json", "--remote", &bundle];
    third.run(&args).exits(0).all_hit();
    assert_eq!(third.read("kept.csv"), project.read("kept.csv"));
    let refused = other.run(&["push", "flows/w.yaml", "--remote", &bundle]).exits(2);
    assert!(refused.stderr.contains("a bundle is not sent to"), "{refused}");
    let missing = other.run(&["pull", "flows/w.yaml", "--from", "none.zip"]).exits(2);
    assert!(missing.stderr.contains("there is no bundle none.zip"), "{missing}");
    assert!(other.left_behind().is_empty() && third.left_behind().is_empty());
}

#[test]
fn one_flipped_byte_is_found() {
    let project = computed();
    bundled(&project, &[]).exits(0);
    let said = project.run(&["verify", "b.zip", "--recompute", "3"]).exits(0);
    assert!(said.stdout.contains(" files equal"), "{said}");
    assert!(said.stdout.contains("5 of 5 tables equal"), "{said}");
    let whole = fs::read(project.path("b.zip")).unwrap();
    // A seeded walk over the file, which ends at its last byte.
    let places = (0..40_usize).map(|n| (n * 7919 + 13) % whole.len()).chain([whole.len() - 1]);
    for at in places {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        fs::write(project.path("d.zip"), damaged).unwrap();
        let said = project.run(&["verify", "d.zip"]);
        assert_eq!(said.code, Some(4), "byte {at}: {said}");
    }
    fs::write(project.path("d.zip"), &whole[..whole.len() / 2]).unwrap();
    project.run(&["verify", "d.zip"]).exits(4);
}

#[test]
fn damaged_missing_and_further_files_are_named() {
    let project = computed();
    bundled(&project, &[]).exits(0);
    let files = entries(&project.path("b.zip"));
    let blob = files.keys().find(|name| name.starts_with("cache/blobs/")).unwrap().clone();
    type Files = BTreeMap<String, Vec<u8>>;
    let check = |change: &dyn Fn(&mut Files), name: &str, why: &str| {
        let mut files = files.clone();
        change(&mut files);
        repacked(&files, &project.path("d.zip"));
        let said = project.run(&["verify", "d.zip"]).exits(4);
        let line = said.stdout.lines().find(|line| line.starts_with(name));
        assert!(line.is_some_and(|line| line.contains(why)), "{name}: {why}\n{said}");
        said
    };
    let flip = |files: &mut BTreeMap<String, Vec<u8>>| files.get_mut(&blob).unwrap()[20] ^= 1;
    check(&flip, &blob, "not what the list says");
    let remove = |files: &mut BTreeMap<String, Vec<u8>>| drop(files.remove("README.md"));
    check(&remove, "README.md", "it is missing");
    let add = |files: &mut BTreeMap<String, Vec<u8>>| drop(files.insert("new.txt".into(), vec![1]));
    check(&add, "new.txt", "not in the list");
    let lead_out = |files: &mut BTreeMap<String, Vec<u8>>| {
        files.insert("../evil.txt".into(), vec![1]);
    };
    check(&lead_out, "../evil.txt", "outside of the bundle");
    assert!(!project.root().parent().unwrap().join("evil.txt").exists());
    // Packed anew with nothing changed, all files are equal, and that it was is said.
    let said = check(&|_| {}, "d.zip", "packed anew");
    assert_eq!(said.stdout.lines().count(), 2, "{said}");
    project.write("e.zip", "PK nothing");
    let said = project.run(&["verify", "e.zip"]).exits(4);
    assert!(said.stderr.contains("not a zip file"), "{said}");
}

#[test]
fn what_is_shown_of_tables_is_what_they_give_whatever_the_sums_say() {
    let project = computed();
    bundled(&project, &[]).exits(0);
    let files = entries(&project.path("b.zip"));
    forged(files.clone(), &project.path("d.zip"));
    let said = project.run(&["verify", "d.zip"]).exits(0);
    assert!(said.stdout.contains(" files equal"), "all sums are right: {said}");
    let forge = |name: &str, change: &dyn Fn(&mut BTreeMap<String, Vec<u8>>), why: &str| {
        let mut files = files.clone();
        change(&mut files);
        forged(files, &project.path("d.zip"));
        let said = project.run(&["verify", "d.zip"]).exits(4);
        let line = said.stdout.lines().find(|line| line.starts_with(name));
        assert!(line.is_some_and(|line| line.contains(why)), "{name}: {why}\n{said}");
        assert_eq!(said.stdout.lines().count(), 2, "nothing else: {said}");
    };
    let replace = |name: &'static str, from: &'static str, to: &'static str| {
        move |files: &mut BTreeMap<String, Vec<u8>>| {
            let text = String::from_utf8(files[name].clone()).unwrap();
            assert!(text.contains(from), "{name}: {text}");
            files.insert(name.into(), text.replacen(from, to, 1).into_bytes());
        }
    };
    for name in ["outputs/kept.csv", "tables/scaled.out.csv"] {
        forge(name, &replace(name, "row00007,7,14", "row00007,7,41"), "not what its table gives");
    }
    let other = |files: &mut BTreeMap<String, Vec<u8>>| {
        let blob = files.keys().find(|name| name.starts_with("cache/blobs/")).unwrap().clone();
        files.insert("outputs/out/rejected.parquet".into(), files[&blob].clone());
    };
    forge("outputs/out/rejected.parquet", &other, "not what its table gives");
    let add = |files: &mut BTreeMap<String, Vec<u8>>| {
        files.insert("outputs/effects.csv".into(), b"effect\n0.9\n".to_vec());
    };
    forge("outputs/effects.csv", &add, "of no result of the bundle");
    let rename = |files: &mut BTreeMap<String, Vec<u8>>| {
        replace("bundle.json", "outputs/kept.csv", "outputs/best.csv")(files);
        let kept = files.remove("outputs/kept.csv").unwrap();
        files.insert("outputs/best.csv".into(), kept);
    };
    forge("outputs/best.csv", &rename, "the workflow does not write it");
    let drop_table = replace("bundle.json", "\"tables/scaled.out.csv\"", "null");
    forge("tables/scaled.out.csv", &drop_table, "of no result of the bundle");
    // Another version may write a table in other words, and says so.
    let version = |files: &mut BTreeMap<String, Vec<u8>>| {
        let said = format!("\"program\": \"{}\"", env!("CARGO_PKG_VERSION"));
        let text = String::from_utf8(files["bundle.json"].clone()).unwrap();
        assert!(text.contains(&said), "{text}");
        files.insert(
            "bundle.json".into(),
            text.replace(&said, "\"program\": \"9.9.9\"").into_bytes(),
        );
        replace("outputs/kept.csv", "row00007,7,14", "row00007,7,41")(files);
    };
    forge("outputs/kept.csv", &version, "version 9.9.9 made the bundle");
    assert!(project.left_behind().is_empty(), "{:?}", project.left_behind());
}

/// The files of a bundle with `bundle.json` changed.
fn with_record(
    files: &BTreeMap<String, Vec<u8>>,
    change: impl FnOnce(&mut Value),
) -> BTreeMap<String, Vec<u8>> {
    let mut files = files.clone();
    let mut record: Value = serde_json::from_slice(&files["bundle.json"]).unwrap();
    change(&mut record);
    files.insert("bundle.json".into(), serde_json::to_vec(&record).unwrap());
    files
}

#[test]
fn a_bundle_that_says_less_than_it_holds_is_found() {
    let project = computed();
    bundled(&project, &[]).exits(0);
    let files = entries(&project.path("b.zip"));
    let step = |record: &Value, name: &str| {
        let steps = record["steps"].as_array().unwrap();
        steps.iter().position(|step| step["step"] == name).unwrap()
    };
    let verified = |files: BTreeMap<String, Vec<u8>>, why: &str| {
        forged(files, &project.path("d.zip"));
        let said = project.run(&["verify", "d.zip"]).exits(4);
        assert!(said.stdout.contains(why), "{said}");
        said
    };
    // A result that the record does not name, which a run would find.
    let fewer = with_record(&files, |record| {
        let at = step(record, "scaled");
        record["steps"].as_array_mut().unwrap().remove(at);
    });
    let said = verified(fewer, "it is of no result of the bundle");
    assert!(said.stdout.contains("cache/actions/"), "{said}");
    // One that is said to be left out, and is there with other bytes.
    let mut blob = String::new();
    let mut other = with_record(&files, |record| {
        let at = step(record, "scaled");
        let mut twice = record["steps"][at].clone();
        blob = twice["tables"][0]["file"].as_str().unwrap().to_string();
        twice["tables"][0]["file"] = Value::Null;
        twice["tables"][0]["csv"] = Value::Null;
        record["steps"].as_array_mut().unwrap().push(twice);
    });
    let stranger = files.keys().find(|name| name.ends_with(".parquet") && **name != blob).unwrap();
    other.insert(blob.clone(), files[stranger].clone());
    let said = verified(other, &blob);
    assert!(
        said.stdout.contains("not what its name says") || said.stdout.contains("bytes"),
        "{said}"
    );
    // Parts of row-precise reuse are in no bundle: nothing says what they are computed from.
    let mut part = files.clone();
    part.insert("cache/memo/00/part.json".into(), b"{}".to_vec());
    verified(part, "cache/memo/00/part.json: it is of no result");
    // A name that leads elsewhere is not read.
    for name in ["/dev/zero", "tables/../../x", "workflow/flows/w.yaml"] {
        let elsewhere = with_record(&files, |record| {
            let at = step(record, "scaled");
            record["steps"][at]["tables"][0]["csv"] = name.into();
        });
        verified(elsewhere, "tables/scaled.out.csv: it is of no result");
        let both = with_record(&files, |record| {
            let at = step(record, "scaled");
            let mut further = record["steps"][at].clone();
            further["tables"][0]["csv"] = name.into();
            record["steps"].as_array_mut().unwrap().push(further);
        });
        verified(both, &format!("{name}: it is missing"));
    }
}

#[test]
fn a_bundle_whose_outputs_cannot_be_compared_is_not_verified() {
    let project = computed();
    bundled(&project, &[]).exits(0);
    let mut files = entries(&project.path("b.zip"));
    let text = String::from_utf8(files["workflow/flows/w.yaml"].clone()).unwrap();
    let other = text.replace("x * 2 AS y", "2 * x AS y");
    assert_ne!(text, other);
    files.insert("workflow/flows/w.yaml".into(), other.into_bytes());
    forged(files.clone(), &project.path("d.zip"));
    let said = project.run(&["verify", "d.zip"]).exits(1);
    assert!(said.stderr.contains("2 outputs were not compared"), "{said}");
    let said = project.run(&["verify", "d.zip", "--format", "json"]).exits(1);
    let events = said.events("not_compared");
    assert_eq!(events.len(), 1, "{said}");
    assert!(events[0]["outputs"].to_string().contains("outputs/kept.csv"), "{said}");
    // Nor one of another version whose workflow is none.
    let mut broken = with_record(&files, |record| record["program"] = "9.9.9".into());
    broken.insert("workflow/flows/w.yaml".into(), b"galeras: [".to_vec());
    forged(broken, &project.path("d.zip"));
    let said = project.run(&["verify", "d.zip"]).exits(1);
    assert!(said.stderr.contains("version 9.9.9 made it"), "{said}");
    // A bundle without outputs shows nothing that could be compared.
    let workflow = WORKFLOW.split("outputs:").next().unwrap();
    project.write("flows/w.yaml", workflow);
    project.run(&["run", "flows/w.yaml"]).exits(0);
    bundled(&project, &[]).exits(0);
    project.run(&["verify", "b.zip"]).exits(0);
}

#[test]
fn verifying_a_bundle_asks_no_server() {
    let project = project();
    let server = StaticFiles::start(&project.path("data"), Manners::Good);
    let url = format!("{}/rows.csv", server.url);
    project.edit(
        "flows/w.yaml",
        "{ path: '${{ params.data }}', key",
        &format!("{{ url: '{url}', key"),
    );
    project.run(&["run", "flows/w.yaml"]).exits(0);
    bundled(&project, &[]).exits(0);
    let asked = server.requests().len();
    assert!(asked > 0, "it was read there");
    let said = project.run(&["verify", "b.zip"]).exits(1);
    assert!(said.stdout.contains(" files equal"), "{said}");
    assert!(said.stderr.contains("2 outputs were not compared"), "{said}");
    let allow = format!("host:{}", server.url);
    assert!(said.stderr.contains(&format!("--allow {allow}")), "{said}");
    assert_eq!(server.requests().len(), asked, "nobody was asked");
    project.run(&["verify", "b.zip", "--allow", &allow]).exits(0);
    assert!(server.requests().len() > asked);
}

#[test]
fn a_table_that_is_left_out_keeps_its_digest() {
    let project = computed();
    let said = bundled(&project, &["--without", "scaled", "--without", "kept.rejects"]).exits(0);
    assert!(said.stdout.contains("without 2 tables"), "{said}");
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
    // What needs no table that was left out is found.
    let other = self::project();
    other.edit(
        "flows/w.yaml",
        "  rejected: { from: kept.rejects, path: out/rejected.parquet }\n",
        "",
    );
    let bundle = project.path("b.zip").to_string_lossy().into_owned();
    let args = ["run", "flows/w.yaml", "--format", "json", "--remote", &bundle];
    other.run(&args).exits(0).all_hit();
    let unknown = bundled(&project, &["--without", "scalde"]).exits(2);
    assert!(unknown.stderr.contains("scaled"), "{unknown}");
}

#[test]
fn nothing_in_a_bundle_says_whose_machine_it_was_made_on() {
    let project = project();
    project.write("elsewhere/given.csv", data().replace("row", "own"));
    let given = project.path("elsewhere/given.csv");
    let set = format!("data={}", given.display());
    let command = |args: &[&str]| {
        let mut command = project.command(args);
        command
            .env("USER", "zaphodbb")
            .env("LOGNAME", "zaphodbb")
            .env("API_KEY", "sk-planted-planted");
        Running::start(command).finish()
    };
    command(&["run", "flows/w.yaml", "--set", &set]).exits(0);
    command(&["bundle", "flows/w.yaml", "--set", &set, "-o", "b.zip"]).exits(0);
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
    let other = Project::empty();
    unpacked(&project.path("b.zip"), &other.root());
    let set = "data=workflow/given/data/given.csv";
    let args = ["run", "workflow/w.yaml", "--set", set, "--format", "json"];
    other.run(&args).exits(0).all_hit();
}

#[test]
fn what_must_not_be_handed_on_is_refused_and_named() {
    let project = computed();
    let with_key = |args: &[&str]| {
        let mut command = project.command(args);
        command.env("MY_TOKEN", "tok-planted-planted");
        Running::start(command).finish()
    };
    let bundle = ["bundle", "flows/w.yaml", "-o", "b.zip"];
    project.edit("flows/w.yaml", "galeras: 1\n", "galeras: 1\n# tok-planted-planted\n");
    let said = with_key(&bundle).exits(2);
    assert!(
        said.stderr.contains("workflow/flows/w.yaml, line 2") && said.stderr.contains("MY_TOKEN"),
        "{said}"
    );
    assert!(!said.stderr.contains("tok-planted") && !project.path("b.zip").exists(), "{said}");
    project.edit("flows/w.yaml", "# tok-planted-planted\n", "");
    // In the cell of a table.
    project.edit("data/rows.csv", "row00007,", "tok-planted-planted7,");
    project.run(&["run", "flows/w.yaml"]).exits(0);
    let said = with_key(&bundle).exits(2);
    assert!(said.stderr.contains("table.out") && said.stderr.contains("column id"), "{said}");
    // By an absolute path.
    let absolute = project.path("data/rows.csv").to_string_lossy().into_owned();
    project.edit("flows/w.yaml", "../data/rows.csv", &absolute);
    project.run(&["run", "flows/w.yaml"]).exits(0);
    let said = project.run(&bundle).exits(2);
    assert!(said.stderr.contains("absolute path"), "{said}");
}

#[test]
fn what_is_not_computed_is_not_bundled() {
    let project = project();
    let said = bundled(&project, &[]).exits(1);
    assert!(said.stderr.contains("galeras run flows/w.yaml"), "{said}");
    assert!(!project.path("b.zip").exists());
}

#[test]
fn a_folder_of_ratings_goes_along() {
    let project = project();
    let review = "  judged:
    op: review
    from: kept
    with: { questions: { fine: Is it fine? }, ratings: said }
outputs:";
    project.write("flows/w.yaml", WORKFLOW.replace("outputs:", review));
    let no = "{\"id\":\"row00003\",\"question\":\"fine\",\"answer\":\"no\",\"time\":\"2026-01-01T12:00:00Z\"}";
    project.write("flows/said/ann.jsonl", format!("{no}\n"));
    project.write("flows/said/README.md", "Who said what.\n");
    project.write("flows/said/.gitattributes", "*.jsonl merge=union\n");
    project.run(&["run", "flows/w.yaml"]).exits(0);
    bundled(&project, &[]).exits(0);
    let other = Project::empty();
    unpacked(&project.path("b.zip"), &other.root());
    assert_eq!(other.read("workflow/flows/said/ann.jsonl"), format!("{no}\n"));
    let ran = other.run(&["run", "workflow/flows/w.yaml", "--format", "json"]).exits(0);
    ran.all_hit();
    assert_eq!(ran.step("judged")["rows"], 89);
}
