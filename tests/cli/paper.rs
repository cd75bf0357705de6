//! Projects with the shipped workflows and small repositories of generated methods, and what
//! tests of these workflows ask of tables.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::harness::{Outcome, Project, text};
use crate::repository::{Commit, Repository, at, day};

/// The shipped workflows.
const FILES: [(&str, &str); 12] = [
    ("collect.yaml", include_str!("../../workflows/collect.yaml")),
    ("galeras.yaml", include_str!("../../workflows/galeras.yaml")),
    ("ratings/README.md", include_str!("../../workflows/ratings/README.md")),
    ("fixes.yaml", include_str!("../../workflows/fixes.yaml")),
    ("unit_tests.yaml", include_str!("../../workflows/unit_tests.yaml")),
    ("tasks.yaml", include_str!("../../workflows/tasks.yaml")),
    ("evaluate.yaml", include_str!("../../workflows/evaluate.yaml")),
    ("summarize.yaml", include_str!("../../workflows/summarize.yaml")),
    ("commits.yaml", include_str!("../../workflows/commits.yaml")),
    ("testgen.yaml", include_str!("../../workflows/testgen.yaml")),
    ("bugfix.yaml", include_str!("../../workflows/bugfix.yaml")),
    ("compare.yaml", include_str!("../../workflows/compare.yaml")),
];

/// A project with the shipped workflows, one of which is run with the same params every time.
pub struct Shipped {
    pub project: Project,
    /// The repositories, as they were made.
    pub repos: Vec<Repository>,
    file: &'static str,
    params: Vec<(&'static str, String)>,
}

impl Shipped {
    /// The workflow `file` on the repositories at `./a`, `./b` and so on.
    pub fn new(file: &'static str, repos: &str) -> Self {
        let project = Project::empty();
        FILES.iter().for_each(|(name, text)| project.write(name, text));
        Self { project, repos: Vec::new(), file, params: vec![("repos", repos.into())] }
    }

    /// Sets a param from now on.
    pub fn set(&mut self, name: &'static str, value: &str) {
        self.params.retain(|(other, _)| *other != name);
        self.params.push((name, value.into()));
    }

    #[track_caller]
    fn call(&self, before: &[&str], more: &[&str]) -> Outcome {
        let set = self.settings();
        let set: Vec<&str> = set.iter().flat_map(|set| ["--set", set.as_str()]).collect();
        self.project.run(&[before, &set, more].concat())
    }

    fn settings(&self) -> Vec<String> {
        self.params.iter().map(|(name, value)| format!("{name}={value}")).collect()
    }

    /// Runs a verb on the workflow.
    #[track_caller]
    pub fn verb(&self, verb: &str) -> Outcome {
        self.call(&[verb, self.file], &[])
    }

    /// Runs the workflow as a person does.
    #[track_caller]
    pub fn run_human(&self) -> Outcome {
        self.call(&["run", self.file], &[])
    }

    /// Runs the workflow; events on standard output.
    #[track_caller]
    pub fn run(&self, more: &[&str]) -> Outcome {
        match more {
            [] => self.project.run_file(self.file, &self.settings()),
            more => self.call(&["run", self.file, "--format", "json"], more),
        }
    }

    /// The rows of a step or a port.
    #[track_caller]
    pub fn rows(&self, step: &str) -> Vec<Value> {
        self.project.rows_of(self.file, step, &self.settings())
    }

    /// The trace of a data point.
    #[track_caller]
    pub fn trace(&self, id: &str) -> Outcome {
        self.call(&["trace", self.file, id], &[])
    }

    /// A published CSV file by its header.
    #[track_caller]
    pub fn csv(&self, path: &str) -> Vec<BTreeMap<String, String>> {
        table(&self.project.read(path))
    }
}

/// Numbers that look random and are always the same.
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888);
        (self.0 >> 33) as usize % end
    }

    /// A word of four syllables.
    pub fn word(&mut self) -> String {
        let syllable = |n: usize| -> String {
            [b"bdfgklmnprstvz"[n % 14], b"aeiou"[n / 14]].into_iter().map(char::from).collect()
        };
        (0..4).map(|_| syllable(self.below(70))).collect()
    }

    pub fn words(&mut self, n: usize) -> String {
        (0..n).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }
}

/// A method whose words come from `seed`: with another name only, it is a near-duplicate.
pub fn method(name: &str, seed: u64, docstring: Option<&str>, number: usize) -> String {
    let mut words = Numbers::new(seed);
    let mut word = || words.word();
    let [a, b, c, d, e, f, g] = [word(), word(), word(), word(), word(), word(), word()];
    let doc = docstring.map_or(String::new(), |doc| format!("    \"\"\"{doc}\"\"\"\n"));
    format!(
        "def {name}({a}, {b}=None):\n{doc}    {c} = {a}.{d}({b})\n    for {e} in {c}:\n        \
         if {e} is None or {e} > {number}:\n            continue\n        {f}({e}, {g}={b})\n    \
         return {c}, {}\n",
        word()
    )
}

