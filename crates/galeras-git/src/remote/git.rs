//! Runs the user's `git` program: its settings and environment, its limits, its end.

use std::env;
use std::io::{self, IsTerminal, Read, Seek, Write};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Resource, Rlimit, Signal, getrlimit, kill_process, kill_process_group, prlimit,
};
use url::Url;

use super::messages::{Messages, without_secrets};
use super::network::{Activity, Network, POLL};
use crate::error::{GitError, GitErrorKind, Result};
use crate::limits::{ADVERTISED_BYTES, FETCHED_BYTES};
use crate::location::shown_url;

/// The oldest version that has `fetch --refetch`.
const OLDEST: (u32, u32) = (2, 36);

/// The name of the server among the remotes.
pub(super) const REMOTE: &str = "galeras";

/// The end of the first address that is asked over HTTP.
const FIRST: &str = "info/refs?service=git-upload-pack";

/// How often a command is tried in all.
const ATTEMPTS: u32 = 4;

/// How many redirects are followed in a row.
const REDIRECTS: usize = 10;

/// The longest wait that a server may ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(120);

/// The longest time of one command.
const LONGEST: Duration = Duration::from_secs(6 * 3600);

/// How long a person may take to enter a passphrase, before the server's first word.
const ASKING: Duration = Duration::from_secs(600);

/// How long the rest of the messages is waited for after the end of git. A program that git left
/// running, such as a shared ssh connection, may keep the pipe open.
const REST: Duration = Duration::from_millis(300);

/// How long the rest of the output is waited for, which no such program writes to.
const REST_OF_OUTPUT: Duration = Duration::from_secs(60);

/// The least time between two reports, and between two looks at the folder.
const REPORT: Duration = Duration::from_millis(100);

/// Settings that count more than those of the user: no program of a repository runs, no server is
/// asked that was not agreed to, and objects are written as packs and checked by our own reader.
const SETTINGS: [&str; 16] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.commitGraph=false",
    "core.multiPackIndex=false",
    "protocol.ext.allow=never",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "http.followRedirects=false",
    // Below this, a list of objects is sent in one piece: not every proxy accepts chunks.
    "http.postBuffer=16777216",
    "http.lowSpeedLimit=1",
    "fetch.unpackLimit=1",
    "fetch.fsckObjects=false",
    "fetch.uriProtocols=",
    "fetch.writeCommitGraph=false",
    "pack.writeReverseIndex=false",
];

/// Variables about the repository of the current folder, as `git rev-parse --local-env-vars` lists
/// them. Those with configuration stay: it is the user's.
const REMOVED: [&str; 16] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CURL_VERBOSE",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_NAMESPACE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// A command of git about a server.
pub(super) struct Task<'a> {
    /// The arguments after the settings.
    pub(super) arguments: Vec<&'a str>,
    /// The standard input.
    pub(super) input: String,
    /// The folder of git's own files and that of objects; none for a command that needs no repository.
    pub(super) folders: Option<(&'a Path, &'a Path)>,
    /// The most memory that git may use, in bytes.
    pub(super) memory: u64,
}

/// A repository on a server, and the state of its transfers.
pub(super) struct Remote {
    pub(super) net: Network,
    /// The address that the user gave.
    url: String,
    /// The address behind all redirects so far.
    target: String,
    /// True if ssh must not ask anything.
    batch: bool,
    /// The last warning, which every command may repeat.
    warned: Option<String>,
    activity: Activity,
    reported: Instant,
    /// The server has answered the latest command.
    answered: bool,
}

impl Remote {
    /// A repository at `url`.
    pub(super) fn new(url: &str, net: &Network) -> Result<Self> {
        if url.starts_with('-') {
            return Err(GitError::other("the address starts with `-`, as options do"));
        }
        let mut remote = Self {
            net: net.clone(),
            url: url.to_string(),
            target: url.to_string(),
            batch: false,
            warned: None,
            activity: Activity { what: "waiting", bytes: 0, objects: 0, detail: None },
            reported: Instant::now(),
            answered: false,
        };
        remote.batch = match net.batch.get() {
            Some(batch) => *batch,
            None => {
                remote.check_version()?;
                let batch = remote.needs_batch_mode();
                *net.batch.get_or_init(|| batch)
            }
        };
        Ok(remote)
    }

    fn check_version(&self) -> Result<()> {
        let (major, minor) = OLDEST;
        let wanted = format!("install git {major}.{minor} or later");
        let output = self.command(None).arg("--version").output().map_err(|error| {
            GitError::transient(format!("the program `git` cannot be run ({error}); {wanted}"))
        })?;
        let text = String::from_utf8_lossy(&output.stdout);
        let version = text.trim().strip_prefix("git version ").unwrap_or_default();
        let mut numbers = version.split('.').map(|number| number.parse::<u32>().ok());
        let found = numbers.next().flatten().zip(numbers.next().flatten());
        if found.is_some_and(|found| found >= OLDEST) {
            return Ok(());
        }
        let text: String = text.trim().chars().filter(|c| !c.is_control()).take(80).collect();
        Err(GitError::transient(format!("`git --version` returns `{text}`; {wanted}")))
    }

