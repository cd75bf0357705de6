//! The specification of a run: the command, its files, and its limits.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::{Result, SandboxError};

/// The working directory of every program, where its files are. Without a mount namespace it is a
/// folder of another name, which outputs show under this one.
pub const WORK: &str = "/sandbox";

/// The folder for temporary files, on the same limited file system.
pub const TEMPORARY: &str = "/tmp";

/// The shared libraries and interpreters of the system, without which programs do not start. Those
/// that exist are readable in every sandbox. Nothing here belongs to a user.
pub const SYSTEM_PATHS: [&str; 13] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/nix/store",
    "/gnu/store",
];

/// Names of servers, and certificates, which are readable in a sandbox with a network.
pub(crate) const NETWORK_PATHS: [&str; 9] = [
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/nsswitch.conf",
    "/etc/resolv.conf",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/pki/ca-trust/extracted",
    "/etc/pki/tls",
];

/// A program to run, its files and its limits.
#[derive(Debug)]
pub struct Specification {
    /// The program and its arguments. A name without `/` is searched in `PATH`.
    pub command: Vec<String>,
    /// Files that are written into the working directory before the program starts.
    pub files: Vec<InputFile>,
    /// Folders and files that the program may read and execute, in addition to [`SYSTEM_PATHS`]: an
    /// interpreter's installation, the packages of a virtual environment.
    pub readable: Vec<PathBuf>,
    /// Folders that the program may also write to, within the rights of its user. Files in them stay, and
    /// no limit but that of their size counts them.
    pub writable: Vec<PathBuf>,
    /// Files in folders that are readable, which the program must not see: the library's copy of a module
    /// of which the program has another one. Their names can be listed.
    pub hidden: Vec<PathBuf>,
    /// The folder in which the program starts instead of [`WORK`]. It exists inside, but only those of
    /// its files do that are readable. Without a mount namespace, the names of the others can be listed.
    pub directory: Option<PathBuf>,
    /// How long processes that the program has left running, after it exited with 0, may keep its standard
    /// output open. Without any, they end with the program.
    pub patience: Duration,
    /// Variables in addition to [`environment`], which they override.
    pub environment: BTreeMap<String, String>,
    /// The limits of the run.
    pub limits: Limits,
    /// The program's standard input.
    pub stdin: Input,
    /// The destination of the program's standard output.
    pub stdout: Output,
    /// The destination of the program's standard error.
    pub stderr: Output,
}

impl Specification {
    /// A run of `command` without files, with the default limits.
    pub fn new<S: Into<String>>(command: impl IntoIterator<Item = S>) -> Self {
        Self {
            command: command.into_iter().map(Into::into).collect(),
            files: Vec::new(),
            readable: Vec::new(),
            writable: Vec::new(),
            hidden: Vec::new(),
            directory: None,
            patience: Duration::ZERO,
            environment: BTreeMap::new(),
            limits: Limits::default(),
            stdin: Input::Empty,
            stdout: Output::Captured,
            stderr: Output::Captured,
        }
    }

    /// Adds a file to the working directory.
    #[must_use]
    pub fn file(mut self, path: impl Into<PathBuf>, bytes: impl Into<Vec<u8>>) -> Self {
        self.files.push(InputFile { path: path.into(), bytes: bytes.into(), executable: false });
        self
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.command.is_empty() {
            return Err(SandboxError::Invalid("the command is empty".into()));
        }
        let nul = |text: &String| text.contains('\0');
        if self
            .command
            .iter()
            .chain(self.environment.keys())
            .chain(self.environment.values())
            .any(nul)
        {
            return Err(SandboxError::Invalid(
                "the command or its environment contains a NUL byte".into(),
            ));
        }
        for file in &self.files {
            if file.path.as_os_str().is_empty()
                || !file.path.components().all(|part| matches!(part, Component::Normal(_)))
            {
                return Err(SandboxError::Invalid(format!(
                    "`{}` must be a path below the working directory, without `..`",
                    file.path.display()
                )));
            }
        }
        Ok(())
    }
}

/// A file that is in the working directory when the program starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputFile {
    /// A path relative to the working directory. Missing folders are created.
    pub path: PathBuf,
    /// The contents.
    pub bytes: Vec<u8>,
    /// The file may be executed.
    pub executable: bool,
}

/// A program's standard input.
#[derive(Debug, Default)]
pub enum Input {
    /// `/dev/null`.
    #[default]
    Empty,
    /// These bytes, as a file that cannot be changed.
    Bytes(Vec<u8>),
    /// An open file or pipe, such as the output of another program.
    Fd(OwnedFd),
}

/// The destination of an output of a program.
#[derive(Debug, Default)]
pub enum Output {
    /// Read until the end; its start and end are kept, within the limit.
    #[default]
    Captured,
    /// An open file or pipe, such as the input of another program. It is neither limited nor kept.
    Fd(OwnedFd),
}

/// The limits of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Processor time of the whole process tree. A busy machine does not use it up.
    pub cpu: Duration,
    /// Time on the clock, for programs that sleep or wait.
    pub wall: Duration,
    /// Memory, in bytes: the most that one process may allocate, and that the process tree may use.
    pub memory: u64,
    /// Bytes of each captured output that are kept.
    pub output: u64,
    /// Bytes of both captured outputs together after which the program is ended.
    pub output_total: u64,
    /// Size of the largest file, in bytes.
    pub file_size: u64,
    /// Open files of each process.
    pub open_files: u64,
    /// Processes and threads at the same time.
    pub processes: u64,
    /// Total size of the files, in bytes.
    pub scratch: u64,
    /// Number of files and folders.
    pub scratch_files: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            cpu: Duration::from_secs(10),
            wall: Duration::from_secs(60),
            memory: 1 << 30,
            output: 64 << 10,
            output_total: 64 << 20,
            file_size: 64 << 20,
            open_files: 256,
            processes: 64,
            scratch: 256 << 20,
            scratch_files: 16_384,
        }
    }
}

/// The environment of a program whose working directory and folder for temporary files are these:
/// nothing of the caller's, so neither keys nor proxies, and everything that changes results between
/// machines is fixed.
pub fn environment(work: &Path, temporary: &Path) -> BTreeMap<String, String> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    [
        ("HOME", text(work)),
        ("LANG", "C.UTF-8".into()),
        ("LC_ALL", "C.UTF-8".into()),
        ("LOGNAME", "sandbox".into()),
        ("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin".into()),
        ("PYTHONDONTWRITEBYTECODE", "1".into()),
        ("PYTHONHASHSEED", "0".into()),
        ("TMPDIR", text(temporary)),
        ("TZ", "UTC".into()),
        ("USER", "sandbox".into()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}
