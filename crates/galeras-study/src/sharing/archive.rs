//! Zip files that are reproducible and reveal any changed byte: entries are sorted and have no
//! times, and the comment at the end is the digest of everything before it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipArchive, ZipWriter};

use super::error::{AboutFile as _, ShareError};
use super::listing::is_plain;
use galeras_base::digest::Digest;

/// The prefix of the comment; the digest of all bytes before it follows.
const SEAL: &str = "galeras bundle blake3:";
const DIGITS: usize = 64;
const COMMENT: usize = SEAL.len() + DIGITS;
/// The maximum unpacked size of a bundle of any size, and the factor for larger ones. Tables are
/// already compressed, and texts shrink about tenfold; a zip bomb shrinks a thousandfold.
const MOST_UNPACKED: u64 = 1 << 30;
const MOST_FOR_A_BYTE: u64 = 100;
/// Zip files need longer positions above this size.
const LARGE: u64 = u32::MAX as u64;

/// Writes files into an empty zip file.
pub(super) fn pack(files: &BTreeMap<String, PathBuf>, mut to: &File) -> Result<(), ShareError> {
    let failed = |error: &dyn std::fmt::Display| {
        ShareError::Disk(format!("cannot write the bundle: {error}"))
    };
    let mut out = BufWriter::new(to);
    let mut archive = ZipWriter::new(&mut out);
    for (name, path) in files {
        let source = File::open(path).about("read", path)?;
        let bytes = source.metadata().about("read", path)?.len();
        // Tables and images are already compressed.
        let packed = ["parquet", "png", "pdf"].iter().any(|suffix| name.ends_with(suffix));
        let method = if packed { CompressionMethod::Stored } else { CompressionMethod::Deflated };
        let options = SimpleFileOptions::default()
            .compression_method(method)
            .last_modified_time(DateTime::DEFAULT)
            .unix_permissions(0o644)
            .large_file(bytes >= LARGE);
        archive.start_file(name.as_str(), options).map_err(|error| failed(&error))?;
        io::copy(&mut BufReader::new(source), &mut archive).map_err(|error| failed(&error))?;
    }
    archive.set_raw_comment(vec![b'0'; COMMENT].into()).map_err(|error| failed(&error))?;
    archive.finish().map_err(|error| failed(&error))?;
    let sealed = out.flush().and_then(|()| seal_of(to)).and_then(|seal| {
        to.seek(SeekFrom::End(-(COMMENT as i64)))?;
        to.write_all(seal.as_bytes())
    });
    sealed.map_err(|error| failed(&error))
}

fn seal_of(mut file: &File) -> io::Result<String> {
    let length = file.metadata()?.len().saturating_sub(COMMENT as u64);
    file.rewind()?;
    let digest = Digest::of_reader(BufReader::new(file).take(length))?;
    Ok(format!("{SEAL}{digest}"))
}

/// A zip file of unknown origin.
pub(super) struct Archive {
    zip: ZipArchive<BufReader<File>>,
    /// The bytes that may still be unpacked, and the initial limit.
    left: u64,
    most: u64,
    /// The problem with the file as a whole.
    pub(super) problem: Option<String>,
    /// Its entries by name, only files inside of the unpacked folder.
    pub(super) entries: BTreeMap<String, usize>,
    /// Its other entries, each with its problem.
    pub(super) strange: Vec<(String, String)>,
}

impl Archive {
    /// Opens a zip file, and compares all of its bytes with the digest at its end.
    pub(super) fn open(path: &Path) -> Result<Self, ShareError> {
        let mut file = File::open(path).about("read", path)?;
        let size = file.metadata().about("read", path)?.len();
        let most = MOST_UNPACKED.saturating_add(size.saturating_mul(MOST_FOR_A_BYTE));
        let problem = seal_problem(&mut file).about("read", path)?;
        file.rewind().about("read", path)?;
        let zip = ZipArchive::new(BufReader::new(file));
        let zip = zip.map_err(|error| format!("it is not a zip file, or is cut off ({error})"));
        let mut zip = zip.about("read", path)?;
        let (mut entries, mut strange) = (BTreeMap::new(), Vec::new());
        for at in 0..zip.len() {
            let entry = match zip.by_index_raw(at) {
                Ok(entry) => entry,
                Err(error) => {
                    strange.push((format!("entry {at}"), format!("it cannot be read: {error}")));
                    continue;
                }
            };
            let name = String::from_utf8_lossy(entry.name_raw()).into_owned();
            let said = if entry.is_symlink() {
                "it is a link"
            } else if entry.is_dir() {
                "it is a folder"
            } else if !is_plain(&name) {
                "it would be outside of the bundle"
            } else if entries.insert(name.clone(), at).is_some() {
                "it is there twice"
            } else {
                continue;
            };
            strange.push((name, said.to_string()));
        }
        // Some readers merge entries of the same name.
        if zip.has_duplicate_names() && !strange.iter().any(|(_, said)| said.contains("twice")) {
            strange.push(("the list of files".into(), "it has a name twice".into()));
        }
        Ok(Self { zip, left: most, most, problem, entries, strange })
    }