    /// Returns true if ssh has no terminal to ask on, and if the user has not chosen another
    /// command than `ssh`.
    fn needs_batch_mode(&self) -> bool {
        let chosen = ["GIT_SSH_COMMAND", "GIT_SSH"].into_iter().any(|name| {
            env::var_os(name).is_some() || self.net.environment.iter().any(|(key, _)| key == name)
        });
        let configured = || {
            let mut command = self.command(None);
            command.args(["config", "--get", "core.sshCommand"]).stdin(Stdio::null());
            command.output().is_ok_and(|output| output.status.success())
        };
        !has_terminal() && !chosen && !configured()
    }

    /// Git with its settings and environment. The configuration of the current folder is not read.
    fn command(&self, git_dir: Option<&Path>) -> Command {
        let mut command = Command::new("git");
        for (name, _) in env::vars_os() {
            let text = name.to_string_lossy();
            if REMOVED.contains(&&*text) || text.starts_with("GIT_TRACE") {
                command.env_remove(&name);
            }
        }
        command.envs(self.net.environment.iter().map(|(name, value)| (name, value)));
        command.env("GIT_DIR", git_dir.unwrap_or(Path::new("/dev/null")));
        // In English: messages are classified.
        command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0");
        command.env("GIT_NO_LAZY_FETCH", "1").env("GIT_NO_REPLACE_OBJECTS", "1");
        if self.batch {
            command.env("GIT_SSH_COMMAND", "ssh -o BatchMode=yes");
        }
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        let silence = self.net.silence.as_secs().max(1);
        command.args(["-c", &format!("http.lowSpeedTime={silence}")]);
        command.args(["-c", &format!("remote.{REMOTE}.url={}", self.target)]);
        command
    }

    /// Starts the counts of `what`.
    pub(super) fn begin(&mut self, what: &'static str) {
        self.activity = Activity { what, bytes: 0, objects: 0, detail: None };
        self.report();
    }

    /// Counts what a command has fetched.
    pub(super) fn count(&mut self, bytes: u64, objects: u64) {
        (self.activity.bytes, self.activity.objects) = (bytes, objects);
        self.report();
    }

    fn report(&mut self) {
        self.reported = Instant::now();
        (self.net.activity)(self.activity.clone());
    }

    /// Reports a wait and its reason, or a warning.
    pub(super) fn report_other(&self, what: &'static str, detail: String) {
        (self.net.activity)(Activity { what, detail: Some(detail), ..self.activity.clone() });
    }

    /// Runs a command and repeats it after errors that may pass; returns its standard output. A server
    /// that was silent from the start is not asked again: each attempt would take as long.
    /// Errors are `Interrupted`, `Limit`, `NotAgreed` for a redirect that the user must agree to,
    /// and the error that git's messages describe.
    pub(super) fn run(&mut self, task: &Task<'_>) -> Result<Vec<u8>> {
        let mut wait = self.net.backoff;
        let counted = self.activity.clone();
        for attempt in 1.. {
            let begun = Instant::now();
            let result = self.follow(task);
            let is_silent = !self.answered && begun.elapsed() >= self.net.silence;
            let repeat = attempt < ATTEMPTS && !is_silent;
            let error = match result {
                Err(error) if error.kind == GitErrorKind::Transient && repeat => error,
                result => return result.map_err(|error| self.explained(error)),
            };
            let pause = error.retry_after.unwrap_or(wait).min(LONGEST_WAIT);
            tracing::debug!(attempt, wait_seconds = pause.as_secs_f64(), "git failed; retrying");
            self.activity = counted.clone();
            self.report_other("waiting", self.explained(error).message);
            self.net.sleep(pause)?;
            wait *= 4;
        }
        Err(GitError::interrupted())
    }

    /// The error with the repository in front of it.
    pub(super) fn explained(&self, mut error: GitError) -> GitError {
        if error.kind != GitErrorKind::Interrupted {
            let message = without_secrets(&error.message);
            error.message = format!("cannot read from `{}`: {message}", shown_url(&self.url));
        }
        error
    }

