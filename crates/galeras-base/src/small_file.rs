//! Reads small files as a whole: workflows, lock files, contracts, tokenizers. It has the limits of
//! each, and also opens regular files of any size for reading in pieces.
//!
//! A name in a workflow may refer to anything: `/dev/zero` has no end, a named pipe may never have
//! a beginning. So only regular files are read, up to a limit.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read as _, Result};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Upper bound of a workflow or a contract.
pub const MAX_TEXT_BYTES: u64 = 16 << 20;

/// Upper bound of a lock file: the answers to searches with half a million repositories.
pub const MAX_LOCK_BYTES: u64 = 256 << 20;

/// Upper bound of a tokenizer file.
pub const MAX_MODEL_BYTES: u64 = 512 << 20;

/// The content of a regular file of at most `limit` bytes.
///
/// # Errors
/// If it cannot be opened or read, is not a regular file ([`ErrorKind::InvalidInput`]), or is
/// larger ([`ErrorKind::FileTooLarge`]). The message fits after "cannot read FILE: ".
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>> {
    let file = open(path)?;
    let size = file.metadata()?.len();
    whole(&file, size, limit)
}

/// Opens a regular file of any size, to be read in pieces.
///
/// # Errors
/// If it cannot be opened, or is not a regular file ([`ErrorKind::InvalidInput`]).
pub fn open(path: &Path) -> Result<File> {
    regular(std::fs::metadata(path)?.file_type())?;
    // Does not wait for a pipe that has replaced the file in the meantime.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
        .open(path)?;
    regular(file.metadata()?.file_type())?;
    Ok(file)
}

/// As [`read`], for a file that the user named on the command line: a pipe (`<(…)`, `/dev/stdin`)
/// or a device is also read, up to the limit.
///
/// # Errors
/// Those of [`read`], except that only folders and sockets are rejected for their kind.
pub fn read_named(path: &Path, limit: u64) -> Result<Vec<u8>> {
    let kind = std::fs::metadata(path)?.file_type();
    if !kind.is_fifo() && !kind.is_char_device() {
        return read(path, limit);
    }
    whole(&File::open(path)?, 0, limit)
}

fn whole(file: &File, size: u64, limit: u64) -> Result<Vec<u8>> {
    let too_large = |has: String| {
        let message = format!("it has {has}, more than the {} that are read", bytes_text(limit));
        Err(Error::new(ErrorKind::FileTooLarge, message))
    };
    if size > limit {
        return too_large(bytes_text(size));
    }
    let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    file.take(limit.saturating_add(1)).read_to_end(&mut content)?;
    if content.len() as u64 > limit {
        return too_large("no end in sight".to_owned());
    }
    Ok(content)
}

fn regular(kind: std::fs::FileType) -> Result<()> {
    if kind.is_file() {
        return Ok(());
    }
    let what = match kind {
        _ if kind.is_dir() => "a folder",
        _ if kind.is_fifo() => "a named pipe",
        _ if kind.is_socket() => "a socket",
        _ => "a device",
    };
    Err(Error::new(ErrorKind::InvalidInput, format!("it is {what}, not a file")))
}

/// A number of bytes as text: `3 bytes`, `16 MiB`.
pub fn bytes_text(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "12345").unwrap();
        assert_eq!(read(file.path(), 5).unwrap(), b"12345");
        let error = read(file.path(), 4).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        assert_eq!(error.to_string(), "it has 5 bytes, more than the 4 bytes that are read");
        assert_eq!(read(Path::new("/no/such"), 1).unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn only_regular_files_are_read_and_nothing_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        for (path, what) in
            [(&pipe, "a named pipe"), (&link, "a device"), (&folder.path().into(), "a folder")]
        {
            for error in [read(path, 10).unwrap_err(), open(path).unwrap_err()] {
                assert_eq!(error.to_string(), format!("it is {what}, not a file"));
            }
        }
        let error = read_named(&link, 10).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
    }

    /// Files of `/proc` report a size of 0.
    #[test]
    fn the_limit_holds_for_files_that_do_not_know_their_size() {
        let error = read(Path::new("/proc/self/maps"), 100).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
    }
}
