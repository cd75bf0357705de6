//! The similarity of files: the share of the larger file's bytes in lines (or runs of 64 bytes) that
//! the other file has too.
//!
//! All pairs of the files of two sides are measured at once. The runs of the side with fewer files
//! are kept; those of each file of the other side are looked up in them, and only runs that both
//! files have cost anything. So a commit that moves many files is cheap, unless all are alike.

use std::collections::HashMap;
use std::hash::BuildHasher;

use super::error::GitError;
use super::limits::PairLimits;

/// The longest run without a line end.
const RUN: usize = 64;

/// Likeness is a whole number up to this, so that it compares the same everywhere.
pub(super) const SCALE: u32 = 60_000;

/// Two files of which at least one half is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SimilarFiles {
    pub(super) score: u32,
    /// The position of the file among those that are kept.
    pub(super) kept: usize,
    /// The position of the other file.
    pub(super) other: usize,
}

/// The pairs of files that are alike, in no order; `None` if to find them is beyond the limits.
///
/// `kept` and `others` are the files, and `content` gives the bytes of one of them, `None` if it is
/// not to be compared. Files beyond the limit of bytes are not compared.
///
/// # Errors
/// Those of `content`.
pub(super) fn similar_files<F>(
    kept: &[F],
    others: &[F],
    limits: &PairLimits,
    mut content: impl FnMut(&F) -> Result<Option<Vec<u8>>, GitError>,
) -> Result<Option<Vec<SimilarFiles>>, GitError> {
    let mut bytes_left = limits.bytes;
    let mut profile = |file: &F| {
        if bytes_left == 0 {
            return Ok(None);
        }
        let Some(bytes) = content(file)? else { return Ok(None) };
        bytes_left = bytes_left.saturating_sub(bytes.len());
        Ok(Some(Profile::of(&bytes)))
    };
    // The counts depend on the files alone, so that every machine finds the same pairs.
    let (mut read, mut common) = (0, 0);
    let mut index = Index::default();
    for file in kept {
        let profile = profile(file)?;
        read += profile.as_ref().map_or(0, |profile| profile.read);
        index.add(profile);
        if read > limits.read || index.runs.len() > limits.kept {
            return Ok(None);
        }
    }
    index.sort();
    let mut found = Vec::new();
    for (other, file) in others.iter().enumerate() {
        let Some(profile) = profile(file)? else { continue };
        read += profile.read;
        if read > limits.read {
            return Ok(None);
        }
        common += index.similar_files(&profile, other, &mut found);
        if common > limits.common {
            return Ok(None);
        }
    }
    Ok(Some(found))
}

/// The number of bytes in each run of a file.
struct Profile {
    bytes: u64,
    /// Runs, equal ones counted each time.
    read: usize,
    runs: HashMap<u64, u32>,
}

impl Profile {
    fn of(content: &[u8]) -> Self {
        // A fixed hash: equal lines must meet, and hostile ones can only make files look
        // alike that are not.
        let hasher = std::hash::BuildHasherDefault::<std::hash::DefaultHasher>::default();
        let mut read = 0;
        let mut runs: HashMap<u64, u32> = HashMap::new();
        for line in content.split_inclusive(|byte| *byte == b'\n') {
            let crlf = line.ends_with(b"\r\n");
            for run in line.chunks(RUN) {
                let text = if crlf { run.strip_suffix(b"\r\n").unwrap_or(run) } else { run };
                let text = text.strip_suffix(b"\n").unwrap_or(text);
                // No file is so long.
                *runs.entry(hasher.hash_one(text)).or_default() += run.len() as u32;
                read += 1;
            }
        }
        Self { bytes: content.len() as u64, read, runs }
    }
}

/// A run of a file that is kept, and its number of bytes in that file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Run {
    hash: u64,
    file: u32,
    bytes: u32,
}

/// The runs of the files that are kept.
#[derive(Default)]
struct Index {
    runs: Vec<Run>,
    /// Where those of a hash begin.
    starts: HashMap<u64, u32>,
    /// The bytes of each file; none of one that is not compared.
    files: Vec<u64>,
    /// The bytes that each file and the one that is looked up both have.
    common: Vec<u64>,
}