    /// Runs a command, and runs it at other addresses as long as the server redirects.
    fn follow(&mut self, task: &Task<'_>) -> Result<Vec<u8>> {
        for _ in 0..=REDIRECTS {
            let (status, output, messages) = self.watched(task)?;
            if status.success() {
                if let Some(warning) =
                    messages.warning().filter(|w| Some(w) != self.warned.as_ref())
                {
                    self.report_other("warning", warning.clone());
                    self.warned = Some(warning);
                }
                return Ok(output);
            }
            match &messages.answer.location {
                Some(location) if (300..400).contains(&messages.answer.status) => {
                    self.target = self.redirected(location)?;
                }
                _ => return Err(messages.error()),
            }
        }
        Err(GitError::other("the server redirects too often"))
    }

    /// The address that a redirect leads to, if it may be followed.
    fn redirected(&self, location: &str) -> Result<String> {
        let wrong = |how: &str| GitError::other(format!("the server redirects {how}"));
        // The address that git asked, which the user's configuration may have replaced.
        let asked = self.command(None).args(["ls-remote", "--get-url", REMOTE]).output();
        let asked = asked.map_err(GitError::other)?;
        let asked = String::from_utf8_lossy(&asked.stdout);
        let asked = format!("{}/{FIRST}", asked.trim().trim_end_matches('/'));
        let bare = |url: Result<Url, url::ParseError>| {
            let mut url = url.map_err(|_| wrong("to an invalid address"))?;
            let _ = url.set_username("").and_then(|()| url.set_password(None));
            Ok(url)
        };
        let from = bare(Url::parse(&asked))?;
        let to = bare(from.join(location))?;
        if to.scheme() != "https" && (to.scheme(), from.scheme()) != ("http", "http") {
            return Err(wrong("to an address without encryption"));
        }
        (self.net.redirects)(from.as_str(), to.as_str())
            .map_err(|why| GitError::new(GitErrorKind::NotAgreed, why))?;
        let base = to.as_str().strip_suffix(FIRST);
        let base = base.ok_or_else(|| wrong("to another address than that of a repository"))?;
        Ok(base.trim_end_matches('/').to_string())
    }

    /// Runs a command within the limits.
    fn watched(&mut self, task: &Task<'_>) -> Result<(ExitStatus, Vec<u8>, Messages)> {
        self.net.check()?;
        self.answered = false;
        // `git://` has no logins, so nobody is asked for a password.
        let asks = has_terminal() && !self.target.starts_with("git://");
        let mut command = self.command(task.folders.map(|(git_dir, _)| git_dir));
        // The headers that git reads: a redirect, a wait. They never reach the disk.
        command.env("GIT_TRACE_CURL", "1").env("GIT_TRACE_CURL_NO_DATA", "1");
        command.env("GIT_TRACE_REDACT", "1").args(&task.arguments);
        let objects = task.folders.map(|(_, objects)| objects);
        command.envs(objects.map(|objects| ("GIT_OBJECT_DIRECTORY", objects)));
        let mut process = GitProcess::start(command, &task.input, task.memory)
            .map_err(|error| GitError::other(format!("the program `git` failed: {error}")))?;
        let mut messages = Messages::default();
        let mut output = Vec::new();
        let started = Instant::now();
        let (mut heard, mut measured, mut first) = (started, started, true);
        let before = objects.map_or(0, size_of);
        let mut grown = 0;
        let counted = self.activity.clone();
        let mut slice = Duration::from_millis(1);
        let status = loop {
            match process.next(slice) {
                Some(Piece::Message(bytes)) => messages.read(&bytes),
                Some(Piece::Output(bytes)) => output.extend_from_slice(&bytes),
                None => {
                    slice = (slice * 2).min(POLL);
                    if let Some(status) = process.ended()? {
                        break status;
                    }
                    self.net.check()?;
                    let limit = if first && asks { ASKING } else { self.net.silence };
                    if heard.elapsed() >= limit {
                        let seconds = limit.as_secs_f32();
                        let message = format!("the server was silent for {seconds} seconds");
                        return Err(GitError::transient(message));
                    }
                    if measured.elapsed() < REPORT {
                        continue;
                    }
                    measured = Instant::now();
                    let now = objects.map_or(0, size_of).saturating_sub(before);
                    if now == grown {
                        continue;
                    }
                    grown = now;
                }
            }
            (heard, first) = (Instant::now(), false);
            // Over HTTP, git also writes down its own requests.
            self.answered = messages.answer.status != 0 || !self.target.starts_with("http");
            self.net.check()?;
            if let Some(error) = messages.stop.take() {
                return Err(error);
            }
            if output.len() as u64 > ADVERTISED_BYTES {
                let most = ADVERTISED_BYTES >> 20;
                return Err(GitError::limit(format!("the server lists more than {most} MB")));
            }
            if grown > FETCHED_BYTES {
                let most = FETCHED_BYTES >> 30;
                return Err(GitError::limit(format!("the server sends more than {most} GB")));
            }
            if started.elapsed() > LONGEST {
                let hours = LONGEST.as_secs() / 3600;
                return Err(GitError::transient(format!("it takes more than {hours} hours")));
            }
            self.activity.bytes = counted.bytes + grown + output.len() as u64;
            self.activity.objects = counted.objects + messages.objects;
            self.activity.detail.clone_from(&messages.doing);
            if self.reported.elapsed() >= REPORT {
                self.report();
            }
        };
        for piece in process.rest() {
            match piece {
                Piece::Message(bytes) => messages.read(&bytes),
                Piece::Output(bytes) => output.extend_from_slice(&bytes),
            }
        }
        messages.end_line();
        match messages.stop.take() {
            Some(error) => Err(error),
            None => Ok((status, output, messages)),
        }
    }
}

