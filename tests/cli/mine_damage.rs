//! `mine` against random edits and damage, which depend on a seed: a history has the changes that
//! `git log -p` shows, and a damaged repository gives the truth or a reject. And repositories that are
//! made to do harm.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::harness::{Project, files_below};
use crate::repository::{Mined, Mining, NEW_YEAR, Repository, at, day, def, defs, mined, workflow};
use galeras_test_servers::http_git::HttpGit;

/// A state and a step of numbers that look random and are always the same.
struct Random(u64, u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(self.1);
        (self.0 >> 33) as usize % limit.max(1)
    }
}

/// The functions of a file: names, and lines of their bodies.
type File = Vec<(String, Vec<String>)>;
type Files = BTreeMap<String, File>;
/// First and last line of the functions by name.
type Places = BTreeMap<String, RangeInclusive<usize>>;

fn function(random: &mut Random, next: &mut usize) -> (String, Vec<String>) {
    *next += 1;
    let lines = 2 + random.below(5);
    (format!("fun{next}"), (0..lines).map(|_| line(random)).collect())
}

fn line(random: &mut Random) -> String {
    // Blank lines and equal lines are where algorithms differ.
    match random.below(6) {
        0 => String::new(),
        1 => "    pass".into(),
        _ => format!("    value = {}", random.below(1_000_000)),
    }
}

fn text(file: &File) -> String {
    let one = |(name, body): &(String, Vec<String>)| {
        format!("@decorated\ndef {name}(x):\n{}\n    return x\n\n\n", body.join("\n"))
    };
    file.iter().map(one).collect()
}

fn places(text: &str) -> Places {
    let mut found = Places::new();
    let mut open = None;
    for (at, line) in text.lines().enumerate() {
        if let Some(rest) = line.strip_prefix("def ") {
            open = Some((rest.split('(').next().unwrap().to_owned(), at + 1));
        } else if line == "    return x" {
            let (name, first) = open.take().unwrap();
            found.insert(name, first..=at + 1);
        }
    }
    found
}

fn new_file(random: &mut Random, next: &mut usize) -> (String, File) {
    let functions = (0..3 + random.below(6)).map(|_| function(random, next)).collect();
    let folder = ["", "pkg/", "pkg/deep/", "tests/"][random.below(4)];
    (format!("{folder}m{next}.py"), functions)
}

fn edit(files: &mut Files, random: &mut Random, next: &mut usize) {
    let paths: Vec<String> = files.keys().cloned().collect();
    if paths.len() < 4 || random.below(9) == 0 {
        files.extend([new_file(random, next)]);
        return;
    }
    let path = paths[random.below(paths.len())].clone();
    let file = files.get_mut(&path).unwrap();
    let at = random.below(file.len());
    match random.below(9) {
        0 => file.insert(at, function(random, next)),
        1 if file.len() > 2 => drop(file.remove(at)),
        2 => {
            let other = random.below(file.len());
            file.swap(at, other);
        }
        3 => {
            let moved = files.remove(&path).unwrap();
            let (to, _) = new_file(random, next);
            files.insert(to, moved);
        }
        4 if paths.len() > 6 => drop(files.remove(&path)),
        _ => {
            let body = &mut file[at].1;
            let place = random.below(body.len());
            match random.below(3) {
                0 => body.insert(place, line(random)),
                1 if body.len() > 1 => drop(body.remove(place)),
                _ => body[place] = line(random),
            }
        }
    }
}

/// The lines of a hunk header: `12,3` or `12`.
fn lines(range: &str) -> std::ops::Range<usize> {
    let (start, count) = range[1..].split_once(',').unwrap_or((&range[1..], "1"));
    let (start, count): (usize, usize) = (start.parse().unwrap(), count.parse().unwrap());
    start..start + count
}

