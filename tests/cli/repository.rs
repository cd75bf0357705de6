//! Git repositories made by the `git` program, always the same: dates, names and content are
//! given, and no settings of the user or the machine are read. Commits are written by
//! `git fast-import`, which takes any path and mode and needs no work tree.
//!
//! The tests: the base folder of repository paths, and the names of folders of one name.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use serde_json::Value;

use crate::harness::{Project, flat, text};
use crate::remembered_set::run_in;

/// 2022-01-01T00:00:00Z in seconds since 1970.
pub const NEW_YEAR: i64 = 1_640_995_200;
const DAY: i64 = 86_400;

/// Noon of the day `n` of 2022, counted from 0.
pub fn day(n: i64) -> i64 {
    NEW_YEAR + n * DAY + DAY / 2
}

/// A repository in a separate folder.
pub struct Repository {
    /// The path for `git -C` and for Galeras.
    pub path: PathBuf,
    tips: RefCell<HashMap<String, String>>,
}

pub struct Commit {
    author: String,
    committer: String,
    message: Vec<u8>,
    branch: String,
    parents: Option<Vec<String>>,
    changes: Vec<u8>,
}

pub fn at(seconds: i64) -> Commit {
    Commit {
        author: format!("{seconds} +0000"),
        committer: format!("{seconds} +0000"),
        message: b"Change it".to_vec(),
        branch: "main".into(),
        parents: None,
        changes: Vec::new(),
    }
}

impl Commit {
    /// Another time of the author, with a zone.
    pub fn authored(mut self, seconds: i64, zone: &str) -> Self {
        self.author = format!("{seconds} {zone}");
        self
    }

    /// The committer's zone.
    pub fn zone(mut self, zone: &str) -> Self {
        self.committer = self.committer.replace("+0000", zone);
        self
    }

    pub fn message(mut self, message: &str) -> Self {
        self.message = message.as_bytes().to_vec();
        self
    }

    /// On another branch than `main`.
    pub fn on(mut self, branch: &str) -> Self {
        self.branch = branch.into();
        self
    }

    /// On these parents instead of the tip of the branch.
    pub fn after(mut self, parents: &[&str]) -> Self {
        self.parents = Some(parents.iter().map(ToString::to_string).collect());
        self
    }

    pub fn write(self, path: impl AsRef<[u8]>, content: impl AsRef<[u8]>) -> Self {
        self.entry("100644", path, content)
    }

    /// A file of a mode: `100755`, `120000` for a link.
    pub fn entry(mut self, mode: &str, path: impl AsRef<[u8]>, content: impl AsRef<[u8]>) -> Self {
        let content = content.as_ref();
        let head = format!("M {mode} inline {}\ndata {}\n", quoted(path), content.len());
        self.changes.extend_from_slice(head.as_bytes());
        self.changes.extend_from_slice(content);
        self.changes.push(b'\n');
        self
    }

    /// An object that is there already, such as the commit of a submodule.
    pub fn object(mut self, mode: &str, path: &str, id: &str) -> Self {
        self.changes.extend_from_slice(format!("M {mode} {id} {}\n", quoted(path)).as_bytes());
        self
    }

    pub fn delete(mut self, path: impl AsRef<[u8]>) -> Self {
        self.changes.extend_from_slice(format!("D {}\n", quoted(path)).as_bytes());
        self
    }

    /// Moves a file or a folder.
    pub fn rename(mut self, from: &str, to: &str) -> Self {
        let line = format!("R {} {}\n", quoted(from), quoted(to));
        self.changes.extend_from_slice(line.as_bytes());
        self
    }
}

