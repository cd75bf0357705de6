//! Token data in memory or, beyond a limit, in a file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::SimilarityError;

/// Bytes converted at a time: limits the extra buffers.
const CHUNK: usize = 1 << 16;

/// An append-only sequence of words.
pub(super) struct Store {
    /// The end of the sequence, from word `flushed` on.
    words: Vec<u32>,
    /// The start of the sequence, in a file without a name.
    file: Option<File>,
    flushed: u64,
    /// Bytes that `words` may take.
    memory: usize,
    dir: PathBuf,
}

impl Store {
    /// Creates an empty sequence with up to `memory` bytes in memory.
    pub(super) fn new(memory: usize, dir: &Path) -> Self {
        Self { words: Vec::new(), file: None, flushed: 0, memory, dir: dir.to_owned() }
    }

    pub(super) fn len(&self) -> u64 {
        self.flushed + self.words.len() as u64
    }

    /// Bytes in memory.
    pub(super) fn held(&self) -> usize {
        self.words.len() * 4
    }

    /// Adds words at the end. The words of one call are never split between the file and the
    /// memory.
    pub(super) fn append(&mut self, words: &[u32]) -> Result<(), SimilarityError> {
        if !self.words.is_empty() && (self.words.len() + words.len()) * 4 > self.memory {
            self.flush()?;
        }
        self.words.extend_from_slice(words);
        Ok(())
    }

    /// Ends the sequence: if a part of it is in the file, writes all of it there.
    pub(super) fn seal(&mut self) -> Result<(), SimilarityError> {
        if self.file.is_some() {
            self.flush()?;
            self.words = Vec::new();
        }
        self.words.shrink_to_fit();
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SimilarityError> {
        let written = self.write();
        written.map_err(|source| SimilarityError::Scratch { dir: self.dir.clone(), source })?;
        self.flushed += self.words.len() as u64;
        self.words.clear();
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        if self.file.is_none() {
            self.file = Some(tempfile::tempfile_in(&self.dir)?);
        }
        let Some(file) = &self.file else { return Ok(()) };
        let mut at = self.flushed * 4;
        let mut bytes = Vec::with_capacity(CHUNK);
        for words in self.words.chunks(CHUNK / 4) {
            bytes.clear();
            words.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
            file.write_all_at(&bytes, at)?;
            at += bytes.len() as u64;
        }
        Ok(())
    }

    /// The words from `start` to `end`, through `buffer` if they are in the file. They must not
    /// cross the border between the file and the memory.
    pub(super) fn get<'a>(
        &'a self,
        start: u64,
        end: u64,
        buffer: &'a mut Vec<u32>,
    ) -> Result<&'a [u32], SimilarityError> {
        let length = (end - start) as usize;
        if start >= self.flushed {
            let start = (start - self.flushed) as usize;
            return Ok(self.words.get(start..start + length).unwrap_or_default());
        }
        let read = self.read(start, length, buffer);
        read.map_err(|source| SimilarityError::Scratch { dir: self.dir.clone(), source })?;
        Ok(buffer)
    }

    fn read(&self, start: u64, length: usize, buffer: &mut Vec<u32>) -> io::Result<()> {
        let file = self.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
        buffer.clear();
        // An exceptionally long document does not keep its buffer.
        buffer.shrink_to(length.max(CHUNK));
        buffer.reserve(length);
        let mut bytes = [0; 4096];
        let mut at = start * 4;
        let mut left = length * 4;
        while left > 0 {
            let part = bytes.get_mut(..left.min(4096)).unwrap_or_default();
            file.read_exact_at(part, at)?;
            let word = |word: &[u8]| u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
            buffer.extend(part.chunks_exact(4).map(word));
            at += part.len() as u64;
            left -= part.len();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back_from_memory_and_file() {
        for memory in [0, 40, 4000, 1 << 20] {
            let mut store = Store::new(memory, &std::env::temp_dir());
            let piece = |n: u32| (0..n).map(|i| n * 1000 + i).collect::<Vec<_>>();
            for n in 0..50 {
                store.append(&piece(n)).unwrap();
                assert!(store.held() <= memory.max(50 * 4));
            }
            let (mut start, mut buffer) = (0, Vec::new());
            for n in 0..50 {
                let end = start + u64::from(n);
                assert_eq!(store.get(start, end, &mut buffer).unwrap(), piece(n));
                start = end;
            }
            assert_eq!(store.len(), start);
            store.seal().unwrap();
            let all = store.get(0, store.len(), &mut buffer).unwrap();
            assert_eq!(all, (0..50).flat_map(piece).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_missing_directory_is_an_error_that_names_it() {
        let mut store = Store::new(0, Path::new("/nonexistent/scratch"));
        store.append(&[1]).unwrap();
        let error = store.append(&[2]).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/scratch"), "{error}");
    }
}
