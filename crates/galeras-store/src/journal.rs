//! A file of answers that are kept one by one, each on disk before it counts.
//!
//! One journal per recipe, for answers that were paid for and that no run may lose: a line
//! for each, with a checksum. Answers that arrive together are made durable together. A
//! journal is short-lived: at the end of its step what is in it becomes a part of the recipe,
//! and the file goes.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::error::StoreError;
use super::links::without_links;
use galeras_base::digest::Digest;
use galeras_base::error_chain;
use galeras_base::scratch::{clear_place, make_lasting_folder, sync_folder};

/// How often a journal is tried that another process has.
const POLL: Duration = Duration::from_millis(50);

/// Answers on their way to the disk.
const QUEUE: usize = 1024;

/// A kept answer: what was asked, as a digest, and the text that came back.
pub type JournalEntry = (Digest, String);

/// The journal of a recipe, open and locked.
pub struct AnswerJournal {
    path: PathBuf,
    queue: mpsc::Sender<PendingLine>,
    /// Ends with the queue and gives the file back, still locked.
    writer: std::thread::JoinHandle<File>,
}

struct PendingLine {
    line: Vec<u8>,
    kept: oneshot::Sender<io::Result<()>>,
}

impl AnswerJournal {
    /// Opens the journal of `recipe` in `folder`, or begins it, and returns the answers in it.
    /// Waits for as long as another process has it open.
    ///
    /// # Errors
    /// If the folder or the file cannot be made, read or cut back to its last whole line.
    pub async fn open(
        folder: &Path,
        recipe: &Digest,
    ) -> Result<(Self, Vec<JournalEntry>), StoreError> {
        let path = Self::place(folder, recipe);
        let failed = |error: io::Error| StoreError::at("write", &path, error);
        make_lasting_folder(folder).map_err(failed)?;
        clear_place(&path).map_err(failed)?;
        let mut file = loop {
            let file = without_links()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path)
                .map_err(failed)?;
            match file.try_lock() {
                Err(TryLockError::WouldBlock) => tokio::time::sleep(POLL).await,
                // Whoever had it may have removed it: then it is another file by now.
                Ok(()) if !same_file(&file, &path) => {}
                // Not every disk has locks; without them, two could only ask the same twice.
                Ok(()) | Err(TryLockError::Error(_)) => break file,
            }
        };
        let mut content = Vec::new();
        file.read_to_end(&mut content).map_err(failed)?;
        let (entries, good) = read(&content);
        file.set_len(good).and_then(|()| file.seek(SeekFrom::Start(good))).map_err(failed)?;
        // The name of the file has to be durable too.
        sync_folder(folder).map_err(failed)?;
        let (queue, pending) = mpsc::channel(QUEUE);
        let writer = std::thread::Builder::new().spawn(move || write_all(file, pending));
        let writer = writer.map_err(failed)?;
        Ok((Self { path, queue, writer }, entries))
    }

    /// The answers in the journal of `recipe` in `folder`, whoever has it open; none if there is no
    /// journal.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn peek(folder: &Path, recipe: &Digest) -> Result<Vec<JournalEntry>, StoreError> {
        let path = Self::place(folder, recipe);
        match fs::read(&path) {
            Ok(content) => Ok(read(&content).0),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            // It is cleared away when the journal is opened.
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => Ok(Vec::new()),
            Err(error) => Err(StoreError::at("read", &path, error)),
        }
    }

    fn place(folder: &Path, recipe: &Digest) -> PathBuf {
        folder.join(format!("{recipe}.log"))
    }

    /// Keeps an answer; it is on disk when this returns.
    ///
    /// # Errors
    /// If the line could not be written. Nothing of it is in the file then.
    pub async fn keep(&self, question: &Digest, answer: &str) -> Result<(), StoreError> {
        let failed = |error: io::Error| StoreError::at("write", &self.path, error);
        let ended = || failed(io::Error::other("the journal's thread has ended"));
        let (kept, done) = oneshot::channel();
        let line = line(question, answer);
        self.queue.send(PendingLine { line, kept }).await.map_err(|_| ended())?;
        done.await.map_err(|_| ended())?.map_err(failed)
    }

    /// Removes the file: what was in it is kept elsewhere.
    ///
    /// # Errors
    /// If the folder does not allow it.
    pub fn remove(self) -> Result<(), StoreError> {
        drop(self.queue);
        // The lock is held until the name is gone.
        let file = self.writer.join();
        let removed = fs::remove_file(&self.path);
        drop(file);
        removed.map_err(|error| StoreError::at("remove", &self.path, error))
    }
}

fn same_file(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    matches!((file.metadata(), fs::metadata(path)),
        (Ok(a), Ok(b)) if identity(a.clone()) == identity(b.clone()))
}

