//! `lock`: pins the external facts of a workflow in galeras.lock, and registers the analyses that
//! `prereg` names. `run` ends with a list of the estimates that match; `plan` stores and compares
//! registrations, and `regress` knows which estimates they cover.

use std::collections::HashSet;
use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use arrow::json::LineDelimitedWriter;
use clap::Args;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::consent::{load_trusted, require};
use super::context::{
    Exit, Failure, cannot_write, color, fail, failed, note, open_results, show_diagnostics,
};
use super::process::watch_signals;
use super::resources::default_env;
use super::store_places::claim;
use super::{Format, WorkflowArgs, screen};
use galeras_base::scratch::WholeFile;
use galeras_base::small_file::{self, MAX_LOCK_BYTES};
use galeras_display::{HumanReporter, count};
use galeras_engine::plan::{
    LockFile, LockedAnalysis, LockedFile, LockedSnapshot, LockedVersion, Locking, Plan, lock_path,
    preflight,
};
use galeras_engine::runner::{
    Embedded, RunError, RunOptions, StepManifests, open_port, run as run_plan, stored_rows_of,
    survey,
};
use galeras_engine::trust::requests;
use galeras_operator::event::{EventSink, RunStatus};
use galeras_operator::{Access, Consent, Fact, MAIN, REJECTS, Registration, answer_digest};
use galeras_sql::session::{column, session};
use galeras_store::{Manifest, Store, timestamp};

#[derive(Args)]
pub(crate) struct LockArgs {
    #[command(flatten)]
    workflow: WorkflowArgs,
    /// Register analyses again that are no longer as `prereg` registered them. The earlier
    /// registrations stay in the file.
    #[arg(long)]
    amend: bool,
}

/// Asks for the external facts of the workflow, and pins the answers.
pub(crate) async fn lock(args: LockArgs, started: Instant) -> Result<Exit, Failure> {
    let file = &args.workflow.file;
    let trust = args.workflow.trust(None);
    let (locking, out) = (Locking::Ignored, Path::new("."));
    let plan = load_trusted(&args.workflow, Format::Human, locking, &trust, out).await?;
    let mut asked = requests(&plan, &involved(&plan), None, &*trust);
    // A model is asked for its version, without rows.
    asked.retain(|request| !matches!(request.access, Access::Send { .. }));
    require(&args.workflow, asked, &trust, Format::Human)?;
    let store = open_results(&args.workflow).await?;
    let workflow = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut queries = Vec::new();
    let mut files = Vec::new();
    let mut versions: Vec<LockedVersion> = Vec::new();
    for (at, step) in plan.steps.iter().enumerate() {
        match step.step.fact() {
            None => {}
            Some(Fact::Snapshot { .. }) => queries.push(at),
            Some(Fact::File { url }) => match step.step.side_files() {
                Ok(side_files) => files.extend(side_files.first().map(|file| LockedFile {
                    url,
                    blake3: file.digest,
                    workflows: vec![workflow.clone()],
                })),
                Err(error) => return Err(failed(error)),
            },
            Some(Fact::Version { of }) => {
                let operator = step.operator.descriptor().name.to_string();
                // The cells of a matrix may all use the same model.
                if versions.iter().any(|known| known.operator == operator && known.of == of) {
                    continue;
                }
                let missing = preflight(&plan, [at]);
                if !missing.is_empty() {
                    show_diagnostics(&missing, Format::Human);
                    return Err(Exit::Invalid.into());
                }
                let Some(asked) = step.step.versioned() else { continue };
                let cancel = CancellationToken::new();
                match asked.version(&cancel).await {
                    Ok(version) => {
                        let workflows = vec![workflow.clone()];
                        versions.push(LockedVersion { operator, of, version, workflows });
                    }
                    Err(error) => {
                        let text =
                            format!("step {}: {}", step.name, RunError::from(error).explained());
                        return Err(failed(text));
                    }
                }
            }
            Some(Fact::Moving(why)) => {
                note(&format!("step {} is not pinned: {why}", step.name));
            }
        }
    }
    let plan = Arc::new(plan);
    if !queries.is_empty() {
        claim(&args.workflow.cache()?);
    }
    let consent = Arc::clone(&trust);
    let snapshots = ask(&plan, &store, queries, &workflow, consent, started).await?;
    write(file, &workflow, Facts { snapshots, files, versions }).await?;
    if plan.steps.iter().any(|step| step.registration.is_some()) {
        // A registration covers the workflow with its pins.
        let pinned = load_trusted(&args.workflow, Format::Human, Locking::Pinned, &trust, out);
        register(&pinned.await?, &store, file, args.amend).await?;
    }
    Ok(Exit::Done)
}

