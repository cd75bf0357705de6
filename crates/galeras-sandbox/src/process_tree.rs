//! The processes of a sandbox, as `/proc` shows them to the launcher: finding, measuring, ending.

use std::collections::HashMap;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::outcome::{Ending, Usage};
use crate::specification::Limits;

/// The descendants of a process. The kernel's lists may miss a process whose sibling ends while they
/// are read, so callers that must find all ask again.
pub(crate) fn descendants(root: u32) -> Vec<u32> {
    let mut found = children(root);
    let mut next = 0;
    while next < found.len() {
        found.extend(children(found[next]));
        next += 1;
    }
    found
}

fn children(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let list = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        found.extend(list.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
    }
    found
}

/// The lists of children need CONFIG_PROC_CHILDREN, which all distributions set.
pub(crate) fn can_list_children() -> bool {
    Path::new("/proc/thread-self/children").exists()
}

pub(crate) fn kill(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Waits until none of the other processes has this one's standard output open. Returns false if one
/// still has when the time is over, or a reason to stop has come.
pub(crate) fn output_is_released(
    others: impl Fn() -> Vec<u32>,
    patience: Duration,
    mut stop: impl FnMut() -> bool,
) -> bool {
    let output = fs::read_link("/proc/self/fd/1").ok();
    // Everyone has `/dev/null` open.
    if output
        .as_ref()
        .is_some_and(|output| !output.as_os_str().as_encoded_bytes().starts_with(b"pipe:"))
    {
        return true;
    }
    let holds = |pid: u32| {
        let Some(output) = &output else { return true };
        let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        open.filter_map(|fd| fs::read_link(fd.path()).ok()).any(|target| target == *output)
    };
    // A process that is started while another ends may be missing in one list.
    let released = || (0..2).all(|_| !others().into_iter().any(holds));
    let started = Instant::now();
    loop {
        if released() {
            return true;
        }
        if started.elapsed() >= patience || stop() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The numbers of `/proc/PID/stat` that are of interest.
struct Stat {
    zombie: bool,
    /// Processor time in ticks, and that of the children for which it waited.
    own: u64,
    waited: u64,
    start: u64,
    virtual_bytes: u64,
    resident_pages: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may itself contain any character.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some(Stat {
        zombie: fields.first() == Some(&"Z"),
        own: number(11)? + number(12)?,
        waited: number(13)? + number(14)?,
        start: number(19)?,
        virtual_bytes: number(20)?,
        resident_pages: number(21)?,
    })
}

/// The memory of processes that share pages, each page counted once. Nothing if it cannot be read.
fn proportional_memory(pids: &[u32]) -> Option<u64> {
    pids.iter().map(|pid| size(*pid, "smaps_rollup", "Pss:")).sum()
}

/// A size of a process in one of its files in `/proc`.
fn size(pid: u32, file: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/{file}")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.split_ascii_whitespace().next()?.parse::<u64>().ok()? << 10)
}

/// The address space from which tables of pages are measured; those of smaller ones have at most 16 MiB.
const LARGE: u64 = 8 << 30;

/// Measures the processes of a sandbox and compares them with its limits, which the kernel knows
/// only for each process.
pub(crate) struct Watchdog {
    limits: Limits,
    started: Instant,
    root: u32,
    folder: Option<PathBuf>,
    /// Ticks of every process that was ever seen, by its number and start.
    seen: HashMap<(u32, u64), u64>,
    cpu: Duration,
    peak_memory: u64,
    checks: u32,
}

impl Watchdog {
    /// The time between two checks. A process that allocates as fast as it can gets a few tens of
    /// megabytes in it.
    pub(crate) const INTERVAL: Duration = Duration::from_millis(20);

    /// Watches the descendants of `root`, and the files in `folder`.
    pub(crate) fn new(limits: Limits, root: u32, folder: Option<PathBuf>) -> Self {
        let (seen, started) = (HashMap::new(), Instant::now());
        Self { limits, started, root, folder, seen, cpu: Duration::ZERO, peak_memory: 0, checks: 0 }
    }

    /// The limit that was reached.
    pub(crate) fn check(&mut self) -> Option<Ending> {
        self.checks += 1;
        if self.started.elapsed() >= self.limits.wall {
            return Some(Ending::WallTime);
        }
        let (mut pids, mut pages, mut tables, mut live) = (Vec::new(), 0, 0, 0);
        for pid in descendants(self.root) {
            let Some(stat) = stat(pid) else { continue };
            self.seen.insert((pid, stat.start), stat.own);
            live += stat.own + stat.waited;
            if !stat.zombie {
                pids.push(pid);
                pages += stat.resident_pages;
                // The kernel's table of a process's pages: 4 KiB for each 2 MiB that it has looked at.
                if stat.virtual_bytes > LARGE {
                    tables += size(pid, "status", "VmPTE:").unwrap_or_default();
                }
            }
        }
        // A process that ignores SIGCHLD loses the times of its children, and the list of those seen
        // misses the short ones.
        let ticks = live.max(self.seen.values().sum());
        let cpu =
            Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64);
        self.cpu = self.cpu.max(cpu);
        if cpu >= self.limits.cpu {
            return Some(Ending::CpuTime);
        }
        let mut memory = pages * rustix::param::page_size() as u64;
        if memory > self.limits.memory && pids.len() > 1 {
            memory = proportional_memory(&pids).unwrap_or(memory);
        }
        memory += tables;
        self.peak_memory = self.peak_memory.max(memory);
        if memory > self.limits.memory {
            return Some(Ending::Memory);
        }
        if pids.len() as u64 > self.limits.processes {
            return Some(Ending::Processes);
        }
        if self.checks.is_multiple_of(4) && self.files_exceed_the_limit(&pids) {
            return Some(Ending::Scratch);
        }
        None
    }

    /// Adds its measurements to those of the kernel, which loses the times of processes that end with
    /// their namespace.
    pub(crate) fn complete(&self, usage: Usage) -> Usage {
        Usage {
            cpu: usage.cpu.max(self.cpu),
            peak_memory: usage.peak_memory.max(self.peak_memory),
            wall: usage.wall,
        }
    }

    /// The time until the next check. Programs without limits may run for days.
    pub(crate) fn pause(&self) -> Duration {
        let times = if self.limits.memory == u64::MAX { 20 } else { 1 };
        (Self::INTERVAL * times).min(self.limits.wall.saturating_sub(self.started.elapsed()))
    }

    /// Returns true if the scratch folder, which is on a file system without a limit, holds too much.
    pub(crate) fn files_exceed_the_limit(&self, pids: &[u32]) -> bool {
        use io::ErrorKind::{NotADirectory, NotFound};

        let Some(folder) = &self.folder else { return false };
        let Ok(device) = fs::symlink_metadata(folder).map(|data| data.dev()) else { return false };
        let (mut bytes, mut files) = (0, 0);
        let mut folders = vec![folder.clone()];
        while let Some(folder) = folders.pop() {
            let entries = match fs::read_dir(folder) {
                Ok(entries) => entries,
                Err(error) if [NotFound, NotADirectory].contains(&error.kind()) => continue,
                // Too deep, or hidden on purpose: it may hold anything.
                Err(_) => return true,
            };
            for entry in entries.flatten() {
                let Ok(data) = entry.metadata() else { continue };
                files += 1;
                bytes += data.blocks() * 512;
                if data.is_dir() {
                    folders.push(entry.path());
                }
                if bytes > self.limits.scratch || files > self.limits.scratch_files {
                    return true;
                }
            }
        }
        // Files without a name that a process still holds open.
        let mut nameless = HashMap::new();
        for pid in pids {
            for link in fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
                let Ok(data) = fs::metadata(link.path()) else { continue };
                if data.is_file() && data.nlink() == 0 && data.dev() == device {
                    nameless.insert(data.ino(), data.blocks() * 512);
                }
            }
        }
        bytes + nameless.values().sum::<u64>() > self.limits.scratch
    }
}

/// Removes the scratch folder, also what is hidden in it or nested deeply. No program that could put links there
/// may be left.
pub(crate) fn remove_folder(folder: &Path) {
    let mut folders = vec![folder.to_owned()];
    let mut next = 0;
    while let Some(folder) = folders.get(next).cloned() {
        next += 1;
        let _ = fs::set_permissions(&folder, Permissions::from_mode(0o700));
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            } else {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
    folders.iter().rev().for_each(|folder| drop(fs::remove_dir(folder)));
    if folder.exists() {
        // Paths that are too long for the kernel.
        let _ = Command::new("rm").arg("-rf").arg(folder).status();
    }
}

/// The tasks (threads) of a user on this machine.
pub(crate) fn tasks_of_user(uid: u32) -> u64 {
    let mut tasks = 0;
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let is_process = entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit);
        if is_process && entry.metadata().is_ok_and(|data| data.uid() == uid) {
            tasks += fs::read_dir(entry.path().join("task")).into_iter().flatten().count() as u64;
        }
    }
    tasks
}
