//! `mine` next to `git log -p`: a history of random edits, and the same answer from both.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use crate::repository::{Mining, NEW_YEAR, at};

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % limit
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

/// One random edit.
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
        let mut random = Random(seed);
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
