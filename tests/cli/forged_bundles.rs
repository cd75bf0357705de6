//! `verify` of bundles that were changed and packed again, with all sums right.

use std::fs;
use std::path::Path;

use galeras_test_servers::static_files::{Manners, StaticFiles};
use serde_json::Value;

use crate::bundles::{Files, WORKFLOW, bundled, computed, entries, project, repacked};
use crate::harness::Project;

fn bundle() -> (Project, Files) {
    let project = computed();
    bundled(&project, &[]).exits(0);
    let files = entries(&project.path("b.zip"));
    (project, files)
}

/// Packs files as the program would: the list has their digests, and the end that of the file.
fn forged(mut files: Files, to: &Path) {
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

#[test]
fn what_is_shown_of_tables_is_what_they_give_whatever_the_sums_say() {
    let (project, files) = bundle();
    forged(files.clone(), &project.path("d.zip"));
    project.run(&["verify", "d.zip"]).exits(0).prints(&[" files equal"]);
    let forge = |name: &str, change: &dyn Fn(&mut Files), why: &str| {
        let mut files = files.clone();
        change(&mut files);
        forged(files, &project.path("d.zip"));
        let said = project.run(&["verify", "d.zip"]).exits(4);
        let line = said.stdout.lines().find(|line| line.starts_with(name));
        assert!(line.is_some_and(|line| line.contains(why)), "{name}: {why}\n{said}");
        assert_eq!(said.stdout.lines().count(), 2, "nothing else: {said}");
    };
    fn replace(name: &str, from: &str, to: &str) -> impl Fn(&mut Files) {
        move |files| {
            let text = String::from_utf8(files[name].clone()).unwrap();
            assert!(text.contains(from), "{name}: {text}");
            files.insert(name.into(), text.replacen(from, to, 1).into_bytes());
        }
    }
    for name in ["outputs/kept.csv", "tables/scaled.out.csv"] {
        forge(name, &replace(name, "row00007,7,14", "row00007,7,41"), "not what its table gives");
    }
    let other = |files: &mut Files| {
        let blob = files.keys().find(|name| name.starts_with("cache/blobs/")).unwrap().clone();
        files.insert("outputs/out/rejected.parquet".into(), files[&blob].clone());
    };
    forge("outputs/out/rejected.parquet", &other, "not what its table gives");
    let effects = "outputs/effects.csv";
    let add = |files: &mut Files| drop(files.insert(effects.into(), b"effect\n0.9\n".to_vec()));
    forge(effects, &add, "of no result of the bundle");
    let rename = |files: &mut Files| {
        replace("bundle.json", "outputs/kept.csv", "outputs/best.csv")(files);
        let kept = files.remove("outputs/kept.csv").unwrap();
        files.insert("outputs/best.csv".into(), kept);
    };
    forge("outputs/best.csv", &rename, "the workflow does not write it");
    let drop_table = replace("bundle.json", "\"tables/scaled.out.csv\"", "null");
    forge("tables/scaled.out.csv", &drop_table, "of no result of the bundle");
    // Another version may write a table in other words, and is named.
    let version = |files: &mut Files| {
        let said = format!("\"program\": \"{}\"", env!("CARGO_PKG_VERSION"));
        replace("bundle.json", &said, "\"program\": \"9.9.9\"")(files);
        replace("outputs/kept.csv", "row00007,7,14", "row00007,7,41")(files);
    };
    forge("outputs/kept.csv", &version, "version 9.9.9 made the bundle");
    assert!(project.left_behind().is_empty(), "{:?}", project.left_behind());
}

fn with_record(files: &Files, change: impl FnOnce(&mut Value)) -> Files {
    let mut files = files.clone();
    let mut record: Value = serde_json::from_slice(&files["bundle.json"]).unwrap();
    change(&mut record);
    files.insert("bundle.json".into(), serde_json::to_vec(&record).unwrap());
    files
}

#[test]
fn a_bundle_that_says_less_than_it_holds_is_found() {
    let (project, files) = bundle();
    // The files with other steps in the record, of which `scaled` is at a place.
    let with_steps = |change: &mut dyn FnMut(&mut Vec<Value>, usize)| {
        with_record(&files, |record| {
            let steps = record["steps"].as_array_mut().unwrap();
            let at = steps.iter().position(|step| step["step"] == "scaled").unwrap();
            change(steps, at);
        })
    };
    let verified = |files: Files, why: &str| {
        forged(files, &project.path("d.zip"));
        project.run(&["verify", "d.zip"]).exits(4).prints(&[why])
    };
    // A result that the record does not name, which a run would find.
    let fewer = with_steps(&mut |steps, at| drop(steps.remove(at)));
    assert!(verified(fewer, "it is of no result of the bundle").stdout.contains("cache/actions/"));
    // One that is reported to be left out, and is there with other bytes.
    let mut blob = String::new();
    let mut other = with_steps(&mut |steps, at| {
        let mut twice = steps[at].clone();
        blob = twice["tables"][0]["file"].as_str().unwrap().to_string();
        twice["tables"][0]["file"] = Value::Null;
        twice["tables"][0]["csv"] = Value::Null;
        steps.push(twice);
    });
    let stranger = files.keys().find(|name| name.ends_with(".parquet") && **name != blob).unwrap();
    other.insert(blob.clone(), files[stranger].clone());
    let said = verified(other, &blob);
    let words = ["not have the digest in its name", "bytes"];
    assert!(words.iter().any(|word| said.stdout.contains(word)), "{said}");
    // Parts of row-precise reuse are in no bundle: their inputs are not recorded.
    let mut part = files.clone();
    part.insert("cache/memo/00/part.json".into(), b"{}".to_vec());
    verified(part, "cache/memo/00/part.json: it is of no result");
    // A name that leads elsewhere is not read.
    for name in ["/dev/zero", "tables/../../x", "workflow/flows/w.yaml"] {
        let elsewhere = with_steps(&mut |steps, at| steps[at]["tables"][0]["csv"] = name.into());
        verified(elsewhere, "tables/scaled.out.csv: it is of no result");
        let both = with_steps(&mut |steps, at| {
            let mut further = steps[at].clone();
            further["tables"][0]["csv"] = name.into();
            steps.push(further);
        });
        verified(both, &format!("{name}: it is missing"));
    }
}

#[test]
fn outputs_that_cannot_be_compared_are_not_verified_and_no_server_is_asked() {
    let (project, mut files) = bundle();
    let text = String::from_utf8(files["workflow/flows/w.yaml"].clone()).unwrap();
    assert!(text.contains("x * 2 AS y"), "{text}");
    let other = text.replace("x * 2 AS y", "2 * x AS y");
    files.insert("workflow/flows/w.yaml".into(), other.into_bytes());
    forged(files.clone(), &project.path("d.zip"));
    project.run(&["verify", "d.zip"]).exits(1).reports(&["2 outputs were not compared"]);
    let said = project.run(&["verify", "d.zip", "--format", "json"]).exits(1);
    let events = said.events("not_compared");
    assert_eq!(events.len(), 1, "{said}");
    assert!(events[0]["outputs"].to_string().contains("outputs/kept.csv"), "{said}");
    // Nor one of another version whose workflow is none.
    let mut broken = with_record(&files, |record| record["program"] = "9.9.9".into());
    broken.insert("workflow/flows/w.yaml".into(), b"galeras: [".to_vec());
    forged(broken, &project.path("d.zip"));
    project.run(&["verify", "d.zip"]).exits(1).reports(&["version 9.9.9 made it"]);
    // A bundle without outputs shows nothing that could be compared.
    let workflow = WORKFLOW.split("outputs:").next().unwrap();
    project.write("flows/w.yaml", workflow);
    project.run(&["run", "flows/w.yaml"]).exits(0);
    bundled(&project, &[]).exits(0);
    project.run(&["verify", "b.zip"]).exits(0);
    let project = self::project();
    let server = StaticFiles::start(&project.path("data"), Manners::Good);
    let url = format!("{}/rows.csv", server.url);
    let read = format!("{{ url: '{url}', key");
    project.edit("flows/w.yaml", "{ path: '${{ params.data }}', key", &read);
    project.run(&["run", "flows/w.yaml"]).exits(0);
    bundled(&project, &[]).exits(0);
    let asked = server.requests().len();
    assert!(asked > 0, "it was read there");
    let allow = format!("host:{}", server.url);
    let words = ["2 outputs were not compared", &format!("--allow {allow}")];
    project.run(&["verify", "b.zip"]).exits(1).prints(&[" files equal"]).reports(&words);
    assert_eq!(server.requests().len(), asked, "nobody was asked");
    project.run(&["verify", "b.zip", "--allow", &allow]).exits(0);
    assert!(server.requests().len() > asked);
}
