//! `run`.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use tokio_util::sync::CancellationToken;

use super::consent::{can_ask, invalid, load_trusted, require};
use super::context::{
    Exit, Failure, Surveyed, both, color, note, open_results, settings_of_run, show_diagnostics,
    unknown_step,
};
use super::data::show_outputs;
use super::lock::show_registrations;
use super::process::{is_logging, watch_signals};
use super::remote::RemoteArgs;
use super::report::write_report;
use super::resources::{EngineArgs, MemoryArgs, all_threads};
use super::store_places::claim;
use super::{Format, Settings, WorkflowArgs, screen};
use galeras_base::terminal_escape::escape;
use galeras_display::{HumanReporter, JsonReporter};
use galeras_engine::plan::{Locking, Plan, preflight};
use galeras_engine::runner::{
    OutputOptions, Remote, RunOptions, RunOutcome, output_conflicts, run as run_plan, survey,
};
use galeras_engine::trust::{AccessRequest, Trust, report_request, requests};
use galeras_operator::RunEnv;
use galeras_operator::event::{EventSink, RunEvent, RunStatus, StepStatus};
use galeras_store::Store;
use galeras_study::{hint, table_name};

#[derive(Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    workflow: WorkflowArgs,
    #[command(flatten)]
    remote: RemoteArgs,
    /// Run only this step and its inputs (a matrix step: all its cells). May be repeated.
    #[arg(long, value_name = "STEP")]
    select: Vec<String>,
    /// Compute this step again although its result is stored. May be repeated.
    #[arg(long, value_name = "STEP")]
    force: Vec<String>,
    /// Fail if anything that the workflow asks of the world is not pinned in galeras.lock.
    #[arg(long)]
    frozen: bool,
    /// After a failure continue with the steps that do not depend on it.
    #[arg(long)]
    keep_going: bool,
    /// Threads to compute with (default: all).
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    #[command(flatten)]
    pub(super) memory: MemoryArgs,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    out: OutArgs,
    /// How to report.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Where output files go.
#[derive(Args, Clone, Debug)]
pub(super) struct OutArgs {
    /// The folder for output files.
    #[arg(long = "out", value_name = "DIR", default_value = ".")]
    pub(super) folder: PathBuf,
    /// Replace existing files at the paths of outputs that this workflow did not write, or that
    /// were changed since.
    #[arg(long)]
    overwrite: bool,
    /// Outputs may have no rows, as with `rows: { min: 0 }`.
    #[arg(long)]
    allow_empty: bool,
}

impl OutArgs {
    /// How outputs are written.
    pub(super) fn options(&self) -> OutputOptions {
        OutputOptions {
            folder: self.folder.clone(),
            overwrite: self.overwrite,
            allow_empty: self.allow_empty,
            digests: Arc::default(),
        }
    }
}

impl RunArgs {
    pub(crate) fn jobs(&self) -> usize {
        self.jobs.map_or_else(all_threads, usize::from)
    }
}

