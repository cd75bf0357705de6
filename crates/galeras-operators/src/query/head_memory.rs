//! The heads that an interrupted search already knows, in a file next to its journal: a line for
//! each, after the line's digest. A truncated or damaged line is asked for again.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use serde_json::json;

use galeras_base::digest::Digest;

/// Branch and commit.
pub(super) type Tip = (String, String);

/// The known heads, and the file that more are appended to.
pub(super) struct HeadMemory {
    pub(super) known: HashMap<String, Tip>,
    file: File,
}

impl HeadMemory {
    /// Opens or creates the memory.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let content = std::fs::read(path).unwrap_or_default();
        let known = content.split(|byte| *byte == b'\n').filter_map(remembered).collect();
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        // A truncated line must not run into the next one.
        writeln!(file)?;
        Ok(Self { known, file })
    }

    /// Remembers a head.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn keep(&mut self, repo: &str, (branch, commit): &Tip) -> io::Result<()> {
        let answer = json!([repo, branch, commit]).to_string();
        // One write: a kill leaves a whole line or a part that its digest rejects.
        let line = format!("{} {answer}\n", Digest::of(answer.as_bytes()));
        self.file.write_all(line.as_bytes())
    }
}

/// The answer in an undamaged line.
fn remembered(line: &[u8]) -> Option<(String, Tip)> {
    let at = line.iter().position(|byte| *byte == b' ')?;
    let (digest, answer) = (line.get(..at)?, line.get(at + 1..)?);
    if Digest::of(answer).to_string().as_bytes() != digest {
        return None;
    }
    let (repo, branch, commit) = serde_json::from_slice(answer).ok()?;
    Some((repo, (branch, commit)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn tip(commit: &str) -> Tip {
        ("main".to_string(), commit.to_string())
    }

    #[test]
    fn no_changed_byte_and_no_cut_gives_another_head() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("search/heads.jsonl");
        let mut memory = HeadMemory::open(&path).unwrap();
        memory.keep("a/b", &tip("0123")).unwrap();
        memory.keep("c/d", &tip("4567")).unwrap();
        let whole = std::fs::read(&path).unwrap();
        let known = HeadMemory::open(&path).unwrap();
        let known = known.known;
        assert_eq!((known.get("a/b"), known.get("c/d")), (Some(&tip("0123")), Some(&tip("4567"))));
        let right = |memory: &HeadMemory| {
            let sound =
                |repo, commit| memory.known.get(repo).is_none_or(|known| *known == tip(commit));
            assert!(sound("a/b", "0123") && sound("c/d", "4567"));
            memory.known.keys().all(|repo| ["a/b", "c/d"].contains(&repo.as_str()))
        };
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at % 8);
            std::fs::write(&path, &damaged).unwrap();
            assert!(right(&HeadMemory::open(&path).unwrap()), "byte {at}");
            std::fs::write(&path, &whole[..at]).unwrap();
            let mut cut = HeadMemory::open(&path).unwrap();
            assert!(right(&cut), "cut at {at}");
            // Lines after a truncated one are remembered.
            cut.keep("e/f", &tip("89ab")).unwrap();
            assert_eq!(HeadMemory::open(&path).unwrap().known.get("e/f"), Some(&tip("89ab")));
        }
    }
}
