//! The finished part of a search, on disk, so that an interrupted search can continue.
//!
//! There is one file per search: a line for every finished or divided slice, each with a checksum and
//! made durable before the next request. A line that a kill truncated is dropped, with all lines after
//! it.

use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::GithubError;
use super::repository::GithubRepository;
use super::slice::Slice;

/// Increased when old journals become unusable.
const VERSION: u32 = 1;

/// The identity of a search. A journal belongs to one search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) base_url: String,
    pub(super) query: String,
    pub(super) sort: Option<String>,
    pub(super) limit: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct Header {
    version: u32,
    search: Identity,
}

/// The result of a slice. `total` is GitHub's count of its repositories.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Outcome {
    Done { total: u64, repositories: Vec<GithubRepository> },
    Split { total: u64, parts: [Slice; 2] },
}

#[derive(Serialize, Deserialize)]
struct Line {
    slice: Slice,
    outcome: Outcome,
}

/// The journal of one search, open and locked.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    path: PathBuf,
    known: HashMap<Slice, Outcome>,
}

/// The file of a search's journal.
pub(super) fn path(folder: &Path, search: &Identity) -> PathBuf {
    let text = serde_json::json!([VERSION, search]).to_string();
    let name = blake3::hash(text.as_bytes()).to_hex();
    folder.join(format!("search-{}.jsonl", &name[..32]))
}

impl Journal {
    /// Opens the journal of a search, or creates it.
    ///
    /// # Errors
    /// If the file cannot be read or written, or another process searches the same.
    pub(super) fn open(folder: &Path, search: &Identity) -> Result<Self, GithubError> {
        let path = path(folder, search);
        let failed = |e: io::Error| failed(&path, e);
        std::fs::create_dir_all(folder).map_err(failed)?;
        if path.is_dir() {
            // A folder here is damage, and the journal can start again.
            std::fs::remove_dir_all(&path).map_err(failed)?;
        }
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed)?;
        // Some disks have no locks. Without them, two searches could damage the file, which the
        // checksums would find.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            let message = format!("another process searches the same with {}", path.display());
            return Err(GithubError::other(message));
        }
        let mut content = Vec::new();
        file.read_to_end(&mut content).map_err(failed)?;
        let (known, good) = read(&content, search);
        file.set_len(good).and_then(|()| file.seek(SeekFrom::Start(good))).map_err(failed)?;
        let mut journal = Self { file, path, known };
        if good == 0 {
            journal.append(&Header { version: VERSION, search: search.clone() })?;
            // The name of the file must be durable as well.
            if let Ok(folder) = File::open(folder) {
                let _ = folder.sync_all();
            }
        }
        Ok(journal)
    }

    /// The earlier result of a slice.
    pub(super) fn get(&self, slice: &Slice) -> Option<&Outcome> {
        self.known.get(slice)
    }

    /// Stores the result of a slice. It is on disk when this returns.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn put(&mut self, slice: Slice, outcome: Outcome) -> Result<(), GithubError> {
        self.append(&Line { slice, outcome })
    }

    /// Removes everything, so that the next search starts again.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn clear(&mut self) -> Result<(), GithubError> {
        self.known.clear();
        self.file
            .set_len(0)
            .and_then(|()| self.file.rewind())
            .and_then(|()| self.file.sync_data())
            .map_err(|e| failed(&self.path, e))
    }

    fn append(&mut self, line: &impl Serialize) -> Result<(), GithubError> {
        let write = |file: &mut File| {
            let json = serde_json::to_string(line)?;
            let line = format!("{} {json}\n", checksum(json.as_bytes()));
            file.write_all(line.as_bytes())?;
            file.sync_data()
        };
        write(&mut self.file).map_err(|e| failed(&self.path, e))
    }
}

fn failed(path: &Path, error: io::Error) -> GithubError {
    let message = format!("cannot keep the search's journal {}: {error}", path.display());
    GithubError::io(message, error)
}

fn checksum(content: &[u8]) -> String {
    blake3::hash(content).to_hex()[..32].to_string()
}

/// The outcomes, and how many bytes from the start are good: none if the file is damaged at
/// its start or belongs to another search.
fn read(content: &[u8], search: &Identity) -> (HashMap<Slice, Outcome>, u64) {
    let mut known = HashMap::new();
    let mut good = 0;
    for line in content.split_inclusive(|b| *b == b'\n') {
        let Some(json) = good_json(line) else { break };
        if good == 0 {
            let header = serde_json::from_slice::<Header>(json).ok();
            if !header.is_some_and(|h| h.version == VERSION && h.search == *search) {
                break;
            }
        } else {
            let Ok(Line { slice, outcome }) = serde_json::from_slice(json) else { break };
            known.insert(slice, outcome);
        }
        good += line.len() as u64;
    }
    (known, good)
}

/// The JSON of a line that is whole.
fn good_json(line: &[u8]) -> Option<&[u8]> {
    let line = line.strip_suffix(b"\n")?;
    let (sum, json) = (line.get(..32)?, line.get(33..)?);
    (sum == checksum(json).as_bytes()).then_some(json)
}
