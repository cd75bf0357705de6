//! Sizes on the command line, threads, memory and engine of a run, and the limit of the memory
//! guard.

use std::io::{self, Read as _, Write as _};
use std::panic;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use clap::Args;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

use super::context::{Exit, Failure, fail};
use super::screen::{is_terminal, tell};
use super::{STACK_BYTES, Verb};
use galeras_base::memory_guard::{self, MemoryExcess};
use galeras_base::system_limits;
use galeras_base::terminal_escape::escape;
use galeras_display::bytes;
use galeras_engine::runner::{Embedded, Engine, Placement};
use galeras_operator::event::EventSink;
use galeras_operator::{BoundStep, Consent, RunEnv};
use galeras_store::StoreLocation;

#[derive(Args, Clone, Copy, Debug)]
pub(super) struct MemoryArgs {
    /// Memory for work on large tables, as in 512MB or 4GiB, shared by the steps that are computed
    /// side by side; beyond it temporary files are used (default: a quarter of the machine's). The
    /// run ends with exit code 4 if the process needs three times as much and 512 MiB.
    #[arg(long, value_name = "SIZE", env = "GALERAS_MEMORY", value_parser = memory)]
    memory: Option<usize>,
}

impl MemoryArgs {
    pub(super) fn bytes(self) -> usize {
        self.memory.unwrap_or_else(default_memory)
    }
}

pub(super) fn all_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The environment of steps that no argument gives other threads or memory.
pub(super) fn default_env(
    consent: Arc<dyn Consent>,
    cancel: CancellationToken,
    events: Arc<dyn EventSink>,
) -> RunEnv {
    RunEnv { jobs: all_threads(), memory: default_memory(), consent, cancel, events }
}

/// Starts the memory guard of a verb. Verbs that only read a workflow get less: SQL constants are
/// evaluated during planning, and an editor may plan a workflow that its user has not read.
pub(super) fn start_guard(verb: &Verb) -> io::Result<()> {
    let limit = match verb {
        Verb::Run(args) => limit(args.memory.bytes()),
        #[cfg(feature = "cluster")]
        Verb::Cluster(verb) => limit(verb.memory().map_or_else(default_memory, MemoryArgs::bytes)),
        Verb::Check(_) | Verb::Plan(_) | Verb::Explain(_) | Verb::Graph(_) => {
            (default_memory() as u64).min(machine_share())
        }
        _ => limit(default_memory()),
    };
    let _ = LazyLock::force(&REFUSED_MEMORY);
    memory_guard::start(limit, out_of_memory, refused_memory)
}

/// How long an idle thread for blocking work is kept: the system may refuse another one.
const KEEP_ALIVE: Duration = Duration::from_secs(24 * 60 * 60);

/// Starts the program's runtime. If the system refuses one of its threads, tokio panics, and waits
/// in the unwinding for the other threads, which never end: so the panic ends the program.
pub(super) fn start_runtime(workers: usize) -> io::Result<Runtime> {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {
        let refused = io::Error::from(rustix::io::Errno::AGAIN);
        std::process::exit(i32::from(no_threads(&refused).show().code()));
    }));
    let runtime = Builder::new_multi_thread()
        .worker_threads(workers)
        .thread_stack_size(STACK_BYTES)
        .thread_keep_alive(KEEP_ALIVE)
        .enable_all()
        .build()?;
    // A first thread for blocking work, which stays: such work then never lacks a thread.
    drop(runtime.spawn_blocking(|| {}));
    panic::set_hook(hook);
    Ok(runtime)
}

/// The failure when the system refuses a thread.
pub(super) fn no_threads(error: &io::Error) -> Failure {
    let (message, advice) = (system_limits::no_thread(error), system_limits::ADVICE);
    fail(format!("{message}\nhelp: {advice}"), Exit::Disk)
}

/// The message when the system refuses memory; made before, as it needs memory itself.
static REFUSED_MEMORY: LazyLock<String> = LazyLock::new(|| {
    format!(
        "error: out of memory: the system gives no more; its limits are {}\nhelp: the results so far \
         are kept, and the next run continues with them; {}\n",
        system_limits::limits(),
        system_limits::ADVICE
    )
});

