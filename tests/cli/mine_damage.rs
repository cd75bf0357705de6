//! `mine`: a download that the disk has damaged is fetched again, and a damaged folder gives what
//! is true or a reject. Which byte is damaged depends on a seed.
//!
//! `query` and `mine`: repositories that are made to do harm end themselves and nothing else.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::harness::{Project, files_below};
use crate::repository::{Mined, NEW_YEAR, Repository, at, day, def, defs, mined, workflow};
use galeras_test_servers::http_git::HttpGit;

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % n.max(1)
    }
}

/// Damages a file, or puts a folder in its place; what was done.
fn damage(file: &Path, random: &mut Random) -> String {
    let mut bytes = fs::read(file).unwrap();
    fs::remove_file(file).unwrap();
    let at = random.below(bytes.len());
    let what = match random.below(8) {
        0 => {
            fs::create_dir(file).unwrap();
            return format!("a folder in the place of {}", file.display());
        }
        1 => return format!("{} removed", file.display()),
        2 => {
            bytes.truncate(at);
            "cut"
        }
        _ if bytes.is_empty() => "empty",
        _ => {
            bytes[at] ^= 1 << random.below(8);
            "a bit"
        }
    };
    fs::write(file, bytes).unwrap();
    format!("{}: {what} at {at}", file.display())
}

fn history(repo: &Repository) {
    let numbers = |n: i64| (0..30).map(|at| at * n % 97).collect::<Vec<i64>>();
    for n in 1..6 {
        let commit = at(day(n)).write("pkg/a.py", defs(&numbers(n)));
        repo.commit(commit.write(format!("pkg/deep/b{n}.py"), def("b", n)));
    }
    repo.commit(at(day(8)).rename("pkg/deep", "pkg/flat").write("pkg/flat/b2.py", def("b", 9)));
}

/// The rows without what depends on the address.
fn rows(found: &Mined) -> Vec<String> {
    let plain = |row: &Value| {
        let mut row = row.clone();
        row.as_object_mut().unwrap().remove("url");
        row.to_string()
    };
    found.rows.iter().map(plain).collect()
}

#[test]
fn whatever_becomes_of_a_download_the_result_is_the_truth() {
    for filter in ["true", "false"] {
        let project = Project::empty();
        let repo = Repository::bare(project.path("served/r"));
        history(&repo);
        repo.git(&["config", "uploadpack.allowFilter", filter]);
        let server = HttpGit::start(&project.path("served"));
        let url = server.url("r");
        project.write("w.yaml", workflow(&format!("{{ repo: r, url: '{url}' }}"), ""));
        project.run_ok(&[]);
        let truth = rows(&mined(&project));
        assert!(truth.len() > 100 && mined(&project).rejects.is_empty());
        let folder = project.path("cache/downloads/git");
        let mut random = Random(11);
        for _ in 0..9 {
            let files: Vec<PathBuf> =
                files_below(&folder).into_iter().filter(|file| file.is_file()).collect();
            // Half of the damage is done to packs.
            let packs: Vec<&PathBuf> =
                files.iter().filter(|file| file.extension().is_some_and(|e| e == "pack")).collect();
            let file = match random.below(2) {
                0 => packs[random.below(packs.len())].clone(),
                _ => files[random.below(files.len())].clone(),
            };
            let what = damage(&file, &mut random);
            let outcome = project.run_ok(&["--force", "mined"]);
            let found = mined(&project);
            assert!(found.rejects.is_empty(), "{filter}: {what}: {:?}", found.rejects);
            assert!(rows(&found) == truth, "{filter}: {what}: {outcome}");
            assert!(!outcome.stderr.contains("panicked"), "{filter}: {what}: {outcome}");
        }
    }
}

