//! Which added file is which deleted file under a new name.
//!
//! Like `git diff -M`: equal contents first, then files of one name that are at least three
//! quarters alike, then the most alike of all pairs down to one half. The similarity of two files is the
//! share of the larger file's bytes in lines (or runs of 64 bytes) that the other file has too.
//!
//! All pairs of the files of two sides are measured at once. The runs of the side with fewer files
//! are kept; those of each file of the other side are looked up in them, and only runs that both
//! files have cost anything. So a commit that moves many files is cheap, unless all are alike.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher;

use gix::ObjectId;

use super::changes::File;
use super::error::Result;
use super::limits::PairLimits;

/// For each added file the position of the deleted one that it was; `None` if it is new.
///
/// `content` gives the bytes of a file, `None` if it is not to be compared. Beyond the limits only
/// equal contents are pairs. Errors are those of `content`: which files are pairs depends on all of
/// them.
pub(super) fn renames(
    deleted: &[File],
    added: &[File],
    limits: &PairLimits,
    mut content: impl FnMut(ObjectId) -> Result<Option<Vec<u8>>>,
) -> Result<Vec<Option<usize>>> {
    let mut pairs = Pairs { of_added: vec![None; added.len()], taken: vec![false; deleted.len()] };
    if deleted.is_empty() || added.is_empty() {
        return Ok(pairs.of_added);
    }
    pairs.equal_contents(deleted, added);
    let gone: Vec<usize> = (0..deleted.len()).filter(|at| !pairs.taken[*at]).collect();
    let new: Vec<usize> = (0..added.len()).filter(|at| pairs.of_added[*at].is_none()).collect();
    if new.is_empty() || gone.len().saturating_mul(new.len()) > limits.pairs {
        return Ok(pairs.of_added);
    }
    let (before, after): (Vec<_>, Vec<_>) = (
        gone.iter().map(|at| deleted[*at].blob).collect(),
        new.iter().map(|at| added[*at].blob).collect(),
    );
    let backward = after.len() < before.len();
    let (kept, others) = if backward { (after, before) } else { (before, after) };
    let Some(found) = similar_files(&kept, &others, limits, |blob| content(*blob))? else {
        return Ok(pairs.of_added);
    };
    let score = |SimilarFiles { score, kept, other }: SimilarFiles| {
        let (from, to) = if backward { (gone[other], new[kept]) } else { (gone[kept], new[other]) };
        (score, name(&deleted[from]) == name(&added[to]), from, to)
    };
    let mut scored: Vec<_> = found.into_iter().map(score).collect();
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
        for same_name in [true, false] {
            let key = |file: &File| {
                (file.blob, if same_name { name(file).to_string() } else { String::new() })
            };
            let mut open: HashMap<_, VecDeque<usize>> = HashMap::new();
            for (from, file) in deleted.iter().enumerate().filter(|(from, _)| !self.taken[*from]) {
                open.entry(key(file)).or_default().push_back(from);
            }
            for (to, file) in added.iter().enumerate() {
                if self.of_added[to].is_some() {
                    continue;
                }
                // Each is given once: a commit may have all of its files of one content.
                if let Some(from) = open.get_mut(&key(file)).and_then(VecDeque::pop_front) {
                    self.join(from, to);
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

/// The longest run without a line end.
const RUN: usize = 64;

/// Likeness is a whole number up to this, so that it compares the same everywhere.
const SCALE: u32 = 60_000;

/// Two files of which at least one half is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SimilarFiles {
    score: u32,
    /// The position of the file among those that are kept.
    kept: usize,
    /// The position of the other file.
    other: usize,
}

/// The pairs of files that are alike, in no order; `None` if to find them is beyond the limits.
///
/// `kept` and `others` are the files, and `content` gives the bytes of one of them, `None` if it is
/// not to be compared. Files beyond the limit of bytes are not compared.
fn similar_files<F>(
    kept: &[F],
    others: &[F],
    limits: &PairLimits,
    mut content: impl FnMut(&F) -> Result<Option<Vec<u8>>>,
) -> Result<Option<Vec<SimilarFiles>>> {
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

    fn lines(range: std::ops::Range<u32>) -> Vec<u8> {
        range.map(|n| format!("line number {n}\n")).collect::<String>().into_bytes()
    }

    fn pairs(
        limits: &PairLimits,
        deleted: &[(&str, Vec<u8>)],
        added: &[(&str, Vec<u8>)],
    ) -> Vec<Option<usize>> {
        let mut contents = HashMap::new();
        let mut file = |(path, bytes): &(&str, Vec<u8>)| {
            let (hash, kind) = (gix::hash::Kind::Sha1, gix::objs::Kind::Blob);
            let blob = gix::objs::compute_hash(hash, kind, bytes).unwrap();
            contents.insert(blob, bytes.clone());
            File { path: (*path).into(), blob }
        };
        let deleted: Vec<File> = deleted.iter().map(&mut file).collect();
        let added: Vec<File> = added.iter().map(&mut file).collect();
        renames(&deleted, &added, limits, |id| Ok(contents.get(&id).cloned())).unwrap()
    }

    #[test]
    fn files_are_paired_by_content_then_name_then_similarity() {
        let same = || lines(0..9);
        let crlf = String::from_utf8(lines(10..30)).unwrap().replace('\n', "\r\n").into_bytes();
        let few = |path, range| vec![(path, lines(range))];
        for (name, deleted, added, expected) in [
            (
                "equal contents prefer the same name",
                vec![("a/x.py", same()), ("a/y.py", same())],
                vec![("b/y.py", same()), ("b/z.py", same())],
                vec![Some(1), Some(0)],
            ),
            (
                "equal contents are paired in the order of the paths",
                ["a/x.py", "a/y.py", "b/x.py", "b/z.py"].map(|path| (path, same())).to_vec(),
                ["c/x.py", "c/w.py", "d/x.py", "d/v.py", "e/u.py"]
                    .map(|path| (path, same()))
                    .to_vec(),
                vec![Some(0), Some(1), Some(2), Some(3), None],
            ),
            ("half", few("a.py", 10..20), few("b.py", 15..25), vec![Some(0)]),
            ("less than half", few("a.py", 10..20), few("b.py", 16..26), vec![None]),
            ("less than half of the larger", few("a.py", 10..20), few("b.py", 10..40), vec![None]),
            (
                "the most alike",
                vec![("a.py", lines(10..30)), ("b.py", lines(14..34))],
                vec![("c.py", lines(13..33)), ("d.py", lines(10..30))],
                vec![Some(1), Some(0)],
            ),
            (
                "one name on both sides, three quarters alike",
                vec![("x/a.py", lines(10..30)), ("x/b.py", lines(13..33))],
                vec![("y/a.py", lines(14..34))],
                vec![Some(0)],
            ),
            ("line ends", few("a.py", 10..30), vec![("b.py", crlf)], vec![Some(0)]),
            ("an empty file", few("a.py", 0..9), vec![("b.py", Vec::new())], vec![None]),
        ] {
            assert_eq!(pairs(&PairLimits::DEFAULT, &deleted, &added), expected, "{name}");
        }
    }

    #[test]
    fn beyond_a_limit_only_equal_contents_are_paired() {
        let deleted = [("a.py", lines(0..9)), ("b.py", lines(10..30)), ("c.py", lines(40..60))];
        let added = [("d.py", lines(11..30)), ("e.py", lines(41..60)), ("f.py", lines(0..9))];
        let all = [Some(1), Some(2), Some(0)];
        // Two files on each side that have 20 and 19 lines.
        let enough = PairLimits { pairs: 4, read: 78, kept: 40, common: 38, ..PairLimits::DEFAULT };
        assert_eq!(pairs(&enough, &deleted, &added), all);
        for less in [
            PairLimits { pairs: 3, ..enough },
            PairLimits { read: 77, ..enough },
            PairLimits { kept: 39, ..enough },
            PairLimits { common: 37, ..enough },
        ] {
            let found = pairs(&less, &deleted, &added);
            assert_eq!(found, [None, None, Some(0)], "{less:?}");
        }
    }

    /// Files whose ids are their positions.
    fn numbered(count: u32, id: impl Fn(u32) -> u32) -> Vec<File> {
        let blob = |n| {
            let mut bytes = [0; 20];
            bytes[..4].copy_from_slice(&id(n).to_be_bytes());
            ObjectId::from(bytes)
        };
        (0..count).map(|n| File { path: format!("{n}.py").into(), blob: blob(n) }).collect()
    }

    #[test]
    fn files_are_not_read_on_beyond_a_limit() {
        let files = numbered(200, |n| n);
        let (deleted, added) = files.split_at(100);
        // Each pair has 20 lines in common, each file of the side that is looked up 2,000.
        let limits = PairLimits { common: 20_000, ..PairLimits::DEFAULT };
        let mut read = 0;
        let found = renames(deleted, added, &limits, |id| {
            read += 1;
            Ok(Some([lines(10..30), id.to_string().into_bytes()].concat()))
        });
        assert!(found.unwrap().iter().all(Option::is_none));
        assert_eq!(read, 100 + 11);
    }

    #[test]
    fn many_files_of_one_content_are_paired_at_once() {
        // Each with each would be a billion pairs.
        let files = numbered(60_000, |_| 7);
        let (deleted, added) = files.split_at(30_000);
        let found = renames(deleted, added, &PairLimits::DEFAULT, |_| panic!("nothing to read"));
        assert!(found.unwrap().into_iter().eq((0..30_000).map(Some)));
    }

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
