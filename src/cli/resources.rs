//! What of the machine a run may take: threads and memory, as given or by default.

use std::io::Read as _;
use std::sync::LazyLock;

use clap::Args;

use super::sizes::parse_size;
use galeras_engine::runner::Resources;

/// The memory of a run.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct MemoryArgs {
    /// Memory for work on large tables, as in 512MB or 4GiB, which the steps that are computed side
    /// by side share; beyond it temporary files are used (default: a quarter of the machine's).
    #[arg(long, value_name = "SIZE", env = "GALERAS_MEMORY", value_parser = memory)]
    memory: Option<usize>,
}

impl MemoryArgs {
    /// In bytes.
    pub(super) fn bytes(self) -> usize {
        self.memory.unwrap_or_else(default_memory)
    }
}

/// As many threads as the machine has processors.
pub(super) fn all_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// All processors, and the memory that a run takes if nobody says anything.
pub(super) fn default_resources() -> Resources {
    Resources { jobs: all_threads(), memory: default_memory() }
}

/// A quarter of what there is, where that can be known, but no less than 1 GiB.
fn default_memory() -> usize {
    const LEAST: u64 = 1 << 30;
    static MEMORY: LazyLock<u64> =
        LazyLock::new(|| machine_memory().map_or(LEAST, |all| (all / 4).max(LEAST)));
    usize::try_from(*MEMORY).unwrap_or(usize::MAX)
}

/// The bytes of `--memory`.
fn memory(text: &str) -> Result<usize, String> {
    const LEAST: u64 = 1 << 20;
    match parse_size(text)? {
        bytes if bytes < LEAST => Err("at least 1MiB is needed".into()),
        bytes => Ok(usize::try_from(bytes).unwrap_or(usize::MAX)),
    }
}

/// The memory of the machine, or of the container if that has less (cgroup v2).
fn machine_memory() -> Option<u64> {
    let machine = total_kilobytes(&kernel_text("/proc/meminfo")?)?.checked_mul(1024)?;
    let group = kernel_text("/proc/self/cgroup").and_then(|groups| {
        let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?.to_owned();
        Some(format!("/sys/fs/cgroup{}/memory.max", path.trim_end_matches('/')))
    });
    let limits = group.into_iter().chain(["/sys/fs/cgroup/memory.max".to_owned()]);
    let limits = limits.filter_map(|file| kernel_text(&file)?.trim().parse::<u64>().ok());
    Some(limits.fold(machine, u64::min))
}

/// A small file that the kernel writes.
fn kernel_text(file: &str) -> Option<String> {
    const LIMIT: u64 = 64 << 10;
    let mut text = String::new();
    std::fs::File::open(file).ok()?.take(LIMIT).read_to_string(&mut text).ok()?;
    Some(text)
}

/// The number behind `MemTotal:`.
fn total_kilobytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_says_how_much_memory_there_is() {
        let text = "MemTotal:       24657396 kB\nMemFree:         1234 kB\n";
        assert_eq!(total_kilobytes(text), Some(24_657_396));
        assert_eq!(total_kilobytes("nothing"), None);
        assert!(default_memory() >= 1 << 30);
    }

    #[test]
    fn too_little_memory_is_refused() {
        assert_eq!(memory("1MiB"), Ok(1 << 20));
        assert!(memory("1KiB").is_err() && memory("much").is_err());
    }
}
