//! `push` and `pull`: send results to another store, and fetch them. `--remote` of other verbs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use super::context::{Exit, Failure, Surveyed, answer, fail, failed, load_with_remote, note};
use super::store_places::{claim, unpacked_store};
use super::{Format, WorkflowArgs, screen};
use galeras_base::small_file;
use galeras_base::terminal_escape::escape;
use galeras_display::{bytes as size, count};
use galeras_engine::plan::{Plan, PlannedRemote, PlannedSigners};
use galeras_engine::runner::{Forecast, Remote, SignatureDemand, Transfer, Transferred};
use galeras_operator::{Access, Consent, RefusedAccess};
use galeras_store::{
    AllowedSigners, Manifest, SIGNATURE_NAMESPACE, SigningKey, SigningKeyError, Store,
    StoreLocation,
};
use galeras_study::hint;
use galeras_study::sharing::OpenedBundle;

/// The remote of a verb that needs one. A remote from the workflow must be allowed.
fn required(
    remote: Option<Arc<Remote>>,
    surveyed: &Surveyed,
    args: &WorkflowArgs,
    access: impl Fn(&PlannedRemote) -> Access,
) -> Result<Arc<Remote>, Failure> {
    let consent = args.trust(None);
    let reads = surveyed.plan.remote.iter().map(access);
    let signers = surveyed.plan.allowed_signers.iter().map(PlannedSigners::access);
    for access in reads.chain(signers) {
        if let Some(refused) = consent.refusal(&access) {
            let message = format!("`remote` {}\nhelp: {}", refused.message, refused.help);
            return Err(fail(message, Exit::Invalid));
        }
    }
    remote.ok_or_else(|| {
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
    /// Sign each result with this SSH key, for users who accept only signed results. A public key selects
    /// a private key in the ssh-agent.
    #[arg(long, value_name = "KEYFILE")]
    sign: Option<PathBuf>,
    /// Show the size of the upload without sending it.
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
    /// Show the size of the download, and fetch only manifests.
    #[arg(long)]
    dry_run: bool,
    /// How to answer.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) async fn push(args: PushArgs) -> Result<Exit, Failure> {
    let out = Path::new(".");
    if args.remote.names_bundle() {
        let message = "a bundle is not sent to; `galeras bundle` makes a new one";
        return Err(fail(message, Exit::Invalid));
    }
    let key = args.sign.as_deref().map(read_key).transpose()?;
    // The remote is not asked.
    let loaded = load_with_remote(&args.workflow, args.format, out, &args.remote, false);
    let (surveyed, remote) = loaded.await?;
    let remote = required(remote, &surveyed, &args.workflow, PlannedRemote::writing)?;
    if let Some(key) = &key {
        warn_unless_allowed(&remote, key)?;
    }
    let (from, to) = (&surveyed.store, &remote.store);
    let mut transfer = results(&surveyed, |state| matches!(state, Forecast::Hit));
    transfer.key = key.as_ref();
    let sending = Sending { transfer, from, to, event: "push", missing: None };
    let lacking = sending.go(args.dry_run, args.format).await?;
    if !lacking.is_empty() {
        let unusable = counted(lacking.len() as u64, "result");
        return Err(failed(format!("{unusable} cannot be used")));
    }
    let missing = surveyed.states.iter().filter(|state| !state.forecast.is_hit()).count();
    if missing == 0 {
        return Ok(Exit::Done);
    }
    let WorkflowArgs { file, set, .. } = &args.workflow;
    let run = hint::command("run", &file.to_string_lossy(), set, &args.workflow.cache()?);
    let message = format!(
        "{missing} of {} steps are not computed for the current workflow, and were not sent; run\n  {run}",
        surveyed.states.len()
    );
    Err(failed(message))
}

pub(crate) async fn pull(args: PullArgs) -> Result<Exit, Failure> {
    let (out, format) = (Path::new("."), args.format);
    let remote = match &args.from {
        None => args.remote.clone(),
        Some(bundle) if bundle.is_file() => args.remote.at(&bundle.to_string_lossy()),
        Some(bundle) => {
            let message = format!("there is no bundle {}", bundle.display());
            return Err(fail(message, Exit::Invalid));
        }
    };
    let loaded = load_with_remote(&args.workflow, format, out, &remote, true);
    let (surveyed, remote) = loaded.await?;
    let remote = required(remote, &surveyed, &args.workflow, |remote| remote.access.clone())?;
    if let Some(cause) = remote.trouble() {
        return Err(fail(format!("the remote cannot be reached: {cause}"), Exit::Disk));
    }
    let (from, to) = (&remote.store, &surveyed.store);
    // An unpacked bundle may have no results.
    let is_packed = args.from.is_some() || args.remote.names_bundle();
    if let Ok(StoreLocation::Folder(folder)) = StoreLocation::parse(from.location())
        && !is_packed
        && !folder.exists()
    {
        let folder = escape(&folder.display().to_string());
        let message = format!("there is no store {folder}; `galeras push` makes one");
        return Err(fail(message, Exit::Invalid));
    }
    let mut transfer = results(&surveyed, |state| matches!(state, Forecast::RemoteHit));
    transfer.outcomes = remote.demand.is_none();
    let steps = surveyed.plan.steps.iter().zip(&surveyed.states);
    let unknown = steps.filter(|(_, state)| !state.forecast.is_hit());
    let unknown: Vec<&str> = unknown.map(|(step, _)| step.name.as_str()).collect();
    let sending = Sending { transfer, from, to, event: "pull", missing: Some(&unknown) };
    if !args.dry_run {
        claim(&args.workflow.cache()?);
    }
    let lacking = sending.go(args.dry_run, format).await?;
    let missing = missing(&unknown, &lacking);
    if missing.is_empty() {
        return Ok(Exit::Done);
    }
    let (shown, more) = (missing.iter().take(10), missing.len().saturating_sub(10));
    let names: Vec<String> = shown.map(|name| escape(name)).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let names = format!("{}{more}", names.join(", "));
    if lacking.is_empty() && remote.refused() == 0 {
        note(&format!("neither store has the results of {names}"));
        return Ok(Exit::Done);
    }
    let message = format!(
        "{} of {} steps have no result here, as something that {} has cannot be used: {names}",
        missing.len(),
        surveyed.states.len(),
        escape(from.location())
    );
    Err(failed(message))
}

/// The steps without a result after a pull: those not offered, and those whose transfer failed,
/// with the reason.
fn missing<'a>(unknown: &[&'a str], lacking: &'a [(String, String)]) -> Vec<&'a str> {
    unknown.iter().copied().chain(lacking.iter().map(|(step, _)| step.as_str())).collect()
}

fn read_key(path: &Path) -> Result<Arc<SigningKey>, Failure> {
    SigningKey::open(path).map(Arc::new).map_err(|error| {
        let help = match error {
            SigningKeyError::Encrypted | SigningKeyError::Public => {
                "\nhelp: passphrases are not asked for; add the key to your agent with ssh-add"
            }
            SigningKeyError::NotAKey => {
                "\nhelp: make one with ssh-keygen -t ed25519 -f galeras-signing"
            }
            _ => "",
        };
        let file = escape(&path.display().to_string());
        fail(
            format!("cannot sign with {file}: {}{help}", escape(&error.to_string())),
            Exit::Invalid,
        )
    })
}

/// Warns if the allowed signers do not include this key.
fn warn_unless_allowed(remote: &Remote, key: &SigningKey) -> Result<(), Failure> {
    let Some(SignatureDemand { signers, file }) = &remote.demand else { return Ok(()) };
    let allowed = signers.allows(key).map_err(failed)?;
    if let (key, false) = allowed {
        note(&format!(
            "warning: {key} may not sign for `{SIGNATURE_NAMESPACE}` by the present {}; users of that \
             file will not accept your signatures",
            escape(file)
        ));
    }
    Ok(())
}

fn results(surveyed: &Surveyed, wanted: impl Fn(&Forecast) -> bool) -> Transfer<'_> {
    let states = surveyed.states.iter().enumerate();
    let results: Vec<(usize, Arc<Manifest>)> = states
        .filter(|(_, state)| wanted(&state.forecast))
        .filter_map(|(at, state)| state.manifest.clone().map(|manifest| (at, manifest)))
        .collect();
    Transfer::new(&surveyed.plan, results)
}

