//! A temporary project, the program run in it, and what came out.

use std::fmt::Display;
use std::fs;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::in_process::{Computed, run_here};

/// No command may take longer.
pub const TIME_OUT: Duration = Duration::from_secs(120);

/// How long a test waits for what takes less than so many seconds on an idle machine. What such a
/// bound is there to find, like a wait for a server that is gone, takes minutes.
pub fn patience(seconds: u64) -> Duration {
    (5 * Duration::from_secs(seconds)).min(TIME_OUT)
}

/// The program under test: the one that cargo built for the tests, or `GALERAS_BIN`.
pub fn binary() -> PathBuf {
    let given = std::env::var_os("GALERAS_BIN").map(PathBuf::from);
    given
        .or_else(|| option_env!("CARGO_BIN_EXE_galeras-under-test").map(PathBuf::from))
        .expect("GALERAS_BIN names the program")
}

/// The folder of these tests, as it is when they run: clones at several places may share what was
/// built.
pub fn package() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).expect("cargo runs the tests")
}

/// A folder with workflow files, in which the program is run.
pub struct Project {
    dir: TempDir,
    /// The results of the last run in this process, unless the program was started since.
    computed: Mutex<Option<Computed>>,
}

impl Project {
    /// A project without files.
    pub fn empty() -> Self {
        let dir = tempfile::Builder::new().prefix("galeras-test-").tempdir().unwrap();
        for folder in ["home", "project", "tmp"] {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        Self { dir, computed: Mutex::default() }
    }

    /// A project with the workflow `w.yaml`.
    pub fn new(workflow: &str) -> Self {
        let project = Self::empty();
        project.write("w.yaml", workflow);
        project
    }

    /// A project whose workflow has these steps.
    pub fn steps(steps: &str) -> Self {
        Self::new(&format!("galeras: 1\nsteps:\n{steps}"))
    }

    /// The working directory of commands.
    pub fn root(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    /// The files and folders that programs left behind in `TMPDIR`. Runs in this process have
    /// another one.
    pub fn left_behind(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.dir.path().join("tmp")).unwrap();
        entries.map(|e| e.unwrap().path()).collect()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    /// Writes a file, and the folders above it.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// The project with one more file.
    pub fn with(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        self.write(name, content);
        self
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Replaces `old`, which must occur just once in the file.
    #[track_caller]
    pub fn edit(&self, name: &str, old: &str, new: &str) {
        let text = self.read(name);
        assert_eq!(text.matches(old).count(), 1, "{old:?} in {name}");
        self.write(name, text.replace(old, new));
    }

    /// Adds lines to the end of the workflow.
    pub fn append(&self, more: &str) {
        self.write("w.yaml", self.read("w.yaml") + more);
    }

    /// Makes an SSH key in the project, and returns the path of its private half.
    pub fn ssh_key(&self, name: &str) -> String {
        let file = self.path(name).to_str().unwrap().to_string();
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-C", "", "-f", &file])
            .status();
        assert!(made.expect("OpenSSH is installed").success());
        file
    }

    /// Like [`Project::edit`], of the workflow.
    #[track_caller]
    pub fn change(&self, old: &str, new: &str) {
        self.edit("w.yaml", old, new);
    }

    /// Changes the workflow and runs it again, which has to succeed.
    #[track_caller]
    pub fn rerun(&self, old: &str, new: &str) -> Outcome {
        self.change(old, new);
        self.run_ok(&[])
    }

    /// The program with arguments, in a scrubbed environment. The programs of workflows are
    /// allowed, also outside of a sandbox, as `exec` is where the rows of many tests come from; nothing
    /// else is.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.command_as_typed(args);
        let allows = args.iter().any(|arg| arg.starts_with("--allow"));
        if matches!(args.first(), Some(&("run" | "lock"))) && !allows {
            command.args(["--allow", "exec,unsandboxed"]);
        }
        command
    }

    /// The program with just these arguments, in a scrubbed environment.
    pub fn command_as_typed(&self, args: &[&str]) -> Command {
        *self.computed.lock().unwrap() = None;
        let mut command = Command::new(binary());
        command.args(args);
        self.scrub(&mut command);
        command
    }

    /// A shell command in which `$GALERAS` is the program.
    pub fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("sh");
        command.arg("-c").arg(script);
        self.scrub(&mut command);
        command.env("GALERAS", binary());
        command
    }

    fn scrub(&self, command: &mut Command) {
        command
            .current_dir(self.root())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.dir.path().join("home"))
            .env("TMPDIR", self.dir.path().join("tmp"))
            .env("NO_COLOR", "1")
            .env("COLUMNS", "80")
            .stdin(Stdio::null());
    }

