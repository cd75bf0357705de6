//! The processes of a command, all of which end with the command, the run, or the program, even if
//! that is killed.
//!
//! A second shell, the watcher, leads a process group that the command joins. It reads from a pipe
//! that never has data. When the pipe is closed, by us or by the kernel after a SIGKILL, the
//! watcher kills all processes of the command. A death signal (`PR_SET_PDEATHSIG`) would only reach
//! the shell that runs the command, not its children.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

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
pub(super) struct CommandGroup {
    watcher: Child,
    id: Pid,
}

impl CommandGroup {
    /// Starts a group with only its watcher.
    ///
    /// # Errors
    /// If no process can be started.
    pub(super) fn start() -> io::Result<Self> {
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
    pub(super) fn id(&self) -> i32 {
        self.id.as_raw_nonzero().get()
    }

    /// Ends the processes that a finished command left running.
    pub(super) async fn end(mut self) {
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
