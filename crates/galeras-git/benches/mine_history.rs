//! Mining a history against `git log -p` of the same window, by processor time and memory.
//!
//!   cargo bench -p galeras-git --bench mine_history -- REPOSITORY SINCE UNTIL [THREADS] [ROUNDS]
//!
//! SINCE and UNTIL are dates (2022-01-01) in UTC; THREADS are 2 and ROUNDS 1 unless told. Each
//! round runs `git log --no-merges -p -- '*.py'` and then mines HEAD's history into a sink that
//! counts. Prints, for each round, the seconds of the wall and of the processors (user and system)
//! of both and their ratio; then what was found and the most memory that this process had. The
//! digest is the same for the same rows, in whatever order they come: compare it before and after
//! a change. No tables are written, so this is the work of the crate alone.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use galeras_git::{
    ChangedMethod, CommitFacts, GitError, MineOptions, Mining, Repository, Sink, Window, plan,
};

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let [repository, since, until, more @ ..] = arguments.as_slice() else {
        // `cargo test --benches` names none.
        println!("name a repository and the days between which to mine it");
        return;
    };
    let threads = more.first().map_or(2, |number| number.parse().unwrap());
    let rounds: usize = more.get(1).map_or(1, |number| number.parse().unwrap());
    println!("{repository}, {since} to {until}, {threads} threads");
    for _ in 0..rounds {
        let (log, log_used) = timed(|| git_log(Path::new(repository), since, until));
        let window = Window { since: seconds(since), until: seconds(until) };
        let (found, used) = timed(|| mined(Path::new(repository), window, threads));
        println!(
            "git log: {log_used}, {log} bytes; mine: {used}; processor ratio {:.2}",
            used.processor / log_used.processor
        );
        println!("{found}; peak {} MB", peak() >> 10);
    }
}

/// Seconds.
struct Used {
    wall: f64,
    processor: f64,
}

impl std::fmt::Display for Used {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.2} s, processor {:.2} s", self.wall, self.processor)
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Used) {
    let (started, before) = (Instant::now(), processor_seconds());
    let result = work();
    let wall = started.elapsed().as_secs_f64();
    (result, Used { wall, processor: processor_seconds() - before })
}

/// Of this process and of those that it started and that have ended, as Linux counts them: in
/// hundredths.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields = stat.rsplit(") ").next().unwrap().split(' ');
    let ticks: u64 = fields.skip(11).take(4).map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    ticks as f64 / 100.0
}

/// KB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// The number of bytes that `git log -p` prints.
fn git_log(repository: &Path, since: &str, until: &str) -> u64 {
    let mut git = Command::new("git")
        .args(["-c", "safe.directory=*", "-C"])
        .arg(repository)
        .args(["log", "-p", "--no-merges"])
        .args([format!("--since={since}T00:00:00Z"), format!("--until={until}T00:00:00Z")])
        .args(["--", "*.py"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let printed = std::io::copy(&mut git.stdout.take().unwrap(), &mut std::io::sink()).unwrap();
    assert!(git.wait().unwrap().success());
    printed
}

/// Midnight of a day, in seconds since 1970.
fn seconds(day: &str) -> i64 {
    let mut parts = day.split('-').map(|part| part.parse::<i64>().unwrap());
    let (year, month, day) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
    // Days since 1 March of the year 0, as in H. Hinnant's `days_from_civil`.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    (days - 719_468) * 86_400
}

/// The rows that were found.
#[derive(Default)]
struct Found {
    commits: usize,
    rows: u64,
    bytes: u64,
    refused: u64,
    /// The sum of the hashes of the rows, so that their order does not count.
    digest: u64,
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { commits, rows, bytes, refused, digest } = self;
        let mb = bytes >> 20;
        write!(
            f,
            "{commits} commits, {rows} rows ({mb} MB), {refused} refused, digest {digest:016x}"
        )
    }
}

impl Found {
    fn add(&mut self, row: impl Hash) {
        let mut hasher = DefaultHasher::new();
        row.hash(&mut hasher);
        self.digest = self.digest.wrapping_add(hasher.finish());
    }

    fn join(&mut self, other: &Self) {
        self.rows += other.rows;
        self.bytes += other.bytes;
        self.refused += other.refused;
        self.digest = self.digest.wrapping_add(other.digest);
    }
}

impl Sink for Found {
    fn method(&mut self, commit: &CommitFacts, changed: ChangedMethod<'_>) -> Result<(), GitError> {
        let ChangedMethod { path, method, code, code_before, changed_lines } = changed;
        self.rows += 1;
        self.bytes += (code.len() + code_before.map_or(0, str::len)) as u64;
        let place = (method.qualified_name, method.ordinal, method.start_line, method.end_line);
        let names = (&commit.id, commit.committed, commit.authored, &commit.message, path);
        self.add((names, method.fun_name, place, code, code_before, changed_lines));
        Ok(())
    }

    fn refused(
        &mut self,
        commit: &str,
        path: Option<&str>,
        rule: &'static str,
        reason: &str,
    ) -> Result<(), GitError> {
        self.refused += 1;
        self.add((commit, path, rule, reason));
        Ok(())
    }

    fn end(&mut self) -> Result<(), GitError> {
        Ok(())
    }
}

fn mined(path: &Path, window: Window, threads: usize) -> Found {
    let options = MineOptions {
        window,
        merges: false,
        nested: true,
        include: {
            let glob = globset::GlobBuilder::new("**/*.py").literal_separator(true).build();
            globset::GlobSet::builder().add(glob.unwrap()).build().unwrap()
        },
        max_file_bytes: 1 << 20,
        jobs: threads,
    };
    let interrupt = AtomicBool::new(false);
    let repository = Repository::open(path).unwrap();
    let head = repository.head(None).unwrap().commit;
    let (plan, planned) = timed(|| plan(&repository, head, &options, &interrupt).unwrap());
    println!("planned: {planned}");
    let mining = Mining::new(repository, plan, Arc::new(options));
    let next = AtomicUsize::new(0);
    let work = || {
        let mut found = Found::default();
        loop {
            let piece = next.fetch_add(1, Ordering::Relaxed);
            if piece >= mining.plan().pieces() {
                return found;
            }
            mining.mine(piece, &mut found, &interrupt, &|_| ()).unwrap();
        }
    };
    let mut sum = Found { commits: mining.plan().commits(), ..Found::default() };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().for_each(|worker| sum.join(&worker.join().unwrap()));
    });
    sum
}
