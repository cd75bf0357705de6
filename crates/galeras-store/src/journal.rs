//! A file of paid answers, which no run may lose: a line for each, durable before it counts.
//! Answers that arrive together are made durable together. There is one journal per recipe; at the
//! end of the step the answers become a part of the recipe, and the file is removed.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::error::{Result, StoreError};
use super::local_files::open_or_create;
use super::log_lines::{self, SUM, append, whole_lines};
use galeras_base::digest::Digest;
use galeras_base::error_chain;
use galeras_base::scratch::{clear_place, make_lasting_folder, sync_folder};

/// How often the lock of another process is tried.
const POLL: Duration = Duration::from_millis(50);

/// The most answers that wait for the disk.
const QUEUE: usize = 1024;

/// A kept answer: the digest of the question, and the text.
pub type JournalEntry = (Digest, String);

/// The journal of a recipe, open and locked.
pub struct AnswerJournal {
    path: PathBuf,
    queue: mpsc::Sender<PendingLine>,
    /// Ends with the queue and returns the file, still locked.
    writer: std::thread::JoinHandle<File>,
}

struct PendingLine {
    line: Vec<u8>,
    kept: oneshot::Sender<io::Result<()>>,
}

impl AnswerJournal {
    /// Opens or creates the journal of `recipe` in `folder`, and returns the answers in it. Waits
    /// while another process has it open.
    pub async fn open(folder: &Path, recipe: &Digest) -> Result<(Self, Vec<JournalEntry>)> {
        let path = Self::place(folder, recipe);
        let failed = |error: io::Error| StoreError::at("write", &path, error);
        make_lasting_folder(folder).map_err(failed)?;
        clear_place(&path).map_err(failed)?;
        let mut file = loop {
            let file = open_or_create(&path).map_err(failed)?;
            match file.try_lock() {
                Err(TryLockError::WouldBlock) => tokio::time::sleep(POLL).await,
                // The other process may have removed it: then this is another file.
                Ok(()) if !same_file(&file, &path) => {}
                // Without locks on this disk, two runs could only ask the same question twice.
                Ok(()) | Err(TryLockError::Error(_)) => break file,
            }
        };
        let mut content = Vec::new();
        file.read_to_end(&mut content).map_err(failed)?;
        let good = whole_lines(&content);
        let end = good.len() as u64;
        file.set_len(end).and_then(|()| file.seek(SeekFrom::Start(end))).map_err(failed)?;
        // The name of the file has to be durable as well.
        sync_folder(folder).map_err(failed)?;
        let (queue, pending) = mpsc::channel(QUEUE);
        let writer = std::thread::Builder::new().spawn(move || write_all(file, pending));
        let writer = writer.map_err(failed)?;
        Ok((Self { path, queue, writer }, entries(good)))
    }

    /// The answers in the journal of `recipe` in `folder`, which another process may have open.
    /// There need not be a journal.
    pub fn peek(folder: &Path, recipe: &Digest) -> Result<Vec<JournalEntry>> {
        let path = Self::place(folder, recipe);
        match fs::read(&path) {
            Ok(content) => Ok(entries(whole_lines(&content))),
            Err(error) => match error.kind() {
                // A folder is removed when the journal is opened.
                io::ErrorKind::NotFound | io::ErrorKind::IsADirectory => Ok(Vec::new()),
                _ => Err(StoreError::at("read", &path, error)),
            },
        }
    }

    fn place(folder: &Path, recipe: &Digest) -> PathBuf {
        folder.join(format!("{recipe}.log"))
    }

    /// Keeps an answer; it is on disk when this returns. After an error nothing of it is in the
    /// file.
    pub async fn keep(&self, question: &Digest, answer: &str) -> Result<()> {
        let failed = |error: io::Error| StoreError::at("write", &self.path, error);
        let ended = || failed(io::Error::other("the journal's thread has ended"));
        let (kept, done) = oneshot::channel();
        let line = line(question, answer);
        self.queue.send(PendingLine { line, kept }).await.map_err(|_| ended())?;
        done.await.map_err(|_| ended())?.map_err(failed)
    }

    /// Removes the file, when its answers are kept elsewhere.
    pub fn remove(self) -> Result<()> {
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

/// Writes the lines that arrive, waiting ones together.
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
            // The receiver is gone if the run was interrupted.
            let _ = kept.send(written.as_ref().copied().map_err(error_chain::copy_of));
        }
    }
    file
}

const DIGEST: usize = 64;

/// `<checksum> <question> <answer as JSON text>`: a line break within an answer is escaped.
fn line(question: &Digest, answer: &str) -> Vec<u8> {
    let text = serde_json::Value::from(answer);
    log_lines::line(SUM, &format!("{question} {text}")).into_bytes()
}

fn entries(lines: &[u8]) -> Vec<JournalEntry> {
    lines.split(|byte| *byte == b'\n').filter_map(entry).collect()
}

fn entry(line: &[u8]) -> Option<JournalEntry> {
    let content = log_lines::content(SUM, line)?;
    let question = std::str::from_utf8(content.get(..DIGEST)?).ok()?.parse().ok()?;
    let answer = serde_json::from_slice(content.get(DIGEST + 1..)?).ok()?;
    Some((question, answer))
}

#[cfg(test)]
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
    async fn kept_answers_are_read_back() {
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
    async fn a_cut_or_damaged_line_does_not_affect_others() {
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