    /// Runs the program to its end.
    #[track_caller]
    pub fn run(&self, args: &[&str]) -> Outcome {
        Running::start(self.command(args)).finish()
    }

    /// Runs the program to its end, with more in its environment.
    #[track_caller]
    pub fn run_with(&self, args: &[&str], env: &[(&str, &str)]) -> Outcome {
        let mut command = self.command(args);
        command.envs(env.iter().copied());
        Running::start(command).finish()
    }

    /// `run w.yaml --format json` with more arguments. Without any, and with values of params, it
    /// runs in this process if it can.
    #[track_caller]
    pub fn run_json(&self, more: &[&str]) -> Outcome {
        let settings = more.chunks(2).map(|pair| match pair {
            ["--set", setting] => Some(*setting),
            _ => None,
        });
        match settings.collect::<Option<Vec<_>>>() {
            Some(settings) => self.run_file("w.yaml", &settings),
            None => self.run(&[&["run", "w.yaml", "--format", "json"], more].concat()),
        }
    }

    /// The same by the program.
    #[track_caller]
    pub fn run_program(&self) -> Outcome {
        self.run(&["run", "w.yaml", "--format", "json"])
    }

    /// Runs a workflow with these values of params, in this process if it can.
    #[track_caller]
    pub fn run_file(&self, file: &str, set: &[impl AsRef<str>]) -> Outcome {
        let (home, set) = (self.dir.path().join("home"), texts(set));
        let Some((outcome, computed)) = run_here(&self.root(), &home, file, &set) else {
            return self.run(&[&["run", file, "--format", "json"], &*as_flags(&set)].concat());
        };
        *self.computed.lock().unwrap() = computed;
        outcome
    }

    /// Like [`Project::run_json`], and it has to succeed.
    #[track_caller]
    pub fn run_ok(&self, more: &[&str]) -> Outcome {
        self.run_json(more).exits(0)
    }

    /// The project after a run, which has to succeed.
    #[track_caller]
    pub fn ran(self) -> Self {
        self.run_ok(&[]);
        self
    }

    /// The run ends since this step fails, with these words in its detail.
    #[track_caller]
    pub fn fails(&self, step: &str, words: &[&str]) -> Outcome {
        let outcome = self.run_json(&[]).exits(1);
        says(&outcome.detail(step), words);
        outcome
    }

    /// The rows of a step as JSON objects.
    #[track_caller]
    pub fn rows(&self, step: &str) -> Vec<Value> {
        let computed = self.computed.lock().unwrap();
        let rows = computed.as_ref().and_then(|found| found.rows(&self.path("w.yaml"), step));
        drop(computed);
        rows.unwrap_or_else(|| self.json(&["show", "w.yaml", step]))
    }

    /// The rows of a step of a workflow with these values of params.
    #[track_caller]
    pub fn rows_of(&self, file: &str, step: &str, set: &[impl AsRef<str>]) -> Vec<Value> {
        let (computed, set) = (self.computed.lock().unwrap(), texts(set));
        let same = computed.as_ref().filter(|found| found.set == set);
        let rows = same.and_then(|found| found.rows(&self.path(file), step));
        drop(computed);
        rows.unwrap_or_else(|| self.json(&[&["show", file, step], &*as_flags(&set)].concat()))
    }

    /// The only row of a port.
    #[track_caller]
    pub fn only(&self, port: &str) -> Value {
        let mut rows = self.rows(port);
        assert_eq!(rows.len(), 1, "{port}: {rows:?}");
        rows.remove(0)
    }

    /// The texts in a column, in the order of the rows.
    #[track_caller]
    pub fn texts(&self, step: &str, column: &str) -> Vec<String> {
        self.rows(step).iter().map(|row| text(row, column).to_owned()).collect()
    }

    /// The cells of columns, `a | 1` for each row, sorted.
    #[track_caller]
    pub fn cells(&self, step: &str, columns: &str) -> Vec<String> {
        let cell = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let line =
            |row: &Value| columns.split(' ').map(|name| cell(&row[name])).collect::<Vec<_>>();
        let mut lines: Vec<String> =
            self.rows(step).iter().map(|row| line(row).join(" | ")).collect();
        lines.sort();
        lines
    }

