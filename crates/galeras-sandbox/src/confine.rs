//! The last process before the program: it applies the layers to itself, then starts the program.
//!
//! Without a PID namespace it becomes the program. Within one it is the first process, whose end is
//! the end of all others; it waits for the program and reports.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, LandlockStatus,
    PathBeneath, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, RulesetStatus,
    Scope, path_beneath_rules,
};
use nix::sys::resource::{UsageWho, getrusage};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, fstat};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Gid, Resource, Rlimit, Signal, Uid, WaitOptions, WaitStatus,
    set_dumpable_behavior, set_parent_process_death_signal, setrlimit, umask, wait,
};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use crate::namespaces::{self, DEVICES, ZERO};
use crate::outcome::{Ending, Usage};
use crate::process_tree::{output_is_released, tasks_of_user};
use crate::protocol::{self, Failure, LandlockSupport, Launch, Message, Step};
use crate::seccomp::{self, Gaps};
use crate::specification::{Limits, TEMPORARY, WORK};

/// Takes a [`Launch`] from the launcher, and reports to it.
pub(crate) fn enter(socket: &UnixStream) -> i32 {
    // A separate session: a signal to the program's process group reaches nothing else.
    let _ = rustix::process::setsid();
    if die_with_parent().is_err() {
        return 1;
    }
    let Ok(Some((launch, bytes, input))) = protocol::receive::<Launch>(socket) else { return 1 };
    let message = run(socket, &launch, &bytes, input).unwrap_or_else(Message::Failed);
    i32::from(protocol::send(socket, &message, &[], None).is_err())
}

fn run(
    socket: &UnixStream,
    launch: &Launch,
    bytes: &[u8],
    input: Option<OwnedFd>,
) -> Result<Message, Failure> {
    let (landlock, user_namespace) = confine(launch, bytes)?;
    // A change of the user has cleared it.
    die_with_parent().step("arranging to end with the launcher")?;
    if is_closed(socket) {
        return Ok(Message::Cancelled);
    }
    let [program, arguments @ ..] = launch.command.as_slice() else {
        return Ok(Message::Ready { landlock, user_namespace });
    };
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(&launch.environment);
    command.stdin(input.map_or_else(Stdio::null, Stdio::from));
    let not_started = |error: std::io::Error| Failure {
        step: format!("starting {program}"),
        reason: error.to_string(),
        not_started: true,
    };
    if !launch.confinement.namespaces {
        return Err(not_started(command.exec()));
    }
    // The program is the same user. It must not read or change the process that reports.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).step("protecting the first process")?;
    let started = Instant::now();
    let child = command.spawn().map_err(not_started)?;
    loop {
        let (pid, status) = match wait(WaitOptions::empty()) {
            Ok(Some(ended)) => ended,
            // The program can send a signal that the standard library handles.
            Ok(None) | Err(Errno::INTR) => continue,
            Err(error) => return Err(Failure::new("waiting for the program", error)),
        };
        if pid.as_raw_nonzero().get().unsigned_abs() == child.id() {
            let usage = usage_of_children(started.elapsed());
            let mut ending = ending(status, &usage, &launch.limits);
            if ending == Ending::Exited(0)
                && !launch.patience.is_zero()
                && !output_is_released(others_in_namespace, launch.patience, || false)
            {
                ending = Ending::OutputOpen;
            }
            return Ok(Message::Done { ending, usage });
        }
    }
}

/// The other processes of this one's namespace.
fn others_in_namespace() -> Vec<u32> {
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
    // Orphans are children of this process.
    if wait(WaitOptions::NOHANG).is_err() {
        return Vec::new();
    }
    // Without /proc there is no list. A process that cannot be inspected counts as one with an open output.
    let Ok(entries) = fs::read_dir("/proc") else { return vec![0] };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| *pid != std::process::id()).collect()
}

/// The usage of the processes for which this one has waited.
pub(crate) fn usage_of_children(wall: Duration) -> Usage {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else {
        return Usage { wall, ..Usage::default() };
    };
    let time = |time: nix::sys::time::TimeVal| {
        Duration::new(time.tv_sec().unsigned_abs(), 0)
            + Duration::from_micros(time.tv_usec().unsigned_abs())
    };
    Usage {
        cpu: time(usage.user_time()) + time(usage.system_time()),
        wall,
        peak_memory: usage.max_rss().unsigned_abs() << 10,
    }
}