/// Writes what arrives; all that waits is made durable at once.
fn write_all(mut file: File, mut pending: mpsc::Receiver<PendingLine>) -> File {
    let (mut text, mut waiting) = (Vec::new(), Vec::new());
    while let Some(first) = pending.blocking_recv() {
        let mut next = Some(first);
        while let Some(PendingLine { line, kept }) = next {
            text.extend_from_slice(&line);
            waiting.push(kept);
            next = pending.try_recv().ok();
        }
        let written = append(&mut file, &text);
        text.clear();
        for kept in waiting.drain(..) {
            // Nobody waits any more if the run was interrupted.
            let _ = kept.send(written.as_ref().copied().map_err(error_chain::copy_of));
        }
    }
    file
}

/// Appends `text` durably; if that fails, nothing of it stays.
fn append(file: &mut File, text: &[u8]) -> io::Result<()> {
    let start = file.stream_position()?;
    file.write_all(text).and_then(|()| file.sync_data()).inspect_err(|_| {
        let _ = file.set_len(start).and_then(|()| file.seek(SeekFrom::Start(start)));
    })
}

const SUM: usize = 32;
const DIGEST: usize = 64;

/// `<checksum> <question> <answer as JSON text>`: a line break within an answer is escaped.
fn line(question: &Digest, answer: &str) -> Vec<u8> {
    let text = serde_json::Value::from(answer).to_string();
    let content = format!("{question} {text}");
    format!("{} {content}\n", checksum(content.as_bytes())).into_bytes()
}

fn checksum(content: &[u8]) -> String {
    blake3::hash(content).to_hex()[..SUM].to_string()
}

/// The answers, and where the last whole line ends. A damaged line takes no other with it.
fn read(content: &[u8]) -> (Vec<JournalEntry>, u64) {
    let good = content.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let lines = content[..good].split(|byte| *byte == b'\n');
    (lines.filter_map(entry).collect(), good as u64)
}

fn entry(line: &[u8]) -> Option<JournalEntry> {
    let (sum, content) = (line.get(..SUM)?, line.get(SUM + 1..)?);
    if sum != checksum(content).as_bytes() {
        return None;
    }
    let question = std::str::from_utf8(content.get(..DIGEST)?).ok()?.parse().ok()?;
    let answer = serde_json::from_slice(content.get(DIGEST + 1..)?).ok()?;
    Some((question, answer))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn question(n: u8) -> Digest {
        Digest::of(&[n])
    }

    async fn reopened(folder: &Path) -> Vec<JournalEntry> {
        let (journal, entries) = AnswerJournal::open(folder, &question(0)).await.unwrap();
        drop(journal.queue);
        drop(journal.writer.join());
        entries
    }

    #[tokio::test]
    async fn what_was_kept_is_there_when_it_is_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let (journal, entries) = AnswerJournal::open(folder.path(), &question(0)).await.unwrap();
        assert!(entries.is_empty());
        let text = "two\nlines, \"quotes\", \u{0} and 世界";
        journal.keep(&question(1), text).await.unwrap();
        journal.keep(&question(2), "").await.unwrap();
        drop(journal);
        let wanted = vec![(question(1), text.to_string()), (question(2), String::new())];
        assert_eq!(reopened(folder.path()).await, wanted);
    }

    #[tokio::test]
    async fn a_line_that_is_cut_or_damaged_takes_no_other_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("{}.log", question(0)));
        let good = [line(&question(1), "one"), line(&question(2), "two")];
        let mut damaged = line(&question(3), "three");
        let last = damaged.len() - 3;
        damaged[last] ^= 1;
        let cut = line(&question(4), "four");
        let whole = [&good[0][..], &damaged, b"\n", b"noise\n", &good[1]].concat();
        for end in 0..cut.len() {
            fs::write(&path, [&whole[..], &cut[..end]].concat()).unwrap();
            let entries = reopened(folder.path()).await;
            assert_eq!(entries.iter().map(|e| e.1.as_str()).collect::<Vec<_>>(), ["one", "two"]);
            assert_eq!(fs::metadata(&path).unwrap().len(), whole.len() as u64, "{end}");
        }
    }

    #[tokio::test]
    async fn the_next_one_waits_and_finds_a_new_file_if_it_was_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (first, _) = AnswerJournal::open(folder.path(), &question(0)).await.unwrap();
        first.keep(&question(1), "one").await.unwrap();
        let path = folder.path().to_path_buf();
        let second = tokio::spawn(async move { AnswerJournal::open(&path, &question(0)).await });
        tokio::time::sleep(POLL * 3).await;
        assert!(!second.is_finished());
        first.remove().unwrap();
        let (second, entries) = second.await.unwrap().unwrap();
        assert!(entries.is_empty());
        second.keep(&question(2), "two").await.unwrap();
        drop(second);
        assert_eq!(reopened(folder.path()).await.len(), 1);
    }
}
