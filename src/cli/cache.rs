//! `cache ls`, `cache gc`, `cache verify`.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use super::aligned::{Side, aligned, to_the_second};
use super::context::{Exit, Failure, answer, fail, note, open_store, print, print_json};
use super::resources::parse_size;
use super::{Format, StoreArgs};
use galeras_base::digest::Digest;
use galeras_base::terminal_escape::escape;
use galeras_display::{bytes, count};
use galeras_store::{
    GcPolicy, Manifest, RunRecord, STORE_FOLDERS, Store, StoreLocation, StoreUsage,
};

#[derive(Subcommand)]
pub(crate) enum CacheVerb {
    /// List the stored results, newest first.
    Ls(LsArgs),
    /// Remove what no recent run needs, and nothing while a run or a reader uses the store.
    Gc(GcArgs),
    /// Read everything again and report what is damaged or missing.
    Verify(VerifyArgs),
}

#[derive(Args)]
pub(crate) struct LsArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// One line for all results of a workflow, a step or an operator, the largest first.
    #[arg(long, value_enum)]
    by: Option<By>,
    /// How to answer.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Results are grouped by the workflow, step or operator that computed them first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    Workflow,
    Step,
    Operator,
}

impl By {
    fn word(self) -> &'static str {
        match self {
            Self::Workflow => "workflow",
            Self::Step => "step",
            Self::Operator => "operator",
        }
    }
}

#[derive(Args)]
pub(crate) struct GcArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Keep what the last N runs of every workflow used.
    #[arg(long, value_name = "N")]
    keep_runs: Option<usize>,
    /// Keep what was made or used in the last DAYS days.
    #[arg(long, value_name = "DAYS", value_parser = days)]
    older_than: Option<u64>,
    /// Remove the longest unused results until the tables take at most this much, as in 10MB or
    /// 2GiB.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_bytes: Option<u64>,
    /// Only list what would be removed, and how much space that frees.
    #[arg(long)]
    dry_run: bool,
    /// How to answer.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// A number of days: `30` or `30d`.
fn days(text: &str) -> Result<u64, String> {
    let number = text.strip_suffix('d').unwrap_or(text);
    number.parse().map_err(|_| "give a number of days, such as 30".to_string())
}

#[derive(Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Remove what is damaged, so that it is computed again.
    #[arg(long)]
    repair: bool,
    /// How to answer.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) async fn cache(verb: CacheVerb) -> Result<Exit, Failure> {
    match verb {
        CacheVerb::Ls(args) => ls(args).await,
        CacheVerb::Gc(args) => gc(args).await,
        CacheVerb::Verify(args) => verify(args).await,
    }
}

/// Opens the store, with a warning if there is none: its name may be misspelt.
async fn opened(args: &StoreArgs) -> Result<Store, Failure> {
    let location = args.here()?;
    if let Ok(StoreLocation::Folder(folder)) = StoreLocation::parse(&location)
        && !STORE_FOLDERS.iter().any(|name| folder.join(name).exists())
    {
        let folder = escape(&location);
        note(&format!("warning: {folder} has no results; --cache names another store"));
    }
    open_store(&location).await
}

async fn ls(args: LsArgs) -> Result<Exit, Failure> {
    let store = opened(&args.store).await?;
    let (results, usage) = (store.list().await?, store.usage().await?);
    match (args.by, args.format) {
        (None, Format::Json) => each_json(results.iter().map(result_json)),
        (None, Format::Human) => print(&(listing(&results) + &totals(&usage))),
        (Some(by), format) => {
            let runs = store.recent_runs(usize::MAX).await?;
            let groups = groups(by, &results, &runs);
            match format {
                Format::Json => each_json(groups.iter().map(|group| group.json(by))),
                Format::Human => print(&(grouped(by, &groups, &results, &usage) + &totals(&usage))),
            }
        }
    }
}

fn each_json(values: impl Iterator<Item = Value>) -> Result<Exit, Failure> {
    for value in values {
        print_json(&value)?;
    }
    Ok(Exit::Done)
}

