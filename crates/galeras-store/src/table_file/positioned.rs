//! A file that is read at positions: readers of one open file do not disturb each other.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::Result;
use parquet::file::reader::{ChunkReader, Length};

/// An open file, and its length when it was opened.
#[derive(Clone, Debug)]
pub(super) struct PositionedFile {
    file: Arc<File>,
    length: u64,
}

impl PositionedFile {
    pub(super) fn new(file: Arc<File>) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self { file, length })
    }
}

impl Length for PositionedFile {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for PositionedFile {
    type T = BufReader<From>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(BufReader::new(From { file: Arc::clone(&self.file), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        // Never more memory than there is file: what a footer says may be anything.
        let left = usize::try_from(self.length.saturating_sub(start)).unwrap_or(usize::MAX);
        if length > left {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

/// A file from a position on.
pub(super) struct From {
    file: Arc<File>,
    at: u64,
}

impl Read for From {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
