//! Python's standard library as texts, for the tests.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

/// The UTF-8 Python files of the standard library and of `others`.
pub(crate) fn python_files(others: impl IntoIterator<Item = PathBuf>) -> Vec<(PathBuf, String)> {
    let mut folders = vec![PathBuf::from(rustpython_pylib::LIB_PATH)];
    folders.extend(others);
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|suffix| suffix == "py")
                && let Ok(text) = std::fs::read_to_string(&path)
            {
                files.push((path, text));
            }
        }
    }
    files
}