/// The steps to run or ask: those whose results come from outside, with their inputs, and those
/// that only name something there.
fn involved(plan: &Plan) -> Vec<usize> {
    let those = |wanted: fn(&Fact) -> bool| {
        let facts = plan.steps.iter().map(|step| step.step.fact());
        facts.enumerate().filter(move |(_, fact)| fact.as_ref().is_some_and(wanted)).map(|f| f.0)
    };
    let run: Vec<usize> = those(|fact| matches!(fact, Fact::Snapshot { .. })).collect();
    let asked = those(|fact| matches!(fact, Fact::File { .. } | Fact::Version { .. }));
    plan.with_ancestors(&run).into_iter().chain(asked).collect()
}

/// Runs the steps that ask, with their inputs, and takes the answers from the store.
async fn ask(
    plan: &Arc<Plan>,
    store: &Store,
    asking: Vec<usize>,
    workflow: &str,
    consent: Arc<dyn Consent>,
    started: Instant,
) -> Result<Vec<LockedSnapshot>, Failure> {
    if asking.is_empty() {
        return Ok(Vec::new());
    }
    let terminal = screen::is_terminal();
    let reporter =
        HumanReporter::new(Box::new(screen::stderr()), terminal, color(), screen::line_width);
    let cancel = CancellationToken::new();
    watch_signals(cancel.clone());
    let events: Arc<dyn EventSink> = Arc::new(reporter);
    let outcome = run_plan(
        Arc::clone(plan),
        store.clone(),
        RunOptions {
            env: default_env(consent, cancel, Arc::clone(&events)),
            select: Some(asking.clone()),
            force: asking.iter().copied().collect::<HashSet<_>>(),
            outputs: None,
            remembered: None,
            keep_going: false,
            engine: Arc::new(Embedded),
            remote: None,
            started,
        },
    )
    .await;
    events.send(outcome.finished(started));
    if outcome.status != RunStatus::Ok {
        return Err(Exit::from(outcome.status).into());
    }
    let states = survey(plan, store, None).await?;
    let done: Vec<Option<Arc<Manifest>>> =
        states.iter().map(|state| state.manifest.clone()).collect();
    let mut snapshots = Vec::new();
    for at in asking {
        let step = &plan.steps[at];
        if let Some(manifest) = &done[at]
            && manifest.retry_rows > 0
        {
            let text = format!("{} rows of step {} failed", manifest.retry_rows, step.name);
            return Err(failed(format!("{text}; galeras.lock was not changed")));
        }
        let answer = rows(plan, store, (at, MAIN), &done).await.map_err(failed)?;
        let rejects = match step.port(REJECTS) {
            Some(_) => rows(plan, store, (at, REJECTS), &done).await.map_err(failed)?,
            None => Vec::new(),
        };
        if let Some(Fact::Snapshot { of }) = step.step.fact() {
            snapshots.push(LockedSnapshot {
                operator: step.operator.descriptor().name.to_string(),
                of,
                asked: timestamp(),
                workflows: vec![workflow.to_string()],
                digest: answer_digest(&answer, &rejects),
                rows: answer,
                rejects,
            });
        }
    }
    Ok(snapshots)
}

async fn rows(
    plan: &Plan,
    store: &Store,
    (step, port): (usize, &str),
    done: &[Option<Arc<Manifest>>],
) -> Result<Vec<Value>, Box<dyn std::error::Error>> {
    let table = open_port(&session(1), store, plan, step, port, done)?;
    // Columns that are filled in on reading are not part of an answer.
    let planned = plan.steps[step].port(port).map(|port| port.table.stored());
    let stored = planned.iter().flat_map(|schema| schema.fields()).map(|f| column(f.name()));
    let batches = table.select(stored.collect::<Vec<_>>())?.collect().await?;
    let mut writer = LineDelimitedWriter::new(Vec::new());
    writer.write_batches(&batches.iter().collect::<Vec<&RecordBatch>>())?;
    writer.finish()?;
    let text = writer.into_inner();
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    Ok(lines.map(serde_json::from_slice).collect::<Result<_, _>>()?)
}

struct Facts {
    snapshots: Vec<LockedSnapshot>,
    files: Vec<LockedFile>,
    versions: Vec<LockedVersion>,
}

