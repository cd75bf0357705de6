//! The list of a bundle's files with their digests, in the format of `b3sum`, so that `b3sum
//! --check` also checks an unpacked bundle.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use galeras_base::digest::Digest;

/// The name of the list in a bundle. It lists every file but itself.
pub const LISTING: &str = "files.b3sum";

/// A problem with a file of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileProblem {
    /// The file's name in the bundle.
    pub file: String,
    /// The problem, in words that follow the name.
    pub problem: String,
}

impl FileProblem {
    /// A problem with a file.
    pub fn new(file: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { file: file.into(), problem: problem.into() }
    }
}

impl fmt::Display for FileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.problem)
    }
}

pub(super) fn render(files: &BTreeMap<String, Digest>) -> String {
    files.iter().map(|(name, digest)| format!("{digest}  {name}\n")).collect()
}

/// The files that a list names; the error is its line, and the problem with it.
pub(super) fn parse(text: &str) -> Result<BTreeMap<String, Digest>, String> {
    let mut files = BTreeMap::new();
    for (at, line) in text.lines().enumerate() {
        let wrong = |what: &str| format!("line {} {what}", at + 1);
        let (digest, name) = line.split_once("  ").ok_or_else(|| wrong("has no name"))?;
        let digest = digest.parse().map_err(|_| wrong("does not begin with a digest"))?;
        if !is_plain(name) {
            return Err(wrong("names a file outside of the bundle"));
        }
        if files.insert(name.to_string(), digest).is_some() {
            return Err(wrong("names a file for the second time"));
        }
    }
    Ok(files)
}

/// A file of this name is within the folder that a bundle is unpacked to, on any system.
pub(super) fn is_plain(name: &str) -> bool {
    let part = |part: &str| !matches!(part, "" | "." | "..");
    name.split('/').all(part) && !name.contains(['\\', '\0', '\n', '\r', ':'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_as_it_was_written() {
        let files = BTreeMap::from([
            ("README.md".to_string(), Digest::of(b"1")),
            ("cache/a b.json".to_string(), Digest::of(b"2")),
        ]);
        assert_eq!(parse(&render(&files)).unwrap(), files);
        assert!(parse("").unwrap().is_empty());
    }

    #[test]
    fn names_that_lead_out_of_the_bundle_are_refused() {
        let digest = Digest::of(b"");
        for name in ["../x", "/etc/x", "a//b", "a/../b", "", "a\\b", "C:/x", "./x", "a/."] {
            let said = parse(&format!("{digest}  {name}\n")).unwrap_err();
            assert!(said.starts_with("line 1"), "{name}: {said}");
        }
        let twice = format!("{digest}  a\n{digest}  a\n");
        assert!(parse(&twice).unwrap_err().contains("second time"));
        assert!(parse("nonsense").is_err() && parse("00  x").is_err());
    }
}