struct Sending<'a> {
    transfer: Transfer<'a>,
    from: &'a Store,
    to: &'a Store,
    event: &'static str,
    /// The steps that were not offered, if the report lists them.
    missing: Option<&'a [&'a str]>,
}

impl Sending<'_> {
    /// Sends the results, and prints a report. Returns the steps whose results are not available, with the
    /// reason.
    async fn go(&self, dry_run: bool, format: Format) -> Result<Vec<(String, String)>, Failure> {
        let Self { transfer, from, to, event, .. } = self;
        let count = transfer.results.len() as u64;
        let (files, bytes) = transfer.size(to).await?;
        if dry_run {
            let verb = if *event == "push" { "would send" } else { "would fetch" };
            let results = counted(count, "result");
            answer(
                format,
                json!({"event": event, "dry_run": true, "results": count, "files": files,
                    "bytes": bytes}),
                &format!("{verb} {} ({}) of {results}\n", tables(files), size(bytes)),
            )?;
            return Ok(Vec::new());
        }
        let bar = bar(bytes, format);
        let report = transfer.send(from, to, &|more| bar.inc(more)).await;
        bar.finish_and_clear();
        let report = report?;
        self.said(&report, format)?;
        Ok(report.lacking)
    }

    fn said(&self, report: &Transferred, format: Format) -> Result<Exit, Failure> {
        let Transferred { results, files, bytes, present, signed, lacking } = report;
        let reasons: Vec<_> =
            lacking.iter().map(|(step, why)| json!({"step": step, "why": why})).collect();
        let mut told = json!({"event": self.event, "dry_run": false, "results": results,
            "files": files, "bytes": bytes, "present": present, "signed": signed,
            "lacking": reasons});
        if let Some(unknown) = self.missing {
            told["missing"] = json!(missing(unknown, lacking));
        }
        let (verb, place) = match self.event {
            "push" => ("sent", format!("to {}", escape(self.to.location()))),
            _ => ("fetched", format!("from {}", escape(self.from.location()))),
        };
        let results = counted(*results, "result");
        let mut text = format!("{verb} {} ({}) {place}: {results}", tables(*files), size(*bytes));
        if *present > 0 {
            text.push_str(&format!(", {} there already", tables(*present)));
        }
        if *signed > 0 {
            text.push_str(&format!("; {} signed", count(*signed)));
        }
        let printed = answer(format, told, &(text + "\n"));
        for (step, why) in lacking {
            note(&format!("{}: {}", escape(step), escape(why)));
        }
        printed
    }
}

