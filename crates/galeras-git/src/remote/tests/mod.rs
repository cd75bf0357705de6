//! Tests of this module against real Git servers on loopback: over HTTP
//! (`galeras_test_servers::http_git`), from the daemon, and through a program that replaces ssh.

mod failures;
mod fetching;
mod heads;
mod hostile;
mod ssh;
mod stages;
mod user;

use std::collections::BTreeSet;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gix::ObjectId;

use super::{Activity, Fetcher, Head, Network, remote_head};
use crate::GitError;
use crate::tests::{NEW_YEAR, fails};
use galeras_test_servers::http_git::HttpGit;

/// Runs git in `folder` and returns what it prints.
fn git(folder: &Path, args: &[&str]) -> String {
    crate::tests::git(folder, NEW_YEAR, args, b"")
}

fn ids(text: &str) -> Vec<ObjectId> {
    text.lines().map(|line| ObjectId::from_hex(&line.as_bytes()[..40]).unwrap()).collect()
}

/// A folder with a repository to serve in `repo`, and room for others.
struct Source {
    root: tempfile::TempDir,
}

impl Source {
    /// An empty repository with this default branch.
    fn empty(branch: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        git(root.path(), &["init", "-q", "-b", branch, "repo"]);
        let source = Self { root };
        source.git(&["config", "uploadpack.allowFilter", "true"]);
        source
    }

    /// A repository with some commits, folders and files.
    fn new() -> Self {
        let source = Self::empty("main");
        for round in 0..5 {
            source.commit(round);
        }
        source
    }

    fn repo(&self) -> PathBuf {
        self.root.path().join("repo")
    }

    fn git(&self, args: &[&str]) -> String {
        git(&self.repo(), args)
    }

    /// Adds a commit that changes three files in two folders.
    fn commit(&self, round: usize) -> ObjectId {
        for name in ["top.py", "a/one.py", "a/b/two.py"] {
            let file = self.repo().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            let lines: Vec<_> = (0..50).map(|line| format!("x{line} = {}", line * round)).collect();
            fs::write(file, format!("# {name} {round}\n{}\n", lines.join("\n"))).unwrap();
        }
        self.commit_all()
    }

    fn commit_all(&self) -> ObjectId {
        self.git(&["add", "."]);
        self.git(&["commit", "-q", "-m", "message"]);
        self.head()
    }

    /// Adds a commit with a file of random bytes.
    fn bulk(&self, bytes: usize) -> ObjectId {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let random = |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[0]
        };
        let bytes: Vec<u8> = (0..bytes).map(random).collect();
        fs::write(self.repo().join("bulk.bin"), bytes).unwrap();
        self.commit_all()
    }

    fn head(&self) -> ObjectId {
        ids(&self.git(&["rev-parse", "HEAD"]))[0]
    }

    /// The ids of the objects of a kind that can be reached from `HEAD`.
    fn objects(&self, kind: &str) -> BTreeSet<ObjectId> {
        let all = self.git(&["rev-list", "--objects", "HEAD"]);
        let all: BTreeSet<ObjectId> = ids(&all).into_iter().collect();
        let typed = self.git(&["cat-file", "--batch-all-objects", "--batch-check"]);
        let fits = typed.lines().filter(|line| line.split(' ').nth(1) == Some(kind));
        fits.flat_map(ids).filter(|id| all.contains(id)).collect()
    }

    fn root_trees(&self) -> Vec<ObjectId> {
        ids(&self.git(&["log", "--format=%T"]))
    }
}

/// A repository that is served over HTTP, and a folder to fetch it into.
struct TestServer {
    source: Source,
    server: HttpGit,
    net: Net,
    folder: tempfile::TempDir,
}

impl TestServer {
    fn new() -> Self {
        Self::of(Source::new())
    }

    fn of(source: Source) -> Self {
        let (server, net) = (HttpGit::start(source.root.path()), Net::new());
        Self { source, server, net, folder: tempfile::tempdir().unwrap() }
    }

    fn url(&self) -> String {
        self.server.url("repo/.git")
    }

    fn fetcher(&self) -> Fetcher {
        Fetcher::open(&self.url(), self.folder.path(), &self.net.net).unwrap()
    }

    fn head(&self) -> Result<Head, GitError> {
        remote_head(&self.url(), None, &self.net.net)
    }

    /// Fetches all commits into a new folder.
    fn commits(&self) -> Result<(), GitError> {
        commits(&self.url(), &self.source, &self.net)
    }
}

/// Fetches the commits of `source` from `url` into a new folder.
fn commits(url: &str, source: &Source, net: &Net) -> Result<(), GitError> {
    let folder = tempfile::tempdir().unwrap();
    let mut fetcher = Fetcher::open(url, folder.path(), &net.net)?;
    fetcher.commits(source.head())?;
    assert_eq!(local(folder.path()), source.objects("commit"));
    Ok(())
}

/// All objects in a folder that was fetched into.
fn local(folder: &Path) -> BTreeSet<ObjectId> {
    let format = "--batch-check=%(objectname)";
    ids(&git(folder, &["cat-file", "--batch-all-objects", format])).into_iter().collect()
}

/// A `git daemon`, which ends when it is dropped.
struct Daemon {
    child: Child,
    port: u16,
}

impl Daemon {
    fn start(root: &Path) -> Self {
        let program = Path::new(&git(root, &["--exec-path"])).join("git-daemon");
        let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        let child = Command::new(program)
            .args(["--listen=127.0.0.1", "--export-all", "--reuseaddr", "--informative-errors"])
            .arg(format!("--port={port}"))
            .arg(format!("--base-path={}", root.display()))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        for _ in 0..200 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { child, port }
    }

    fn url(&self, path: &str) -> String {
        format!("git://127.0.0.1:{}/{path}", self.port)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Settings with short waits and a temporary home, and the reports.
struct Net {
    net: Network,
    reports: Arc<Mutex<Vec<Activity>>>,
    home: tempfile::TempDir,
}

impl Net {
    fn new() -> Self {
        let reports = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&reports);
        let activity = Arc::new(move |activity| all.lock().unwrap().push(activity));
        let interrupt = Arc::new(AtomicBool::new(false));
        let mut net = Network::new(interrupt, activity, Arc::new(|_, _| Ok(())));
        net.backoff = Duration::from_millis(5);
        let home = tempfile::tempdir().unwrap();
        let mut net = Self { net, reports, home };
        net.set("HOME", net.home.path().as_os_str().to_owned());
        net.set("GIT_CONFIG_NOSYSTEM", "1");
        net
    }

    /// Sets a variable for git.
    fn set(&mut self, name: &str, value: impl Into<std::ffi::OsString>) {
        self.net.environment.push((name.into(), value.into()));
    }

    /// Writes the configuration of the user.
    fn configure(&self, text: &str) {
        fs::write(self.home.path().join(".gitconfig"), text).unwrap();
    }

    fn waits(&self) -> usize {
        let reports = self.reports.lock().unwrap();
        reports.iter().filter(|activity| activity.what == "waiting").count()
    }

    fn warnings(&self) -> Vec<String> {
        let reports = self.reports.lock().unwrap();
        reports.iter().filter_map(|activity| activity.warning().map(str::to_string)).collect()
    }
}
