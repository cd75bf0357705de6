//! Damaged repositories give true rows or refusals.

use std::fs;
use std::path::{Path, PathBuf};

use super::{MiningResult, TestRepository, files_below, mined};

/// A repository with renames, folders, and files that differ little from commit to commit.
fn history() -> TestRepository {
    let mut made = TestRepository::new();
    let body = |name: &str, number: usize| -> String {
        let lines: String =
            (0..12).map(|at| format!("    x{at} = {}\n", at * number % 31)).collect();
        format!("def {name}(self):\n{lines}    return x1\n\n\n")
    };
    for round in 1..7 {
        for path in ["top.py", "pkg/one.py", "pkg/deep/two.py"] {
            let name = path.rsplit('/').next().unwrap().trim_end_matches(".py");
            let text: String =
                (0..5).map(|at| body(&format!("{name}_{at}"), 3 + at * (round / 2))).collect();
            made.write(path, &format!("{text}# {round}\n"));
        }
        made.write(&format!("pkg/more{round}.py"), &body("more", round));
        if round == 5 {
            made.git(&["mv", "-k", "pkg/more2.py", "pkg/deep/other.py"], b"");
            let file = made.dir().join("pkg/deep/other.py");
            let text = fs::read_to_string(&file).unwrap().replace("x3 = ", "x3 = 1 + ");
            fs::write(file, text).unwrap();
        }
        made.commit();
    }
    made
}

/// A small generator: which damage is done depends on a seed alone.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % n.max(1)
    }
}

/// Damages a file in one of several ways; which one.
fn damage(file: &Path, random: &mut Random) -> String {
    let mut bytes = fs::read(file).unwrap();
    let at = random.below(bytes.len());
    let what = match random.below(8) {
        _ if bytes.is_empty() => "left alone".to_string(),
        0 => {
            bytes.truncate(at);
            format!("cut at {at}")
        }
        1 => {
            let end = bytes.len().min(at + 16);
            bytes[at..end].fill(0);
            format!("zeroes at {at}")
        }
        2 => {
            let other = random.below(bytes.len());
            bytes.swap(at, other);
            format!("{at} and {other} swapped")
        }
        3 => {
            bytes.extend_from_within(at..);
            format!("longer by the bytes after {at}")
        }
        _ => {
            let bit = random.below(8);
            bytes[at] ^= 1 << bit;
            format!("bit {bit} of {at}")
        }
    };
    // Git writes its objects for reading only.
    fs::remove_file(file).unwrap();
    fs::write(file, bytes).unwrap();
    what
}

/// The truth, or a part of it with a refusal for every commit or file that is missing.
fn check(truth: &MiningResult, found: &MiningResult, what: &str) {
    if let Some(wrong) = found.rows.difference(&truth.rows).next() {
        panic!("{what}: a row that is not true: {wrong:?}");
    }
    for (commit, path, _) in truth.rows.difference(&found.rows) {
        let covers = |(of, file, _, _): &(String, Option<String>, String, String)| {
            of == commit && file.as_ref().is_none_or(|file| file == path)
        };
        assert!(found.refused.iter().any(covers), "{what}: {commit} {path} is lost");
    }
}

/// Damages the files that `wanted` chooses, one at a time, `rounds` times.
fn survives(made: &TestRepository, seed: u64, rounds: usize, wanted: impl Fn(&str) -> bool) {
    let truth = mined(made.dir()).unwrap();
    assert!(truth.rows.len() > 20, "{}", truth.rows.len());
    let git = made.dir().join(".git");
    let files: Vec<PathBuf> = files_below(&git)
        .into_iter()
        .filter(|file| wanted(&file.strip_prefix(&git).unwrap().to_string_lossy()))
        .collect();
    assert!(!files.is_empty());
    let mut random = Random(seed);
    let (mut same, mut refused) = (0, 0);
    for round in 0..rounds {
        let file = &files[random.below(files.len())];
        let before = fs::read(file).unwrap();
        let what = damage(file, &mut random);
        let what = format!("{seed}/{round}: {}: {what}", file.display());
        match mined(made.dir()) {
            Ok(found) => {
                check(&truth, &found, &what);
                same += usize::from(found == truth);
                refused += usize::from(found != truth);
            }
            Err(error) => {
                assert!(!error.message.contains("panicked"), "{what}: {error}");
                refused += 1;
            }
        }
        fs::remove_file(file).unwrap();
        fs::write(file, before).unwrap();
    }
    assert_eq!(mined(made.dir()).unwrap(), truth, "all is put back");
    assert!(same > 0 || refused > 0);
}