pub(crate) async fn run(args: RunArgs, started: Instant) -> Result<Exit, Failure> {
    let lock = if args.frozen { Locking::Frozen } else { Locking::Pinned };
    let trust = args.workflow.trust(Some(&args.out.folder));
    let refused = |failure| invalid(failure, args.format);
    let plan = load_trusted(&args.workflow, args.format, lock, &trust, &args.out.folder).await;
    let mut plan = plan.map_err(refused)?;
    let chosen = both(steps(&plan, &args.select), steps(&plan, &args.force));
    let (select, force) = chosen.map_err(refused)?;
    let store = open_results(&args.workflow).await?;
    let cache = args.workflow.cache()?;
    let engine = args.engine.open(&cache).map_err(refused)?;
    let wanted = match args.select.as_slice() {
        [] => (0..plan.steps.len()).collect(),
        _ => plan.with_ancestors(&select),
    };
    let outputs = args.out.options();
    let conflicts = output_conflicts(&plan, &store, &wanted, &outputs).await?;
    if !conflicts.is_empty() {
        show_diagnostics(&conflicts, args.format);
        return Err(refused(Exit::Invalid.into()));
    }
    args.remote.settle(&mut plan);
    // Before the user agrees, neither the workflow's remote nor its files are used.
    let mut remote = match RemoteArgs::refusal(&plan, &*trust) {
        Some(_) => None,
        None => args.remote.open(&plan).await?,
    };
    ready(&plan, &store, remote.as_deref(), &wanted, &force, &args, &trust).await.map_err(
        |failure| match failure.exit {
            Exit::Invalid => refused(failure),
            _ => failure,
        },
    )?;
    if remote.is_none() {
        remote = args.remote.open(&plan).await?;
    }
    let events: Arc<dyn EventSink> = match args.format {
        Format::Json => Arc::new(JsonReporter::new(screen::data_stdout())),
        Format::Human => {
            // Log lines would break the bars, so plain lines are used instead.
            let terminal = screen::is_terminal() && !is_logging();
            let err = Box::new(screen::stderr());
            Arc::new(HumanReporter::new(err, terminal, color(), screen::line_width))
        }
    };
    for step in force.iter().map(|at| &plan.steps[*at]).filter(|step| step.pinned) {
        events.send(RunEvent::Warning {
            step: Some(step.name.clone()),
            message: "pinned by galeras.lock; `galeras lock` asks again".into(),
        });
    }
    let cancel = CancellationToken::new();
    watch_signals(cancel.clone());
    let options = RunOptions {
        env: RunEnv {
            jobs: args.jobs(),
            memory: args.memory.bytes(),
            consent: trust,
            cancel,
            events: Arc::clone(&events),
        },
        select: (!args.select.is_empty()).then_some(select),
        force: force.into_iter().collect::<HashSet<_>>(),
        outputs: Some(outputs),
        remembered: settings_of_run(&args.workflow.file, &Settings::typed(&args.workflow.set)),
        keep_going: args.keep_going,
        engine,
        remote,
        started,
    };
    claim(&cache);
    if args.format == Format::Human {
        note(&format!("results are stored in {}", escape(&cache)));
    }
    let plan = Arc::new(plan);
    let outcome = run_plan(Arc::clone(&plan), store.clone(), options).await;
    let human = args.format == Format::Human;
    let mut exit = outcome.status.into();
    if outcome.status == RunStatus::Ok && args.select.is_empty() && human {
        // Shown at once: the run still has more to report.
        let shown = show_outputs(&plan, &store, &outcome.manifests).await;
        exit = shown.unwrap_or_else(Failure::show);
    }
    if let Some(report) = &plan.report.file
        && outcome.status == RunStatus::Ok
        && args.select.is_empty()
        && exit == Exit::Done
    {
        let path = args.out.folder.join(&report.path);
        let report = async {
            let (plan, store) = (Arc::clone(&plan), store.clone());
            let surveyed = Surveyed::after_run(plan, store, &outcome.manifests, &cache).await?;
            write_report(&surveyed, &path, args.out.overwrite, args.format).await
        };
        exit = report.await.unwrap_or_else(Failure::show);
    }
    if outcome.status == RunStatus::Ok && human {
        show_registrations(&plan, &store, &outcome.manifests).await;
    }
    // Sent last, so that its time includes everything.
    events.send(outcome.finished(started));
    if human && args.select.is_empty() && !args.keep_going && has_unwritten(&plan, &outcome) {
        note("no output was written; --keep-going writes those whose steps are done");
    }
    if human && let Some(text) = where_to_look(&plan, &outcome, &cache) {
        note(&text);
    }
    // The process ends: freeing a plan of thousands of cells would only take time.
    std::mem::forget((plan, outcome));
    Ok(exit)
}

