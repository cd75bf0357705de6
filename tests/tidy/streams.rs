//! What people read leaves the program through one file, which lets no control character of
//! somebody's data out: nothing else names the standard streams.

use std::path::Path;

use crate::fail_if_any;
use crate::sources::rust_files;
use crate::tokens::without_comments_and_tests;

/// The one way out.
const SCREEN: &str = "src/cli/screen.rs";

/// What it writes standard output with: it remembers a write that failed, and the exit code tells.
const OUTPUT: &str = "src/cli/stdout.rs";

/// Bars redraw what is on the screen, from texts that are escaped.
const BARS: &str = "src/report/bars.rs";

/// How a stream is named. A child's streams are methods (`.stdout(…)`).
const STREAMS: &[&str] = &["io::stdout", "io::stderr", "print!(", "println!(", "DrawTarget::std"];

#[test]
fn one_file_writes_to_the_standard_streams() {
    let mut problems = Vec::new();
    let mut seen = false;
    for file in rust_files() {
        let ours = file.path.starts_with("src")
            || file.path.components().any(|part| part.as_os_str() == "src")
                && file.path.starts_with("crates");
        let tests = file.path.components().any(|part| part.as_os_str() == "tests");
        if !ours || tests {
            continue;
        }
        let code = without_comments_and_tests(&file.text);
        for (at, line) in code.lines().enumerate() {
            for stream in STREAMS.iter().filter(|stream| line.contains(**stream)) {
                let allowed = file.path == Path::new(SCREEN)
                    || (file.path == Path::new(OUTPUT) && *stream == "io::stdout")
                    || (file.path == Path::new(BARS) && *stream == "DrawTarget::std");
                seen |= allowed;
                if !allowed {
                    let (path, line) = (file.path.display(), at + 1);
                    problems.push(format!("{path}:{line}: `{stream}` instead of {SCREEN}"));
                }
            }
        }
    }
    assert!(seen, "{SCREEN} has moved");
    fail_if_any(problems);
}
