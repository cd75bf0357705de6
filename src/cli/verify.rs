//! `verify`: checks that the results of a workflow, or a bundle, are unchanged since they were
//! computed; with `--recompute`, also that computing them again outside the store gives the same.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Args;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::consent::{AllowArgs, trust, trust_in_bundle};
use super::context::{
    Exit, Failure, answer, fail, failed, note, open_store, plan_file, print, print_json,
    show_diagnostics,
};
use super::process::watch_signals;
use super::remote::SignersArgs;
use super::resources::default_env;
use super::runs::table_text;
use super::store_places::{remove_last, scratch_folder};
use super::{Format, Settings, StoreArgs, screen};
use galeras_base::digest::Digest;
use galeras_base::terminal_escape::escape;
use galeras_display::{bytes, count};
use galeras_engine::plan::Plan;
use galeras_engine::runner::{
    Recomputation, RowsAgain, RunError, SignatureDemand, StoredResult, drawn, stored_results,
};
use galeras_engine::trust::Trust;
use galeras_operator::event::{EventSink, RunEvent};
use galeras_store::{LockGuard, Manifest, PortArtifact, SignatureState, SignerKey, Store};
use galeras_study::diff_tables::{PortDiff, compare_stored};
use galeras_study::sharing::{BundleRecord, FileProblem, OpenedBundle};
use galeras_study::{hint, table_name};

#[derive(Args)]
pub(crate) struct VerifyArgs {
    /// The workflow file, or a bundle.
    #[arg(value_name = "FILE|BUNDLE.zip")]
    file: PathBuf,
    /// Give a param another value than its default. Paths start in the current folder. May be
    /// repeated.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    allow: AllowArgs,
    /// Also compute N steps again, outside the store, and N single rows of steps that compute row
    /// by row, and compare the results. Steps that ask a model or need a network are left out.
    #[arg(long, value_name = "N")]
    recompute: Option<usize>,
    /// Which steps and rows are drawn: another seed draws others.
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: i64,
    #[command(flatten)]
    signers: SignersArgs,
    /// How to answer.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

struct Findings {
    /// Files that were checked, or are missing.
    files: u64,
    /// Files that changed.
    wrong: Vec<FileProblem>,
    read: u64,
}

pub(crate) async fn verify(args: VerifyArgs) -> Result<Exit, Failure> {
    match OpenedBundle::is_one(&args.file) {
        true => verify_bundle(&args).await,
        false => verify_workflow(&args).await,
    }
}

/// A workflow, or that of a bundle, with its results.
struct Opened {
    plan: Plan,
    store: Store,
    trust: Arc<Trust>,
    results: Vec<StoredResult>,
    _reading: LockGuard,
}

impl Opened {
    async fn of(
        file: &Path,
        settings: Settings,
        cache: &str,
        trust: Arc<Trust>,
        format: Format,
    ) -> Result<Self, Failure> {
        let consent = Arc::clone(&trust);
        let (plan, diagnostics) = plan_file(file, settings, cache, consent).await?;
        show_diagnostics(&diagnostics, format);
        let plan = plan.ok_or(Exit::Invalid)?;
        let store = open_store(cache).await?;
        let reading = store.reading_lock().await?;
        let results = stored_results(&plan, &store).await?;
        Ok(Self { plan, store, trust, results, _reading: reading })
    }

