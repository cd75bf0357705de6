//! Runs the command without a sandbox, and stores its output. All of its processes end with the command, the
//! run, or the program, even if that is killed.
//!
//! Its standard output is a pipe and not a file: a program that ignores a full disk would otherwise
//! lose rows and report success.

use std::collections::HashSet;
use std::convert::Infallible;
use std::fs::{self, File};
use std::future::pending;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use galeras_operator::{LowerContext, StepError};

/// The time for which a finished command's children may keep standard output open without writing.
pub(super) const GRACE: Duration = Duration::from_secs(10);

pub(super) const CHUNK: usize = 1 << 16;

/// The bytes of the standard error that are kept: its end.
pub(super) const ERRORS: usize = 2_000;

/// How long the rest of the standard error is waited for after the end of all processes.
const REST: Duration = Duration::from_secs(1);

/// Runs the command until it has ended and its output is in the file `output`.
///
/// # Errors
/// If it does not exit with status 0, if its output cannot be stored, or if the run is cancelled;
/// no process of it is left then.
pub(super) async fn run(
    command: &str,
    cx: &LowerContext,
    inputs: &[(String, PathBuf)],
    output: &Path,
) -> Result<(), StepError> {
    let name = shown(command);
    let failed = |error: io::Error| {
        StepError::new(format!("cannot run the command {name}: {error}")).because(error)
    };
    let scratch = cx.scratch.path().map_err(failed)?;
    let group = CommandGroup::start().map_err(failed)?;
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).current_dir(&cx.base).process_group(group.id());
    shell.env(&group.mark, MARKED);
    for (port, path) in inputs {
        shell.env(format!("GALERAS_INPUT_{}", port.to_uppercase()), path);
    }
    // A file and not a pipe, so that the command may stop reading at any time.
    let stdin = match inputs {
        [(_, path)] => Stdio::from(File::open(path).map_err(failed)?),
        _ => Stdio::null(),
    };
    shell.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    let file = File::create(output).map_err(failed)?;
    let mut child = shell.spawn().map_err(failed)?;
    let mut stderr = child.stderr.take().ok_or_else(|| failed(io::Error::other("no pipe")))?;
    let mut said = Vec::new();
    let listen = async {
        // After an error as after its end there is nothing more to read.
        let _ = keep_end(&mut stderr, &mut said).await;
        pending::<Infallible>().await
    };
    let ended = tokio::select! {
        ended = finish(&mut child, file, GRACE) => ended,
        () = cx.env.cancel.cancelled() => return Err(StepError::interrupted()),
        never = listen => match never {},
    };
    let ended = ended.map_err(|error| not_kept(&name, error))?;
    let Some(status) = ended else { return Err(still_open(&name)) };
    drop(group);
    if status.success() {
        return Ok(());
    }
    let mut message = format!("the command {name} ended with {}", explained(status));
    if rustix::fs::statvfs(scratch).is_ok_and(|s| s.f_bavail == 0) {
        let folder = std::env::temp_dir();
        message.push_str(&format!("; no space left on device in {}", folder.display()));
    }
    let _ = timeout(REST, keep_end(&mut stderr, &mut said)).await;
    let said = String::from_utf8_lossy(&said);
    if !said.trim().is_empty() {
        message.push_str(&format!("; it said:\n{}", said.trim()));
    }
    Err(StepError::new(message))
}

pub(super) fn not_kept(name: &str, error: io::Error) -> StepError {
    let message = format!("cannot keep what the command {name} prints: {error}");
    StepError::new(message).because(error).help(room())
}

pub(super) fn still_open(name: &str) -> StepError {
    let message = format!(
        "the command {name} has ended, but what it left running still has its standard output open"
    );
    let help = "wait for it in the command (`wait`), or send what it prints elsewhere \
                (`>/dev/null &`)";
    StepError::new(message).help(help)
}

/// The advice if temporary files do not fit.
pub(super) fn room() -> String {
    format!(
        "temporary files are in {}; TMPDIR names a folder with more space",
        std::env::temp_dir().display()
    )
}

/// The status of the command; `None` if its children may still print.
async fn finish(child: &mut Child, file: File, grace: Duration) -> io::Result<Option<ExitStatus>> {
    let printed = child.stdout.take().ok_or_else(|| io::Error::other("it has no output"))?;
    let copied = AtomicU64::new(0);
    let copy = keep(printed, file, &copied);
    tokio::pin!(copy);
    let status = tokio::select! {
        biased;
        kept = &mut copy => {
            kept?;
            return child.wait().await.map(Some);
        }
        status = child.wait() => status?,
    };
    if !status.success() {
        return Ok(Some(status));
    }
    loop {
        let before = copied.load(Ordering::Relaxed);
        match tokio::time::timeout(grace, &mut copy).await {
            Ok(kept) => {
                kept?;
                return Ok(Some(status));
            }
            Err(_) if copied.load(Ordering::Relaxed) == before => return Ok(None),
            Err(_) => {}
        }
    }
}

