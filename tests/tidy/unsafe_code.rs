//! `unsafe` is in two files, whose headers say what for.

use std::path::Path;

use crate::fail_if_any;
use crate::sources::rust_files;
use crate::tokens::without_comments_and_tests;

/// The table of the grammar, laid out anew; a call of the allocator.
const FILES: [&str; 2] = ["crates/galeras-python/src/language.rs", "src/runner/freed_memory.rs"];

#[test]
fn two_files_have_unsafe_code() {
    let mut problems = Vec::new();
    let mut seen = 0;
    for file in rust_files() {
        let code = without_comments_and_tests(&file.text);
        let lines = code.lines().enumerate();
        for (at, line) in lines.filter(|(_, line)| line.contains("(unsafe_code")) {
            let allowed = FILES.iter().any(|known| file.path == Path::new(known));
            seen += usize::from(allowed);
            if !allowed {
                problems.push(format!("{}:{}: {}", file.path.display(), at + 1, line.trim()));
            }
        }
    }
    assert_eq!(seen, FILES.len(), "a file of {FILES:?} has moved");
    fail_if_any(problems);
}
