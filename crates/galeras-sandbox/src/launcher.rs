//! The launcher: the program itself, started again with a hidden verb. It leaves the caller's
//! namespaces, starts the confined process, watches it, ends it and everything that it has started,
//! and reports.
//!
//! It is a process of one thread, as the kernel demands for user namespaces, and it lives no longer
//! than its caller, because it watches the socket between them. (The kernel's signal at the end of a
//! parent is sent at the end of the parent's *thread*.)

use std::ffi::OsStr;
use std::fs;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, WaitOptions, WaitStatus, pidfd_open, set_child_subreaper, setsid, wait,
    waitpid,
};

use crate::confine;
use crate::namespaces;
use crate::outcome::Ending;
use crate::process_tree::{self, Watchdog};
use crate::protocol::{self, Failure, Launch, Message, Step};

/// The hidden verb.
pub(crate) const VERB: &str = "__sandbox";

/// The program that is running, also if its file has been replaced since.
pub(crate) const THIS_PROGRAM: &str = "/proc/self/exe";

/// Becomes the launcher if the command line asks for it, and then does not return. The first statement of `main`:
/// no thread may have been started.
pub fn launch_if_asked() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().as_deref() != Some(OsStr::new(VERB)) {
        return;
    }
    let code = match (arguments.next(), rustix::stdio::stdin().try_clone_to_owned()) {
        (None, Ok(stdin)) => launch(&UnixStream::from(stdin)),
        (Some(_), Ok(stdin)) => confine::enter(&UnixStream::from(stdin)),
        (_, Err(_)) => 2,
    };
    std::process::exit(code)
}

fn launch(socket: &UnixStream) -> i32 {
    close_inherited_files(socket);
    let Ok(Some((launch, bytes, input))) = protocol::receive::<Launch>(socket) else { return 2 };
    let message = run(socket, launch, bytes, input).unwrap_or_else(Message::Failed);
    i32::from(protocol::send(socket, &message, &[], None).is_err())
}

/// Closes files that the caller's own parent left open. Ours all close on `exec`.
fn close_inherited_files(socket: &UnixStream) {
    use std::os::fd::AsRawFd as _;

    let open: Vec<i32> = fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > 2 && *fd != socket.as_raw_fd())
        .collect();
    for fd in open {
        let _ = nix::unistd::close(fd);
    }
}

fn run(
    socket: &UnixStream,
    mut launch: Launch,
    bytes: Vec<u8>,
    input: Option<OwnedFd>,
) -> Result<Message, Failure> {
    // Away from the terminal: an interrupt there is for the caller, which decides.
    let _ = setsid();
    // If memory runs out, the kernel ends sandboxes first.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
    set_child_subreaper(Some(rustix::process::getpid())).step("adopting orphans")?;
    if launch.confinement.unprivileged_user {
        let id = transient_id();
        if let Some(folder) = &launch.folder {
            namespaces::give_folder(folder, id).step("giving the scratch folder away")?;
        }
        launch.id = Some(id);
    }
    let in_namespaces = launch.confinement.namespaces;
    if in_namespaces {
        namespaces::leave(launch.id.is_some(), launch.confinement.network)?;
    }

    let (ours, theirs) = UnixStream::pair().step("making a socket")?;
    let mut command = Command::new(THIS_PROGRAM);
    command.arg0("galeras-sandbox").args([VERB, "enter"]).env_clear();
    command.stdin(Stdio::from(OwnedFd::from(theirs)));
    let started = Instant::now();
    let child = command.spawn().step("starting the confined process")?.id();
    // With it goes our copy of the other end.
    drop(command);
    // If the process has ended early, there is a message or a status of it.
    let _ = protocol::send(&ours, &launch, &[&bytes], input.as_ref().map(OwnedFd::as_fd));
    drop((bytes, input));

    let pid =
        Pid::from_raw(child.cast_signed()).ok_or_else(|| Failure::new("starting", "no process"))?;
    let root = if in_namespaces { child } else { std::process::id() };
    let mut watchdog = Watchdog::new(launch.limits, root, launch.folder.clone());
    let stop = watch(socket, pid, &mut watchdog)?;
    // The first process of a namespace waits itself.
    let waits = stop.is_none() && !in_namespaces && !launch.patience.is_zero();
    let others = || -> Vec<u32> {
        let all = process_tree::descendants(std::process::id()).into_iter();
        all.filter(|other| *other != child).collect()
    };
    let is_open = waits
        && !process_tree::output_is_released(others, launch.patience, || {
            confine::is_closed(socket) || watchdog.check().is_some()
        });
    let status = end_all(pid, in_namespaces, stop.is_some())?;
    let usage = watchdog.complete(confine::usage_of_children(started.elapsed()));
    if let Some(Stop::CallerGone) = stop {
        if let (Some(folder), true) = (&launch.folder, confine::is_closed(socket)) {
            match launch.confinement.landlock {
                Some(_) => process_tree::remove_folder(folder),
                // A wrapper may have left a process that puts links there.
                None => drop(fs::remove_dir_all(folder)),
            }
        }
        return Ok(Message::Cancelled);
    }
    let report = match protocol::receive::<Message>(&ours) {
        Ok(Some((message, _, None))) => Some(message),
        _ => None,
    };
    let files_exceed = watchdog.files_exceed_the_limit(&[]);
    Ok(match (stop, report) {
        (Some(Stop::Limit(ending)), _) => Message::Done { ending, usage },
        (_, Some(Message::Done { ending, usage: inner })) => {
            Message::Done { ending, usage: watchdog.complete(inner) }
        }
        (_, Some(message)) => message,
        (_, None) if files_exceed => Message::Done { ending: Ending::Scratch, usage },
        (_, None) if in_namespaces => {
            return Err(Failure::new(
                "running the program",
                "the first process of its namespace ended",
            ));
        }
        (_, None) => {
            let ending = match confine::ending(status, &usage, &launch.limits) {
                Ending::Exited(0) if is_open => Ending::OutputOpen,
                ending => ending,
            };
            Message::Done { ending, usage }
        }
    })
}