fn size(result: &Manifest) -> u64 {
    result.ports.iter().map(|port| port.bytes).sum()
}

fn result_json(result: &Manifest) -> Value {
    json!({"key": result.key, "workflow": result.labels.workflow, "step": result.labels.step,
        "op": result.preimage.operator, "created": result.created, "bytes": size(result),
        "seconds": result.seconds, "rows": result.ports.first().map(|port| port.rows)})
}

fn listing(results: &[Manifest]) -> String {
    if results.is_empty() {
        return String::new();
    }
    let head = ["result", "computed (UTC)", "workflow/step", "rows", "size"].map(String::from);
    let row = |result: &Manifest| {
        let rows = result.ports.first().map_or(0, |port| port.rows);
        [
            result.key.short(),
            to_the_second(&result.created),
            format!("{}/{}", result.labels.workflow, result.labels.step),
            count(rows),
            bytes(size(result)),
        ]
    };
    let rows: Vec<_> = std::iter::once(head).chain(results.iter().map(row)).collect();
    aligned([Side::Left, Side::Left, Side::Left, Side::Right, Side::Right], &rows) + "\n"
}

/// `2 results in 3 files, 1.2 KiB; 4 runs`.
fn totals(usage: &StoreUsage) -> String {
    format!(
        "{} in {}, {}; {}\n",
        counted(usage.manifests, "result"),
        counted(usage.blobs, "file"),
        bytes(usage.blob_bytes),
        counted(usage.runs, "recorded run")
    )
}

fn counted(n: u64, one: &str) -> String {
    format!("{} {one}{}", count(n), if n == 1 { "" } else { "s" })
}

/// Results that have something in common.
#[derive(Default)]
struct Group<'a> {
    name: String,
    results: u64,
    /// The files of their tables, each once, with their sizes.
    files: HashMap<Digest, u64>,
    /// The last time that one of them was computed or taken from the store.
    used: &'a str,
}

impl Group<'_> {
    fn bytes(&self) -> u64 {
        self.files.values().sum()
    }

    fn json(&self, by: By) -> Value {
        json!({by.word(): self.name, "results": self.results, "files": self.files.len(),
            "bytes": self.bytes(), "used": self.used})
    }
}

fn groups<'a>(by: By, results: &'a [Manifest], runs: &'a [RunRecord]) -> Vec<Group<'a>> {
    let mut last_use: HashMap<Digest, &str> = HashMap::new();
    for (key, time) in runs.iter().flat_map(|run| {
        run.steps.iter().filter_map(move |step| Some((step.key?, run.started.as_str())))
    }) {
        let last = last_use.entry(key).or_default();
        *last = (*last).max(time);
    }
    let mut groups: HashMap<String, Group<'a>> = HashMap::new();
    for result in results {
        let labels = &result.labels;
        let name = match by {
            By::Workflow => labels.workflow.clone(),
            By::Step => format!("{}/{}", labels.workflow, labels.step),
            By::Operator => result.preimage.operator.clone(),
        };
        let group = groups.entry(name.clone()).or_default();
        group.name = name;
        group.results += 1;
        group.files.extend(files(result));
        let used = last_use.get(&result.key).copied().unwrap_or_default();
        group.used = group.used.max(used).max(&result.created);
    }
    let mut groups: Vec<Group<'a>> = groups.into_values().collect();
    groups.sort_by(|a, b| b.bytes().cmp(&a.bytes()).then_with(|| a.name.cmp(&b.name)));
    groups
}

fn files(result: &Manifest) -> impl Iterator<Item = (Digest, u64)> {
    result.ports.iter().map(|port| (port.blob, port.bytes))
}

