//! Stores that a cloned repository brings, whose folders lead to the user's files, and files in a
//! store that are not the store's: nothing of them is written or removed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::harness::{Outcome, Project, files_below, flat, says};

const WORKFLOW: &str = "galeras: 1
steps:
  table: { op: exec, with: { command: 'echo ''{\"id\":\"a\"}''', output: { id: utf8! } } }
";

const VERBS: [&[&str]; 3] = [
    &["run", "w.yaml", "--force", "table"],
    &["cache", "gc", "--older-than", "0", "--max-bytes", "0"],
    &["cache", "verify", "--repair"],
];

/// A folder outside of the store with files of a user, some of which have the names that files in a
/// store have.
fn victims(project: &Project) -> Vec<(PathBuf, Vec<u8>)> {
    let digest = "0123456789abcdef".repeat(4);
    for name in [
        "thesis.tex".to_string(),
        ".env".to_string(),
        "0123456789abcdef".to_string(),
        "store".to_string(),
        "20200101T000000.000Z-89abcdef.json".to_string(),
        format!("01/{digest}.parquet"),
        format!("01/{digest}.json"),
        format!("01/{digest}.sig"),
        format!("01/{digest}/{digest}.json"),
        format!("{digest}.parquet"),
        format!("{}/done/1", &digest[..32]),
    ] {
        let file = format!("victims/{name}");
        project.write(&file, "mine");
        made_old(&project.path(&file));
    }
    contents(&project.path("victims"))
}

fn made_old(file: &Path) {
    let then = SystemTime::now() - Duration::from_secs(30 * 86_400);
    fs::File::options().write(true).open(file).unwrap().set_modified(then).unwrap();
}

fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    files_below(folder).into_iter().map(|file| (file.clone(), fs::read(file).unwrap())).collect()
}

/// Replaces a file or a folder of the project with a link to `to`.
fn replace(project: &Project, name: &str, to: &str) {
    let path = project.path(name);
    match path.is_dir() {
        true => fs::remove_dir_all(&path).unwrap(),
        false => drop(fs::remove_file(&path)),
    }
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    symlink(to, path).unwrap();
}

#[track_caller]
fn refuses(outcome: &Outcome, words: &str) {
    assert_eq!(outcome.code, Some(4), "{outcome}");
    says(&flat(&outcome.stderr), &[words, "delete the link, or name the folder it leads to"]);
}

#[test]
fn no_verb_follows_a_folder_of_a_store_that_is_a_link() {
    let names = "actions blobs blobs/01 checks downloads downloads/git downloads/git/mirror locks \
                 locks/store memo memo/01 outputs runs signatures tmp verified.log work";
    for name in names.split(' ') {
        let project = Project::new(WORKFLOW).ran();
        let before = victims(&project);
        let up = "../".repeat(name.matches('/').count() + 1);
        let to = match name {
            "verified.log" | "locks/store" => format!("{up}victims/thesis.tex"),
            _ => format!("{up}victims"),
        };
        replace(&project, &format!("cache/{name}"), &to);
        for verb in VERBS {
            let outcome = project.run(verb);
            refuses(&outcome, &format!("cannot use cache/{name}: it is a link to {to}"));
            assert_eq!(contents(&project.path("victims")), before, "{name}: {outcome}");
        }
        // Named, it is no other.
        project.run(&["cache", "gc", "--cache", "./cache"]).exits(4).reports(&["it is a link to"]);
    }
    // The store itself may be a link if it is named.
    for verb in VERBS {
        let project = Project::new(WORKFLOW);
        let before = victims(&project);
        replace(&project, "cache", "victims");
        let outcome = project.run(verb);
        refuses(&outcome, "cannot use cache: it is a link to victims");
        assert_eq!(contents(&project.path("victims")), before, "{outcome}");
        fs::create_dir(project.path("real")).unwrap();
        replace(&project, "cache", "real");
        project.run(&[verb, &["--cache", "./cache"]].concat()).exits(0);
        project.run(&[verb, &["--cache", "real"]].concat()).exits(0);
        assert_eq!(contents(&project.path("victims")), before);
    }
}

#[test]
fn files_that_are_not_the_stores_stay_where_they_are() {
    let project = Project::new(WORKFLOW).ran();
    let names = "tmp/thesis.tex tmp/.env actions/notes.json actions/01/notes.json blobs/notes.txt \
                 blobs/01/notes.parquet checks/01/notes.json memo/01/notes/notes.json \
                 outputs/notes/01/notes.json runs/notes.json signatures/notes.sig \
                 work/notes/chapter whole/notes.parquet notes.txt";
    for name in names.split(' ') {
        let file = format!("cache/{name}");
        project.write(&file, "mine");
        made_old(&project.path(&file));
    }
    for verb in VERBS {
        project.run(verb).exits(0);
        for name in names.split(' ') {
            assert_eq!(project.read(&format!("cache/{name}")), "mine", "{verb:?} {name}");
        }
    }
    project.run_ok(&[]);
    project.verifies("cache");
}