/// Refuses to start if a step that will run lacks a requirement, or the user's consent.
async fn ready(
    plan: &Plan,
    store: &Store,
    remote: Option<&Remote>,
    wanted: &[usize],
    force: &[usize],
    args: &RunArgs,
    trust: &Trust,
) -> Result<(), Failure> {
    // The states of steps are only looked up if something asks for access.
    let mut all = requests(plan, wanted, Some(&args.out.folder), trust);
    if args.select.is_empty() {
        all.extend(report_request(plan, &args.out.folder));
    }
    let all = trust.open(all);
    if all.is_empty() && preflight(plan, wanted.iter().copied()).is_empty() {
        return Ok(());
    }
    let states = survey(plan, store, remote).await?;
    let misses = |at: &usize| force.contains(at) || !states[*at].forecast.is_hit();
    let lacking = preflight(plan, wanted.iter().copied().filter(misses));
    show_diagnostics(&lacking, args.format);
    if !lacking.is_empty() && can_ask(args.format) {
        return Err(Exit::Invalid.into());
    }
    let asked = requests_of_run(plan, wanted, misses, all, trust);
    require(&args.workflow, asked, trust, args.format)?;
    if lacking.is_empty() { Ok(()) } else { Err(Exit::Invalid.into()) }
}

/// The access requests of a run of the wanted steps: those of steps that are not complete hits, and
/// from `all` those about the remote and about writing outputs.
pub(super) fn requests_of_run(
    plan: &Plan,
    wanted: &[usize],
    misses: impl Fn(&usize) -> bool,
    all: Vec<AccessRequest>,
    trust: &Trust,
) -> Vec<AccessRequest> {
    // A hit may become a miss when one of its inputs is computed again.
    let mut runs = vec![false; plan.steps.len()];
    for at in 0..plan.steps.len() {
        runs[at] = misses(&at) || plan.steps[at].upstream().any(|upstream| runs[upstream]);
    }
    let running: Vec<usize> = wanted.iter().copied().filter(|at| runs[*at]).collect();
    // Outputs are written no matter which steps run.
    let mut asked = requests(plan, &running, None, trust);
    asked.extend(all.into_iter().filter(|request| !request.is_of_steps()));
    asked
}

fn steps(plan: &Plan, names: &[String]) -> Result<Vec<usize>, Failure> {
    let mut positions = Vec::new();
    for name in names {
        let matching = plan.matching(name);
        if matching.is_empty() {
            return Err(unknown_step(plan, name));
        }
        positions.extend(matching);
    }
    Ok(positions)
}

/// True if a failed step kept the output of other steps from being written.
fn has_unwritten(plan: &Plan, outcome: &RunOutcome) -> bool {
    let is_done = |step: usize| outcome.manifests.get(step).is_some_and(Option::is_some);
    outcome.status == RunStatus::Failed
        && plan.outputs.iter().any(|output| output.input.tables.iter().all(|t| is_done(t.step)))
}

/// The command that shows rows of this run: of the first output, or of the last step if there is
/// none; after a failed data test, the rows that it checked. `None` if no step has rows.
fn where_to_look(plan: &Plan, outcome: &RunOutcome, cache: &str) -> Option<String> {
    let table = match outcome.status {
        RunStatus::Ok => output_with_rows(plan, outcome).or_else(|| {
            let last = outcome.steps.iter().rev().find(|step| step.rows > 0);
            last.map(|step| step.step.clone())
        }),
        RunStatus::AssertFailed => {
            let tested = |status| status == StepStatus::Failed;
            let failed = outcome.steps.iter().find(|step| tested(step.status) && step.rows > 0);
            failed.map(|step| step.step.clone())
        }
        RunStatus::Failed | RunStatus::CacheFailed | RunStatus::Interrupted => None,
    }?;
    Some(format!("to see rows: {}", hint::show(&plan.file, &table, &plan.set, cache)))
}

fn output_with_rows(plan: &Plan, outcome: &RunOutcome) -> Option<String> {
    let tables = plan.outputs.iter().flat_map(|output| &output.input.tables);
    let mut named = tables.filter_map(|table| {
        let manifest = outcome.manifests.get(table.step)?.as_ref()?;
        let rows = manifest.port(table.port).map_or(0, |port| port.rows);
        (rows > 0).then(|| table_name(&plan.steps[table.step].name, table.port))
    });
    named.next()
}