async fn write(file: &Path, workflow: &str, facts: Facts) -> Result<(), Failure> {
    let Facts { snapshots, files, versions } = facts;
    let path = lock_path(file);
    let _only = only_writer(&path).await;
    // An unreadable file is replaced, as the user asked. But its registrations cannot be made
    // again.
    let before = match LockFile::beside(file) {
        Ok(lock) => lock,
        Err(problem) if holds_registrations(&path) => {
            let text = format!(
                "{problem}; it holds registrations, which a new one would lose: restore it from \
                 version control, or remove it"
            );
            return Err(fail(text, Exit::Invalid));
        }
        Err(problem) if text_of(&path).lines().any(|line| line.starts_with("<<<<<<<")) => {
            // Git's marks: the pins of other workflows would be lost.
            let text = format!("{problem}; resolve the merge conflict in it, or remove it");
            return Err(fail(text, Exit::Invalid));
        }
        Err(problem) => {
            note(&format!("{problem}; writing a new one"));
            LockFile::default()
        }
    };
    let mut lock = before.clone();
    let counts = [
        (snapshots.iter().map(|s| s.rows.len()).sum(), ["repository", "repositories"]),
        (files.len(), ["file", "files"]),
        (versions.len(), ["model", "models"]),
    ];
    lock.update(workflow, snapshots, files, versions);
    if lock == before && path.exists() {
        note(&format!("{} is up to date", path.display()));
        return Ok(());
    }
    WholeFile::write(&path, lock.render().as_bytes()).map_err(cannot_write(&path))?;
    let (version, pinned) = (env!("CARGO_PKG_VERSION"), pinned(&counts));
    note(&format!("{}: {pinned} pinned by galeras {version}", path.display()));
    Ok(())
}

const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Until it is dropped, no other process changes the lock file: changes made between reading and
/// writing would be lost. The folder is locked, as the file is replaced; some file systems have no
/// locks.
async fn only_writer(lock_file: &Path) -> Option<File> {
    let folder = lock_file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = File::open(folder.unwrap_or(Path::new("."))).ok()?;
    let mut said = false;
    loop {
        match folder.try_lock() {
            Ok(()) => return Some(folder),
            Err(TryLockError::Error(_)) => return None,
            Err(TryLockError::WouldBlock) if !said => {
                note(&format!("waiting for the process that writes {}", lock_file.display()));
                said = true;
            }
            Err(TryLockError::WouldBlock) => tokio::time::sleep(LOOK_AGAIN).await,
        }
    }
}

/// Looks for registrations in a lock file that cannot be parsed.
fn holds_registrations(path: &Path) -> bool {
    text_of(path).contains("\"registrations\"")
}

/// The text of a lock file that cannot be parsed; empty if it cannot be read.
fn text_of(path: &Path) -> String {
    let text = small_file::read(path, MAX_LOCK_BYTES).unwrap_or_default();
    String::from_utf8_lossy(&text).into_owned()
}

/// `3 repositories and 1 file`.
fn pinned(counts: &[(usize, [&str; 2])]) -> String {
    let counted = |(n, names): &(usize, [&str; 2])| {
        (*n > 0).then(|| format!("{n} {}", names[usize::from(*n != 1)]))
    };
    let parts: Vec<String> = counts.iter().filter_map(counted).collect();
    match parts.split_last() {
        None => "nothing".into(),
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    }
}

/// The operator whose rows are answers.
const ANSWERS: &str = "generate";
/// The most deviations that are listed; the table has all of them.
const SAID: usize = 3;