/// How a program ended that no watchdog has ended.
pub(crate) fn ending(status: WaitStatus, usage: &Usage, limits: &Limits) -> Ending {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Ending::Exited(code),
        (_, Some(libc::SIGXCPU)) => Ending::CpuTime,
        (_, Some(libc::SIGKILL)) if usage.cpu >= limits.cpu => Ending::CpuTime,
        (_, signal) => Ending::Signaled(signal.unwrap_or_default()),
    }
}

fn die_with_parent() -> rustix::io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))
}

/// Returns true if the process at the other end has gone.
pub(crate) fn is_closed(socket: &UnixStream) -> bool {
    let mut fds = [PollFd::new(socket, PollFlags::empty())];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
}

fn confine(launch: &Launch, bytes: &[u8]) -> Result<(LandlockSupport, bool), Failure> {
    let confinement = &launch.confinement;
    let proc = namespaces::open_proc()?;
    if confinement.namespaces {
        namespaces::build_root(launch)?;
    }
    if let Some(id) = launch.id {
        let (uid, gid) = (Uid::from_raw(id), Gid::from_raw(id));
        set_thread_groups(&[]).step("leaving the groups of root")?;
        set_thread_res_gid(gid, gid, gid).step("changing to a group without privileges")?;
        set_thread_res_uid(uid, uid, uid).step("changing to a user without privileges")?;
    }
    let mut user_namespace = false;
    if confinement.namespaces && (confinement.user_namespace || launch.is_probe()) {
        // Otherwise the files of /proc that describe this process belong to root.
        set_dumpable_behavior(DumpableBehavior::Dumpable).step("opening the user namespace")?;
        let made = namespaces::become_user(&proc, launch.id.unwrap_or(0));
        user_namespace = made.is_ok();
        // Without root there are no other namespaces, either.
        if launch.id.is_none() || !launch.is_probe() {
            made?;
        }
    }
    drop(proc);

    // Started by root, every program is another user. In a folder that all of them may write to, the
    // next one must be able to replace the files of this one.
    let shares = launch.id.is_some() && launch.readable.iter().any(|readable| readable.writable);
    umask(if shares { Mode::empty() } else { Mode::WGRP | Mode::WOTH });
    let (work, temporary) = match &launch.folder {
        Some(folder) => (folder.join("work"), folder.join("tmp")),
        None => (PathBuf::from(WORK), PathBuf::from(TEMPORARY)),
    };
    if !launch.is_probe() {
        std::env::set_current_dir(&work).step("entering the working directory")?;
        write_files(launch, bytes)?;
        if let Some(directory) = &launch.directory {
            std::env::set_current_dir(directory)
                .step(format!("entering {}", directory.display()))?;
        }
    }
    if confinement.resource_limits {
        set_limits(launch)?;
    }
    if confinement.seccomp || confinement.landlock.is_some() {
        rustix::thread::set_no_new_privs(true).step("giving up new privileges")?;
    }
    let landlock = match confinement.landlock {
        Some(version) => restrict_files(version, launch, &[&work, &temporary])?,
        None => LandlockSupport::default(),
    };
    if confinement.seccomp {
        let gaps = Gaps {
            network: confinement.network,
            memory: launch.limits.memory < u64::MAX,
            process: (!confinement.namespaces).then(std::process::id),
            signals: confinement.landlock.is_none_or(|version| version < 6),
            attributes: !confinement.namespaces,
            permissions: !confinement.namespaces && launch.id.is_none(),
        };
        seccomp::install(gaps).step("installing a seccomp filter")?;
    }
    Ok((landlock, user_namespace))
}

fn write_files(launch: &Launch, mut bytes: &[u8]) -> Result<(), Failure> {
    for file in &launch.files {
        let Some((contents, rest)) = bytes.split_at_checked(file.length) else {
            return Err(Failure::new("writing files", "the message is too short"));
        };
        bytes = rest;
        let write = || {
            if let Some(folder) = file.path.parent().filter(|folder| !folder.as_os_str().is_empty())
            {
                fs::create_dir_all(folder)?;
            }
            let mode = if file.executable { 0o755 } else { 0o644 };
            let mut options = File::options();
            options
                .write(true)
                .create(true)
                .truncate(true)
                .mode(mode)
                .open(&file.path)?
                .write_all(contents)
        };
        write().step(format!("writing {}", file.path.display()))?;
    }
    Ok(())
}

