//! Runs the command, and stores its output. All of its processes end with the command, the run, or
//! the program, even if that is killed.
//!
//! Its standard output is a pipe and not a file: a program that ignores a full disk would otherwise
//! lose rows and report success.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStdout, Command};

use galeras_operator::{LowerContext, StepError};

/// The time for which a finished command's children may keep standard output open without writing.
const GRACE: Duration = Duration::from_secs(10);

const CHUNK: usize = 1 << 16;

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
    let errors = scratch.join("stderr");
    let group = CommandGroup::start().map_err(failed)?;
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).current_dir(&cx.base).process_group(group.id());
    for (port, path) in inputs {
        shell.env(format!("GALERAS_INPUT_{}", port.to_uppercase()), path);
    }
    // A file and not a pipe, so that the command may stop reading at any time.
    let stdin = match inputs {
        [(_, path)] => Stdio::from(File::open(path).map_err(failed)?),
        _ => Stdio::null(),
    };
    shell.stdin(stdin).stdout(Stdio::piped()).stderr(File::create(&errors).map_err(failed)?);
    let file = File::create(output).map_err(failed)?;
    let mut child = shell.spawn().map_err(failed)?;
    let ended = tokio::select! {
        ended = finish(&mut child, file, GRACE) => ended,
        () = cx.env.cancel.cancelled() => return Err(StepError::interrupted()),
    };
    let ended = ended.map_err(|error| {
        let message = format!("cannot keep what the command {name} prints: {error}");
        StepError::new(message).because(error).help(room())
    })?;
    let Some(status) = ended else {
        let message = format!(
            "the command {name} has ended, but what it left running still has its standard output \
             open"
        );
        let help = "wait for it in the command (`wait`), or send what it prints elsewhere \
                    (`>/dev/null &`)";
        return Err(StepError::new(message).help(help));
    };
    group.end().await;
    if status.success() {
        return Ok(());
    }
    let mut message = format!("the command {name} ended with {}", explained(status));
    if rustix::fs::statvfs(scratch).is_ok_and(|s| s.f_bavail == 0) {
        let folder = std::env::temp_dir();
        message.push_str(&format!("; no space left on device in {}", folder.display()));
    }
    let said = last_lines(&errors).map_err(failed)?;
    if !said.is_empty() {
        message.push_str(&format!("; it said:\n{said}"));
    }
    Err(StepError::new(message))
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
fn explained(status: ExitStatus) -> String {
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

/// The last lines of a text file, at most 2,000 bytes.
fn last_lines(path: &Path) -> io::Result<String> {
    const BYTES: u64 = 2_000;
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(BYTES)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).trim().to_string())
}

/// Waits for the end of its standard input. Then it kills its group, but first the descendants that
/// have left the group: `timeout`, for example, leads a new one.
const WATCH: &str = r#"
trap '' HUP INT QUIT TERM USR1 USR2 ALRM TSTP TTIN TTOU
read -r line
found=
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

/// The time that the watcher gets to end a group; it needs a tenth of a second.
const PATIENCE: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(2);

/// The process group of a command. Dropping it ends every process of the command.
///
/// A second shell, the watcher, leads the group that the command joins. It reads from a pipe that
/// never has data. When the pipe is closed, by us or by the kernel after a SIGKILL, the watcher kills
/// all processes of the command. A death signal (`PR_SET_PDEATHSIG`) would only reach the shell that
/// runs the command, not its children.
struct CommandGroup {
    watcher: Child,
    id: Pid,
}

impl CommandGroup {
    /// Starts a group with only its watcher.
    ///
    /// # Errors
    /// If no process can be started.
    fn start() -> io::Result<Self> {
        let watcher = Command::new("sh")
            .arg("-c")
            .arg(WATCH)
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let id = watcher.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let id = id.ok_or_else(|| io::Error::other("a process without a number"))?;
        Ok(Self { watcher, id })
    }

    /// The id of the group. It is not reused during the lifetime of this value, since the watcher
    /// that leads the group is only waited for on drop.
    fn id(&self) -> i32 {
        self.id.as_raw_nonzero().get()
    }

    /// Ends the processes that a finished command left running.
    async fn end(mut self) {
        // At least the watcher exists; if it cannot be killed, dropping it tries again.
        let _ = kill_process_group(self.id, Signal::KILL);
        let _ = self.watcher.wait().await;
    }
}

impl Drop for CommandGroup {
    fn drop(&mut self) {
        drop(self.watcher.stdin.take());
        for _ in 0..PATIENCE.as_millis() / POLL.as_millis() {
            match self.watcher.try_wait() {
                Ok(None) => std::thread::sleep(POLL),
                // It has killed itself as the last process.
                Ok(Some(_)) | Err(_) => return,
            }
        }
        // The group may be gone already, for example if the command killed its watcher.
        let _ = kill_process_group(self.id, Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn a_signal_behind_a_shell_has_its_name() {
        let of = |code: i32| explained(ExitStatus::from_raw(code << 8));
        assert_eq!(of(1), "exit status: 1");
        assert_eq!(of(141), "exit status: 141, as after the signal 13 (SIGPIPE)");
        assert!(explained(ExitStatus::from_raw(13)).contains("SIGPIPE"));
    }
}
