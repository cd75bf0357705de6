//! `unsafe` is in one file, whose header says what for.

use std::path::Path;

use crate::fail_if_any;
use crate::sources::rust_files;
use crate::tokens::without_comments_and_tests;

/// The table of the grammar, laid out anew.
const LANGUAGE: &str = "crates/galeras-python/src/language.rs";

#[test]
fn one_file_has_unsafe_code() {
    let mut problems = Vec::new();
    let mut seen = false;
    for file in rust_files() {
        let code = without_comments_and_tests(&file.text);
        let lines = code.lines().enumerate();
        for (at, line) in lines.filter(|(_, line)| line.contains("(unsafe_code")) {
            let allowed = file.path == Path::new(LANGUAGE);
            seen |= allowed;
            if !allowed {
                problems.push(format!("{}:{}: {}", file.path.display(), at + 1, line.trim()));
            }
        }
    }
    assert!(seen, "{LANGUAGE} has moved");
    fail_if_any(problems);
}
