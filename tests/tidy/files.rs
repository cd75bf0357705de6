//! Rules about a file by itself.

use std::path::Path;

use crate::fail_if_any;
use crate::sources::{SourceFile, python_files, rust_files};

const MAX_LINES: usize = 500;

/// What the header of a longer file says.
const REASON: &str = "One file because";

#[test]
fn every_rust_file_says_what_lives_there() {
    let silent = rust_files().into_iter().filter(|file| !file.text.starts_with("//! "));
    fail_if_any(silent.map(|file| format!("{} has no //! header", file.path.display())).collect());
}

#[test]
fn files_stay_small() {
    let long = rust_files().into_iter().chain(python_files()).filter_map(|file| {
        let lines = file.text.lines().count();
        (lines > MAX_LINES && !header(&file).contains(REASON))
            .then(|| format!("{} has {lines} lines, more than {MAX_LINES}", file.path.display()))
    });
    fail_if_any(long.collect());
}

/// The `//!` lines of a Rust file, the docstring of a Python file.
fn header(file: &SourceFile) -> String {
    if file.path.extension().is_some_and(|suffix| suffix == "rs") {
        file.text.lines().take_while(|line| line.starts_with("//!")).collect()
    } else {
        file.text.split("\"\"\"").nth(1).unwrap_or_default().to_string()
    }
}

#[test]
fn nothing_is_left_to_do_in_the_source() {
    let words = ["todo!(", "unimplemented!(", concat!("FIX", "ME"), concat!("TO", "DO"), "dbg!("];
    let mut problems = Vec::new();
    for file in rust_files() {
        if file.path == Path::new("tests/tidy/files.rs") {
            continue;
        }
        for word in words {
            if file.text.contains(word) {
                problems.push(format!("{} contains {word}", file.path.display()));
            }
        }
    }
    fail_if_any(problems);
}

#[test]
fn float_aggregates_come_from_the_exact_ones() {
    let mut problems = Vec::new();
    for file in rust_files().into_iter().filter(|file| file.path.starts_with("src")) {
        for name in ["sum", "avg", "stddev", "var_pop", "var_sample", "corr"] {
            if file.text.contains(&format!("functions_aggregate::expr_fn::{name}(")) {
                problems.push(format!("{} sums in row order with {name}", file.path.display()));
            }
        }
    }
    fail_if_any(problems);
}