fn grouped(by: By, groups: &[Group<'_>], results: &[Manifest], usage: &StoreUsage) -> String {
    if usage.blobs == 0 && groups.is_empty() {
        return String::new();
    }
    let head = [by.word(), "results", "files", "size", "last used (UTC)"].map(String::from);
    let row = |group: &Group<'_>| {
        [
            group.name.clone(),
            count(group.results),
            count(group.files.len() as u64),
            bytes(group.bytes()),
            to_the_second(group.used),
        ]
    };
    let mut rows: Vec<_> = std::iter::once(head).chain(groups.iter().map(row)).collect();
    let named: HashMap<Digest, u64> = results.iter().flat_map(files).collect();
    let rest = usage.blobs.saturating_sub(named.len() as u64);
    if rest > 0 {
        let size = usage.blob_bytes.saturating_sub(named.values().sum());
        let name = "(parts of steps, and what gc removes)".to_string();
        rows.push([name, String::new(), count(rest), bytes(size), String::new()]);
    }
    let mut text = aligned([Side::Left, Side::Right, Side::Right, Side::Right, Side::Left], &rows);
    if groups.iter().map(|group| group.files.len()).sum::<usize>() > named.len() {
        let _ = write!(text, "\na file that several {}s share is counted once below", by.word());
    }
    text + "\n"
}

async fn gc(args: GcArgs) -> Result<Exit, Failure> {
    let store = opened(&args.store).await?;
    const DAY: u64 = 24 * 60 * 60;
    let policy = GcPolicy {
        keep_runs: args.keep_runs,
        older_than: args.older_than.map(|days| Duration::from_secs(days.saturating_mul(DAY))),
        max_bytes: args.max_bytes,
        dry_run: args.dry_run,
    };
    let (report, usage) = (store.gc(policy).await?, store.usage().await?);
    let left = usage.blob_bytes.saturating_sub(if args.dry_run { report.bytes } else { 0 });
    if args.format == Format::Json {
        return print_json(
            &json!({"event": "gc", "dry_run": args.dry_run, "report": report, "left_bytes": left}),
        );
    }
    let verb = if args.dry_run { "would free" } else { "freed" };
    let mut text = format!(
        "{verb} {}: {}, {} and {}; {} left\n",
        bytes(report.bytes),
        counted(report.manifests, "result"),
        counted(report.blobs, "file"),
        counted(report.temp_files, "temporary file"),
        bytes(left)
    );
    if args.max_bytes.is_some_and(|most| left > most) {
        text.push_str("that is more than --max-bytes: ");
        text.push_str(match args.keep_runs {
            Some(_) => "the rest is kept by --keep-runs, or are parts of interrupted steps\n",
            None => "the rest are parts of interrupted steps; --older-than removes them\n",
        });
    }
    let no_rule = args.keep_runs.is_none() && args.older_than.is_none() && args.max_bytes.is_none();
    if !args.dry_run && report.manifests == 0 && report.blobs == 0 && no_rule {
        text.push_str("nothing is unused; --keep-runs, --older-than and --max-bytes remove more\n");
    }
    print(&text)
}

async fn verify(args: VerifyArgs) -> Result<Exit, Failure> {
    let store = opened(&args.store).await?;
    let read = std::sync::atomic::AtomicU64::new(0);
    let progress = |n| {
        read.fetch_add(n, std::sync::atomic::Ordering::Relaxed);
    };
    let findings = store.verify(&progress).await?;
    let read = read.into_inner();
    for finding in &findings {
        answer(
            args.format,
            json!({"event": "finding", "finding": finding}),
            &format!("{finding}\n"),
        )?;
    }
    if args.repair && !findings.is_empty() {
        let removed = store.repair(&findings).await?;
        return answer(
            args.format,
            json!({"event": "repaired", "removed": removed}),
            &format!("removed {removed} damaged objects\n"),
        );
    }
    let found = findings.len();
    answer(
        args.format,
        json!({"event": "verified", "bytes": read, "findings": found}),
        &format!("read {}, found {found} problems\n", bytes(read)),
    )?;
    if findings.is_empty() {
        return Ok(Exit::Done);
    }
    let help = "`galeras cache verify --repair` removes the damaged objects";
    Err(fail(format!("the store is damaged; {help}"), Exit::Disk))
}
