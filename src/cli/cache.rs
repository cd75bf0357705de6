//! `cache ls`, `cache gc`, `cache verify`.

use std::fmt::Write as _;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;

use super::context::{Exit, fail, fail_cache, open_store, print, print_json};
use super::{Format, StoreArgs};
use crate::report::{bytes, count};
use crate::store::GcPolicy;
use crate::visible::escape;

#[derive(Subcommand)]
pub(crate) enum CacheVerb {
    /// List the stored results, newest first.
    Ls(LsArgs),
    /// Remove what no recent run needs.
    Gc(GcArgs),
    /// Read everything again and report what is damaged or missing.
    Verify(VerifyArgs),
}

#[derive(Args)]
pub(crate) struct LsArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// How to answer.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Args)]
pub(crate) struct GcArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Keep what the last N runs of every workflow used.
    #[arg(long, value_name = "N")]
    keep_runs: Option<usize>,
    /// Keep what was made or used in the last DAYS days.
    #[arg(long, value_name = "DAYS")]
    older_than: Option<u64>,
    /// Remove the longest unused results until the store has at most this many bytes.
    #[arg(long, value_name = "BYTES")]
    max_bytes: Option<u64>,
    /// Only say what would be removed.
    #[arg(long)]
    dry_run: bool,
    /// How to answer.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
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

pub(crate) async fn cache(verb: CacheVerb) -> Exit {
    match verb {
        CacheVerb::Ls(args) => ls(args).await,
        CacheVerb::Gc(args) => gc(args).await,
        CacheVerb::Verify(args) => verify(args).await,
    }
}

async fn ls(args: LsArgs) -> Exit {
    let store = match open_store(&args.store.cache).await {
        Ok(store) => store,
        Err(exit) => return exit,
    };
    let (mut manifests, usage) = match (store.list().await, store.usage().await) {
        (Ok(manifests), Ok(usage)) => (manifests, usage),
        (Err(error), _) | (_, Err(error)) => return fail_cache(&error),
    };
    manifests.sort_by(|a, b| b.created.cmp(&a.created));
    if args.format == Format::Json {
        for m in &manifests {
            let size: u64 = m.ports.iter().map(|p| p.bytes).sum();
            print_json(&json!({"key": m.key, "workflow": m.labels.workflow, "step": m.labels.step,
                "op": m.preimage.operator, "created": m.created, "bytes": size,
                "seconds": m.seconds, "rows": m.ports.first().map(|p| p.rows)}));
        }
        return Exit::Done;
    }
    let mut text = String::new();
    for m in &manifests {
        let size: u64 = m.ports.iter().map(|p| p.bytes).sum();
        let rows = m.ports.first().map_or(0, |p| p.rows);
        let step = escape(&format!("{}/{}", m.labels.workflow, m.labels.step));
        let _ = writeln!(
            text,
            "{}  {}  {:30}  {:>12} rows  {:>10}",
            m.key.short(),
            m.created.get(..19).unwrap_or(&m.created),
            step,
            count(rows),
            bytes(size)
        );
    }
    let _ = writeln!(
        text,
        "{} results in {} files, {}",
        count(usage.manifests),
        count(usage.blobs),
        bytes(usage.blob_bytes)
    );
    print(&text)
}

async fn gc(args: GcArgs) -> Exit {
    let store = match open_store(&args.store.cache).await {
        Ok(store) => store,
        Err(exit) => return exit,
    };
    const DAY: u64 = 24 * 60 * 60;
    let policy = GcPolicy {
        keep_runs: args.keep_runs,
        older_than: args.older_than.map(|days| Duration::from_secs(days.saturating_mul(DAY))),
        max_bytes: args.max_bytes,
        dry_run: args.dry_run,
    };
    let report = match store.gc(policy).await {
        Ok(report) => report,
        Err(error) => return fail_cache(&error),
    };
    if args.format == Format::Json {
        return print_json(&json!({"event": "gc", "dry_run": args.dry_run, "report": report}));
    }
    let verb = if args.dry_run { "would remove" } else { "removed" };
    print(&format!(
        "{verb} {} results, {} files and {} temporary files: {}\n",
        count(report.manifests),
        count(report.blobs),
        count(report.temp_files),
        bytes(report.bytes)
    ))
}

async fn verify(args: VerifyArgs) -> Exit {
    let store = match open_store(&args.store.cache).await {
        Ok(store) => store,
        Err(exit) => return exit,
    };
    let read = std::sync::atomic::AtomicU64::new(0);
    let progress = |n| {
        read.fetch_add(n, std::sync::atomic::Ordering::Relaxed);
    };
    let findings = match store.verify(&progress).await {
        Ok(findings) => findings,
        Err(error) => return fail_cache(&error),
    };
    let read = read.into_inner();
    for finding in &findings {
        let exit = match args.format {
            Format::Json => print_json(&json!({"event": "finding", "finding": finding})),
            Format::Human => print(&format!("{finding}\n")),
        };
        if exit != Exit::Done {
            return exit;
        }
    }
    if args.repair && !findings.is_empty() {
        return match store.repair(&findings).await {
            Ok(removed) if args.format == Format::Json => {
                print_json(&json!({"event": "repaired", "removed": removed}))
            }
            Ok(removed) => print(&format!("removed {removed} damaged objects\n")),
            Err(error) => fail_cache(&error),
        };
    }
    if args.format == Format::Json {
        print_json(&json!({"event": "verified", "bytes": read, "findings": findings.len()}));
    } else {
        print(&format!("read {}, found {} problems\n", bytes(read), findings.len()));
    }
    if findings.is_empty() {
        Exit::Done
    } else {
        fail(
            "the store is damaged; `galeras cache verify --repair` removes the damaged objects",
            Exit::Disk,
        )
    }
}
