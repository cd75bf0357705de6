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
use super::search::Search;
use super::slice::Slice;

/// Increased when old journals become unusable.
const VERSION: u32 = 2;

/// The identity of a journal: it belongs to one search of one server.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct Header {
    version: u32,
    base_url: String,
    search: Search,
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

impl Journal {
    /// Opens the journal of a search, or creates it.
    pub(super) fn open(
        folder: &Path,
        base_url: &str,
        search: &Search,
    ) -> Result<Self, GithubError> {
        let header =
            Header { version: VERSION, base_url: base_url.to_string(), search: search.clone() };
        let name = checksum(serde_json::json!(header).to_string().as_bytes());
        let path = folder.join(format!("search-{name}.jsonl"));
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
        let (known, good) = read(&content, &header);
        file.set_len(good).and_then(|()| file.seek(SeekFrom::Start(good))).map_err(failed)?;
        let mut journal = Self { file, path, known };
        if good == 0 {
            journal.append(&header)?;
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
    pub(super) fn put(&mut self, slice: Slice, outcome: Outcome) -> Result<(), GithubError> {
        self.append(&Line { slice, outcome })
    }

    /// Removes everything, so that the next search starts again.
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
fn read(content: &[u8], header: &Header) -> (HashMap<Slice, Outcome>, u64) {
    let mut known = HashMap::new();
    let mut good = 0;
    for line in content.split_inclusive(|b| *b == b'\n') {
        let Some(json) = good_json(line) else { break };
        if good == 0 {
            if serde_json::from_slice::<Header>(json).ok().as_ref() != Some(header) {
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
