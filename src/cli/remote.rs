//! `push` and `pull`: results go to a store elsewhere and come from there.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use clap::Args;
use galeras_signatures::{SigningKey, SigningKeyError};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use super::allow::trust;
use super::context::{Exit, Surveyed, fail, fail_run, note, print, print_json};
use super::remote_args::RemoteArgs;
use super::{Format, WorkflowArgs, hint, screen};
use crate::operator::{Access, Consent as _};
use crate::plan::{PlannedRemote, PlannedSigners};
use crate::report::{bytes as size, count};
use crate::runner::{Forecast, Remote, SignatureDemand, Transfer, Transferred};
use crate::small_file;
use crate::store::{Manifest, SIGNATURE_NAMESPACE, Store};
use crate::visible::escape;

/// The most bytes of a private key.
const MAX_KEY: u64 = 64 << 10;

/// The remote of a verb that does nothing without one. What the workflow names must be allowed.
fn required(
    surveyed: &Surveyed,
    args: &WorkflowArgs,
    access: impl Fn(&PlannedRemote) -> Access,
) -> Result<Arc<Remote>, Exit> {
    let consent = trust(&args.file, &args.set, &args.allow, None);
    let remote = surveyed.plan.remote.iter().map(access);
    let signers = surveyed.plan.allowed_signers.iter().map(PlannedSigners::access);
    for access in remote.chain(signers) {
        if let Some(refused) = consent.refusal(&access) {
            let message = format!("`remote` {}\nhelp: {}", refused.message, refused.help);
            return Err(fail(&message, Exit::Invalid));
        }
    }
    surveyed.remote.clone().ok_or_else(|| {
        let message = "name the other store with --remote URL, GALERAS_REMOTE, or `remote:` in the \
                       workflow";
        fail(message, Exit::Invalid)
    })
}

#[derive(Args)]
pub(crate) struct PushArgs {
    #[command(flatten)]
    workflow: WorkflowArgs,
    #[command(flatten)]
    remote: RemoteArgs,
    /// Sign each result with this private SSH key (ssh-ed25519), for those who take only what
    /// somebody signed.
    #[arg(long, value_name = "KEYFILE")]
    sign: Option<PathBuf>,
    /// Say what would be sent, and send nothing.
    #[arg(long)]
    dry_run: bool,
    /// How to answer.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Args)]
pub(crate) struct PullArgs {
    #[command(flatten)]
    workflow: WorkflowArgs,
    #[command(flatten)]
    remote: RemoteArgs,
    /// The bundle that results come from.
    #[arg(long, value_name = "BUNDLE.zip", conflicts_with = "remote")]
    from: Option<PathBuf>,
    /// Say what would be fetched, and fetch nothing but manifests.
    #[arg(long)]
    dry_run: bool,
    /// How to answer.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) async fn push(args: PushArgs) -> Exit {
    let out = Path::new(".");
    if args.remote.is_bundle() {
        let message = "a bundle is not sent to; `galeras bundle` makes a new one";
        return fail(message, Exit::Invalid);
    }
    let key = match args.sign.as_deref().map(read_key).transpose() {
        Ok(key) => key,
        Err(exit) => return exit,
    };
    // Only the own store is looked at.
    let loaded = Surveyed::load_beside_remote(&args.workflow, args.format, out, &args.remote);
    let surveyed = match loaded.await {
        Ok(surveyed) => surveyed,
        Err(exit) => return exit,
    };
    let remote = match required(&surveyed, &args.workflow, PlannedRemote::writing) {
        Ok(remote) => remote,
        Err(exit) => return exit,
    };
    if let Some(key) = &key {
        unless_allowed(&remote, key);
    }
    let (from, to) = (&surveyed.store, remote.store());
    let transfer = results(&surveyed, |state| matches!(state, Forecast::Hit));
    let transfer = match &key {
        Some(key) => transfer.signed(key),
        None => transfer,
    };
    let exit = sent(transfer, from, to, "push", args.dry_run, args.format).await;
    let missing = surveyed.states.iter().filter(|state| !state.forecast.is_hit()).count();
    if exit != Exit::Done || missing == 0 {
        return exit;
    }
    let WorkflowArgs { file, set, store, .. } = &args.workflow;
    let run = hint::command("run", &file.to_string_lossy(), set, &store.cache);
    let message = format!(
        "{missing} of {} steps are not computed as the workflow stands now, and were not sent; run\n  {run}",
        surveyed.states.len()
    );
    fail(&message, Exit::Failed)
}

pub(crate) async fn pull(args: PullArgs) -> Exit {
    let (out, format) = (Path::new("."), args.format);
    let remote = match &args.from {
        None => args.remote.clone(),
        Some(bundle) if bundle.is_file() => args.remote.at(&bundle.to_string_lossy()),
        Some(bundle) => {
            let message = format!("there is no bundle {}", bundle.display());
            return fail(&message, Exit::Invalid);
        }
    };
    let loaded = Surveyed::load_with_remote(&args.workflow, format, out, &remote);
    let surveyed = match loaded.await {
        Ok(surveyed) => surveyed,
        Err(exit) => return exit,
    };
    let remote = match required(&surveyed, &args.workflow, |remote| remote.access.clone()) {
        Ok(remote) => remote,
        Err(exit) => return exit,
    };
    if let Some(cause) = remote.trouble() {
        return fail(&format!("the remote cannot be reached: {cause}"), Exit::Disk);
    }
    let (from, to) = (remote.store(), &surveyed.store);
    let transfer = results(&surveyed, |state| matches!(state, Forecast::RemoteHit));
    let transfer = match remote.demand() {
        Some(_) => transfer.without_outcomes(),
        None => transfer,
    };
    let exit = sent(transfer, from, to, "pull", args.dry_run, format).await;
    let lacking: Vec<&str> = surveyed
        .plan
        .steps
        .iter()
        .zip(&surveyed.states)
        .filter(|(_, state)| !state.forecast.is_hit())
        .map(|(step, _)| step.name.as_str())
        .collect();
    if exit == Exit::Done && !lacking.is_empty() {
        let (shown, more) = (lacking.iter().take(10), lacking.len().saturating_sub(10));
        let names: Vec<String> = shown.map(|name| escape(name)).collect();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        note(&format!("neither store has the results of {}{more}", names.join(", ")));
    }
    exit
}

/// The key in a file.
fn read_key(path: &Path) -> Result<SigningKey, Exit> {
    let refused = |problem: &str| {
        let file = escape(&path.display().to_string());
        fail(&format!("cannot sign with {file}: {problem}"), Exit::Invalid)
    };
    let bytes = small_file::read_named(path, MAX_KEY);
    let bytes = bytes.map_err(|error| refused(&error.to_string()))?;
    SigningKey::parse(&String::from_utf8_lossy(&bytes)).map_err(|error| {
        let help = match error {
            SigningKeyError::Encrypted => {
                "\nhelp: passphrases are not asked for; sign with a key of its own that has none: \
                 ssh-keygen -t ed25519 -N '' -f galeras-signing"
            }
            SigningKeyError::OtherKind(_) | SigningKeyError::NotAKey => {
                "\nhelp: make one with ssh-keygen -t ed25519 -N '' -f galeras-signing"
            }
            SigningKeyError::Public | SigningKeyError::Signing => "",
        };
        refused(&format!("{error}{help}"))
    })
}

/// Says so if those who demand signatures would not take what this key signs.
fn unless_allowed(remote: &Remote, key: &SigningKey) {
    let Some(SignatureDemand { signers, file }) = remote.demand() else { return };
    if signers.name_of(&key.public(), SIGNATURE_NAMESPACE, SystemTime::now()).is_none() {
        note(&format!(
            "warning: {} may not sign for `{SIGNATURE_NAMESPACE}` as {} stands now; whoever goes by \
             that file will not take what you sign",
            key.public(),
            escape(file)
        ));
    }
}

/// The results whose state is `wanted`.
fn results(surveyed: &Surveyed, wanted: impl Fn(&Forecast) -> bool) -> Transfer<'_> {
    let states = surveyed.states.iter().enumerate();
    let results: Vec<(usize, Arc<Manifest>)> = states
        .filter(|(_, state)| wanted(&state.forecast))
        .filter_map(|(at, state)| state.manifest.clone().map(|manifest| (at, manifest)))
        .collect();
    Transfer::new(&surveyed.plan, results)
}

