//! `query` and `mine`: repositories that are made to do harm end themselves and nothing else.

use std::time::Duration;

use crate::harness::Project;
use crate::repository::{NEW_YEAR, Repository, at, day, def, mined, workflow};

/// An entry of a tree as its bytes.
fn entry(mode: &str, name: &str, id: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&id[at..at + 2], 16).unwrap();
    let id: Vec<u8> = (0..id.len()).step_by(2).map(byte).collect();
    [mode.as_bytes(), b" ", name.as_bytes(), b"\0", &id].concat()
}

fn object(repo: &Repository, kind: &str, content: &[u8]) -> String {
    repo.git_with(&["hash-object", "-t", kind, "-w", "--literally", "--stdin"], content)
}

/// Makes a commit of a tree.
fn commit(repo: &Repository, tree: &str, parent: Option<&str>) -> String {
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
    let before = object(&repo, "tree", &folder);
    let before = commit(&repo, &before, None);
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