/// Ends the program because the system refuses memory.
fn refused_memory() -> ! {
    // Nobody can be told if this fails.
    let _ = io::stderr().write_all(REFUSED_MEMORY.as_bytes());
    std::process::exit(i32::from(Exit::Disk.code()))
}

/// The memory that the process may use if `work` bytes are for large tables. Joins, groups, rows in
/// transit and the memory of threads are not part of `work`.
fn limit(work: usize) -> u64 {
    (work as u64).saturating_mul(3).saturating_add(512 << 20).min(machine_share())
}

/// Four fifths of the machine's memory: the most that the process may have.
fn machine_share() -> u64 {
    static SHARE: LazyLock<u64> =
        LazyLock::new(|| machine_memory().map_or(u64::MAX, |all| all / 5 * 4));
    *SHARE
}

/// Ends the program because it uses too much memory.
fn out_of_memory(excess: &MemoryExcess) -> ! {
    if is_terminal() {
        // The bars of running steps may be on this line.
        tell("\n");
    }
    let exit = fail(explanation(excess, machine_share()), Exit::Disk).show();
    std::process::exit(i32::from(exit.code()))
}

/// Explains which part used how much memory, and how to continue.
fn explanation(excess: &MemoryExcess, share: u64) -> String {
    let active = match excess.active.as_slice() {
        [] => String::new(),
        names => {
            let names: Vec<String> =
                names.iter().map(|name| format!("`{}`", escape(name))).collect();
            format!(" while it worked on {}", names.join(", "))
        }
    };
    let (used, limit) = (bytes(excess.used), bytes(excess.limit));
    let more = match excess.limit < share {
        true => "give it more with --memory",
        false => "use a machine with more memory",
    };
    format!(
        "out of memory: galeras needed {used}{active}, and {limit} is the limit\nhelp: the results \
         so far are kept, and the next run continues with them; {more}, compute fewer steps side by \
         side with --jobs, or let the step make smaller values"
    )
}

/// A quarter of the machine's memory, if known, but at least 1 GiB.
fn default_memory() -> usize {
    const LEAST: u64 = 1 << 30;
    static MEMORY: LazyLock<u64> =
        LazyLock::new(|| machine_memory().map_or(LEAST, |all| (all / 4).max(LEAST)));
    usize::try_from(*MEMORY).unwrap_or(usize::MAX)
}

/// A size in bytes: a number with `kB`, `MB`, `GB`, `TB` (powers of 1000), `KiB`, `MiB`, `GiB`,
/// `TiB` (powers of 1024), `B` or nothing, in any case.
pub(super) fn parse_size(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 10] = [
        ("", 1),
        ("b", 1),
        ("kb", 1_000),
        ("mb", 1_000_000),
        ("gb", 1_000_000_000),
        ("tb", 1_000_000_000_000),
        ("kib", 1 << 10),
        ("mib", 1 << 20),
        ("gib", 1 << 30),
        ("tib", 1 << 40),
    ];
    let lower = text.trim().to_ascii_lowercase();
    let split = lower.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(lower.len());
    let (number, unit) = lower.split_at(split);
    let unit = UNITS.iter().find(|(name, _)| *name == unit.trim()).map(|(_, unit)| *unit);
    let bytes = unit.and_then(|unit| match number.parse::<u64>() {
        // Sizes saturate at the largest number.
        Ok(whole) => Some(whole.saturating_mul(unit)),
        Err(_) => Some((number.parse::<f64>().ok()? * unit as f64).round() as u64),
    });
    bytes.ok_or_else(|| "write a size such as 512MB or 4GiB".to_string())
}

fn memory(text: &str) -> Result<usize, String> {
    const LEAST: u64 = 1 << 20;
    match parse_size(text)? {
        bytes if bytes < LEAST => Err("at least 1MiB is needed".into()),
        bytes => Ok(usize::try_from(bytes).unwrap_or(usize::MAX)),
    }
}