/// Copies the output to the file, and syncs it to disk.
async fn keep(mut printed: ChildStdout, mut file: File, copied: &AtomicU64) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        let read = printed.read(&mut buffer).await?;
        if read == 0 {
            break;
        }
        file.write_all(&buffer[..read])?;
        copied.fetch_add(read as u64, Ordering::Relaxed);
    }
    tokio::task::spawn_blocking(move || file.sync_data()).await?
}

pub(super) fn shown(command: &str) -> String {
    const LONGEST: usize = 60;
    let first = command.trim().lines().next().unwrap_or_default().trim_end();
    let short: String = first.chars().take(LONGEST).collect();
    let cut = short.len() < command.trim().len();
    format!("`{short}{}`", if cut { "…" } else { "" })
}

/// The status, with the signal that a shell reports as a number above 128.
pub(super) fn explained(status: ExitStatus) -> String {
    const NAMES: &[(i32, &str)] = &[
        (1, "SIGHUP"),
        (2, "SIGINT"),
        (6, "SIGABRT"),
        (8, "SIGFPE"),
        (9, "SIGKILL"),
        (11, "SIGSEGV"),
        (13, "SIGPIPE"),
        (15, "SIGTERM"),
        (24, "SIGXCPU"),
        (25, "SIGXFSZ"),
    ];
    let signal = status.code().map_or(0, |code| code - 128);
    match NAMES.iter().find(|(number, _)| *number == signal) {
        Some((number, name)) => format!("{status}, as after the signal {number} ({name})"),
        None => status.to_string(),
    }
}

/// Reads the standard error up to its end into `last`, which keeps the last bytes. A command may
/// print errors without end, so neither the disk nor the memory holds all of them.
async fn keep_end(from: &mut (impl AsyncRead + Unpin), last: &mut Vec<u8>) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        let read = from.read(&mut buffer).await?;
        if read == 0 {
            return Ok(());
        }
        last.extend_from_slice(&buffer[..read]);
        last.drain(..last.len().saturating_sub(ERRORS));
    }
}

/// The value of the variable that marks the processes of a command.
const MARKED: &str = "1";

/// Waits for the end of its standard input. Then it kills its group, but first the processes of the
/// command that have left the group, as [`CommandGroup::processes`] finds them.
const WATCH: &str = r#"
trap '' HUP INT QUIT TERM USR1 USR2 ALRM TSTP TTIN TTOU
read -r line
found=
for environ in $(grep -lsF "$0=" /proc/[0-9]*/environ); do
    pid=${environ#/proc/}
    found="$found${pid%/environ} "
done
more=1
while [ "$more" ]; do
    more=
    for stat in /proc/[0-9]*/stat; do
        pid=${stat#/proc/}
        pid=${pid%/stat}
        case " $$ $found" in *" $pid "*) continue ;; esac
        read -r line <"$stat" || continue
        # Behind the name: the state, the parent, the group.
        set -- ${line##*) }
        case " $found" in
            *" $2 "*) ;;
            *) [ "$3" = $$ ] || continue ;;
        esac
        found="$found$pid "
        more=1
    done
done
kill -s KILL $found
kill -s KILL 0
"#;

/// How often the processes of a command are looked for and killed, if new ones appear meanwhile.
const PASSES: usize = 100;

/// The processes of a command. Dropping it kills all of them.
///
/// They are a process group, but a process may leave it (`setsid`, `timeout`), and its parent may end
/// first, so that it is nobody's child (a daemon). So a variable in the environment, which
/// processes inherit, marks them as well.
///
/// A second shell, the watcher, leads the group that the command joins. It reads from a pipe that
/// never has data. If this program is killed, the kernel closes the pipe, and the watcher kills all
/// processes of the command. A death signal (`PR_SET_PDEATHSIG`) would only reach the shell that
/// runs the command, not its children.
struct CommandGroup {
    /// Waited for on drop only, so that the id of the group is not reused before.
    _watcher: Child,
    id: Pid,
    /// The variable that only processes of the command have.
    mark: String,
}

impl CommandGroup {
    /// Starts a group with only its watcher.
    ///
    /// # Errors
    /// If no process can be started.
    fn start() -> io::Result<Self> {
        let mark = format!("GALERAS_COMMAND_{:016x}", RandomState::new().hash_one(()));
        let watcher = Command::new("sh")
            .arg("-c")
            .arg(WATCH)
            .arg(&mark)
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let id = watcher.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let id = id.ok_or_else(|| io::Error::other("a process without a number"))?;
        Ok(Self { _watcher: watcher, id, mark })
    }