    /// Refused for one mistake, of this code and with this word; nothing ran.
    #[track_caller]
    pub fn refused_once(&self, code: &str, word: &str) -> Value {
        let outcome = self.run_json(&[]).exits(2);
        let found = outcome.events("diagnostic");
        assert_eq!((found.len(), &found[0]["code"]), (1, &code.into()), "{outcome}");
        says(&found[0].to_string(), &[word]);
        assert!(self.stored_nothing());
        found[0].clone()
    }

    /// Refused for one mistake, of this code and at this `line:column`: programs and people are told
    /// the place and these words, and nothing ran.
    #[track_caller]
    pub fn refused_at(&self, place: &str, code: &str, words: &[&str]) -> Outcome {
        let outcome = self.run_json(&[]).exits(2);
        assert_eq!(outcome.diagnostics(), [format!("{code} w.yaml:{place}")], "{outcome}");
        assert_eq!(outcome.finished()["status"], "invalid");
        let shown = self.run(&["run", "w.yaml"]).exits(2);
        assert!(shown.stdout.is_empty(), "{shown}");
        says(&shown.stderr, &[&format!("w.yaml:{place}")]);
        let message = told(&outcome.events("diagnostic")[0]);
        says(&format!("{message} {}", flat(&shown.stderr)), words);
        for word in ["serde", "minijinja", "untagged", "panicked", "defect"] {
            assert!(!shown.stderr.contains(word), "{shown}");
        }
        assert!(!message.contains("datafusion"), "{message}");
        assert!(!self.path("ran").exists() && self.stored_nothing());
        outcome
    }

    /// The rows of a port, asked for with more arguments.
    #[track_caller]
    pub fn rows_with(&self, port: &str, more: &[&str]) -> Vec<Value> {
        let args = [&["show", "w.yaml", port, "--format", "json"], more].concat();
        self.run(&args).exits(0).json_lines()
    }

    /// The JSON lines of a command, which has to succeed.
    #[track_caller]
    pub fn json(&self, args: &[&str]) -> Vec<Value> {
        self.run(&[args, &["--format", "json"]].concat()).exits(0).json_lines()
    }

    /// The first line that a verb writes as JSON.
    #[track_caller]
    pub fn answer(&self, args: &[&str]) -> Value {
        self.json(args).remove(0)
    }

    /// Runs the program with the words of a line as arguments.
    #[track_caller]
    pub fn cli(&self, line: &str) -> Outcome {
        self.run(&line.split(' ').collect::<Vec<_>>())
    }

    /// Runs a shell script in which `$GALERAS` is the program.
    #[track_caller]
    pub fn sh(&self, script: &str) -> Outcome {
        Running::start(self.shell(script)).finish()
    }

    /// Starts what [`Project::run_json`] runs.
    pub fn start(&self, more: &[&str]) -> Running {
        Running::start(self.command(&[&["run", "w.yaml", "--format", "json"], more].concat()))
    }

    /// Refused for just this mistake, `code file:line:column`, with these words.
    #[track_caller]
    pub fn refuses(&self, more: &[&str], found: &str, words: &[&str]) -> Outcome {
        let outcome = self.run_json(more).exits(2);
        assert_eq!(outcome.diagnostics(), [found], "{outcome}");
        outcome.prints(words)
    }

    /// True if no result, run or temporary file is stored.
    pub fn stored_nothing(&self) -> bool {
        ["actions", "blobs", "runs", "memo", "tmp"]
            .iter()
            .all(|name| files_below(&self.path("cache").join(name)).is_empty())
    }

    /// `cache verify` has nothing to say.
    #[track_caller]
    pub fn verifies(&self, cache: &str) {
        let found = self.run(&["cache", "verify", "--cache", cache, "--format", "json"]).exits(0);
        assert_eq!(found.json_lines().last().unwrap()["findings"], 0, "{found}");
    }
}

fn texts(set: &[impl AsRef<str>]) -> Vec<String> {
    set.iter().map(|setting| setting.as_ref().to_owned()).collect()
}

fn as_flags(set: &[String]) -> Vec<&str> {
    set.iter().flat_map(|setting| ["--set", setting]).collect()
}

/// The workflow is refused for one mistake, of this code and at the mark `«`, with these words.
#[track_caller]
pub fn refused(workflow: &str, code: &str, words: &[&str]) -> Outcome {
    refused_with(&[], workflow, code, words)
}

/// Like [`refused`], in a project with these files.
#[track_caller]
pub fn refused_with(files: &[(&str, &str)], workflow: &str, code: &str, words: &[&str]) -> Outcome {
    let (workflow, place) = marked(workflow);
    let project = Project::new(&workflow);
    files.iter().for_each(|(name, content)| project.write(name, content));
    project.refused_at(&place, code, words)
}