/// Writes new analyses of `prereg` into the lock file; with `amend` also changed ones.
async fn register(plan: &Plan, store: &Store, file: &Path, amend: bool) -> Result<(), Failure> {
    let path = lock_path(file);
    let _only = only_writer(&path).await;
    let lock = LockFile::beside(file);
    let mut lock = lock.map_err(|problem| fail(problem, Exit::Invalid))?;
    let states = survey(plan, store, None).await?;
    let mut changed = false;
    let registered = plan.steps.iter().enumerate().filter(|(_, step)| step.registration.is_some());
    for (at, step) in registered {
        let name = &step.name;
        let results = results_of(plan, store, at, |at| states[at].manifest.is_some()).await?;
        let analysis = LockedAnalysis::of(plan, at, timestamp(), results.is_none());
        let known = lock.analyses_of(&plan.file_name());
        let own: Vec<&LockedAnalysis> = known.iter().filter(|one| one.step == *name).collect();
        if let Some(before) = own.iter().find(|before| before.agrees_with(&analysis)) {
            note(&format!("{name} is registered since {}", before.at));
            continue;
        }
        if let (Some(last), false) = (own.last(), amend) {
            note(&format!(
                "{name} was registered at {}, and is another analysis now; the registration stays. \
                 To register it as it is, beside the earlier one: galeras lock --amend",
                last.at
            ));
            continue;
        }
        match results {
            None => note(&format!("{name} is registered, before there are results")),
            Some(results) => note(&format!(
                "{name} is registered, but there are results already ({results}): its estimates \
                 count as exploratory"
            )),
        }
        lock.register(analysis);
        changed = true;
    }
    if changed {
        WholeFile::write(&path, lock.render().as_bytes()).map_err(cannot_write(&path))?;
    }
    Ok(())
}

/// The stored results that an analysis uses, in words: answers from any source or, in a study
/// without answers, the table that it reads.
async fn results_of(
    plan: &Plan,
    store: &Store,
    step: usize,
    is_stored: impl Fn(usize) -> bool,
) -> Result<Option<String>, RunError> {
    let below = plan.with_ancestors(&[step]);
    let operator = |at: usize| plan.steps[at].operator.descriptor().name;
    let answers: Vec<usize> = below.into_iter().filter(|at| operator(*at) == ANSWERS).collect();
    let about: Vec<usize> = match answers.is_empty() {
        true => plan.steps[step].upstream().collect(),
        false => answers.clone(),
    };
    for at in about {
        let name = &plan.steps[at].name;
        if is_stored(at) {
            return Ok(Some(format!("step {name} is computed")));
        }
        // The answers are from an unfinished run, or to other prompts.
        if answers.contains(&at) {
            let rows = stored_rows_of(&plan.steps[at], store).await?;
            if rows > 0 {
                return Ok(Some(format!("{} answers of step {name}", count(rows))));
            }
        }
    }
    Ok(None)
}

/// Reports at the end of a run which estimates match their registration.
pub(super) async fn show_registrations(plan: &Plan, store: &Store, results: &StepManifests) {
    for (at, step) in plan.steps.iter().enumerate() {
        let Some(registration) = &step.registration else { continue };
        if results.get(at).is_none_or(Option::is_none) {
            continue;
        }
        match summary(plan, store, at, results).await {
            Ok(counts) => note(&sentence(&step.name, registration, &counts)),
            Err(error) => note(&format!("{}: {error}", step.name)),
        }
    }
}

/// The number of registered and unregistered estimates of a step, with reasons.
struct RegisteredCounts {
    registered: usize,
    others: usize,
    deviations: Vec<String>,
}

async fn summary(
    plan: &Plan,
    store: &Store,
    step: usize,
    results: &StepManifests,
) -> Result<RegisteredCounts, Box<dyn std::error::Error>> {
    let estimates = || open_port(&session(1), store, plan, step, MAIN, results);
    let registered = estimates()?.filter(column("registered"))?.count().await?;
    let others = estimates()?.filter(column("registered").is_false())?;
    let reasons = others.clone().select(vec![column("deviation")])?.distinct()?;
    let reasons =
        reasons.sort(vec![column("deviation").sort(true, false)])?.limit(0, Some(SAID + 1))?;
    let mut deviations = Vec::new();
    for batch in reasons.collect().await? {
        let texts = cast(batch.column(0), &DataType::Utf8)?;
        deviations.extend(texts.as_string::<i32>().iter().flatten().map(str::to_string));
    }
    Ok(RegisteredCounts { registered, others: others.count().await?, deviations })
}

fn sentence(step: &str, registration: &Registration, counts: &RegisteredCounts) -> String {
    let RegisteredCounts { registered, others, deviations } = counts;
    let all = registered + others;
    if registration.analyses.is_empty() {
        return format!("{step}: `prereg` names it, but it is not registered; see `galeras lock`");
    }
    let mut text = format!("{step}: {registered} of {all} estimates are as registered");
    if !deviations.is_empty() {
        let more = if deviations.len() > SAID { "; …" } else { "" };
        let said: Vec<&str> = deviations.iter().take(SAID).map(String::as_str).collect();
        text.push_str(&format!("; the others are exploratory ({}{more})", said.join("; ")));
    }
    text
}
