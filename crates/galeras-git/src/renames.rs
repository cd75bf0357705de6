//! Which added file is which deleted file under a new name.
//!
//! Like `git diff -M`: equal contents first, then files of one name that are at least three
//! quarters alike, then the most alike of all pairs down to one half.

use std::collections::{HashMap, VecDeque};

use gix::ObjectId;

use super::changes::File;
use super::error::GitError;
use super::limits::PairLimits;
use super::similarity::{SCALE, SimilarFiles, similar_files};

/// For each added file the position of the deleted one that it was; `None` if it is new.
///
/// `content` gives the bytes of a file, `None` if it is not to be compared. Beyond the limits only
/// equal contents are pairs.
///
/// # Errors
/// Those of `content`: which files are pairs depends on all of them.
pub(super) fn renames(
    deleted: &[File],
    added: &[File],
    limits: &PairLimits,
    mut content: impl FnMut(ObjectId) -> Result<Option<Vec<u8>>, GitError>,
) -> Result<Vec<Option<usize>>, GitError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(range: std::ops::Range<u32>) -> Vec<u8> {
        range.map(|n| format!("line number {n}\n")).collect::<String>().into_bytes()
    }

    fn pairs(deleted: &[(&str, Vec<u8>)], added: &[(&str, Vec<u8>)]) -> Vec<Option<usize>> {
        pairs_within(&PairLimits::DEFAULT, deleted, added)
    }

    fn pairs_within(
        limits: &PairLimits,
        deleted: &[(&str, Vec<u8>)],
        added: &[(&str, Vec<u8>)],
    ) -> Vec<Option<usize>> {
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
        renames(&deleted, &added, limits, |id| Ok(contents.get(&id).cloned())).unwrap()
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

    #[test]
    fn beyond_a_limit_only_equal_contents_are_paired() {
        let deleted = [("a.py", lines(0..9)), ("b.py", lines(10..30)), ("c.py", lines(40..60))];
        let added = [("d.py", lines(11..30)), ("e.py", lines(41..60)), ("f.py", lines(0..9))];
        let all = [Some(1), Some(2), Some(0)];
        // Two files on each side that have 20 and 19 lines.
        let enough = PairLimits { pairs: 4, read: 78, kept: 40, common: 38, ..PairLimits::DEFAULT };
        assert_eq!(pairs_within(&enough, &deleted, &added), all);
        for less in [
            PairLimits { pairs: 3, ..enough },
            PairLimits { read: 77, ..enough },
            PairLimits { kept: 39, ..enough },
            PairLimits { common: 37, ..enough },
        ] {
            let found = pairs_within(&less, &deleted, &added);
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

    #[test]
    fn equal_contents_are_paired_in_the_order_of_the_paths() {
        let same = lines(0..9);
        let file = |path| (path, same.clone());
        let found = pairs(
            &[file("a/x.py"), file("a/y.py"), file("b/x.py"), file("b/z.py")],
            &[file("c/x.py"), file("c/w.py"), file("d/x.py"), file("d/v.py"), file("e/u.py")],
        );
        assert_eq!(found, [Some(0), Some(1), Some(2), Some(3), None]);
    }
}
