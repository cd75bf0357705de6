//! Opens a bundle: compares every file with the list of digests, and unpacks only those that match.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};

use super::archive::Archive;
use super::bundle_record::{BUNDLE_RECORD, BundleRecord};
use super::error::{AboutFile as _, ShareError};
use super::listing::{FileProblem, LISTING, parse};
use galeras_base::digest::Digest;
use galeras_store::check_whole_footer;

/// How large the texts of a bundle may be.
const MAX_TEXT: u64 = 256 << 20;

/// A bundle that may come from a stranger.
pub struct OpenedBundle {
    path: PathBuf,
    archive: Archive,
    listing: Result<BTreeMap<String, Digest>, String>,
}

impl OpenedBundle {
    /// The file looks like a zip file, and not like a workflow.
    pub fn is_one(path: &Path) -> bool {
        let mut start = [0; 2];
        let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
        let named = path.extension().is_some_and(|suffix| suffix.eq_ignore_ascii_case("zip"));
        named || (read.is_ok() && start == *b"PK")
    }

    /// Opens a bundle, and compares all of its bytes with the digest at its end.
    ///
    /// # Errors
    /// If it cannot be read, or is not a zip file.
    pub fn open(path: &Path) -> Result<Self, ShareError> {
        let mut archive = Archive::open(path)?;
        let listing = archive.text(LISTING, MAX_TEXT).and_then(|text| parse(&text));
        Ok(Self { path: path.to_path_buf(), archive, listing })
    }

    /// The bundle's record.
    ///
    /// # Errors
    /// If it is missing or invalid.
    pub fn record(&mut self) -> Result<BundleRecord, ShareError> {
        let text = self.archive.text(BUNDLE_RECORD, MAX_TEXT);
        let record = text.and_then(|text| BundleRecord::parse(&text));
        record.map_err(|why| {
            let path = self.path.display();
            ShareError::Refused(format!("{path} is not a bundle: {BUNDLE_RECORD}: {why}"))
        })
    }

    /// The names of its files, except the list.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.listing.iter().flatten().map(|(name, _)| name.as_str())
    }

    /// Hashes every file, and unpacks the `wanted` files that match the list into `folder`. Returns
    /// the expected number of files, and the problems; reports the bytes while they are read.
    ///
    /// # Errors
    /// If a file cannot be unpacked.
    pub fn check(
        &mut self,
        folder: &Path,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<(u64, Vec<FileProblem>), ShareError> {
        let mut problems = Vec::new();
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        problems.extend(self.archive.problem.iter().map(|said| FileProblem::new(&name, said)));
        let strange = self.archive.strange.iter();
        problems.extend(strange.map(|(name, said)| FileProblem::new(name, said)));
        let listing = match &self.listing {
            Ok(listing) => listing.clone(),
            Err(why) => {
                problems.push(FileProblem::new(LISTING, why));
                return Ok((self.archive.entries.len() as u64, problems));
            }
        };
        for name in self.archive.entries.keys() {
            if !listing.contains_key(name) && name != LISTING {
                problems.push(FileProblem::new(name, "it is not in the list of files"));
            }
        }
        for (name, digest) in &listing {
            let Some(at) = self.archive.entries.get(name).copied() else {
                problems.push(FileProblem::new(name, "it is missing"));
                continue;
            };
            let place = folder.join(name);
            let found = if wanted(name) {
                let file = new_file(&place).about("write", &place)?;
                let mut out = BufWriter::new(file);
                let copied = self.archive.copy(at, &mut out);
                out.flush().about("write", &place)?;
                copied
            } else {
                self.archive.copy(at, &mut io::sink())
            };
            let problem = match found {
                Ok(found) if found == *digest => {
                    // The table is read from now on, even if a stranger wrote it.
                    let is_table = wanted(name) && name.ends_with(".parquet");
                    let checked = if is_table { check_table(&place) } else { Ok(()) };
                    let Err(why) = checked else { continue };
                    why
                }
                Ok(_) => "its content does not match the list".to_string(),
                Err(why) => why,
            };
            // Removes a file that does not match.
            let _ = fs::remove_file(&place);
            problems.push(FileProblem::new(name, problem));
        }
        // The list counts as a file as well.
        Ok((listing.len() as u64 + 1, problems))
    }
}

fn check_table(place: &Path) -> Result<(), String> {
    let file = File::open(place).map_err(|error| error.to_string())?;
    check_whole_footer(&file).map(drop)
}

fn new_file(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    File::options().write(true).create_new(true).open(path)
}