/// The memory of the machine, or of the container if that has less (cgroup v2).
pub(super) fn machine_memory() -> Option<u64> {
    let machine = total_kilobytes(&kernel_text("/proc/meminfo")?)?.checked_mul(1024)?;
    let group = kernel_text("/proc/self/cgroup").and_then(|groups| {
        let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?.to_owned();
        Some(format!("/sys/fs/cgroup{}/memory.max", path.trim_end_matches('/')))
    });
    let limits = group.into_iter().chain(["/sys/fs/cgroup/memory.max".to_owned()]);
    let limits = limits.filter_map(|file| kernel_text(&file)?.trim().parse::<u64>().ok());
    Some(limits.fold(machine, u64::min))
}

fn kernel_text(file: &str) -> Option<String> {
    const LIMIT: u64 = 64 << 10;
    let mut text = String::new();
    std::fs::File::open(file).ok()?.take(LIMIT).read_to_string(&mut text).ok()?;
    Some(text)
}

/// The number after `MemTotal:`.
fn total_kilobytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Options that select the engine.
#[derive(Args, Clone, Debug)]
pub(super) struct EngineArgs {
    /// Have the work done by the cluster at this address, df://HOST:PORT, whose executors use the
    /// same store (default: by this process).
    #[arg(long, value_name = "URL", env = "GALERAS_ENGINE")]
    engine: Option<String>,
}

impl EngineArgs {
    pub(super) fn address(&self) -> Option<&str> {
        self.engine.as_deref()
    }

    /// The place where a step would run, if work is sent to executors.
    pub(super) fn place(&self, step: &dyn BoundStep) -> Option<String> {
        self.engine.as_ref().map(|_| Placement::of(step).describe())
    }

    /// The engine for a run on this store; shows the error if it cannot be used.
    pub(super) fn open(&self, cache: &str) -> Result<Arc<dyn Engine>, Failure> {
        let Some(address) = &self.engine else { return Ok(Arc::new(Embedded)) };
        if let Ok(StoreLocation::Memory(_)) = StoreLocation::parse(cache) {
            let message = "a store in memory cannot be shared with executors; give --cache a folder \
                           that they see, or a bucket";
            return Err(fail(message, Exit::Invalid));
        }
        cluster(address)
    }
}

#[cfg(feature = "cluster")]
fn cluster(address: &str) -> Result<Arc<dyn Engine>, Failure> {
    use crate::registry::REGISTRY;
    use galeras_cluster::ClusterEngine;
    let engine = ClusterEngine::new(address, &REGISTRY);
    Ok(Arc::new(engine.map_err(|error| fail(error.to_string(), Exit::Invalid))?))
}

#[cfg(not(feature = "cluster"))]
fn cluster(_: &str) -> Result<Arc<dyn Engine>, Failure> {
    let message =
        "this build of galeras knows no clusters\nhelp: build it with `--features cluster`";
    Err(fail(message, Exit::Invalid))
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
    fn the_message_names_the_steps_the_use_and_the_limit() {
        let active = vec!["a".to_string(), "b[x=1]".to_string()];
        let excess = MemoryExcess { used: 900 << 20, limit: 800 << 20, active };
        let text = explanation(&excess, 1 << 40);
        assert!(text.contains("worked on `a`, `b[x=1]`") && text.contains("--memory"), "{text}");
        let text = explanation(&MemoryExcess { active: Vec::new(), ..excess }, 800 << 20);
        assert!(text.contains("a machine with more") && !text.contains("worked on"), "{text}");
    }

    #[test]
    fn the_limit_leaves_room_and_fits_the_machine() {
        assert_eq!(limit(0), (512 << 20).min(machine_share()));
        assert_eq!(limit(usize::MAX), machine_share());
    }

    #[test]
    fn too_little_memory_is_refused() {
        assert_eq!(memory("1MiB"), Ok(1 << 20));
        assert!(memory("1KiB").is_err() && memory("much").is_err());
    }

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [
            ("0", 0),
            ("1048577", 1_048_577),
            ("10MB", 10_000_000),
            (" 10 mib ", 10 << 20),
            ("1.5kB", 1500),
            ("2TiB", 2 << 40),
            ("7 B", 7),
            ("18446744073709551615", u64::MAX),
            ("99999999TiB", u64::MAX),
            ("99999999999999999999GB", u64::MAX),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "MB", "-1", "1.2.3GB", "1 XB", "1e3", "nan", "1k"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