pub fn file(methods: &[String]) -> String {
    methods.join("\n\n")
}

/// The docstring of the method at a place of its file: of three lengths, or none.
fn docstring(at: usize, seed: u64) -> Option<String> {
    match at {
        // Digits for vowels: random syllables look like Slovene or Zulu.
        0..=2 => {
            let words = Numbers::new(900_000 + seed).words(11);
            let digit = |c: char| "aeiou".find(c).map_or(c, |at| char::from(b'1' + at as u8));
            Some(format!("{}.", words.chars().map(digit).collect::<String>()))
        }
        // More than three words, but few, and short.
        3 => Some("Adds it to that one.".into()),
        4 => Some("Adds it.".into()),
        _ => None,
    }
}

/// The message of commit `n`: long by words, long by characters, or short.
fn message(n: usize) -> String {
    let mut words = Numbers::new(700_000 + n as u64);
    match n % 4 {
        0 => format!("Change ab cd ef gh ij kl mn op qr {}\n\nIts body.", n + 10),
        1 | 2 => format!("Change the {}\n\n{}", words.words(3), words.words(5)),
        _ => format!("Change the {}", words.word()),
    }
}

/// A repository of 20 commits in the window and two next to it: each adds a file of six methods,
/// a stub and a method of one line, and changes two methods of the file before.
pub fn history(project: &Project, name: &str, number: usize) -> Repository {
    let repo = Repository::bare(project.path(name));
    let code = |commit: usize, at: usize, edits: usize| {
        let n = (number * 20 + commit) * 6 + at;
        // Two of six methods are copies of others but for their names.
        // (with docstrings of their own)
        let seed = if at == 1 || at == 5 { n as u64 % 7 } else { 1_000 + n as u64 };
        let doc = docstring(at, 1_000 + n as u64);
        method(&format!("method_{n}"), seed, doc.as_deref(), 10 + edits)
    };
    let content = |commit: usize, edits: usize| {
        let mut methods: Vec<String> =
            (0..6).map(|at| code(commit, at, if at < 2 { edits } else { 0 })).collect();
        methods.push(format!("def stub_{commit}(self):\n    pass\n    ...\n"));
        methods.push(format!("def line_{commit}(self, other_number):\n    return other_number\n"));
        methods.push(format!("def tiny_{commit}(a):\n    b = a\n    return b\n"));
        file(&methods)
    };
    let path = |commit: usize| format!("package/module_{commit}.py");
    for commit in 0..20 {
        let mut made: Commit = at(day(2 + 17 * commit as i64)).message(&message(commit + number));
        made = made.write(path(commit), content(commit, 0));
        if commit > 0 {
            made = made.write(path(commit - 1), content(commit - 1, 1));
        }
        repo.commit(made);
    }
    let late = method("late", 77, None, 1);
    repo.commit(at(day(400)).message("Added long after the window").write("late.py", late));
    let early = method("early", 78, None, 1);
    repo.commit(at(day(-9)).message("Added before the window").write("early.py", early));
    repo
}

/// `galeras.yaml` on three such repositories, with samples of 40 and a sheet of 20. Duplicates are
/// found by words, which tests can count.
pub fn paper() -> Shipped {
    let mut paper = Shipped::new("galeras.yaml", "./a,./b,./c");
    for (number, name) in ["a", "b", "c"].into_iter().enumerate() {
        paper.repos.push(history(&paper.project, name, number));
    }
    paper.set("n", "40");
    paper.set("validated", "20");
    paper.set("tokens", "word");
    paper.set("one_line", "false");
    paper
}

/// The records of a CSV file.
#[track_caller]
pub fn records(text: &str) -> Vec<Vec<String>> {
    assert!(text.ends_with('\n'), "the file ends with a line end");
    let reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    let cells = |record: csv::StringRecord| record.iter().map(str::to_owned).collect();
    reader.into_records().map(|record| cells(record.unwrap())).collect()
}

#[track_caller]
pub fn table(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut records = records(text).into_iter();
    let header = records.next().expect("a header");
    let row = |record: Vec<String>| {
        assert_eq!(record.len(), header.len(), "{record:?}");
        header.iter().cloned().zip(record).collect()
    };
    records.map(row).collect()
}

/// A CSV file as a spreadsheet writes it: every cell in quotes, lines that end with CRLF.
pub fn written(records: &[Vec<String>]) -> String {
    let cell = |cell: &String| format!("\"{}\"", cell.replace('"', "\"\""));
    let line = |r: &Vec<String>| r.iter().map(cell).collect::<Vec<_>>().join(",") + "\r\n";
    records.iter().map(line).collect()
}

#[track_caller]
pub fn sorted(rows: &[Value], column: &str) -> Vec<String> {
    let mut values: Vec<String> = rows.iter().map(|row| text(row, column).to_owned()).collect();
    values.sort_unstable();
    values
}