/// A progress bar of bytes on a terminal; hidden without one.
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

/// Another store.
#[derive(Args, Clone, Debug)]
pub(crate) struct RemoteArgs {
    /// Another store, whose results are used like computed ones: a folder, the URL of a bucket
    /// (s3://bucket/prefix, gs://…), the https:// address of a copy of a store, or a bundle (.zip).
    #[arg(long, value_name = "URL", env = "GALERAS_REMOTE")]
    remote: Option<String>,
    #[command(flatten)]
    signers: SignersArgs,
}

/// The signatures that are trusted.
#[derive(Args, Clone, Debug)]
pub(crate) struct SignersArgs {
    /// Accept only signed results from another store: a file of allowed signers as `ssh-keygen -Y verify`
    /// and Git read it. Replaces that of the workflow; empty for none.
    #[arg(long, value_name = "FILE", env = "GALERAS_ALLOWED_SIGNERS")]
    allowed_signers: Option<String>,
}

impl SignersArgs {
    pub(super) fn named(&self) -> Result<Option<SignatureDemand>, Failure> {
        let file = self.allowed_signers.as_ref().filter(|file| !file.is_empty());
        file.map(|file| read_signers(Path::new(file))).transpose()
    }

    /// The allowed signers that the user or else the workflow names.
    fn demand(&self, plan: &Plan) -> Result<Option<SignatureDemand>, Failure> {
        match &plan.allowed_signers {
            Some(own) if self.allowed_signers.is_none() => read_signers(&own.path).map(Some),
            _ => self.named(),
        }
    }