/// Runs a test for every case, and fails with the names of those that failed.
#[track_caller]
pub fn every<N: Display, T>(cases: impl IntoIterator<Item = (N, T)>, test: impl Fn(T)) {
    let failed = |(name, case)| {
        let result = catch_unwind(AssertUnwindSafe(|| test(case)));
        result.is_err().then(|| format!("{name}"))
    };
    let failed: Vec<String> = cases.into_iter().filter_map(failed).collect();
    assert!(failed.is_empty(), "failed: {failed:#?}");
}

/// Fails unless the text has all these words.
#[track_caller]
pub fn says(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word:?} in {text}");
    }
}

/// Fails if the text has one of these words.
#[track_caller]
pub fn hides(text: &str, words: &[&str]) {
    for word in words {
        assert!(!text.contains(word), "{word:?} in {text}");
    }
}

/// A text for people without line breaks and frames.
pub fn flat(text: &str) -> String {
    text.replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The message and the help of a diagnostic.
pub fn told(diagnostic: &Value) -> String {
    let text = |name: &str| diagnostic[name].as_str().unwrap_or_default().to_owned();
    format!("{} {}", text("message"), text("help"))
}

/// The workflow without the mark `«`, and the `line:column` at which it stood.
#[track_caller]
pub fn marked(workflow: &str) -> (String, String) {
    let (before, after) = workflow.split_once('«').expect("the text has a mark");
    assert!(!after.contains('«'), "one mark only");
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or(before).chars().count() + 1;
    (format!("{before}{after}"), format!("{line}:{column}"))
}

/// The text in a column.
#[track_caller]
pub fn text<'a>(row: &'a Value, column: &str) -> &'a str {
    row[column].as_str().unwrap_or_else(|| panic!("{column} of {row:#}"))
}

/// The values of columns, as a list.
pub fn values(row: &Value, columns: &str) -> Value {
    columns.split(' ').map(|name| row[name].clone()).collect()
}

/// Fails unless the columns of the row have these values.
#[track_caller]
pub fn has(row: &Value, columns: &str, wanted: Value) {
    assert_eq!(values(row, columns), wanted, "{columns} of {row}");
}

/// Rows as lines of JSON.
pub fn lines(rows: &[Value]) -> String {
    rows.iter().map(|row| format!("{row}\n")).collect()
}

/// Every file below a folder, sorted.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

/// A command that runs.
pub struct Running {
    child: Child,
    started: Instant,
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
}

impl Running {
    pub fn start(mut command: Command) -> Self {
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        fn drain(mut from: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                let _ = from.read_to_end(&mut bytes);
                bytes
            })
        }
        let stdout = child.stdout.take().map(drain);
        let stderr = child.stderr.take().map(drain);
        Self { child, started: Instant::now(), stdout, stderr }
    }

    /// The process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal: `INT`, `KILL`.
    pub fn signal(&self, name: &str) {
        signal(name, self.child.id());
    }

    /// Waits for the end; kills and fails after [`TIME_OUT`].
    #[track_caller]
    pub fn finish(mut self) -> Outcome {
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if self.started.elapsed() > TIME_OUT {
                self.child.kill().unwrap();
                self.child.wait().unwrap();
                panic!("no end after {TIME_OUT:?}");
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let took = self.started.elapsed();
        let text = |handle: Option<JoinHandle<Vec<u8>>>| {
            String::from_utf8_lossy(&handle.unwrap().join().unwrap()).into_owned()
        };
        let (stdout, stderr) = (text(self.stdout.take()), text(self.stderr.take()));
        Outcome { code: status.code(), stdout, stderr, took }
    }
}

pub fn signal(name: &str, pid: u32) {
    let status =
        Command::new("kill").args(["-s", name, &pid.to_string()]).status().expect("kill runs");
    assert!(status.success(), "kill -s {name} {pid}");
}

