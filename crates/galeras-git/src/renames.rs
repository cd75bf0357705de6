//! Which added file is which deleted file under a new name.
//!
//! Like `git diff -M`: equal contents first, then files of one name that are at least three
//! quarters alike, then the most alike of all pairs down to one half. Likeness is the share of the
//! larger file's bytes that stand in lines (or runs of 64 bytes) of the other.

use std::collections::HashMap;
use std::hash::BuildHasher;

use gix::ObjectId;

use super::changes::File;
use super::error::GitError;

/// Pairs that are compared in one commit at most, as Git's `diff.renameLimit` squared; beyond
/// it only equal contents are paired.
const MAX_PAIRS: usize = 1_000_000;
/// The longest run without a line end.
const RUN: usize = 64;
/// Bytes of content that are compared in one commit at most.
const MAX_BYTES: usize = 256 << 20;

/// For each added file the position of the deleted one that it was; `None` if it is new.
///
/// `content` gives the bytes of a file, `None` if it is not to be compared.
///
/// # Errors
/// Those of `content`: which files are pairs depends on all of them.
pub(super) fn renames(
    deleted: &[File],
    added: &[File],
    mut content: impl FnMut(ObjectId) -> Result<Option<Vec<u8>>, GitError>,
) -> Result<Vec<Option<usize>>, GitError> {
    let mut pairs = Pairs { of_added: vec![None; added.len()], taken: vec![false; deleted.len()] };
    if deleted.is_empty() || added.is_empty() {
        return Ok(pairs.of_added);
    }
    pairs.equal_contents(deleted, added);
    let open = |flags: &[bool]| flags.iter().filter(|flag| !**flag).count();
    let wanted = pairs.of_added.iter().filter(|pair| pair.is_none()).count();
    if wanted == 0 || open(&pairs.taken).saturating_mul(wanted) > MAX_PAIRS {
        return Ok(pairs.of_added);
    }
    let mut budget = MAX_BYTES;
    let mut profile = |file: &File, unwanted: bool| {
        if unwanted || budget == 0 {
            return Ok(None);
        }
        let Some(bytes) = content(file.blob)? else { return Ok(None) };
        budget = budget.saturating_sub(bytes.len());
        Ok(Some(Profile::of(&bytes)))
    };
    let deleted_and_taken = deleted.iter().zip(&pairs.taken);
    let before: Vec<_> = deleted_and_taken
        .map(|(file, taken)| profile(file, *taken))
        .collect::<Result<_, GitError>>()?;
    let added_and_paired = added.iter().zip(&pairs.of_added);
    let after: Vec<_> = added_and_paired
        .map(|(file, pair)| profile(file, pair.is_some()))
        .collect::<Result<_, GitError>>()?;
    let mut scored = Vec::new();
    for (to, new) in after.iter().enumerate() {
        let Some(new) = new else { continue };
        for (from, old) in before.iter().enumerate() {
            let Some(old) = old else { continue };
            if let Some(score) = old.likeness(new) {
                let same_name = name(&deleted[from]) == name(&added[to]);
                scored.push((score, same_name, from, to));
            }
        }
    }
    pairs.same_names(deleted, added, &scored);
    // The most alike first; then equal names; then in the order of the paths.
    scored.sort_unstable_by(|a, b| (b.0, b.1).cmp(&(a.0, a.1)).then((a.2, a.3).cmp(&(b.2, b.3))));
    for (_, _, from, to) in scored {
        pairs.join(from, to);
    }
    Ok(pairs.of_added)
}

struct Pairs {
    of_added: Vec<Option<usize>>,
    taken: Vec<bool>,
}

impl Pairs {
    fn join(&mut self, from: usize, to: usize) {
        if !self.taken[from] && self.of_added[to].is_none() {
            self.taken[from] = true;
            self.of_added[to] = Some(from);
        }
    }

    fn equal_contents(&mut self, deleted: &[File], added: &[File]) {
        let mut by_blob: HashMap<ObjectId, Vec<usize>> = HashMap::new();
        for (from, file) in deleted.iter().enumerate() {
            by_blob.entry(file.blob).or_default().push(from);
        }
        for same_name in [true, false] {
            for (to, file) in added.iter().enumerate() {
                for from in by_blob.get(&file.blob).into_iter().flatten() {
                    if !same_name || name(&deleted[*from]) == name(file) {
                        self.join(*from, to);
                    }
                }
            }
        }
    }

    /// Pairs files whose name occurs once on each side, if they are three quarters alike.
    fn same_names(
        &mut self,
        deleted: &[File],
        added: &[File],
        scored: &[(u32, bool, usize, usize)],
    ) {
        let count = |files: &[File], open: &dyn Fn(usize) -> bool| {
            let mut names: HashMap<String, usize> = HashMap::new();
            for (_, file) in files.iter().enumerate().filter(|(at, _)| open(*at)) {
                *names.entry(name(file).to_string()).or_default() += 1;
            }
            names
        };
        let before = count(deleted, &|at| !self.taken[at]);
        let after = count(added, &|at| self.of_added[at].is_none());
        let once =
            |file: &File| before.get(name(file)) == Some(&1) && after.get(name(file)) == Some(&1);
        for (score, same_name, from, to) in scored {
            if *same_name && *score >= SCALE / 4 * 3 && once(&added[*to]) {
                self.join(*from, *to);
            }
        }
    }
}