#[test]
fn a_damaged_folder_gives_the_truth_or_rejects() {
    let project = Project::new(&workflow("./bad, ./good", ""));
    Repository::bare(project.path("good")).commit(at(day(1)).write("m.py", def("good", 1)));
    let repo = Repository::bare(project.path("bad"));
    history(&repo);
    repo.pack();
    project.run_ok(&[]);
    let truth = rows(&mined(&project));
    let mut random = Random(12);
    for _ in 0..12 {
        let objects = project.path("bad/objects/pack");
        let files: Vec<PathBuf> =
            files_below(&objects).into_iter().filter(|file| file.is_file()).collect();
        let file = files[random.below(files.len())].clone();
        let before = fs::read(&file).unwrap();
        let what = damage(&file, &mut random);
        let outcome = project.run_ok(&["--force", "mined"]);
        assert!(!outcome.stderr.contains("panicked"), "{what}: {outcome}");
        let found = mined(&project);
        let here = rows(&found);
        assert!(here.iter().all(|row| truth.contains(row)), "{what}: {outcome}");
        let refused = found.rejects.len() + project.rows("repos.rejects").len();
        assert!(refused > 0 || here == truth, "{what}: {outcome}");
        assert!(found.rows.iter().any(|row| row["repo"] == "good"), "{what}: {outcome}");
        if file.is_dir() {
            fs::remove_dir(&file).unwrap();
        } else if file.exists() {
            fs::remove_file(&file).unwrap();
        }
        fs::write(&file, before).unwrap();
    }
    project.run_ok(&["--force", "mined"]);
    assert!(rows(&mined(&project)) == truth);
}

/// An entry of a tree as its bytes.
pub fn entry(mode: &str, name: &str, id: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&id[at..at + 2], 16).unwrap();
    let id: Vec<u8> = (0..id.len()).step_by(2).map(byte).collect();
    [mode.as_bytes(), b" ", name.as_bytes(), b"\0", &id].concat()
}

pub fn object(repo: &Repository, kind: &str, content: &[u8]) -> String {
    repo.git_with(&["hash-object", "-t", kind, "-w", "--literally", "--stdin"], content)
}

pub fn commit(repo: &Repository, tree: &str, parent: Option<&str>) -> String {
    let parent = parent.map(|id| format!("parent {id}\n")).unwrap_or_default();
    let who = format!("A <a> {NEW_YEAR} +0000");
    let text = format!("tree {tree}\n{parent}author {who}\ncommitter {who}\n\nmessage\n");
    repo.raw_commit(text.as_bytes())
}

#[test]
fn a_tree_bomb_is_a_reject_and_the_other_repositories_go_on() {
    let project = Project::new(&workflow("./bomb, ./good", ""));
    Repository::bare(project.path("good")).commit(at(day(1)).write("m.py", def("good", 1)));
    let repo = Repository::bare(project.path("bomb"));
    let blob = object(&repo, "blob", def("f", 1).as_bytes());
    let mut tree = object(&repo, "tree", &entry("100644", "m.py", &blob));
    for _ in 0..10 {
        let entries: Vec<u8> =
            (0..10).flat_map(|at| entry("40000", &format!("d{at}"), &tree)).collect();
        tree = object(&repo, "tree", &entries);
    }
    let bomb = commit(&repo, &tree, None);
    // A folder that stays the same is not looked into.
    let folder = entry("40000", "d0", &tree);
    let before = commit(&repo, &object(&repo, "tree", &folder), None);
    let after = object(&repo, "tree", &[folder, entry("100644", "m.py", &blob)].concat());
    let last = commit(&repo, &after, Some(&before));
    let who = format!("A <a> {NEW_YEAR} +0000");
    let parents = format!("parent {last}\nparent {bomb}\n");
    let merge = format!("tree {after}\n{parents}author {who}\ncommitter {who}\n\nmerge\n");
    repo.raw_commit(merge.as_bytes());
    let outcome = project.run_ok(&[]);
    assert!(outcome.took < Duration::from_secs(60), "{:?}", outcome.took);
    let found = mined(&project);
    assert_eq!(found.of(&last), ["m.py f 1-2 added 2"]);
    assert_eq!(found.rows.len(), 2, "{outcome}");
    // Two commits without parents have all of the bomb.
    assert_eq!(found.rejected(), ["limit", "limit"]);
    for row in &found.rejects {
        assert_eq!(row["repo"], "bomb");
        assert!(row["path"].is_null() && row["reason"].as_str().unwrap().contains("more than"));
    }
    project.run_ok(&[]).all_hit();
}
