//! No files of a module use each other in a circle: each can be read after those that it uses.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::fail_if_any;
use crate::graph::{CrateGraph, Edges};
use crate::sources::{SourceFile, names_in, rust_files};

#[test]
fn no_files_use_each_other_in_a_circle() {
    let files = rust_files();
    let mut folders = vec![PathBuf::from("src")];
    folders
        .extend(names_in("crates").iter().map(|name| Path::new("crates").join(name).join("src")));
    let mut problems = Vec::new();
    let mut count = 0;
    for src in folders {
        let edges = CrateGraph::new(&src, &files).edges();
        count += edges.len();
        problems.extend(circles(&edges).iter().map(|circle| described(circle, &edges)));
    }
    assert!(count > 100, "paths are read wrongly: {count} files use another");
    fail_if_any(problems);
}

/// The sets of files of which each reaches each other one, if they are more than one file.
fn circles(edges: &Edges) -> Vec<Vec<PathBuf>> {
    let reached: Vec<(&PathBuf, BTreeSet<&PathBuf>)> =
        edges.keys().map(|file| (file, reachable(edges, file))).collect();
    let mut circles: Vec<Vec<PathBuf>> = Vec::new();
    for (file, own) in reached.iter().filter(|(file, own)| own.contains(file)) {
        if circles.iter().any(|circle| circle.contains(file)) {
            continue;
        }
        let circle =
            reached.iter().filter(|(other, back)| own.contains(other) && back.contains(file));
        circles.push(circle.map(|(other, _)| (*other).clone()).collect());
    }
    circles
}

/// The files that a file uses, directly or by others.
fn reachable<'a>(edges: &'a Edges, start: &PathBuf) -> BTreeSet<&'a PathBuf> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&PathBuf> =
        edges.get(start).into_iter().flat_map(|uses| uses.keys()).collect();
    while let Some(file) = open.pop() {
        if reached.insert(file) {
            open.extend(edges.get(file).into_iter().flat_map(|uses| uses.keys()));
        }
    }
    reached
}

fn described(circle: &[PathBuf], edges: &Edges) -> String {
    let mut lines = vec![format!("a circle of {} files:", circle.len())];
    for file in circle {
        for (other, line) in edges[file].iter().filter(|(other, _)| circle.contains(other)) {
            lines.push(format!("  {}:{line} uses {}", file.display(), other.display()));
        }
    }
    lines.join("\n")
}

fn crate_of(files: &[(&str, &str)]) -> Edges {
    let files: Vec<SourceFile> = files
        .iter()
        .map(|(path, text)| SourceFile { path: path.into(), text: (*text).to_string() })
        .collect();
    CrateGraph::new(Path::new("src"), &files).edges()
}

fn names(edges: &Edges) -> Vec<String> {
    let pairs = edges.iter().flat_map(|(file, uses)| uses.keys().map(move |other| (file, other)));
    let name = |file: &Path| file.strip_prefix("src").unwrap().display().to_string();
    pairs.map(|(file, other)| format!("{} -> {}", name(file), name(other))).collect()
}

#[test]
fn names_are_followed_through_the_face_of_a_module() {
    let edges = crate_of(&[
        ("src/lib.rs", "mod a;\npub mod b;\npub use a::{one::One, Two};"),
        ("src/a/mod.rs", "mod one;\nmod two;\nmod three;\npub use two::Two;\npub use three::*;"),
        ("src/a/one.rs", "use super::Two;\npub struct One;"),
        ("src/a/two.rs", "pub struct Two;\nfn f() { super::three::g() }"),
        ("src/a/three.rs", "pub(crate) fn g() {}\npub struct Three;"),
        ("src/b.rs", "use crate::{a::{self, Three as T}, One};\nfn f(x: a::Two) {}"),
        ("src/main.rs", "use galeras::b;"),
    ]);
    let expected = [
        "a/one.rs -> a/two.rs",
        "a/two.rs -> a/three.rs",
        "b.rs -> a/one.rs",
        "b.rs -> a/three.rs",
        "b.rs -> a/two.rs",
    ];
    assert_eq!(names(&edges), expected);
    assert!(circles(&edges).is_empty());
}

#[test]
fn a_circle_is_found_and_tests_make_none() {
    let edges = crate_of(&[
        ("src/lib.rs", "mod a;\nmod b;\nmod c;"),
        ("src/a.rs", "use crate::b;\nfn f() { b::g() }\n#[cfg(test)]\nmod tests;"),
        ("src/a/tests.rs", "use crate::c::h;\nuse super::f;"),
        ("src/b.rs", "pub fn g() { crate::c::h(); }"),
        ("src/c.rs", "pub fn h() {}\n#[cfg(test)]\nmod tests {\n    use crate::a::f;\n}"),
    ]);
    assert_eq!(names(&edges), ["a.rs -> b.rs", "b.rs -> c.rs"]);
    assert!(circles(&edges).is_empty());
    let edges = crate_of(&[
        ("src/lib.rs", "mod a;\nmod b;\nmod c;\nuse c::X;"),
        ("src/a.rs", "use super::b::{g as other};\n"),
        ("src/b.rs", "pub fn g(x: crate::X) {}"),
        ("src/c.rs", "use super::a;\npub struct X;"),
        ("src/d.rs", "use crate::a;"),
    ]);
    assert_eq!(circles(&edges), [["src/a.rs", "src/b.rs", "src/c.rs"].map(PathBuf::from)]);
}
