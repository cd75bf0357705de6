//! The committed inputs of a target and its words.

use std::fs;
use std::path::{Path, PathBuf};

/// A committed input.
#[derive(Clone, Debug)]
pub struct CorpusFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// The committed inputs of a target, in the order of their names; `root` is the folder `fuzz`.
///
/// # Errors
/// If the folder or a file cannot be read.
pub fn corpus(root: &Path, target: &str) -> std::io::Result<Vec<CorpusFile>> {
    let mut paths = fs::read_dir(root.join("corpus").join(target))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<Vec<PathBuf>>>()?;
    paths.sort();
    paths.into_iter().map(|path| fs::read(&path).map(|bytes| CorpusFile { path, bytes })).collect()
}

/// The words that inputs of a target are made of, from its dictionary in libFuzzer's form: a
/// quoted text per line, with `\\`, `\"` and `\xAB`. None without a file.
pub fn dictionary(root: &Path, target: &str) -> Vec<Vec<u8>> {
    let path = root.join("dictionaries").join(format!("{target}.dict"));
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(word).collect()
}

fn word(line: &str) -> Option<Vec<u8>> {
    let quoted = line.trim().strip_prefix('"')?.strip_suffix('"')?;
    let mut bytes = Vec::new();
    let mut rest = quoted.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'\\' => match rest.next()? {
                b'x' => {
                    let digits = [rest.next()?, rest.next()?];
                    u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
                }
                escaped => escaped,
            },
            byte => byte,
        });
    }
    Some(bytes)
}