/// Waits until `ready` holds.
#[track_caller]
pub fn wait_for(what: &str, ready: impl Fn() -> bool) {
    let started = Instant::now();
    while !ready() {
        assert!(started.elapsed() < TIME_OUT, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// How a command ended and what it said.
pub struct Outcome {
    /// The exit code; `None` after a signal.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
}

impl Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let short = |text: &str| {
            let lines = text.lines().filter(|l| !l.contains("progress\""));
            let lines: Vec<String> = lines.map(|l| l.chars().take(500).collect()).collect();
            // The beginning, and the end, which tells why.
            let (begin, end) = (lines.len().min(40), lines.len().saturating_sub(20));
            [&lines[..begin], &lines[end.max(begin)..]].concat().join("\n")
        };
        let (stdout, stderr) = (short(&self.stdout), short(&self.stderr));
        write!(f, "code {:?}\n--- stdout\n{stdout}\n--- stderr\n{stderr}", self.code)
    }
}

impl Outcome {
    /// Fails unless the exit code is `code`. No run may panic.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self}");
        assert!(!self.stderr.contains("panicked at"), "{self}");
        self
    }

    /// Standard output as JSON, one value per line.
    #[track_caller]
    pub fn json_lines(&self) -> Vec<Value> {
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        self.stdout.lines().map(parse).collect()
    }

    /// The events of one kind.
    #[track_caller]
    pub fn events(&self, kind: &str) -> Vec<Value> {
        self.json_lines().into_iter().filter(|e| e["event"] == kind).collect()
    }

    /// The texts of the warnings.
    #[track_caller]
    pub fn warnings(&self) -> Vec<String> {
        self.events("warning").iter().map(|e| text(e, "message").to_owned()).collect()
    }

    /// The last event, which must be `finished`.
    #[track_caller]
    pub fn finished(&self) -> Value {
        let last = self.json_lines().pop().unwrap_or_else(|| panic!("no event\n{self}"));
        assert_eq!(last["event"], "finished", "{self}");
        last
    }

    /// The summary of a step.
    #[track_caller]
    pub fn step(&self, name: &str) -> Value {
        let finished = self.finished();
        let found = finished["steps"].as_array().unwrap().iter().find(|s| s["step"] == name);
        found.unwrap_or_else(|| panic!("no step {name}\n{self}")).clone()
    }

    /// The detail of a step, such as why it failed.
    #[track_caller]
    pub fn detail(&self, step: &str) -> String {
        self.step(step)["detail"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    pub fn status(&self, step: &str) -> String {
        self.step(step)["status"].as_str().unwrap().to_owned()
    }

    /// Every step with its status, as `a=hit b=ran`.
    #[track_caller]
    pub fn statuses(&self) -> String {
        let finished = self.finished();
        let words =
            finished["steps"].as_array().unwrap().iter().map(|s| {
                format!("{}={}", s["step"].as_str().unwrap(), s["status"].as_str().unwrap())
            });
        words.collect::<Vec<_>>().join(" ")
    }

    /// Fails unless every step was a hit.
    #[track_caller]
    pub fn all_hit(&self) {
        let finished = self.finished();
        let steps = finished["steps"].as_array().unwrap();
        assert!(!steps.is_empty() && steps.iter().all(|s| s["status"] == "hit"), "{self}");
    }

    /// Fails unless every step was a hit, with the results of an earlier run.
    #[track_caller]
    pub fn all_hit_as(self, before: &Self) -> Self {
        self.all_hit();
        assert_eq!(self.digests(), before.digests(), "{self}");
        self
    }

    /// Fails unless the statuses of the steps are these.
    #[track_caller]
    pub fn went(self, statuses: &str) -> Self {
        assert_eq!(self.statuses(), statuses, "{self}");
        self
    }

    /// Step, port, digest of everything.
    #[track_caller]
    pub fn digests(&self) -> Vec<(String, String, String)> {
        let text = |v: &Value| v.as_str().unwrap().to_owned();
        let finished = self.finished();
        let steps = finished["steps"].as_array().unwrap();
        let of = |s: &Value| {
            let step = text(&s["step"]);
            let ports = s["ports"].as_array().unwrap().clone();
            ports.into_iter().map(move |p| (step.clone(), text(&p["port"]), text(&p["digest"])))
        };
        steps.iter().flat_map(of).collect()
    }

    /// The diagnostics of a refused workflow as `code file:line:column`.
    #[track_caller]
    pub fn diagnostics(&self) -> Vec<String> {
        let place = |d: &Value| {
            let text = |name: &str| d[name].as_str().unwrap().to_owned();
            format!("{} {}:{}:{}", text("code"), text("file"), d["line"], d["column"])
        };
        self.events("diagnostic").iter().map(place).collect()
    }

    /// Fails unless standard output has all these words.
    #[track_caller]
    pub fn prints(self, words: &[&str]) -> Self {
        says(&self.stdout, words);
        self
    }

    /// Fails unless standard error has all these words.
    #[track_caller]
    pub fn reports(self, words: &[&str]) -> Self {
        says(&self.stderr, words);
        self
    }
}
