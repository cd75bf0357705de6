//! Programs that try to escape: each ends as expected, changes nothing outside, and leaves no process.
//! They run as root (if the tests do) and as an ordinary user, with and without namespaces.

// The numbers of system calls are those of this architecture.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used)]

mod programs;

use std::collections::HashMap;
use std::fs::{self, Permissions};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use galeras_sandbox::{
    Ending, InputFile, Launcher, Layer, Limits, Machine, Policy, Sandbox, Specification,
};
use programs::{C_HEADER, CASES, Case, Language, PYTHON};
use tempfile::TempDir;

/// Names the launcher to the tests when they run from another folder, as another user.
const LAUNCHER: &str = "GALERAS_TEST_LAUNCHER";
const SECRET: &str = "key-of-the-caller";

fn machine() -> Machine {
    let launcher = std::env::var_os(LAUNCHER).map_or_else(
        || PathBuf::from(env!("CARGO_BIN_EXE_galeras-sandbox-launcher")),
        PathBuf::from,
    );
    Machine::probe(Launcher::at(launcher))
}

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// Files, processes and servers that programs must not reach.
struct Outside {
    canary: TempDir,
    before: Vec<(PathBuf, u32, i64, Vec<u8>)>,
    victim: Child,
    tcp: std::net::TcpListener,
    udp: std::net::UdpSocket,
    datagrams: UnixDatagram,
    streams: UnixListener,
    token: String,
}

impl Outside {
    fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let token =
            format!("galeras-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let canary = TempDir::new().unwrap();
        fs::write(canary.path().join("secret"), SECRET).unwrap();
        fs::write(canary.path().join("victim"), "as it was").unwrap();
        let datagrams = UnixDatagram::bind(canary.path().join("socket")).unwrap();
        for name in ["secret", "victim", "socket", ""] {
            fs::set_permissions(canary.path().join(name), Permissions::from_mode(0o777)).unwrap();
        }
        let address = SocketAddr::from_abstract_name(&token).unwrap();
        let streams = UnixListener::bind_addr(&address).unwrap();
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        tcp.set_nonblocking(true).unwrap();
        udp.set_nonblocking(true).unwrap();
        streams.set_nonblocking(true).unwrap();
        datagrams.set_nonblocking(true).unwrap();
        let victim = Command::new("sleep").arg("3600").env("SECRET", SECRET).spawn().unwrap();
        let before = state(canary.path());
        Self { canary, before, victim, tcp, udp, datagrams, streams, token }
    }

    fn fill(&self, text: &str) -> String {
        let home = std::env::var("HOME").unwrap_or_else(|_| "/root".into());
        [
            ("@CANARY@", self.canary.path().display().to_string()),
            ("@TCP@", self.tcp.local_addr().unwrap().port().to_string()),
            ("@UDP@", self.udp.local_addr().unwrap().port().to_string()),
            ("@ABSTRACT@", self.token.clone()),
            ("@VICTIM@", self.victim.id().to_string()),
            ("@CALLER@", std::process::id().to_string()),
            ("@TOKEN@", self.token.clone()),
            ("@HOME@", home),
        ]
        .iter()
        .fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    }

