//! A session of the ssh program, which connects us to `git-upload-pack` on a server.
//!
//! The program is that of the user's environment, with its configuration; it asks for passphrases
//! and about unknown hosts on the terminal itself. What it sends and what it says beside that come
//! through pipes: gix would hand on the latter to the terminal as it is.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use gix::bstr::ByteSlice as _;
use gix::url::ArgumentSafety;
use gix_transport::Protocol;
use gix_transport::client::git::{ConnectMode, blocking_io::Connection};

use super::network::Network;
use super::ssh_words::SshWords;
use super::wire::{POLL, Wire, silent};
use crate::error::GitError;

/// The program on the server.
const SERVICE: &str = "git-upload-pack";

/// For how long a person may be asked for a passphrase, before the server says a word.
const ASKING: Duration = Duration::from_secs(600);

/// For how long the program may take to say whether it is OpenSSH.
const PROBE: Duration = Duration::from_secs(10);

/// Bytes that are handed from thread to thread at once.
const CHUNK: usize = 64 * 1024;

/// Chunks that wait between two threads.
const WAITING: usize = 4;

/// Variables that are about another repository than the server's, as git has it.
const OTHERS: [&str; 16] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_CONFIG",
    "GIT_CONFIG_PARAMETERS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_GRAFT_FILE",
    "GIT_INDEX_FILE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_REPLACE_REF_BASE",
    "GIT_PREFIX",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_COMMON_DIR",
    "GIT_CONFIG_COUNT",
];

/// A connection through the program.
pub(super) type SshSession = Connection<SshOutput, BufWriter<SshInput>>;

/// Starts a session for the repository at `url`, and has the wire hear what is said in it.
///
/// # Errors
/// `Other` if the program cannot be run, or if the URL asks for what it cannot do.
pub(super) fn start(
    url: gix::Url,
    net: &Network,
    wire: &Arc<Wire>,
) -> Result<SshSession, GitError> {
    let program = net.ssh.clone().unwrap_or_else(|| OsString::from("ssh"));
    let path = gix::url::expand_path::for_shell(url.path.clone());
    if path.trim().starts_with(b"-") {
        return Err(GitError::other("its path starts with `-`, as options do"));
    }
    let mut command = command(&program, &arguments(&program, &url, wire)?);
    command.arg(SERVICE).arg(gix::quote::single(path.as_bstr()).to_os_str_lossy());
    command.env("GIT_PROTOCOL", "version=2");
    for name in OTHERS {
        command.env_remove(name);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let failed = |error: io::Error| {
        let shown = program.to_string_lossy();
        GitError::other(format!("the program `{shown}` cannot be run: {error}"))
    };
    let mut child = command.spawn().map_err(failed)?;
    let pipes = child.stdin.take().zip(child.stdout.take()).zip(child.stderr.take());
    let gone = || failed(io::Error::from(io::ErrorKind::BrokenPipe));
    let ((stdin, stdout), stderr) = pipes.ok_or_else(gone)?;
    let words = match SshWords::listen(stderr) {
        Ok(words) => words,
        Err(error) => {
            child.kill().ok();
            child.wait().ok();
            return Err(failed(error));
        }
    };
    wire.listen(&words);
    let (sender, chunks) = sync_channel(WAITING);
    // Dropped, it ends the program.
    let output = SshOutput {
        child,
        chunks,
        chunk: Vec::new(),
        at: 0,
        heard: false,
        words,
        wire: Arc::clone(wire),
    };
    spawn("ssh's output", move || receive(stdout, &sender)).map_err(failed)?;
    let (sender, waiting) = sync_channel::<Vec<u8>>(WAITING);
    spawn("ssh's input", move || send(stdin, &waiting)).map_err(failed)?;
    let input =
        BufWriter::with_capacity(CHUNK, SshInput { chunks: sender, wire: Arc::clone(wire) });
    let (version, mode) = (Protocol::V2, ConnectMode::Process);
    Ok(Connection::new(output, input, version, path, None::<(&str, _)>, mode, false))
}

/// What the program takes before what is run on the server.
fn arguments(program: &OsStr, url: &gix::Url, wire: &Wire) -> Result<Vec<String>, GitError> {
    let option = |what: &str| GitError::other(format!("its {what} could be taken for an option"));
    let user = match url.user_as_argument() {
        ArgumentSafety::Usable(user) => format!("{user}@"),
        ArgumentSafety::Absent => String::new(),
        ArgumentSafety::Dangerous(_) => return Err(option("user")),
    };
    let ArgumentSafety::Usable(host) = url.host_as_argument() else {
        return Err(option("host"));
    };
    let mut arguments = Vec::new();
    let client = SshClient::of(program, host, wire)?;
    match (client, url.port) {
        (SshClient::OpenSsh, port) => {
            arguments.extend(["-o", "SendEnv=GIT_PROTOCOL"].map(str::to_string));
            arguments.extend(port.map(|port| format!("-p{port}")));
        }
        (SshClient::Plink { batch }, port) => {
            arguments.extend(batch.then(|| "-batch".to_string()));
            arguments.extend(port.into_iter().flat_map(|port| ["-P".into(), port.to_string()]));
        }
        (SshClient::Simple, None) => {}
        (SshClient::Simple, Some(_)) => {
            let shown = program.to_string_lossy();
            return Err(GitError::other(format!("the program `{shown}` cannot be given a port")));
        }
    }
    arguments.push(format!("{user}{host}"));
    Ok(arguments)
}

/// Which options the program has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SshClient {
    OpenSsh,
    /// PuTTY and its relatives.
    Plink {
        batch: bool,
    },
    /// It takes a host and a command.
    Simple,
}