/// `commit path name` of every function that a diff of Git changes, with its lines that came
/// and went.
fn by_git(log: &str, texts: &BTreeMap<(String, String), String>) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    let (mut commit, mut parent) = (String::new(), String::new());
    let (mut before, mut after, mut path) = (Places::new(), Places::new(), String::new());
    let places_of = |commit: &str, line: &str| {
        let name = line.split_once('/').map_or("", |(_, name)| name);
        let name = name.trim_end_matches(['\t', '\n']);
        let text = texts.get(&(commit.to_owned(), name.to_owned()));
        (name.to_owned(), text.map(|text| places(text)).unwrap_or_default())
    };
    for line in log.lines() {
        if let Some(ids) = line.strip_prefix("commit ") {
            let mut ids = ids.split(' ');
            commit = ids.next().unwrap().to_owned();
            parent = ids.next().unwrap_or_default().to_owned();
        } else if let Some(file) = line.strip_prefix("--- ") {
            before = places_of(&parent, file).1;
        } else if let Some(file) = line.strip_prefix("+++ ") {
            (path, after) = places_of(&commit, file);
        } else if let Some(hunk) = line.strip_prefix("@@ ") {
            let mut ranges = hunk.split(' ');
            let (gone, come) = (lines(ranges.next().unwrap()), lines(ranges.next().unwrap()));
            for (name, place) in &after {
                let inside = |range: &RangeInclusive<usize>, lines: std::ops::Range<usize>| {
                    lines.filter(|line| range.contains(line)).count()
                };
                let old = before.get(name).map_or(0, |old| inside(old, gone.clone()));
                let changed = inside(place, come.clone()) + old;
                if changed > 0 {
                    *found.entry(format!("{commit} {path} {name}")).or_default() += changed;
                }
            }
        }
    }
    found
}

#[test]
fn a_random_history_has_the_changes_that_git_shows() {
    for seed in [1, 2] {
        let mining = Mining::new();
        let mut random = Random(seed, 1);
        let mut next = 0;
        let mut files = Files::new();
        let mut texts = BTreeMap::new();
        for n in 0..60 {
            let before: Files = files.clone();
            for _ in 0..1 + random.below(3) {
                edit(&mut files, &mut random, &mut next);
            }
            let mut commit = at(NEW_YEAR + n * 1000);
            for path in before.keys().filter(|path| !files.contains_key(*path)) {
                commit = commit.delete(path);
            }
            for (path, file) in files.iter().filter(|(path, file)| before.get(*path) != Some(file))
            {
                commit = commit.write(path, text(file));
            }
            let id = mining.repo.commit(commit);
            texts.extend(files.iter().map(|(path, file)| ((id.clone(), path.clone()), text(file))));
        }
        let args = ["log", "-p", "-U0", "-M", "--no-color", "--format=commit %H %P", "main"];
        let expected = by_git(&mining.repo.git(&args), &texts);
        let mined = mining.mine();
        assert!(mined.rejects.is_empty());
        let mut found = BTreeMap::new();
        for row in &mined.rows {
            let of = |name: &str| row[name].as_str().unwrap();
            let key = format!("{} {} {}", of("commit_id"), of("path"), of("fun_name"));
            found.insert(key, row["changed_lines"].as_u64().unwrap() as usize);
            // The code is what stands there.
            let text = texts.get(&(of("commit_id").to_owned(), of("path").to_owned()));
            let text = text.unwrap_or_else(|| panic!("there is no such file: {row}"));
            let line = |name: &str| row[name].as_u64().unwrap() as usize;
            let lines: Vec<&str> = text.lines().collect();
            assert_eq!(of("code"), lines[line("start_line") - 1..line("end_line")].join("\n"));
        }
        let keys = |map: &BTreeMap<String, usize>| map.keys().cloned().collect::<BTreeSet<_>>();
        let (ours, theirs) = (keys(&found), keys(&expected));
        let more: Vec<&String> = ours.difference(&theirs).collect();
        let less: Vec<&String> = theirs.difference(&ours).collect();
        assert!(more.is_empty() && less.is_empty(), "{seed}: more {more:#?}\nless {less:#?}");
        assert_eq!(found, expected);
        assert!(found.len() > 150, "{}", found.len());
    }
}

