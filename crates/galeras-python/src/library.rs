//! Texts for the tests: Python's standard library, and the cases of the peers.

use std::path::PathBuf;

use proptest::strategy::Strategy;
use serde_json::Value;

/// Cases of the property tests of pieces and plain code; `OUTLINE_CASES` for a thorough run.
pub(crate) fn cases(usual: u32) -> u32 {
    std::env::var("OUTLINE_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(usual)
}

/// One of the texts between the marks.
pub(crate) fn pick(texts: &'static str) -> impl Strategy<Value = &'static str> + Clone {
    proptest::sample::select(texts.split('‖').collect::<Vec<_>>())
}

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

/// Calls `check` with the name, the code and the values of every case of
/// `tests/reference/python_features.py`.
pub(crate) fn for_each_case(mut check: impl FnMut(&str, &str, &Value)) {
    let path = "../../tests/reference/python_features.json";
    let reference: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    for part in ["snippets", "methods"] {
        for (name, case) in reference[part].as_object().unwrap() {
            check(name, case["code"].as_str().unwrap(), case);
        }
    }
}
