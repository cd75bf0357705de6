//! The house rules that no compiler or lint enforces. Each rule is a test that lists everything that
//! breaks it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod crates;
mod files;
mod pages;
mod sources;

/// Fails with one problem a line.
fn fail_if_any(problems: Vec<String>) {
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}