    fn done(&self) -> Vec<Option<Arc<Manifest>>> {
        self.results.iter().map(|result| result.manifest().cloned()).collect()
    }
}

async fn verify_workflow(args: &VerifyArgs) -> Result<Exit, Failure> {
    let (settings, cache) = (Settings::typed(&args.set), args.store.of(&args.file)?);
    let trust = trust(&args.file, &args.set, &args.allow, None);
    let opened = Opened::of(&args.file, settings, &cache, trust, args.format).await?;
    let results = &opened.results;
    let mut findings = results_of_store(&opened).await?;
    let keys = results.iter().filter_map(|result| Some(result.manifest()?.key)).collect();
    let allowed = args.signers.of_workflow(&opened.plan, &*opened.trust)?;
    let signed = findings.with_signatures(&opened.store, keys, allowed.as_ref(), "").await?;
    let help =
        "`galeras cache verify --repair` removes damaged results, and a run computes them again";
    told(&findings, help, args.format)?;
    signed.told(allowed.as_ref(), args.format)?;
    let is_missing = |result: &&StoredResult| {
        matches!(result, StoredResult::Missing(_) | StoredResult::Unknown(_))
    };
    let missing = results.iter().filter(is_missing).count();
    if missing > 0 {
        let run = hint::command("run", &args.file.to_string_lossy(), &args.set, &cache);
        let all = results.len();
        let message = format!(
            "{missing} of {all} steps are not computed for the current workflow; run\n  {run}"
        );
        return Err(failed(message));
    }
    match args.recompute {
        Some(steps) => recompute(&opened, args, steps).await,
        None => Ok(Exit::Done),
    }
}

impl Findings {
    /// Also checks the signatures of these results. `folder` is where the store is, with a `/`.
    async fn with_signatures(
        &mut self,
        store: &Store,
        keys: BTreeSet<Digest>,
        allowed: Option<&SignatureDemand>,
        folder: &str,
    ) -> Result<SignedResults, Failure> {
        let signed = SignedResults::of(store, &Vec::from_iter(keys), allowed).await?;
        self.files += signed.files;
        for key in &signed.wrong {
            let file = format!("{folder}signatures/{}/{key}.sig", key.shard());
            let problem = "it is not a signature of the manifest of this key";
            self.wrong.push(FileProblem::new(file, problem));
        }
        Ok(signed)
    }
}

/// Hashes all files that the results depend on.
async fn results_of_store(opened: &Opened) -> Result<Findings, Failure> {
    let manifests: Vec<Arc<Manifest>> = opened.done().into_iter().flatten().collect();
    let read = AtomicU64::new(0);
    let progress = |more: u64| {
        read.fetch_add(more, Ordering::Relaxed);
    };
    let (tables, found) =
        opened.store.verify_results(&manifests, &|_: &PortArtifact| false, &progress).await?;
    let mut wrong = Vec::new();
    for finding in found {
        let problem = format!("{} (result of {})", finding.detail, finding.steps.join(", "));
        wrong.push(FileProblem::new(finding.object, problem));
    }
    let mut files = tables;
    let mut keys = HashSet::new();
    for (step, result) in opened.plan.steps.iter().zip(&opened.results) {
        let key = match result {
            StoredResult::Found(manifest) => manifest.key,
            StoredResult::Damaged(key, cause) => {
                let object = format!("actions/{}/{key}.json", key.shard());
                let problem = format!("{cause} (result of {})", step.name);
                wrong.push(FileProblem::new(object, problem));
                *key
            }
            StoredResult::Missing(_) | StoredResult::Unknown(_) => continue,
        };
        files += u64::from(keys.insert(key));
    }
    Ok(Findings { files, wrong, read: read.into_inner() })
}

/// Prints the findings; succeeds if there are no problems.
fn told(findings: &Findings, help: &str, format: Format) -> Result<(), Failure> {
    let Findings { files, wrong, read } = findings;
    for FileProblem { file, problem } in wrong {
        answer(
            format,
            json!({"event": "finding", "file": file, "problem": problem}),
            &format!("{}: {}\n", escape(file), escape(problem)),
        )?;
    }
    let named: HashSet<&str> = wrong.iter().map(|wrong| wrong.file.as_str()).collect();
    let equal = files.saturating_sub(named.len() as u64);
    let size = if *read > 0 { format!(", {} read", bytes(*read)) } else { String::new() };
    answer(
        format,
        json!({"event": "verified", "files": files, "equal": equal, "findings": wrong.len(),
            "bytes": read}),
        &format!("{} of {} files equal{size}\n", count(equal), count(*files)),
    )?;
    if wrong.is_empty() {
        return Ok(());
    }
    Err(fail(format!("not everything is as it was when it was computed; {help}"), Exit::Disk))
}

async fn verify_bundle(args: &VerifyArgs) -> Result<Exit, Failure> {
    if !args.set.is_empty() {
        let message = "a bundle has the params that it was made with; --set is for workflow files";
        return Err(fail(message, Exit::Invalid));
    }
    let mut bundle = OpenedBundle::open(&args.file)?;
    let folder = scratch_folder()?;
    let (files, mut wrong) = bundle.check(&folder, |_| true)?;
    let mut held = None;
    if wrong.is_empty() {
        let said = bundle.record()?;
        let cache = folder.join("cache");
        let store = open_store(&cache.to_string_lossy()).await?;
        wrong = said.files_of_no_result(&bundle);
        if wrong.is_empty() {
            wrong = said.compare_results(&store).await?;
        }
        if wrong.is_empty() {
            wrong = said.compare_csv_files(&folder)?;
        }
        held = Some((said, store));
    }
    let (mut planned, mut unknown) = (None, Vec::new());
    if let (Some((record, _)), true) = (&held, wrong.is_empty()) {
        unknown = record.output_files();
        if args.recompute.is_some() || !unknown.is_empty() {
            match in_bundle(args, record, &folder).await {
                Ok(opened) => {
                    let (plan, store, done) = (&opened.plan, &opened.store, opened.done());
                    // Their tables are in the bundle.
                    let again = record.compare_outputs(&folder, plan, store, &done).await?;
                    (wrong, unknown) = (again.problems, again.unknown);
                    planned = Some(opened);
                }
                Err(failure) if args.recompute.is_some() => return Err(failure),
                Err(failure) => {
                    failure.show();
                }
            }
        }
    }
    let read = std::fs::metadata(&args.file).map_or(0, |about| about.len());
    let mut findings = Findings { files, wrong, read };
    let mut signed = None;
    if let Some((said, store)) = &held {
        let keys = said.steps.iter().map(|step| step.key).collect();
        let allowed = args.signers.named()?;
        let found = findings.with_signatures(store, keys, allowed.as_ref(), "cache/").await?;
        // They are included in the count of files.
        findings.files = files;
        signed = Some((found, allowed));
    }
    let help = "get the bundle again from where it came from";
    told(&findings, help, args.format)?;
    if let Some((signed, allowed)) = signed {
        signed.told(allowed.as_ref(), args.format)?;
    }
    if let (Some((record, _)), false) = (&held, unknown.is_empty()) {
        return not_compared(record, &unknown, args.format);
    }
    let (Some(steps), Some(opened)) = (args.recompute, planned) else {
        return Ok(Exit::Done);
    };
    let (found, all) = (opened.done().iter().flatten().count(), opened.results.len());
    if found < all {
        note(&format!("{found} of {all} steps lead to results in the bundle with this program"));
    }
    recompute(&opened, args, steps).await
}

/// The workflow of an unpacked bundle.
async fn in_bundle(
    args: &VerifyArgs,
    record: &BundleRecord,
    folder: &Path,
) -> Result<Opened, Failure> {
    let cache = folder.join("cache").to_string_lossy().into_owned();
    let settings = Settings { set: record.set.clone(), folder: folder.to_path_buf() };
    // The bundle has all files that the workflow reads by relative paths.
    let file = folder.join(&record.workflow);
    let trust = trust_in_bundle(&file, folder, &args.allow);
    Opened::of(&file, settings, &cache, trust, args.format).await
}

/// Lists outputs that could not be compared: a bundle with such outputs is not verified.
fn not_compared(
    record: &BundleRecord,
    outputs: &[String],
    format: Format,
) -> Result<Exit, Failure> {
    if format == Format::Json {
        print_json(&json!({"event": "not_compared", "outputs": outputs}))?;
    }
    let version = escape(&record.program);
    let message = format!(
        "{} outputs were not compared with their tables, beginning with {}: with this program and \
         without a network, the workflow in the bundle does not lead to its results (version \
         {version} made it); servers that the workflow reads from are asked if `--allow` says so",
        count(outputs.len() as u64),
        escape(outputs.first().map_or("", String::as_str)),
    );
    Err(failed(message))
}

/// The signatures of some results.
#[derive(Default)]
struct SignedResults {
    /// The number of results, signed or not.
    results: u64,
    /// Files with signatures.
    files: u64,
    /// Results by their signers: the key, and its principals if it may sign.
    by_signer: BTreeMap<(SignerKey, Option<String>), u64>,
    signed: u64,
    /// The keys of results with a signature for something else.
    wrong: Vec<Digest>,
}

impl SignedResults {
    async fn of(
        store: &Store,
        keys: &[Digest],
        allowed: Option<&SignatureDemand>,
    ) -> Result<Self, Failure> {
        let mut found = Self { results: keys.len() as u64, ..Self::default() };
        let allowed = allowed.map(|demand| &demand.signers);
        for (key, state) in store.signature_states(keys.iter().copied(), allowed).await? {
            found.files += u64::from(state != SignatureState::Unsigned);
            match state {
                SignatureState::Unsigned => {}
                SignatureState::Signed(signers) => {
                    found.signed += 1;
                    for signer in signers {
                        *found.by_signer.entry(signer).or_default() += 1;
                    }
                }
                SignatureState::Wrong => found.wrong.push(key),
            }
        }
        Ok(found)
    }