const STEP: u64 = 1_442_695_040_888_963_407;

/// Damages a file, or puts a folder in its place; what was done.
fn damage(file: &Path, random: &mut Random) -> String {
    let mut bytes = fs::read(file).unwrap();
    fs::remove_file(file).unwrap();
    let at = random.below(bytes.len());
    let what = match random.below(8) {
        0 => {
            fs::create_dir(file).unwrap();
            return format!("a folder in the place of {}", file.display());
        }
        1 => return format!("{} removed", file.display()),
        2 => {
            bytes.truncate(at);
            "cut"
        }
        _ if bytes.is_empty() => "empty",
        _ => {
            bytes[at] ^= 1 << random.below(8);
            "a bit"
        }
    };
    fs::write(file, bytes).unwrap();
    format!("{}: {what} at {at}", file.display())
}

fn history(repo: &Repository) {
    let numbers = |n: i64| (0..30).map(|at| at * n % 97).collect::<Vec<i64>>();
    for n in 1..6 {
        let commit = at(day(n)).write("pkg/a.py", defs(&numbers(n)));
        repo.commit(commit.write(format!("pkg/deep/b{n}.py"), def("b", n)));
    }
    repo.commit(at(day(8)).rename("pkg/deep", "pkg/flat").write("pkg/flat/b2.py", def("b", 9)));
}

/// The rows without what depends on the address.
fn rows(found: &Mined) -> Vec<String> {
    let plain = |row: &Value| {
        let mut row = row.clone();
        row.as_object_mut().unwrap().remove("url");
        row.to_string()
    };
    found.rows.iter().map(plain).collect()
}

#[test]
fn a_damaged_download_gives_the_truth_and_a_damaged_folder_the_truth_or_rejects() {
    for filter in ["true", "false"] {
        let project = Project::empty();
        let repo = Repository::bare(project.path("served/r"));
        history(&repo);
        repo.git(&["config", "uploadpack.allowFilter", filter]);
        let server = HttpGit::start(&project.path("served"));
        let url = server.url("r");
        project.write("w.yaml", workflow(&format!("{{ repo: r, url: '{url}' }}"), ""));
        project.run_ok(&[]);
        let truth = rows(&mined(&project));
        assert!(truth.len() > 100 && mined(&project).rejects.is_empty());
        let folder = project.path("cache/downloads/git");
        let mut random = Random(11, STEP);
        for _ in 0..9 {
            let files: Vec<PathBuf> =
                files_below(&folder).into_iter().filter(|file| file.is_file()).collect();
            // Half of the damage is done to packs.
            let packs: Vec<&PathBuf> =
                files.iter().filter(|file| file.extension().is_some_and(|e| e == "pack")).collect();
            let file = match random.below(2) {
                0 => packs[random.below(packs.len())].clone(),
                _ => files[random.below(files.len())].clone(),
            };
            let what = damage(&file, &mut random);
            let outcome = project.run_ok(&["--force", "mined"]);
            let found = mined(&project);
            assert!(found.rejects.is_empty(), "{filter}: {what}: {:?}", found.rejects);
            assert!(rows(&found) == truth, "{filter}: {what}: {outcome}");
            assert!(!outcome.stderr.contains("panicked"), "{filter}: {what}: {outcome}");
        }
    }
    let project = Project::new(&workflow("./bad, ./good", ""));
    Repository::bare(project.path("good")).commit(at(day(1)).write("m.py", def("good", 1)));
    let repo = Repository::bare(project.path("bad"));
    history(&repo);
    repo.pack();
    project.run_ok(&[]);
    let truth = rows(&mined(&project));
    let mut random = Random(12, STEP);
    for _ in 0..12 {
        let objects = project.path("bad/objects/pack");
        let files: Vec<PathBuf> =
            files_below(&objects).into_iter().filter(|file| file.is_file()).collect();
        let file = files[random.below(files.len())].clone();
        let before = fs::read(&file).unwrap();
        let what = damage(&file, &mut random);
        let outcome = project.run_ok(&["--force", "mined"]);
        assert!(!outcome.stderr.contains("panicked"), "{what}: {outcome}");
        let found = mined(&project);
        let here = rows(&found);
        assert!(here.iter().all(|row| truth.contains(row)), "{what}: {outcome}");
        let refused = found.rejects.len() + project.rows("repos.rejects").len();
        assert!(refused > 0 || here == truth, "{what}: {outcome}");
        assert!(found.rows.iter().any(|row| row["repo"] == "good"), "{what}: {outcome}");
        if file.is_dir() {
            fs::remove_dir(&file).unwrap();
        } else if file.exists() {
            fs::remove_file(&file).unwrap();
        }
        fs::write(&file, before).unwrap();
    }
    project.run_ok(&["--force", "mined"]);
    assert!(rows(&mined(&project)) == truth);
}