    fn id(&self) -> i32 {
        self.id.as_raw_nonzero().get()
    }

    /// The processes of the group, those with the mark, and all of their descendants. Systems
    /// without `/proc` expose none.
    fn processes(&self) -> Vec<Pid> {
        let mark = format!("{}={MARKED}", self.mark);
        let is_marked = |process: &Process| {
            // Processes of other users cannot be read.
            let environ = fs::read(format!("/proc/{}/environ", process.id)).unwrap_or_default();
            environ.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
        };
        let (mut found, mut others): (Vec<Process>, Vec<Process>) =
            Process::all().partition(|process| process.group == self.id() || is_marked(process));
        let mut at = 0;
        while let Some(parent) = found.get(at).map(|process| process.id) {
            found.extend(others.extract_if(.., |process| process.parent == parent));
            at += 1;
        }
        found.iter().filter_map(|process| Pid::from_raw(process.id)).collect()
    }
}

impl Drop for CommandGroup {
    fn drop(&mut self) {
        let mut killed = HashSet::new();
        for _ in 0..PASSES {
            let mut found = self.processes();
            // A process that is about to end starts no others.
            found.retain(|process| killed.insert(process.as_raw_nonzero()));
            if found.is_empty() {
                break;
            }
            for process in found {
                // It may have ended.
                let _ = kill_process(process, Signal::KILL);
            }
        }
        let _ = kill_process_group(self.id, Signal::KILL);
    }
}

/// A running process.
#[derive(Debug)]
struct Process {
    id: i32,
    parent: i32,
    group: i32,
}

impl Process {
    /// All processes that the system shows, without zombies.
    fn all() -> impl Iterator<Item = Self> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        entries.filter_map(|entry| {
            let id: i32 = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read(entry.path().join("stat")).ok()?;
            // The name is in parentheses, and may hold anything.
            let end = stat.iter().rposition(|byte| *byte == b')')?;
            let mut fields = str::from_utf8(&stat[end + 1..]).ok()?.split_whitespace();
            let state = fields.next()?;
            let mut number = || fields.next()?.parse::<i32>().ok();
            let (parent, group) = (number()?, number()?);
            (state != "Z").then_some(Self { id, parent, group })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Seek as _};
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn a_command_is_shown_by_its_beginning() {
        assert_eq!(shown("python3 a.py"), "`python3 a.py`");
        assert_eq!(shown(" \n python3 a.py\npython3 b.py"), "`python3 a.py…`");
        let long = shown(&"é".repeat(100));
        assert_eq!(long, format!("`{}…`", "é".repeat(60)));
    }

    fn spawned(command: &str) -> Child {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(command).stdin(Stdio::null()).stdout(Stdio::piped());
        shell.spawn().unwrap()
    }

    #[tokio::test]
    async fn a_silent_heir_of_the_output_is_waited_for_no_longer_than_the_grace() {
        let grace = Duration::from_millis(200);
        let mut child = spawned("sleep 5 & echo a");
        let ended = finish(&mut child, tempfile::tempfile().unwrap(), grace).await;
        assert!(matches!(ended, Ok(None)), "{ended:?}");
        // A child that prints is waited for.
        let mut child = spawned("(for i in 1 2 3 4 5 6; do echo $i; sleep 0.1; done) & echo a");
        let mut file = tempfile::tempfile().unwrap();
        let ended = finish(&mut child, file.try_clone().unwrap(), grace).await;
        assert!(ended.unwrap().unwrap().success());
        let mut printed = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut printed).unwrap();
        assert_eq!(printed.lines().count(), 7, "{printed}");
    }

    #[tokio::test]
    async fn an_output_that_cannot_be_kept_is_an_error() {
        let mut child = spawned("yes | head -c 1000000");
        let full = File::options().write(true).open("/dev/full").unwrap();
        match finish(&mut child, full, GRACE).await {
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::StorageFull),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn of_errors_without_end_the_last_are_kept() {
        let printed = "it went wrong\n".repeat(100_000) + "the end";
        let mut last = Vec::new();
        keep_end(&mut printed.as_bytes(), &mut last).await.unwrap();
        assert_eq!(last, &printed.as_bytes()[printed.len() - ERRORS..]);
    }

    #[test]
    fn a_signal_behind_a_shell_has_its_name() {
        let of = |code: i32| explained(ExitStatus::from_raw(code << 8));
        assert_eq!(of(1), "exit status: 1");
        assert_eq!(of(141), "exit status: 141, as after the signal 13 (SIGPIPE)");
        assert!(explained(ExitStatus::from_raw(13)).contains("SIGPIPE"));
    }
}