    /// The changes since the start.
    fn damage(&mut self) -> Vec<String> {
        let mut damage = Vec::new();
        if state(self.canary.path()) != self.before {
            damage.push("files outside have changed".to_owned());
        }
        if self.victim.try_wait().unwrap().is_some() {
            damage.push("a process outside was ended".to_owned());
        }
        let limits =
            fs::read_to_string(format!("/proc/{}/limits", self.victim.id())).unwrap_or_default();
        if limits
            .lines()
            .any(|line| line.starts_with("Max cpu time") && !line.contains("unlimited"))
        {
            damage.push("a process outside was limited".to_owned());
        }
        let stat =
            fs::read_to_string(format!("/proc/{}/stat", self.victim.id())).unwrap_or_default();
        if stat.split_ascii_whitespace().nth(18) == Some("19") {
            damage.push("a process outside was slowed down".to_owned());
        }
        for folder in ["/", "/tmp", "/dev/shm", "/usr/lib"] {
            if Path::new(folder).join(&self.token).exists() {
                damage.push(format!("{folder} has a new file"));
            }
        }
        if self.tcp.accept().is_ok()
            || self.udp.recv(&mut [0]).is_ok()
            || self.datagrams.recv(&mut [0]).is_ok()
            || self.streams.accept().is_ok()
        {
            damage.push("a server outside was reached".to_owned());
        }
        damage
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

fn state(folder: &Path) -> Vec<(PathBuf, u32, i64, Vec<u8>)> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.push(folder.to_owned());
    paths.sort();
    let read = |path: PathBuf| {
        let data = fs::symlink_metadata(&path).unwrap();
        let bytes = if data.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        (path, data.mode(), data.mtime(), bytes)
    };
    paths.into_iter().map(read).collect()
}

/// Processes whose environment has the token of a program.
fn processes_left(token: &str) -> Vec<String> {
    let mut left = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let environ = fs::read(entry.path().join("environ")).unwrap_or_default();
        if environ.windows(token.len()).any(|window| window == token.as_bytes()) {
            left.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    left
}

/// The C programs, compiled, by name.
fn compiled(outside: &Outside) -> HashMap<&'static str, Vec<u8>> {
    let folder = TempDir::new().unwrap();
    let compile = |(name, _, _, text): &Case| {
        let source = folder.path().join("main.c");
        fs::write(&source, format!("{C_HEADER}{}", outside.fill(text))).unwrap();
        let program = folder.path().join("main");
        let gcc = Command::new("gcc")
            .args(["-O0", "-w", "-o"])
            .arg(&program)
            .arg(&source)
            .output()
            .unwrap();
        assert!(gcc.status.success(), "{name}: {}", String::from_utf8_lossy(&gcc.stderr));
        (*name, fs::read(program).unwrap())
    };
    CASES.iter().filter(|case| case.1 == Language::C).map(compile).collect()
}

fn specification(
    case: &Case,
    outside: &Outside,
    compiled: &HashMap<&str, Vec<u8>>,
) -> Specification {
    let (name, language, expected, text) = case;
    let mut specification = match language {
        Language::Python => Specification::new(["/usr/bin/python3", "main.py"])
            .file("main.py", format!("{PYTHON}{}", outside.fill(text))),
        Language::C => {
            let mut specification = Specification::new(["./main"]);
            let bytes = compiled[name].clone();
            specification.files.push(InputFile { path: "main".into(), bytes, executable: true });
            specification
        }
    };
    specification.limits = Limits {
        cpu: Duration::from_secs(1),
        wall: Duration::from_millis(if expected.contains(&Ending::WallTime) {
            1500
        } else {
            120_000
        }),
        memory: 400 << 20,
        output_total: 4 << 20,
        file_size: 8 << 20,
        scratch: 32 << 20,
        scratch_files: 500,
        ..Limits::default()
    };
    specification
}

/// Runs every program on this machine, four at a time.
fn run_all(machine: &Machine) {
    let mut outside = Outside::new();
    let compiled = compiled(&outside);
    let sandbox = Sandbox::new(machine, Policy::Auto).unwrap();
    let problems = Mutex::new(Vec::new());
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(case) = CASES.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let token = format!("{}-{}.", outside.token, case.0.replace(' ', "-"));
                    let mut specification = specification(case, &outside, &compiled);
                    specification.environment.insert("TOKEN".into(), token.clone());
                    let outcome = match sandbox.run(specification, &|| false) {
                        Ok(outcome) => outcome,
                        Err(error) => {
                            problems.lock().unwrap().push(format!("{}: {error}", case.0));
                            continue;
                        }
                    };
                    let left = processes_left(&token);
                    let escaped = outcome.stdout.text().contains("ESCAPED");
                    if !case.2.contains(&outcome.ending) || escaped || !left.is_empty() {
                        problems.lock().unwrap().push(format!(
                            "{}: {} after {:?}, processes left: {left:?}\n{}{}",
                            case.0,
                            outcome.ending,
                            outcome.usage,
                            outcome.stdout.text(),
                            outcome.stderr.text()
                        ));
                    }
                }
            });
        }
    });
    let mut problems = problems.into_inner().unwrap();
    problems.extend(outside.damage());
    assert!(problems.is_empty(), "{} problems\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn no_program_escapes() {
    let machine = machine();
    for (layer, available) in machine.layers() {
        assert!(available.is_ok(), "{layer} is missing here, so it is not tested: {available:?}");
    }
    run_all(&machine);
}

#[test]
fn no_program_escapes_without_namespaces() {
    run_all(&machine().without(Layer::PidNamespace));
}

#[test]
fn no_program_escapes_from_an_old_kernel() {
    run_all(&machine().without(Layer::PidNamespace).without(Layer::LandlockTcp));
}

#[test]
fn no_program_escapes_without_landlock_for_signals_and_tcp() {
    run_all(&machine().without(Layer::LandlockTcp));
}

/// Runs the other tests of this file as a user without any rights.
#[test]
fn no_program_of_an_ordinary_user_escapes() {
    if !is_root() {
        return;
    }
    let folder = TempDir::new().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let [tests, launcher] = ["tests", "launcher"].map(|name| folder.path().join(name));
    fs::copy(std::env::current_exe().unwrap(), &tests).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_galeras-sandbox-launcher"), &launcher).unwrap();
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&tests)
        .args(["no_program_escapes", "--test-threads=1"])
        .env(LAUNCHER, &launcher)
        .current_dir("/")
        .output()
        .unwrap();
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success() && text.contains("4 passed"), "{text}");
}
