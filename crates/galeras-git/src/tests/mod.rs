//! Tests of the whole way from a folder to methods, on repositories that `git` made and on what
//! was done to them afterwards.

mod damage;
mod hostile;
mod layout;
mod locations;
mod pieces;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use globset::{Glob, GlobSet, GlobSetBuilder};

use super::{
    ChangedMethod, CommitFacts, GitError, GitErrorKind, MineOptions, Mining, ObjectId, Repository,
    Sink, Window, commit_files, guarded, plan,
};

/// 2022-01-01T00:00:00Z in seconds since 1970.
pub(crate) const NEW_YEAR: i64 = 1_640_995_200;

/// Runs git in `folder` at a time and returns what it prints.
pub(crate) fn git(folder: &Path, seconds: i64, args: &[&str], input: &[u8]) -> String {
    let date = format!("{seconds} +0000");
    let mut child = Command::new("git")
        .args(["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "gc.auto=0"])
        .args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_DATE", &date)
        .env("GIT_COMMITTER_DATE", &date)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {args:?}: {error}");
    String::from_utf8(output.stdout).unwrap().trim().to_string()
}

/// Checks the kind of an error, and that these words are in its message; returns it.
#[track_caller]
pub(crate) fn fails<T>(result: Result<T, GitError>, kind: GitErrorKind, words: &str) -> GitError {
    let error = result.err().unwrap();
    assert_eq!(error.kind, kind, "{error}");
    assert!(error.message.contains(words), "{error}");
    error
}

/// A repository in a temporary folder.
struct TestRepository {
    root: tempfile::TempDir,
    commits: i64,
}

impl TestRepository {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let made = Self { root, commits: 0 };
        made.git(&["init", "-q", "-b", "main", "."], b"");
        made
    }

    fn dir(&self) -> &Path {
        self.root.path()
    }

    /// Runs git and returns what it prints.
    fn git(&self, args: &[&str], input: &[u8]) -> String {
        git(self.dir(), NEW_YEAR + self.commits * 3600, args, input)
    }

    fn write(&self, path: &str, text: &str) {
        let file = self.dir().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    /// Makes a commit of the work tree; its id.
    fn commit(&mut self) -> String {
        self.commits += 1;
        self.git(&["add", "-A"], b"");
        self.git(&["commit", "-q", "-m", &format!("commit {}", self.commits)], b"");
        self.git(&["rev-parse", "HEAD"], b"")
    }

    /// Writes an object with any content; returns its id.
    fn object(&self, kind: &str, content: &[u8]) -> String {
        self.git(&["hash-object", "-t", kind, "-w", "--literally", "--stdin"], content)
    }

    /// Makes a commit of a tree and moves `main` there; its id.
    fn commit_tree(&mut self, tree: &str, parent: Option<&str>) -> String {
        self.commits += 1;
        let parent = parent.map(|id| format!("parent {id}\n")).unwrap_or_default();
        let who = format!("T <t> {} +0000", NEW_YEAR + self.commits * 3600);
        let text = format!("tree {tree}\n{parent}author {who}\ncommitter {who}\n\nmessage\n");
        let id = self.object("commit", text.as_bytes());
        self.git(&["update-ref", "refs/heads/main", &id], b"");
        id
    }
}

/// An entry of a tree in its bytes.
fn entry(mode: &str, name: &[u8], id: &str) -> Vec<u8> {
    let id = gix::ObjectId::from_hex(id.as_bytes()).unwrap();
    [mode.as_bytes(), b" ", name, b"\0", id.as_bytes()].concat()
}

/// The result of mining.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct MiningResult {
    /// Commit, path and everything that a method has.
    rows: BTreeSet<(String, String, String)>,
    /// Commit, path, rule and reason.
    refused: BTreeSet<(String, Option<String>, String, String)>,
}

impl MiningResult {
    /// The rules that were broken, each with its path.
    fn rules(&self) -> Vec<String> {
        let rule = |(_, path, rule, _): &(String, Option<String>, String, String)| match path {
            Some(path) => format!("{rule} {path}"),
            None => rule.clone(),
        };
        let mut rules: Vec<String> = self.refused.iter().map(rule).collect();
        rules.sort();
        rules
    }

    /// The paths of a commit's methods.
    fn paths(&self, commit: &str) -> Vec<&str> {
        let rows = self.rows.iter().filter(|(id, ..)| id == commit);
        rows.map(|(_, path, _)| path.as_str()).collect()
    }
}

/// Collects the results of mining.
#[derive(Default)]
struct CollectSink(MiningResult);

impl Sink for CollectSink {
    fn method(&mut self, commit: &CommitFacts, changed: ChangedMethod<'_>) -> Result<(), GitError> {
        let row = (commit.id.clone(), changed.path.to_string(), format!("{commit:?} {changed:?}"));
        assert!(self.0.rows.insert(row), "a row comes twice");
        Ok(())
    }

    fn refused(
        &mut self,
        commit: &str,
        path: Option<&str>,
        rule: &'static str,
        reason: &str,
    ) -> Result<(), GitError> {
        let path = path.map(str::to_string);
        self.0.refused.insert((commit.into(), path, rule.into(), reason.to_string()));
        Ok(())
    }

    fn end(&mut self) -> Result<(), GitError> {
        Ok(())
    }
}

fn python_files() -> GlobSet {
    GlobSetBuilder::new().add(Glob::new("**/*.py").unwrap()).build().unwrap()
}

/// Mines the repository in a folder, from its `HEAD`. Two threads mine its pieces.
fn mined(dir: &Path) -> Result<MiningResult, GitError> {
    let mining = guarded(|| prepared(dir))?;
    let next = AtomicUsize::new(0);
    let work = || {
        let mut sink = CollectSink::default();
        loop {
            let piece = next.fetch_add(1, Ordering::Relaxed);
            if piece >= mining.plan().pieces() {
                return Ok(sink.0);
            }
            mining.mine(piece, &mut sink, &AtomicBool::new(false), &|_| {})?;
        }
    };
    let found: Vec<Result<MiningResult, GitError>> = std::thread::scope(|scope| {
        let threads = [scope.spawn(work), scope.spawn(work)];
        threads.map(|thread| thread.join().unwrap()).into()
    });
    let mut all = MiningResult::default();
    for part in found {
        let part = part?;
        let rows = all.rows.len() + part.rows.len();
        all.rows.extend(part.rows);
        assert_eq!(all.rows.len(), rows, "a row comes twice");
        all.refused.extend(part.refused);
    }
    Ok(all)
}

fn options() -> MineOptions {
    MineOptions {
        window: Window { since: NEW_YEAR, until: NEW_YEAR + 365 * 86_400 },
        merges: false,
        nested: false,
        include: python_files(),
        max_file_bytes: 1 << 20,
        jobs: 2,
    }
}

fn prepared(dir: &Path) -> Result<Mining, GitError> {
    let options = options();
    let repository = Repository::open(dir)?;
    let head = repository.head(None)?.commit;
    let plan = plan(&repository, head, &options, &AtomicBool::new(false))?;
    Ok(Mining::new(repository, plan, Arc::new(options)))
}

/// All files below a folder, in order.
fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(files_below(&path)) } else { files.push(path) }
    }
    files.sort();
    files
}

#[test]
fn the_files_of_a_commit_are_those_of_its_tree() {
    let mut made = TestRepository::new();
    made.write("a.py", "1");
    made.write("pkg/b.py", "2");
    made.write("pkg/c.txt", "3");
    let first = made.commit();
    made.write("a.py", "4");
    let second = made.commit();
    let repository = Repository::open(made.dir()).unwrap();
    let read = |commit: &str, most: u64| -> Result<Vec<(String, String)>, GitError> {
        let commit = ObjectId::from_hex(commit.as_bytes()).unwrap();
        let files = commit_files(&repository, commit, &python_files(), most)?;
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ok(files.into_iter().map(|(path, bytes)| (path.to_string(), text(bytes))).collect())
    };
    let named = |files: &[(&str, &str)]| -> Vec<(String, String)> {
        files.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect()
    };
    assert_eq!(read(&first, 100).unwrap(), named(&[("a.py", "1"), ("pkg/b.py", "2")]));
    assert_eq!(read(&second, 100).unwrap(), named(&[("a.py", "4"), ("pkg/b.py", "2")]));
    fails(read(&second, 1), GitErrorKind::Limit, "more than");
}
