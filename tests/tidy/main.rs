//! The house rules: layers, circles, names, headers, file sizes, pages that name what exists, writers
//! that lose nothing, and nothing that has no place in the source. Each rule is a test that lists
//! everything that breaks it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod circles;
mod crates;
mod files;
mod graph;
mod layers;
mod names;
mod pages;
mod sources;
mod streams;
mod tokens;
mod unsafe_code;
mod writers;

/// Fails with one problem a line.
fn fail_if_any(problems: Vec<String>) {
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}