/// Why the launcher ends a program.
enum Stop {
    Limit(Ending),
    /// The caller has closed the socket: it cancels, or does not exist any more.
    CallerGone,
}

/// Waits until the process ends, or has to be ended.
fn watch(socket: &UnixStream, pid: Pid, watchdog: &mut Watchdog) -> Result<Option<Stop>, Failure> {
    let process = pidfd_open(pid, PidfdFlags::empty()).step("watching the confined process")?;
    loop {
        let pause = watchdog.pause();
        let pause = Timespec { tv_sec: 0, tv_nsec: pause.subsec_nanos().into() };
        let mut fds = [PollFd::new(&process, PollFlags::IN), PollFd::new(socket, PollFlags::IN)];
        match poll(&mut fds, Some(&pause)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Failure::new("watching the confined process", error)),
        }
        let [process, socket] = fds.map(|fd| !fd.revents().is_empty());
        if process {
            return Ok(None);
        }
        if socket {
            return Ok(Some(Stop::CallerGone));
        }
        if let Some(ending) = watchdog.check() {
            return Ok(Some(Stop::Limit(ending)));
        }
    }
}

/// Ends the process and everything that it has started, and returns the process's own status.
fn end_all(pid: Pid, in_namespaces: bool, running: bool) -> Result<WaitStatus, Failure> {
    if in_namespaces {
        if running {
            process_tree::kill(pid.as_raw_nonzero().get().unsigned_abs());
        }
        // The kernel has ended the others before it reports the end of the first.
        return loop {
            match waitpid(Some(pid), WaitOptions::empty()) {
                Ok(Some((_, status))) => break Ok(status),
                Ok(None) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => break Err(Failure::new("waiting for the confined process", error)),
            }
        };
    }
    let mut own = None;
    let started = Instant::now();
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((ended, status))) if ended == pid => own = Some(status),
            Ok(Some(_)) => {}
            // Nothing is left: orphans have become our children.
            Err(rustix::io::Errno::CHILD) => break,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Failure::new("waiting for the confined process", error)),
            Ok(None) => {
                if started.elapsed() > Duration::from_secs(10) {
                    return Err(Failure::new("ending the program", "processes are left"));
                }

                process_tree::descendants(std::process::id())
                    .into_iter()
                    .for_each(process_tree::kill);
                std::thread::sleep(Duration::from_micros(200));
            }
        }
    }
    own.ok_or_else(|| Failure::new("waiting for the program", "its status is unknown"))
}

/// A user and group that nothing belongs to, other than those of sandboxes that run now: after the numbers that
/// systemd gives to containers, and SSSD to the users of a domain.
fn transient_id() -> u32 {
    let pid = std::process::id();
    let id = 0x7800_0000 + pid;
    let maps_all = ["uid_map", "gid_map"].iter().all(|name| {
        let map = fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default();
        map.lines().any(|line| {
            let numbers: Vec<u64> = line.split_ascii_whitespace().filter_map(|n| n.parse().ok()).collect();
            matches!(numbers[..], [first, _, count] if first <= id.into() && u64::from(id) < first + count)
        })
    });
    // In a container with few users.
    if maps_all { id } else { 61_184 + pid % 4_000 }
}
