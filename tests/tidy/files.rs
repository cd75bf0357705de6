//! Rules about the text of a file.

use std::path::Path;

use crate::fail_if_any;
use crate::sources::rust_files;

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
    for file in rust_files() {
        for name in ["sum", "avg", "stddev", "var_pop", "var_sample", "corr"] {
            if file.text.contains(&format!("functions_aggregate::expr_fn::{name}(")) {
                problems.push(format!("{} sums in row order with {name}", file.path.display()));
            }
        }
    }
    fail_if_any(problems);
}