    /// Prints how many results each key signed. Without any signature, prints only if signers are asked for.
    fn told(&self, allowed: Option<&SignatureDemand>, format: Format) -> Result<Exit, Failure> {
        if self.signed == 0 && allowed.is_none() {
            return Ok(Exit::Done);
        }
        if format == Format::Json {
            let signers: Vec<_> = self
                .by_signer
                .iter()
                .map(|((key, name), results)| {
                    json!({"key": key.to_string(), "principals": name, "results": results})
                })
                .collect();
            return print_json(&json!({"event": "signatures", "results": self.results,
                "signed": self.signed, "signers": signers}));
        }
        let all = count(self.results);
        let mut text = String::new();
        for ((key, name), results) in &self.by_signer {
            let results = count(*results);
            let who = match (name, allowed) {
                (Some(name), _) => format!("{} ({key})", escape(name)),
                (None, None) => key.to_string(),
                (None, Some(allowed)) => {
                    format!("{key}, which is not an allowed signer in {}", escape(&allowed.file))
                }
            };
            text.push_str(&format!("{results} of {all} results signed by {who}\n"));
        }
        if self.signed < self.results {
            let unsigned = count(self.results - self.signed);
            text.push_str(&format!("{unsigned} of {all} results not signed\n"));
        }
        print(&text)
    }
}

const EXAMPLES: usize = 3;

/// Shows warnings of steps and ignores other events.
struct Warnings;

impl EventSink for Warnings {
    fn send(&self, event: RunEvent) {
        if let RunEvent::Warning { step, message } = event {
            let step = step.map(|step| format!("{}: ", escape(&step))).unwrap_or_default();
            note(&format!("warning: {step}{}", escape(&message)));
        }
    }
}

/// Computes `wanted` steps again, and reports whether their tables equal the stored ones.
async fn recompute(opened: &Opened, args: &VerifyArgs, wanted: usize) -> Result<Exit, Failure> {
    let cancel = CancellationToken::new();
    watch_signals(cancel.clone());
    let env = default_env(opened.trust.clone(), cancel.clone(), Arc::new(Warnings));
    let (plan, store, done) = (&opened.plan, &opened.store, &opened.done());
    let again = &Recomputation { plan, store, done, env };
    let steps = &plan.steps;
    let mut able = Vec::new();
    let mut objections = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        match again.objection(at).await? {
            None => able.push(at),
            Some(objection) => objections.push((step.name.as_str(), objection)),
        }
    }
    let mut chosen = drawn(&able, again.done, args.seed);
    chosen.truncate(wanted);
    if args.format == Format::Human && chosen.len() < wanted {
        note(&format!("{} of {} steps can be computed again here", able.len(), steps.len()));
        for (step, why) in &objections {
            note(&format!("  {}: the step {}", escape(step), escape(why)));
        }
    }
    let (mut tables, mut equal) = (0_u64, 0_u64);
    for (place, at) in chosen.iter().enumerate() {
        let name = &steps[*at].name;
        if args.format == Format::Human && screen::is_terminal() {
            let (place, all) = (place + 1, chosen.len());
            note(&format!("computing {} again, step {place} of {all}", escape(name)));
        }
        let scratch = scratch_folder()?;
        let scratch = Store::open(&scratch.to_string_lossy()).await?;
        let computed = tokio::select! {
            computed = again.compute(*at, &scratch) => computed,
            () = cancel.cancelled() => Err(RunError::Interrupted),
        };
        let computed = computed.map_err(|error| broken(name, error))?;
        let Some(stored) = again.done[*at].as_ref() else { continue };
        let (of_step, differing) = compare(again, &scratch, stored, &computed).await?;
        tables += of_step;
        equal += of_step - differing.len() as u64;
        let event = json!({"event": "step_recomputed", "step": name, "tables": of_step});
        show_differences(name, event, "", &differing, args.format)?;
        remove_last();
    }
    let (rows, equal_rows) = recomputed_rows(again, &able, args, wanted, &cancel).await?;
    let of_rows = match rows {
        0 => String::new(),
        all => format!(", {} of {} rows equal", count(equal_rows), count(all)),
    };
    answer(
        args.format,
        json!({"event": "recomputed", "steps": chosen.len(), "able": able.len(),
            "tables": tables, "equal": equal, "rows": rows, "equal_rows": equal_rows}),
        &format!("{} of {} tables equal{of_rows}\n", count(equal), count(tables)),
    )?;
    if chosen.is_empty() && wanted > 0 {
        // Without any computed step there is nothing to compare.
        return Err(failed("no step could be computed again"));
    }
    if equal == tables && equal_rows == rows {
        return Ok(Exit::Done);
    }
    let message = "what came out now is not what is stored: either the stored result was not \
                   computed by this program from these inputs, or the step does not give the same \
                   twice";
    Err(fail(message, Exit::Disk))
}