pub fn entry(mode: &str, name: &str, id: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&id[at..at + 2], 16).unwrap();
    let id: Vec<u8> = (0..id.len()).step_by(2).map(byte).collect();
    [mode.as_bytes(), b" ", name.as_bytes(), b"\0", &id].concat()
}

pub fn object(repo: &Repository, kind: &str, content: &[u8]) -> String {
    repo.git_with(&["hash-object", "-t", kind, "-w", "--literally", "--stdin"], content)
}

pub fn commit(repo: &Repository, tree: &str, parent: Option<&str>) -> String {
    let parent = parent.map(|id| format!("parent {id}\n")).unwrap_or_default();
    let who = format!("A <a> {NEW_YEAR} +0000");
    let text = format!("tree {tree}\n{parent}author {who}\ncommitter {who}\n\nmessage\n");
    repo.raw_commit(text.as_bytes())
}

#[test]
fn a_tree_bomb_is_a_reject_and_the_other_repositories_go_on() {
    let project = Project::new(&workflow("./bomb, ./good", ""));
    Repository::bare(project.path("good")).commit(at(day(1)).write("m.py", def("good", 1)));
    let repo = Repository::bare(project.path("bomb"));
    let blob = object(&repo, "blob", def("f", 1).as_bytes());
    let mut tree = object(&repo, "tree", &entry("100644", "m.py", &blob));
    for _ in 0..10 {
        let entries: Vec<u8> =
            (0..10).flat_map(|at| entry("40000", &format!("d{at}"), &tree)).collect();
        tree = object(&repo, "tree", &entries);
    }
    let bomb = commit(&repo, &tree, None);
    // A folder that stays the same is not looked into.
    let folder = entry("40000", "d0", &tree);
    let before = commit(&repo, &object(&repo, "tree", &folder), None);
    let after = object(&repo, "tree", &[folder, entry("100644", "m.py", &blob)].concat());
    let last = commit(&repo, &after, Some(&before));
    let who = format!("A <a> {NEW_YEAR} +0000");
    let parents = format!("parent {last}\nparent {bomb}\n");
    let merge = format!("tree {after}\n{parents}author {who}\ncommitter {who}\n\nmerge\n");
    repo.raw_commit(merge.as_bytes());
    let outcome = project.run_ok(&[]);
    assert!(outcome.took < Duration::from_secs(60), "{:?}", outcome.took);
    let found = mined(&project);
    assert_eq!(found.of(&last), ["m.py f 1-2 added 2"]);
    assert_eq!(found.rows.len(), 2, "{outcome}");
    // Two commits without parents have all of the bomb.
    assert_eq!(found.rejected(), ["limit", "limit"]);
    for row in &found.rejects {
        assert_eq!(row["repo"], "bomb");
        assert!(row["path"].is_null() && row["reason"].as_str().unwrap().contains("more than"));
    }
    project.run_ok(&[]).all_hit();
}