/// Sends the results, and says what came of it.
async fn sent(
    transfer: Transfer<'_>,
    from: &Store,
    to: &Store,
    event: &str,
    dry_run: bool,
    format: Format,
) -> Exit {
    let count = transfer.results();
    let (files, bytes) = match transfer.size(to).await {
        Ok(size) => size,
        Err(error) => return fail_run(&error),
    };
    if dry_run {
        return match format {
            Format::Json => print_json(&json!({"event": event, "dry_run": true,
                "results": count, "files": files, "bytes": bytes})),
            Format::Human => {
                let verb = if event == "push" { "would send" } else { "would fetch" };
                let results = counted(count, "result");
                print(&format!("{verb} {} ({}) of {results}\n", tables(files), size(bytes)))
            }
        };
    }
    let bar = bar(bytes, format);
    let seen = AtomicU64::new(0);
    let report = transfer
        .send(from, to, &|more| {
            bar.set_position(seen.fetch_add(more, Ordering::Relaxed) + more);
        })
        .await;
    bar.finish_and_clear();
    match report {
        Ok(report) => said(event, &report, to, from, format),
        Err(error) => fail_run(&error),
    }
}

fn said(event: &str, report: &Transferred, to: &Store, from: &Store, format: Format) -> Exit {
    let Transferred { results, files, bytes, present, signed, lacking } = report;
    let exit = if format == Format::Json {
        let lacking: Vec<_> =
            lacking.iter().map(|(step, why)| json!({"step": step, "why": why})).collect();
        print_json(&json!({"event": event, "dry_run": false, "results": results, "files": files,
            "bytes": bytes, "present": present, "signed": signed, "lacking": lacking}))
    } else {
        let (verb, place) = match event {
            "push" => ("sent", format!("to {}", escape(to.location()))),
            _ => ("fetched", format!("from {}", escape(from.location()))),
        };
        let results = counted(*results, "result");
        let mut text = format!("{verb} {} ({}) {place}: {results}", tables(*files), size(*bytes));
        if *present > 0 {
            text.push_str(&format!(", {} there already", tables(*present)));
        }
        if *signed > 0 {
            text.push_str(&format!("; {} signed", count(*signed)));
        }
        text.push('\n');
        print(&text)
    };
    if exit != Exit::Done || lacking.is_empty() {
        return exit;
    }
    for (step, why) in lacking {
        note(&format!("{}: {}", escape(step), escape(why)));
    }
    fail(&format!("{} cannot be used", counted(lacking.len() as u64, "result")), Exit::Failed)
}

/// A bar of bytes on a terminal, nothing elsewhere.
pub(super) fn bar(bytes: u64, format: Format) -> ProgressBar {
    if format == Format::Json || !screen::is_terminal() {
        return ProgressBar::hidden();
    }
    let template = "{bar:30} {bytes} of {total_bytes}  {bytes_per_sec}  {eta} left";
    let style = ProgressStyle::with_template(template);
    ProgressBar::new(bytes).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn counted(n: u64, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

fn tables(n: u64) -> String {
    counted(n, "table")
}