/// A path as fast-import reads it.
fn quoted(path: impl AsRef<[u8]>) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_./- ".contains(byte);
    let escaped = path.as_ref().iter().map(|byte| match plain(byte) {
        true => char::from(*byte).to_string(),
        false => format!("\\{byte:03o}"),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

impl Repository {
    /// An empty bare repository.
    pub fn bare(path: impl Into<PathBuf>) -> Self {
        Self::init(path.into(), &["--bare"])
    }

    /// An empty repository with a work tree. Commits leave the work tree as it is.
    pub fn with_work_tree(path: impl Into<PathBuf>) -> Self {
        Self::init(path.into(), &[])
    }

    fn init(path: PathBuf, options: &[&str]) -> Self {
        fs::create_dir_all(&path).unwrap();
        let repository = Self { path, tips: RefCell::default() };
        repository.git(&[&["init", "--quiet", "--initial-branch=main"], options].concat());
        repository
    }

    /// Runs git in the repository, and returns its trimmed output.
    #[track_caller]
    pub fn git(&self, args: &[&str]) -> String {
        self.git_with(args, b"")
    }

    /// The same with standard input.
    #[track_caller]
    pub fn git_with(&self, args: &[&str], input: &[u8]) -> String {
        let mut child = git(&self.path).args(args).spawn().expect("git runs");
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {args:?}: {said}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Makes a commit; its id.
    #[track_caller]
    pub fn commit(&self, commit: Commit) -> String {
        let Commit { author, committer, message, branch, parents, changes } = commit;
        let tip = || self.tips.borrow().get(&branch).cloned().into_iter().collect();
        let parents = parents.unwrap_or_else(tip);
        let mut input = format!(
            "commit refs/heads/{branch}\nmark :1\nauthor Ann <ann@example.org> {author}\n\
             committer Con <con@example.org> {committer}\ndata {}\n",
            message.len()
        )
        .into_bytes();
        input.extend_from_slice(&message);
        input.push(b'\n');
        for (at, parent) in parents.iter().enumerate() {
            let word = if at == 0 { "from" } else { "merge" };
            input.extend_from_slice(format!("{word} {parent}\n").as_bytes());
        }
        if parents.is_empty() {
            // Without it, a branch that exists would be continued.
            input.splice(0..0, format!("reset refs/heads/{branch}\n\n").into_bytes());
        }
        input.extend_from_slice(&changes);
        input.extend_from_slice(b"\nget-mark :1\ndone\n");
        let args = ["fast-import", "--quiet", "--force", "--done", "--date-format=raw"];
        let id = self.git_with(&args, &input);
        self.tips.borrow_mut().insert(branch, id.clone());
        id
    }

    /// Makes a commit of the text of a commit object, whatever is in it, and moves `main`
    /// there.
    #[track_caller]
    pub fn raw_commit(&self, text: &[u8]) -> String {
        let args = ["hash-object", "-t", "commit", "-w", "--literally", "--stdin"];
        let id = self.git_with(&args, text);
        self.move_to("main", &id);
        id
    }

    /// Moves a branch as a forced push does.
    #[track_caller]
    pub fn move_to(&self, branch: &str, id: &str) {
        self.git(&["update-ref", &format!("refs/heads/{branch}"), id]);
        self.tips.borrow_mut().insert(branch.into(), id.into());
    }

    /// The folder with `HEAD` and `objects`.
    pub fn git_dir(&self) -> PathBuf {
        let inner = self.path.join(".git");
        if inner.is_dir() { inner } else { self.path.clone() }
    }

    /// Overwrites 16 bytes in the middle of the file of a loose object, or deletes it.
    #[track_caller]
    pub fn damage(&self, id: &str, delete: bool) {
        let file = self.git_dir().join("objects").join(&id[..2]).join(&id[2..]);
        if delete {
            return fs::remove_file(file).unwrap();
        }
        overwrite(&file, |length| length / 2);
    }

    /// Puts all objects into one pack; its file.
    #[track_caller]
    pub fn pack(&self) -> PathBuf {
        self.git(&["repack", "-a", "-d", "-q"]);
        let folder = self.git_dir().join("objects/pack");
        let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut packs = files.filter(|path| path.extension() == Some(OsStr::new("pack")));
        packs.next().unwrap()
    }
}

/// Overwrites 16 bytes of a file at the place that `place` makes of its length.
pub fn overwrite(file: &Path, place: impl Fn(usize) -> usize) {
    let mut bytes = fs::read(file).unwrap();
    let from = place(bytes.len());
    for byte in bytes.iter_mut().skip(from).take(16) {
        *byte ^= 0x5a;
    }
    // Git writes its objects for reading only.
    fs::remove_file(file).unwrap();
    fs::write(file, bytes).unwrap();
}

/// A path: with a name and a `PATH` of its own, a command would fork this large process.
static GIT: LazyLock<PathBuf> = LazyLock::new(|| {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders)
        .map(|folder| folder.join("git"))
        .find(|git| git.is_file())
        .unwrap()
});

pub fn git(folder: &Path) -> Command {
    let mut command = Command::new(&*GIT);
    command
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", folder)
        .env("XDG_CONFIG_HOME", folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_AUTHOR_NAME", "Ann")
        .env("GIT_AUTHOR_EMAIL", "ann@example.org")
        .env("GIT_COMMITTER_NAME", "Con")
        .env("GIT_COMMITTER_EMAIL", "con@example.org")
        .env("GIT_AUTHOR_DATE", format!("{NEW_YEAR} +0000"))
        .env("GIT_COMMITTER_DATE", format!("{NEW_YEAR} +0000"))
        .env("TZ", "UTC")
        .args(["-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "core.fsync=none"])
        .args(["-c", "core.autocrlf=false", "-c", "protocol.file.allow=always"])
        .args(["-c", "safe.directory=*", "-c", "advice.detachedHead=false"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

pub struct Mining {
    pub project: Project,
    pub repo: Repository,
}

pub struct Mined {
    /// In the order of committer dates, paths and lines.
    pub rows: Vec<Value>,
    pub rejects: Vec<Value>,
}

/// A workflow of `repos` (a list of YAML) and `mined` (with more arguments).
pub fn workflow(repos: &str, more: &str) -> String {
    workflow_of(repos, &format!("since: 2022-01-01, until: 2023-01-01, {more}"))
}

/// A workflow of `repos` and of `mined` with all its arguments.
pub fn workflow_of(repos: &str, with: &str) -> String {
    format!(
        "galeras: 1
steps:
  repos: {{ op: query, with: {{ repos: [{repos}] }} }}
  mined: {{ op: mine, from: repos, with: {{ {with} }} }}
"
    )
}

#[track_caller]
pub fn mined(project: &Project) -> Mined {
    let mut rows = project.rows("mined");
    rows.sort_by_key(|row| {
        let text = |name: &str| row[name].as_str().unwrap().to_owned();
        (text("commit_time"), text("path"), row["start_line"].as_i64(), text("commit_id"))
    });
    Mined { rows, rejects: project.rows("mined.rejects") }
}

impl Mining {
    pub fn new() -> Self {
        Self::with("")
    }

    /// With more arguments of `mine`.
    pub fn with(more: &str) -> Self {
        Self::of(&workflow("./r", more))
    }

    pub fn of(workflow: &str) -> Self {
        let project = Project::new(workflow);
        let repo = Repository::bare(project.path("r"));
        Self { project, repo }
    }

    /// Runs the workflow.
    #[track_caller]
    pub fn mine(&self) -> Mined {
        self.project.run_ok(&[]);
        mined(&self.project)
    }
}

impl Mined {
    /// The changes of a commit as `path name first-last change lines`.
    pub fn of(&self, commit: &str) -> Vec<String> {
        let rows = self.rows.iter().filter(|row| row["commit_id"] == commit);
        let told = rows.map(|row| {
            let [path, name, change] = ["path", "qualified_name", "change"].map(|c| text(row, c));
            let lines = format!("{}-{}", row["start_line"], row["end_line"]);
            format!("{path} {name} {lines} {change} {}", row["changed_lines"])
        });
        told.collect()
    }

    /// The values of a column.
    pub fn column(&self, name: &str) -> Vec<&str> {
        self.rows.iter().map(|row| row[name].as_str().unwrap_or("null")).collect()
    }

    /// The only row.
    #[track_caller]
    pub fn only(&self) -> &Value {
        assert_eq!(self.rows.len(), 1, "{:?}", self.column("qualified_name"));
        &self.rows[0]
    }

    /// The rejects as `rule path` or `rule` alone, sorted.
    pub fn rejected(&self) -> Vec<String> {
        let rule = |row: &Value| {
            let path = row["path"].as_str().map(|path| format!(" {path}")).unwrap_or_default();
            format!("{}{path}", row["rule"].as_str().unwrap())
        };
        let mut rules: Vec<String> = self.rejects.iter().map(rule).collect();
        rules.sort();
        rules
    }
}

pub fn def(name: &str, number: i64) -> String {
    format!("def {name}(x):\n    return x + {number}\n")
}

/// A file of functions `f0`, `f1` and so on, of four lines each.
pub fn defs(numbers: &[i64]) -> String {
    let one = |(at, number): (usize, &i64)| def(&format!("f{at}"), *number) + "\n\n";
    numbers.iter().enumerate().map(one).collect()
}

fn project() -> Project {
    let project = Project::empty();
    let text = workflow("", "").replace("repos: []", "repos: '${{ params.repos }}'");
    let text = text.replace("steps:", "params:\n  repos: { type: repos, default: ./r }\nsteps:");
    project.write("flows/w.yaml", text);
    for (name, number) in [("flows/r", 1), ("mine/repo", 2), ("theirs/repo", 3)] {
        let clone = Repository::with_work_tree(project.path(name));
        clone.commit(at(day(1)).write("m.py", def("f", number)));
    }
    project
}

/// Names and addresses of the repositories.
fn repositories(project: &Project, folder: &str, file: &str, more: &[&str]) -> Vec<[String; 2]> {
    let cache = project.path("cache").display().to_string();
    let args = [&["run", file, "--cache", &cache, "--format", "json"], more].concat();
    let ran = run_in(project, folder, &args).exits(0);
    let args = ["show", file, "repos", "--format", "json", "--cache", &cache];
    let rows = run_in(project, folder, &args).exits(0).json_lines();
    assert_eq!(ran.step("mined")["rows"].as_u64(), Some(rows.len() as u64), "{ran}");
    rows.iter().map(|row| ["repo", "clone_url"].map(|name| text(row, name).to_owned())).collect()
}

#[test]
fn paths_of_the_command_line_start_in_the_current_folder() {
    let project = project();
    // No path of this machine is in the result.
    for (folder, file, set) in [
        (".", "flows/w.yaml", "repos=./mine/repo"),
        ("mine", "../flows/w.yaml", "repos=./repo"),
        ("flows", "w.yaml", "repos=../mine/repo"),
    ] {
        let found = repositories(&project, folder, file, &["--set", set]);
        assert_eq!(found, [["repo", "../mine/repo"]], "{folder}");
    }
    let set = ["--set", "repos=mine/../mine/repo"];
    assert_eq!(repositories(&project, ".", "flows/w.yaml", &set)[0][0], "repo");
    // The default starts in the workflow's folder, wherever one is.
    let own = repositories(&project, "mine", "../flows/w.yaml", &[]);
    assert_eq!(own, [["r", "./r"]]);
    // One that was written as an absolute path stays one.
    let whole = project.path("mine/repo").display().to_string();
    let set = format!("repos={whole}");
    assert_eq!(repositories(&project, ".", "flows/w.yaml", &["--set", &set])[0][1], whole);
    // So does a list in a file, whose own paths are the workflow's.
    project.write("mine/list.csv", "./r\n../theirs/repo\n");
    let list = ["--set", "repos=mine/list.csv", "--allow", "send:mine/list.csv=*"];
    let listed = repositories(&project, ".", "flows/w.yaml", &list);
    assert_eq!(listed.iter().map(|row| row[0].as_str()).collect::<Vec<_>>(), ["r", "repo"]);
}

#[test]
fn one_project_gives_the_same_digests_wherever_it_lies_and_clones_are_told_apart() {
    let digests = |folder: &str, file: &str, set: &str| {
        let project = project();
        let args = ["run", file, "--format", "json", "--set", set];
        run_in(&project, folder, &args).exits(0).digests()
    };
    let above = digests(".", "flows/w.yaml", "repos=./mine/repo,./theirs/repo");
    assert_eq!(above, digests(".", "flows/w.yaml", "repos=mine/repo/, ./theirs/repo"));
    assert_eq!(above, digests("flows", "w.yaml", "repos=../mine/repo,../theirs/repo"));
    assert_ne!(above, digests(".", "flows/w.yaml", "repos=./theirs/repo"));
    // Two clones in folders of one name get different names.
    let project = project();
    let set = ["--set", "repos=./mine/repo,./theirs/repo,flows/r/../r,./mine/repo"];
    let found = repositories(&project, ".", "flows/w.yaml", &set);
    let names: Vec<&str> = found.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(names, ["mine/repo", "r", "theirs/repo"]);
    // Names that were given twice are a conflict.
    project.write("list.csv", "repo,url\nx,./r\nx,../mine/repo\n");
    let args = ["run", "flows/w.yaml", "--set", "repos=list.csv"];
    run_in(&project, ".", &args).exits(2).reports(&["would both be called `x`", "columns"]);
}

#[test]
fn what_is_not_there_is_named_in_full() {
    let project = project();
    for (list, said) in [
        ("repos=./nowhere", "project/./nowhere` does not exist"),
        ("repos=none.csv", "project/none.csv` does not exist"),
        ("repos=mine", "flows/../mine` is not a git repository"),
    ] {
        let refused = run_in(&project, ".", &["check", "flows/w.yaml", "--set", list]).exits(2);
        // Long paths are broken anywhere.
        let whole = flat(&refused.stderr.replace('·', " ")).replace(' ', "");
        assert!(whole.contains(&said.replace(' ', "")), "{said}: {refused}");
    }
    // Paths of an embedding workflow start in its folder.
    let project = self::project();
    project.write(
        "outer.yaml",
        "galeras: 1
params:
  repos: { type: repos, default: ./theirs/repo }
steps:
  inner: { uses: ./flows/w.yaml, with: { repos: '${{ params.repos }}' } }
  named: { uses: ./flows/w.yaml, with: { repos: mine/repo/../repo } }
",
    );
    let addresses = |more: &[&str]| {
        let args = [&["run", "../outer.yaml", "--cache", "../cache"], more].concat();
        run_in(&project, "mine", &args).exits(0);
        let show = |step| project.json(&["show", "outer.yaml", step])[0]["clone_url"].clone();
        [show("inner/repos"), show("named/repos")]
    };
    assert_eq!(addresses(&[]), ["../theirs/repo", "../mine/repo/../repo"]);
    assert_eq!(addresses(&["--set", "repos=./repo"]), ["../mine/repo", "../mine/repo/../repo"]);
}