fn broken(step: &str, error: RunError) -> Failure {
    match error.is_interruption() {
        true => Exit::Interrupted.into(),
        false => failed(format!("step {}: {}", escape(step), error.explained())),
    }
}

/// Computes as many single rows again as steps were asked for, from all row-by-row steps. Returns
/// their number, and how many of them are equal.
async fn recomputed_rows(
    again: &Recomputation<'_>,
    able: &[usize],
    args: &VerifyArgs,
    wanted: usize,
    cancel: &CancellationToken,
) -> Result<(u64, u64), Failure> {
    let (mut all, mut equal) = (0, 0);
    for (at, rows) in shares(again, able, args.seed, wanted) {
        let name = &again.plan.steps[at].name;
        let broken = |error| broken(name, error);
        let work = async {
            let rows = again.draw(at, rows, args.seed).await.map_err(broken)?;
            // A new folder, so that no earlier result is reused.
            let fresh = scratch_folder()?;
            let fresh = Store::open(&fresh.to_string_lossy()).await?;
            let tables = again.compute_rows(at, &rows, &fresh).await.map_err(broken)?;
            let mut differing = Vec::new();
            for RowsAgain { stored, computed } in &tables {
                if stored.digest != computed.digest {
                    let diff = compare_stored((&fresh, stored), (&fresh, computed), EXAMPLES);
                    differing.push(diff.await?);
                }
            }
            let others = again.differing_rows(&rows, &tables, &fresh).await.map_err(broken)?;
            remove_last();
            let all = rows.len() as u64;
            let equal = all.saturating_sub(others);
            let event =
                json!({"event": "rows_recomputed", "step": name, "rows": all, "equal": equal});
            show_differences(name, event, " in rows that were drawn", &differing, args.format)?;
            Ok::<_, Failure>((all, equal))
        };
        let of_step = tokio::select! {
            counts = work => counts?,
            () = cancel.cancelled() => return Err(Exit::Interrupted.into()),
        };
        all += of_step.0;
        equal += of_step.1;
    }
    Ok((all, equal))
}