impl SshClient {
    /// By its name, or else by whether it knows an option of OpenSSH.
    fn of(program: &OsStr, host: &str, wire: &Wire) -> Result<Self, GitError> {
        let text = program.to_string_lossy();
        let first = text.split_whitespace().next().unwrap_or_default();
        let name = Path::new(first).file_stem().and_then(OsStr::to_str).unwrap_or_default();
        match name.to_ascii_lowercase().as_str() {
            "ssh" => return Ok(Self::OpenSsh),
            "plink" | "putty" => return Ok(Self::Plink { batch: false }),
            "tortoiseplink" => return Ok(Self::Plink { batch: true }),
            _ => {}
        }
        let mut command = command(program, &["-G".to_string(), host.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(mut child) = command.spawn() else { return Ok(Self::Simple) };
        let end = Instant::now() + PROBE;
        loop {
            match child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(Self::OpenSsh),
                Ok(None) if Instant::now() < end && !wire.interrupted() => {
                    thread::sleep(Duration::from_millis(5));
                }
                _ => break,
            }
        }
        child.kill().ok();
        child.wait().ok();
        wire.check()?;
        Ok(Self::Simple)
    }
}

/// The program with arguments. What is more than a name is a command of the shell, as git has it.
fn command(program: &OsStr, arguments: &[String]) -> Command {
    let special = |byte: &u8| b"|&;<>()$`\\\"' \t\n*?[#~=%".contains(byte);
    let mut command = if program.as_encoded_bytes().iter().any(special) {
        let mut script = program.to_os_string();
        script.push(" \"$@\"");
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(script).arg(program);
        shell
    } else {
        Command::new(program)
    };
    // In English: its words tell what kind of error there is.
    command.args(arguments).env("LANG", "C").env("LC_ALL", "C");
    command
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.into()).spawn(work).map(drop)
}

fn receive(mut from: impl Read, to: &SyncSender<io::Result<Vec<u8>>>) {
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = match from.read(&mut chunk) {
            Ok(0) => return,
            Ok(read) => Ok(chunk.get(..read).unwrap_or_default().to_vec()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let last = read.is_err();
        if to.send(read).is_err() || last {
            return;
        }
    }
}

fn send(mut to: impl Write, from: &Receiver<Vec<u8>>) {
    while let Ok(chunk) = from.recv() {
        if to.write_all(&chunk).and_then(|()| to.flush()).is_err() {
            return;
        }
    }
}

/// What the program sends.
pub(super) struct SshOutput {
    child: Child,
    chunks: Receiver<io::Result<Vec<u8>>>,
    chunk: Vec<u8>,
    /// How much of the chunk was read.
    at: usize,
    /// Whether the server has sent anything.
    heard: bool,
    words: Arc<SshWords>,
    wire: Arc<Wire>,
}

impl SshOutput {
    /// Waits for the next chunk; an empty one is the end.
    fn wait(&self) -> io::Result<Vec<u8>> {
        let limit = if self.heard { self.wire.silence() } else { ASKING };
        let start = Instant::now();
        loop {
            if self.wire.interrupted() {
                return Err(self.wire.fail_io(GitError::interrupted()));
            }
            match self.chunks.recv_timeout(POLL) {
                Ok(chunk) => return chunk,
                Err(RecvTimeoutError::Disconnected) => {
                    self.wire.end();
                    return Ok(Vec::new());
                }
                Err(RecvTimeoutError::Timeout) if start.elapsed() >= limit => {
                    return Err(self.wire.fail_io(silent(limit)));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

impl Read for SshOutput {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.chunk.len() && !into.is_empty() {
            self.chunk = self.wait()?;
            self.at = 0;
            self.heard = true;
        }
        let mut rest = self.chunk.get(self.at..).unwrap_or_default();
        let read = rest.read(into)?;
        self.at += read;
        self.wire.count_bytes(read)?;
        Ok(read)
    }
}

impl Drop for SshOutput {
    fn drop(&mut self) {
        // It has mostly ended by itself, as its input has.
        self.child.kill().ok();
        self.child.wait().ok();
        self.wire.forget(&self.words);
        if !self.wire.interrupted() {
            let said = self.words.take();
            if !said.is_empty() {
                self.wire.warn(format!("ssh says: {said}"));
            }
        }
    }
}

/// What is sent to the program.
pub(super) struct SshInput {
    chunks: SyncSender<Vec<u8>>,
    wire: Arc<Wire>,
}

impl Write for SshInput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let start = Instant::now();
        let mut chunk = bytes.to_vec();
        loop {
            if self.wire.interrupted() {
                return Err(self.wire.fail_io(GitError::interrupted()));
            }
            match self.chunks.try_send(chunk) {
                Ok(()) => return Ok(bytes.len()),
                Err(TrySendError::Disconnected(_)) => {
                    return Err(io::Error::from(io::ErrorKind::BrokenPipe));
                }
                Err(TrySendError::Full(_)) if start.elapsed() >= self.wire.silence() => {
                    return Err(self.wire.fail_io(silent(self.wire.silence())));
                }
                Err(TrySendError::Full(back)) => {
                    chunk = back;
                    thread::sleep(Duration::from_millis(5));
                }
            }
        }
    }

    /// What was handed over is on its way.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