    /// Copies the content of an entry, and returns its digest. The error follows its name: it is
    /// damaged, or exceeds the limit together with earlier copies.
    pub(super) fn copy(&mut self, at: usize, to: &mut impl Write) -> Result<Digest, String> {
        let mut entry = self.zip.by_index(at).map_err(|error| unreadable(&error))?;
        let mut hasher = blake3::Hasher::new();
        let mut buffer = vec![0; 1 << 18];
        loop {
            let read = entry.read(&mut buffer).map_err(|error| unreadable(&error))?;
            if read == 0 {
                return Ok(Digest::from(hasher.finalize()));
            }
            let Some(left) = self.left.checked_sub(read as u64) else {
                let most = self.most >> 20;
                return Err(format!("unpacked, the files up to here have more than {most} MiB"));
            };
            self.left = left;
            hasher.update(&buffer[..read]);
            to.write_all(&buffer[..read]).map_err(|error| format!("it cannot be kept: {error}"))?;
        }
    }

    /// An entry of at most `limit` bytes as a whole.
    pub(super) fn text(&mut self, name: &str, limit: u64) -> Result<String, String> {
        let at = *self.entries.get(name).ok_or("it is missing")?;
        let entry = self.zip.by_index(at).map_err(|error| unreadable(&error))?;
        let mut bytes = Vec::new();
        entry.take(limit + 1).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
        if bytes.len() as u64 > limit {
            return Err(format!("it has more than {limit} bytes"));
        }
        String::from_utf8(bytes).map_err(|_| "it is not text".into())
    }
}

fn unreadable(error: &dyn std::fmt::Display) -> String {
    format!("it is damaged: {error}")
}

/// The problem with the file, according to the digest at its end.
fn seal_problem(file: &mut File) -> io::Result<Option<String>> {
    let length = file.metadata()?.len();
    if length < COMMENT as u64 {
        return Ok(Some(NO_SEAL.into()));
    }
    let mut comment = vec![0; COMMENT];
    file.seek(SeekFrom::End(-(COMMENT as i64)))?;
    file.read_exact(&mut comment)?;
    if !comment.starts_with(SEAL.as_bytes()) {
        return Ok(Some(NO_SEAL.into()));
    }
    let right = seal_of(file)?;
    Ok((right.as_bytes() != comment).then(|| CHANGED.into()))
}

const NO_SEAL: &str = "it does not end in its digest: it was packed again, or is cut off";
const CHANGED: &str = "its bytes are not those that were packed, by the digest at its end";

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(folder: &Path, name: &str) -> PathBuf {
        let mut files = BTreeMap::new();
        for (name, content) in [("b/t.parquet", "PAR1 table"), ("a.txt", "text text text text")] {
            let path = folder.join(name.replace('/', "_"));
            std::fs::write(&path, content).unwrap();
            files.insert(name.to_string(), path);
        }
        let to = folder.join(name);
        let file = File::options().create(true).truncate(true).read(true).write(true).open(&to);
        pack(&files, &file.unwrap()).unwrap();
        to
    }

    #[test]
    fn the_same_files_give_the_same_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (packed(folder.path(), "1.zip"), packed(folder.path(), "2.zip"));
        assert_eq!(std::fs::read(&one).unwrap(), std::fs::read(&two).unwrap());
        let mut archive = Archive::open(&one).unwrap();
        assert_eq!(archive.problem, None);
        assert_eq!(archive.entries.keys().collect::<Vec<_>>(), ["a.txt", "b/t.parquet"]);
        assert_eq!(archive.text("a.txt", 100).unwrap(), "text text text text");
        assert!(archive.text("a.txt", 3).unwrap_err().contains("more than 3 bytes"));
        let digest = archive.copy(archive.entries["b/t.parquet"], &mut io::sink()).unwrap();
        assert_eq!(digest, Digest::of(b"PAR1 table"));
    }

    #[test]
    fn a_bomb_is_not_unpacked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bomb.zip");
        let mut archive = ZipWriter::new(File::create(&path).unwrap());
        let zeros = vec![0; 1 << 20];
        for name in ["a", "b", "c"] {
            archive.start_file(name, SimpleFileOptions::default()).unwrap();
            for _ in 0..4 {
                archive.write_all(&zeros).unwrap();
            }
        }
        archive.finish().unwrap();
        assert!(path.metadata().unwrap().len() < 1 << 20);
        let mut archive = Archive::open(&path).unwrap();
        archive.left = 9 << 20;
        let copied: Vec<_> = (0..3).map(|at| archive.copy(at, &mut io::sink()).map(drop)).collect();
        assert!(copied[0].is_ok() && copied[1].is_ok());
        let most = (1 << 10) + ((path.metadata().unwrap().len() * MOST_FOR_A_BYTE) >> 20);
        let said = format!("unpacked, the files up to here have more than {most} MiB");
        assert_eq!(copied[2], Err(said));
    }

    #[test]
    fn no_changed_byte_is_overlooked() {
        let folder = tempfile::tempdir().unwrap();
        let path = packed(folder.path(), "1.zip");
        let whole = std::fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at % 8);
            std::fs::write(&path, damaged).unwrap();
            let found = Archive::open(&path).map_or(true, |archive| archive.problem.is_some());
            assert!(found, "byte {at}");
        }
        for cut in 0..whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let found = Archive::open(&path).map_or(true, |archive| archive.problem.is_some());
            assert!(found, "cut at {cut}");
        }
    }
}