/// The name without folders.
fn name(file: &File) -> &str {
    file.path.rsplit('/').next().unwrap_or(&file.path)
}

/// Likeness is a whole number up to this, so that it compares the same everywhere.
const SCALE: u32 = 60_000;

/// How many bytes of a content stand in which line.
struct Profile {
    bytes: u64,
    runs: HashMap<u64, u64>,
}

impl Profile {
    fn of(content: &[u8]) -> Self {
        // A fixed hash: equal lines must meet, and hostile ones can only make files look
        // alike that are not.
        let hasher = std::hash::BuildHasherDefault::<std::hash::DefaultHasher>::default();
        let mut runs: HashMap<u64, u64> = HashMap::new();
        for line in content.split_inclusive(|byte| *byte == b'\n') {
            let crlf = line.ends_with(b"\r\n");
            for run in line.chunks(RUN) {
                let text = if crlf { run.strip_suffix(b"\r\n").unwrap_or(run) } else { run };
                let text = text.strip_suffix(b"\n").unwrap_or(text);
                *runs.entry(hasher.hash_one(text)).or_default() += run.len() as u64;
            }
        }
        Self { bytes: content.len() as u64, runs }
    }

    /// The share of the larger content that both have, if it is at least one half.
    fn likeness(&self, other: &Self) -> Option<u32> {
        let (larger, smaller) = (self.bytes.max(other.bytes), self.bytes.min(other.bytes));
        if larger == 0 || smaller * 2 < larger {
            return None;
        }
        let (few, many) =
            if self.runs.len() < other.runs.len() { (self, other) } else { (other, self) };
        let common: u64 = few
            .runs
            .iter()
            .map(|(run, bytes)| many.runs.get(run).map_or(0, |other| *bytes.min(other)))
            .sum();
        let score = u32::try_from(common * u64::from(SCALE) / larger).unwrap_or(SCALE);
        (score >= SCALE / 2).then_some(score)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(range: std::ops::Range<u32>) -> Vec<u8> {
        range.map(|n| format!("line number {n}\n")).collect::<String>().into_bytes()
    }

    fn pairs(deleted: &[(&str, Vec<u8>)], added: &[(&str, Vec<u8>)]) -> Vec<Option<usize>> {
        let mut contents = HashMap::new();
        let mut files = |list: &[(&str, Vec<u8>)]| -> Vec<File> {
            list.iter()
                .map(|(path, bytes)| {
                    let blob = gix::objs::compute_hash(
                        gix::hash::Kind::Sha1,
                        gix::objs::Kind::Blob,
                        bytes,
                    )
                    .unwrap();
                    contents.insert(blob, bytes.clone());
                    File { path: (*path).into(), blob }
                })
                .collect()
        };
        let (deleted, added) = (files(deleted), files(added));
        renames(&deleted, &added, |id| Ok(contents.get(&id).cloned())).unwrap()
    }

    #[test]
    fn equal_contents_prefer_the_same_name() {
        let same = lines(0..9);
        let found = pairs(
            &[("a/x.py", same.clone()), ("a/y.py", same.clone())],
            &[("b/y.py", same.clone()), ("b/z.py", same)],
        );
        assert_eq!(found, [Some(1), Some(0)]);
    }

    #[test]
    fn half_of_the_larger_file_is_enough_and_less_is_not() {
        assert_eq!(pairs(&[("a.py", lines(10..20))], &[("b.py", lines(15..25))]), [Some(0)]);
        assert_eq!(pairs(&[("a.py", lines(10..20))], &[("b.py", lines(16..26))]), [None]);
        assert_eq!(pairs(&[("a.py", lines(10..20))], &[("b.py", lines(10..40))]), [None]);
    }

    #[test]
    fn the_most_alike_are_paired_unless_a_name_says_otherwise() {
        let found = pairs(
            &[("a.py", lines(10..30)), ("b.py", lines(14..34))],
            &[("c.py", lines(13..33)), ("d.py", lines(10..30))],
        );
        assert_eq!(found, [Some(1), Some(0)]);
        let found = pairs(
            &[("x/a.py", lines(10..30)), ("x/b.py", lines(13..33))],
            &[("y/a.py", lines(14..34))],
        );
        assert_eq!(found, [Some(0)], "one name on both sides, three quarters alike");
    }

    #[test]
    fn line_ends_do_not_count_and_empty_files_are_like_nothing() {
        let crlf = String::from_utf8(lines(10..30)).unwrap().replace('\n', "\r\n").into_bytes();
        assert_eq!(pairs(&[("a.py", lines(10..30))], &[("b.py", crlf)]), [Some(0)]);
        assert_eq!(pairs(&[("a.py", lines(0..9))], &[("b.py", Vec::new())]), [None]);
    }
}