/// Returns true if a person can be asked something.
fn has_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// The bytes of the packs in a folder of objects, finished or not.
fn size_of(objects: &Path) -> u64 {
    let entries = std::fs::read_dir(objects.join("pack")).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some(entry.metadata().ok()?.len())).sum()
}

/// A part of the standard output, of which an empty one is the end, or of the messages.
enum Piece {
    Output(Vec<u8>),
    Message(Vec<u8>),
}

/// A running command. It ends with the programs that it started when this is dropped.
struct GitProcess {
    child: Child,
    /// The command and its programs are a process group.
    grouped: bool,
    pieces: Receiver<Piece>,
    /// The standard output has ended.
    output_ended: bool,
    /// The standard output and the messages have ended.
    closed: bool,
    status: Option<ExitStatus>,
}

impl GitProcess {
    fn start(mut command: Command, input: &str, memory: u64) -> io::Result<Self> {
        // A group in the background could not ask for a passphrase on the terminal.
        let grouped = !has_terminal();
        if grouped {
            command.process_group(0);
        }
        // A file, which git need not read to its end.
        let mut stdin = tempfile::tempfile()?;
        stdin.write_all(input.as_bytes())?;
        stdin.rewind()?;
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn()?;
        let (sender, pieces) = sync_channel(16);
        let (output_ended, closed, status) = (false, false, None);
        let mut process = Self { child, grouped, pieces, output_ended, closed, status };
        let memory = getrlimit(Resource::Data).maximum.map_or(memory, |most| most.min(memory));
        let limit = Rlimit { current: Some(memory), maximum: Some(memory) };
        prlimit(Some(process.pid()?), Resource::Data, limit)?;
        if let Some(from) = process.child.stdout.take() {
            let sender = sender.clone();
            let read = move || receive(from, Piece::Output, &sender);
            thread::Builder::new().spawn(read)?;
        }
        if let Some(from) = process.child.stderr.take() {
            thread::Builder::new().spawn(move || receive(from, Piece::Message, &sender))?;
        }
        Ok(process)
    }

    fn pid(&self) -> io::Result<Pid> {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        id.ok_or_else(|| io::Error::other("the process has no id"))
    }

    /// The next piece of the output, if there is one within `time`.
    fn next(&mut self, time: Duration) -> Option<Piece> {
        match self.pieces.recv_timeout(time) {
            Ok(piece) => {
                self.output_ended |= matches!(&piece, Piece::Output(bytes) if bytes.is_empty());
                Some(piece)
            }
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                // Nothing more will come, and the process is about to end.
                self.closed = true;
                thread::sleep(Duration::from_millis(1));
                None
            }
        }
    }

    /// The pieces that are still to come after the end of the process.
    fn rest(&mut self) -> Vec<Piece> {
        let end = Instant::now();
        let mut rest = Vec::new();
        loop {
            let limit = if self.output_ended { REST } else { REST_OF_OUTPUT };
            let left = limit.saturating_sub(end.elapsed());
            match self.next(left) {
                Some(piece) => rest.push(piece),
                None if left.is_zero() || self.closed => return rest,
                None => {}
            }
        }
    }

    fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.status = self.child.try_wait().map_err(GitError::other)?;
        Ok(self.status)
    }
}

impl Drop for GitProcess {
    fn drop(&mut self) {
        if self.status.is_some() {
            return;
        }
        if let Ok(pid) = self.pid() {
            if self.grouped {
                kill_process_group(pid, Signal::KILL).ok();
            } else {
                // Git ends its own programs then.
                kill_process(pid, Signal::TERM).ok();
                let end = Instant::now() + Duration::from_secs(1);
                while Instant::now() < end && matches!(self.child.try_wait(), Ok(None)) {
                    thread::sleep(Duration::from_millis(5));
                }
            }
        }
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn receive(mut from: impl Read, piece: fn(Vec<u8>) -> Piece, to: &SyncSender<Piece>) {
    let mut chunk = vec![0; 1 << 16];
    while let Ok(read @ 1..) = from.read(&mut chunk) {
        if to.send(piece(chunk[..read].to_vec())).is_err() {
            return;
        }
    }
    to.send(piece(Vec::new())).ok();
}