impl Index {
    fn add(&mut self, profile: Option<Profile>) {
        let file = self.files.len() as u32;
        self.files.push(profile.as_ref().map_or(0, |profile| profile.bytes));
        let runs = profile.into_iter().flat_map(|profile| profile.runs);
        self.runs.extend(runs.map(|(hash, bytes)| Run { hash, file, bytes }));
    }

    fn sort(&mut self) {
        self.runs.sort_unstable();
        self.runs.shrink_to_fit();
        let mut last = None;
        for (at, run) in self.runs.iter().enumerate() {
            if last.replace(run.hash) != Some(run.hash) {
                self.starts.insert(run.hash, at as u32);
            }
        }
    }

    /// Adds the files that are similar to the one that is looked up; returns how many of its runs are
    /// in files that are kept, counted for each of these.
    fn similar_files(
        &mut self,
        profile: &Profile,
        other: usize,
        found: &mut Vec<SimilarFiles>,
    ) -> usize {
        let mut runs = 0;
        self.common.clear();
        self.common.resize(self.files.len(), 0);
        for (hash, bytes) in &profile.runs {
            let Some(start) = self.starts.get(hash) else { continue };
            let same = self.runs[*start as usize..].iter().take_while(|run| run.hash == *hash);
            for run in same {
                self.common[run.file as usize] += u64::from(run.bytes.min(*bytes));
                runs += 1;
            }
        }
        for (kept, (bytes, common)) in self.files.iter().zip(&self.common).enumerate() {
            let (larger, smaller) = (profile.bytes.max(*bytes), profile.bytes.min(*bytes));
            if larger == 0 || smaller * 2 < larger {
                continue;
            }
            let score = u32::try_from(common * u64::from(SCALE) / larger).unwrap_or(SCALE);
            if score >= SCALE / 2 {
                found.push(SimilarFiles { score, kept, other });
            }
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The similarity of one pair, as it is meant.
    fn plain(one: &[u8], other: &[u8]) -> Option<u32> {
        let (one, other) = (Profile::of(one), Profile::of(other));
        let (larger, smaller) = (one.bytes.max(other.bytes), one.bytes.min(other.bytes));
        if larger == 0 || smaller * 2 < larger {
            return None;
        }
        let both = one.runs.iter().filter_map(|(run, bytes)| Some(bytes.min(other.runs.get(run)?)));
        let common: u64 = both.map(|bytes| u64::from(*bytes)).sum();
        let score = (common * u64::from(SCALE) / larger) as u32;
        (score >= SCALE / 2).then_some(score)
    }

    /// Files of few different lines, some of them long, and some that are not compared.
    fn files() -> impl Strategy<Value = Vec<Option<String>>> {
        let line = prop_oneof![4 => "[a-c]{0,2}\n", 1 => "[ab]{1,2}\r\n", 1 => "x{60,140}\n?"];
        let file = proptest::collection::vec(line, 0..12).prop_map(|lines| lines.concat());
        proptest::collection::vec(proptest::option::weighted(0.9, file), 0..6)
    }

    proptest! {
        #[test]
        fn all_pairs_at_once_are_as_alike_as_one_by_one(kept in files(), others in files()) {
            let content = |file: &Option<String>| Ok(file.clone().map(String::into_bytes));
            let mut found = similar_files(&kept, &others, &PairLimits::DEFAULT, content).unwrap().unwrap();
            let mut wanted = Vec::new();
            for (at, one) in kept.iter().enumerate() {
                for (to, other) in others.iter().enumerate() {
                    let (Some(one), Some(other)) = (one, other) else { continue };
                    let score = plain(one.as_bytes(), other.as_bytes());
                    wanted.extend(score.map(|score| SimilarFiles { score, kept: at, other: to }));
                }
            }
            found.sort_unstable();
            wanted.sort_unstable();
            prop_assert_eq!(found, wanted);
        }
    }
}