/// The number of rows to recompute per step: as equal as its rows allow, in the order of the seed.
fn shares(
    again: &Recomputation<'_>,
    able: &[usize],
    seed: i64,
    mut wanted: usize,
) -> Vec<(usize, usize)> {
    let steps = drawn(able, again.done, seed).into_iter();
    let mut left: Vec<(usize, u64)> =
        steps.map(|at| (at, again.rows(at))).filter(|(_, rows)| *rows > 0).collect();
    let mut shares: Vec<(usize, usize)> = left.iter().map(|(at, _)| (*at, 0)).collect();
    while wanted > 0 && left.iter().any(|(_, rows)| *rows > 0) {
        for ((_, rows), (_, share)) in left.iter_mut().zip(&mut shares) {
            if wanted > 0 && *rows > 0 {
                *rows -= 1;
                *share += 1;
                wanted -= 1;
            }
        }
    }
    shares.retain(|(_, share)| *share > 0);
    shares
}

/// The number of tables of a step, and those that differ.
async fn compare(
    again: &Recomputation<'_>,
    scratch: &Store,
    stored: &Manifest,
    computed: &Manifest,
) -> Result<(u64, Vec<PortDiff>), Failure> {
    let mut differing = Vec::new();
    for old in &stored.ports {
        match computed.port(&old.port) {
            Some(new) if new.digest == old.digest => {}
            Some(new) => {
                let diff = compare_stored((again.store, old), (scratch, new), EXAMPLES).await?;
                differing.push(diff);
            }
            None => {
                let message = format!("the step no longer has the table {}", escape(&old.port));
                return Err(failed(message));
            }
        }
    }
    Ok((stored.ports.len() as u64, differing))
}

/// Prints the differences, or for programs the event with them.
fn show_differences(
    step: &str,
    mut event: Value,
    place: &str,
    differing: &[PortDiff],
    format: Format,
) -> Result<Exit, Failure> {
    event["differing"] = differing.iter().map(difference).collect();
    let text = |diff: &PortDiff| {
        let table = table_name(&escape(step), &diff.port);
        let differences = table_text(diff, "computed otherwise");
        format!("{table} differs{place}: stored → computed\n{differences}")
    };
    answer(format, event, &differing.iter().map(text).collect::<String>())
}

fn difference(diff: &PortDiff) -> Value {
    let rows = match &diff.rows {
        Ok(rows) => json!({"added": rows.added, "removed": rows.removed, "changed": rows.changed,
            "same": rows.same, "columns": rows.columns.iter().map(|(name, _)| name)
                .collect::<Vec<_>>()}),
        Err(why) => json!({"not_compared": why}),
    };
    json!({"port": diff.port, "rows": rows, "added_columns": diff.added_columns,
        "removed_columns": diff.removed_columns})
}