#[test]
fn loose_objects_packs_and_references() {
    let small = |file: &str| file == "HEAD" || file == "config" || file.starts_with("refs/");
    let made = history();
    survives(&made, 1, 80, |file| file.starts_with("objects/"));
    survives(&made, 5, 60, small);
    made.git(&["pack-refs", "--all"], b"");
    survives(&made, 6, 40, |file| file == "packed-refs");
    made.git(&["repack", "-a", "-d", "-q", "--depth=20", "--window=20"], b"");
    survives(&made, 2, 120, |file| file.ends_with(".pack"));
    survives(&made, 3, 50, |file| file.ends_with(".idx"));
}

#[test]
fn several_packs_under_one_index() {
    let mut made = history();
    made.git(&["repack", "-a", "-d", "-q"], b"");
    made.write("top.py", "def top(self):\n    return 1\n");
    made.commit();
    made.git(&["repack", "-d", "-q"], b"");
    made.git(&["multi-pack-index", "write"], b"");
    made.git(&["commit-graph", "write", "--reachable"], b"");
    survives(&made, 4, 80, |file| file.starts_with("objects/"));
}

#[test]
fn the_list_of_a_shallow_clone() {
    let made = history();
    let from = format!("file://{}", made.dir().display());
    let clone = TestRepository::new();
    clone.git(&["fetch", "-q", "--depth=4", &from, "main:main", "--update-head-ok"], b"");
    survives(&clone, 7, 40, |file| file == "shallow");
}

#[test]
fn an_older_value_never_replaces_a_damaged_reference() {
    let mut made = history();
    made.git(&["pack-refs", "--all"], b"");
    made.write("top.py", "def top(self):\n    return 1\n");
    made.commit();
    let truth = mined(made.dir()).unwrap();
    let file = made.dir().join(".git/refs/heads/main");
    let id = fs::read_to_string(&file).unwrap();
    for text in
        ["", "\n", &id[..20], &id[..39], "ref: \n", "\0\0\0\0", &id.replacen(&id[..1], "g", 1)]
    {
        fs::write(&file, text).unwrap();
        match mined(made.dir()) {
            Ok(found) => check(&truth, &found, text),
            Err(error) => assert!(!error.message.is_empty()),
        }
    }
}

#[test]
fn an_object_that_is_another_one_is_refused() {
    let mut made = TestRepository::new();
    let text = |number| format!("def f(self):\n    return {number}\n");
    made.write("a.py", &text(1));
    made.write("b.py", &text(2));
    made.commit();
    let truth = mined(made.dir()).unwrap();
    let path = |id: &str| made.dir().join(".git/objects").join(&id[..2]).join(&id[2..]);
    let id = |file: &str| made.git(&["rev-parse", &format!("HEAD:{file}")], b"");
    let (a, b) = (path(&id("a.py")), path(&id("b.py")));
    let whole = fs::read(&b).unwrap();
    fs::remove_file(&a).unwrap();
    fs::write(&a, &whole).unwrap();
    let found = mined(made.dir()).unwrap();
    check(&truth, &found, "b.py replaces a.py");
    assert_eq!(found.rules(), ["object a.py"]);
    let (_, _, _, reason) = found.refused.first().unwrap();
    assert!(reason.contains("is damaged"), "{reason}");
}

#[test]
fn replaced_objects_are_read_as_git_reads_them() {
    let mut made = history();
    let before = mined(made.dir()).unwrap();
    let old = made.git(&["rev-parse", "HEAD:top.py"], b"");
    let new = made.object("blob", b"def replaced(self):\n    return 7\n");
    made.git(&["replace", &old, &new], b"");
    let found = mined(made.dir()).unwrap();
    assert!(found.refused.is_empty(), "{:?}", found.refused);
    assert_ne!(found, before);
    assert!(found.rows.iter().any(|(_, _, row)| row.contains("def replaced")));
    made.write("top.py", "def after(self):\n    return 1\n");
    made.commit();
    assert!(mined(made.dir()).unwrap().refused.is_empty());
}

#[test]
fn a_deleted_file_that_is_damaged_makes_no_method_new() {
    let mut made = TestRepository::new();
    let lines: String = (0..30).map(|at| format!("    x{at} = {at}\n")).collect();
    made.write("old.py", &format!("def f(self):\n{lines}"));
    made.commit();
    made.git(&["mv", "old.py", "new.py"], b"");
    made.write("new.py", &format!("def f(self):\n{lines}    return 1\n"));
    let renamed = made.commit();
    let truth = mined(made.dir()).unwrap();
    assert!(truth.rows.iter().any(|(id, _, row)| *id == renamed && row.contains("Some(")));
    let old = made.git(&["rev-parse", "HEAD~:old.py"], b"");
    let file = made.dir().join(".git/objects").join(&old[..2]).join(&old[2..]);
    fs::remove_file(file).unwrap();
    let found = mined(made.dir()).unwrap();
    check(&truth, &found, "without the file that was renamed");
    assert!(found.paths(&renamed).is_empty());
    assert_eq!(found.rules(), ["object", "object old.py"]);
}