fn set_limits(launch: &Launch) -> Result<(), Failure> {
    let limits = &launch.limits;
    let seconds = limits.cpu.as_secs() + 1;
    // The kernel counts the user's other processes outside a namespace, and one more inside.
    let others = match (launch.confinement.namespaces, launch.id) {
        (true, _) => 1,
        (false, Some(_)) => 0,
        (false, None) => tasks_of_user(rustix::process::getuid().as_raw()),
    };
    for (resource, soft, hard, name) in [
        // At 0, a crash would still start the program of `core_pattern`, outside and as root.
        (Resource::Core, 1, 1, "core dumps"),
        (Resource::Rtprio, 0, 0, "real-time priorities"),
        (Resource::Nice, 0, 0, "priorities"),
        // The first signal can be ignored, the second cannot.
        (Resource::Cpu, seconds, seconds + 1, "processor time"),
        (Resource::Data, limits.memory, limits.memory, "memory"),
        (Resource::Fsize, limits.file_size, limits.file_size, "the size of files"),
        (Resource::Nofile, limits.open_files, limits.open_files, "open files"),
        (Resource::Nproc, limits.processes + others, limits.processes + others, "processes"),
        (Resource::Memlock, 0, 0, "locked memory"),
        (Resource::Msgqueue, 0, 0, "message queues"),
    ] {
        // The user's own limit may be lower.
        let most = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
        let limit = Rlimit { current: Some(soft.min(most)), maximum: Some(hard.min(most)) };
        setrlimit(resource, limit).step(format!("limiting {name}"))?;
    }
    Ok(())
}

fn restrict_files(
    version: i32,
    launch: &Launch,
    scratch: &[&Path],
) -> Result<LandlockSupport, Failure> {
    let abi = ABI::from(version);
    // A probe asks for everything, to learn what there is.
    let level =
        if launch.is_probe() { CompatLevel::BestEffort } else { CompatLevel::HardRequirement };
    let proc = launch.confinement.namespaces.then_some(Path::new("/proc"));
    let hollow = launch.readable.iter().filter(|readable| readable.hollow);
    // Python finds modules only in a folder that it can list.
    let listed = hollow.map(|readable| readable.real.as_path()).chain(launch.directory.as_deref());
    let readable = launch.readable.iter().filter(|readable| !readable.hollow);
    let readable = readable.map(|readable| readable.real.as_path()).chain(proc);
    let shared = launch.readable.iter().filter(|readable| readable.writable);
    let writable = shared.map(|readable| readable.real.as_path());
    let rule = |path: &Path, access: BitFlags<AccessFs>| {
        let opened = namespaces::open_without_links(path).ok()?;
        let is_folder =
            fstat(&opened).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_dir());
        let access = if is_folder { access } else { access & AccessFs::from_file(abi) };
        Some(Ok::<_, RulesetError>(PathBeneath::new(opened, access)))
    };
    let restrict = || -> Result<_, RulesetError> {
        let mut ruleset =
            Ruleset::default().set_compatibility(level).handle_access(AccessFs::from_all(abi))?;
        if abi >= ABI::V4 && !launch.confinement.network {
            ruleset = ruleset.handle_access(AccessNet::from_all(abi))?;
        }
        if abi >= ABI::V6 {
            ruleset = ruleset.scope(Scope::from_all(abi))?;
        }
        ruleset
            .create()?
            .add_rules(readable.filter_map(|path| rule(path, AccessFs::from_read(abi))))?
            .add_rules(writable.filter_map(|path| rule(path, AccessFs::from_all(abi))))?
            .add_rules(path_beneath_rules(scratch, AccessFs::from_all(abi)))?
            .add_rules(path_beneath_rules(DEVICES, AccessFs::from_file(abi)))?
            // Written to, it is shared memory that no limit counts.
            .add_rules(path_beneath_rules([ZERO], AccessFs::ReadFile))?
            .add_rules(listed.filter_map(|path| rule(path, AccessFs::ReadDir.into())))?
            .restrict_self()
    };
    let status = restrict().step("confining with Landlock")?;
    if status.ruleset == RulesetStatus::NotEnforced && !launch.is_probe() {
        return Err(Failure::new("confining with Landlock", "it is not enforced"));
    }
    Ok(match status.landlock {
        LandlockStatus::NotImplemented => LandlockSupport::NotImplemented,
        LandlockStatus::NotEnabled => LandlockSupport::NotEnabled,
        LandlockStatus::Available { effective_abi, .. } => {
            LandlockSupport::Version(effective_abi as i32)
        }
    })
}
