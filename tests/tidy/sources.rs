//! The files that the rules apply to, with paths relative to the root of the repository.

use std::fs;
use std::path::{Path, PathBuf};

/// The root of the repository: cargo runs the tests of a package in the package's folder. The folder
/// that is known at compile time may be another clone with which build output is shared.
pub(crate) const ROOT: &str = "..";

/// Folders with our sources.
const FOLDERS: &[&str] = &["src", "crates", "fuzz", "tests", "benches"];

/// A source file.
pub(crate) struct SourceFile {
    /// From the root of the repository.
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// All Rust files, in the order of their paths.
pub(crate) fn rust_files() -> Vec<SourceFile> {
    let mut paths = Vec::new();
    for folder in FOLDERS {
        collect(Path::new(folder), "rs", &mut paths);
    }
    paths.sort();
    paths.into_iter().map(read).collect()
}

/// Reads a file by its path from the root.
pub(crate) fn read(path: PathBuf) -> SourceFile {
    let text = fs::read_to_string(Path::new(ROOT).join(&path))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    SourceFile { path, text }
}

/// The names in a folder, sorted.
pub(crate) fn names_in(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(Path::new(ROOT).join(folder)).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn collect(folder: &Path, suffix: &str, paths: &mut Vec<PathBuf>) {
    for name in names_in(folder.to_str().unwrap()) {
        let path = folder.join(name);
        if Path::new(ROOT).join(&path).is_dir() {
            collect(&path, suffix, paths);
        } else if path.extension().is_some_and(|other| other == suffix) {
            paths.push(path);
        }
    }
}