    /// The same, if the file may be read.
    pub(super) fn of_workflow(
        &self,
        plan: &Plan,
        consent: &dyn Consent,
    ) -> Result<Option<SignatureDemand>, Failure> {
        let own = plan.allowed_signers.as_ref().filter(|_| self.allowed_signers.is_none());
        if let Some(refused) = own.and_then(|own| consent.refusal(&own.access())) {
            note(&format!("the allowed signers were not read: `remote` {}", refused.message));
            return Ok(None);
        }
        self.demand(plan)
    }
}

impl RemoteArgs {
    /// The remote at this place, instead of any other.
    pub(super) fn at(&self, location: &str) -> Self {
        Self { remote: Some(location.to_string()), ..self.clone() }
    }

    /// Returns true for a bundle, which is read-only, and for the name of one that does not exist.
    fn names_bundle(&self) -> bool {
        self.remote.as_ref().map(Path::new).is_some_and(|path| {
            let is_new = !path.exists() && path.extension().is_some_and(|suffix| suffix == "zip");
            is_new || (path.is_file() && OpenedBundle::is_one(path))
        })
    }

    /// Makes the plan forget the workflow's remote if another one, or none (`--remote ''`), is named,
    /// and its allowed signers if others, or none, are.
    pub(super) fn settle(&self, plan: &mut Plan) {
        if self.remote.is_some() {
            plan.remote = None;
        }
        if self.signers.allowed_signers.is_some() {
            plan.allowed_signers = None;
        }
    }

    /// The reason why the workflow's remote and its allowed signers may not be used before the user
    /// agrees.
    pub(super) fn refusal(plan: &Plan, consent: &dyn Consent) -> Option<RefusedAccess> {
        let reads = plan.remote.iter().map(|remote| remote.access.clone());
        let mut reads = reads.chain(plan.allowed_signers.iter().map(PlannedSigners::access));
        reads.find_map(|access| consent.refusal(&access))
    }

    /// The named remote, or else the workflow's. No request is sent yet.
    pub(super) async fn open(&self, plan: &Plan) -> Result<Option<Arc<Remote>>, Failure> {
        let of_workflow = || plan.remote.as_ref().map(|remote| &remote.location);
        let location = self.remote.as_ref().or_else(of_workflow).filter(|text| !text.is_empty());
        let Some(location) = location else { return Ok(None) };
        let unpacked;
        let location = match Path::new(location) {
            bundle if bundle.is_file() && OpenedBundle::is_one(bundle) => {
                unpacked = unpacked_store(bundle)?;
                &unpacked
            }
            _ => location,
        };
        let demand = self.signers.demand(plan)?;
        let remote = Remote::open(location, demand).await?;
        Ok(Some(Arc::new(remote)))
    }
}

const MAX_SIGNERS: u64 = 16 << 20;

fn read_signers(path: &Path) -> Result<SignatureDemand, Failure> {
    let file = path.display().to_string();
    let refused = |problem: String| {
        let message = format!("{}: {problem}", escape(&file));
        fail(format!("the allowed signers cannot be read: {message}"), Exit::Invalid)
    };
    let bytes = small_file::read_named(path, MAX_SIGNERS);
    let bytes = bytes.map_err(|error| refused(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| refused("it is not UTF-8 text".into()))?;
    let signers = AllowedSigners::parse(&text).map_err(|error| refused(error.to_string()))?;
    Ok(SignatureDemand { signers, file })
}
