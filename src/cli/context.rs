//! The context that verbs share: a workflow with its store and the state of its steps.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::allow::trust;
pub(super) use super::exit::{Exit, Failure, both, cannot_write, fail, failed};
use super::hint;
use super::recall::LookArgs;
use super::remote_args::RemoteArgs;
use super::screen::tell;
pub(super) use super::screen::{color, note, print, print_json, width};
use super::store_places::{StorePlaces, refuse_linked};
use super::{Format, Settings, WorkflowArgs};
use crate::registry::REGISTRY;
use galeras_base::visible::{escape, shell_word};
use galeras_engine::plan::{
    Input, Locking, Plan, PlanSettings, PlannedSigners, PlannedStep, plan, preflight,
};
use galeras_engine::runner::{Forecast, Remote, StepManifests, StepState, survey};
use galeras_operator::Consent;
use galeras_operator::event::Reason;
use galeras_store::{LockGuard, Manifest, Store};
use galeras_workflow::{Diagnostics, did_you_mean, render, to_json};

/// Shows diagnostics: for people on standard error, as JSON on standard output.
pub(super) fn show_diagnostics(diagnostics: &Diagnostics, format: Format) {
    if diagnostics.is_empty() {
        return;
    }
    match format {
        Format::Human => {
            let text = render(diagnostics.as_slice(), color(), usize::from(width()));
            tell(&text);
        }
        Format::Json => {
            for diagnostic in diagnostics {
                let mut line = serde_json::json!({"event": "diagnostic"});
                if let (Some(map), serde_json::Value::Object(rest)) =
                    (line.as_object_mut(), to_json(diagnostic))
                {
                    map.extend(rest);
                }
                // A failed write is reported when the program ends.
                let _ = print_json(&line);
            }
        }
    }
}

/// Plans the workflow, with outputs below the folder `out`; shows its errors.
async fn load_for(
    args: &WorkflowArgs,
    format: Format,
    lock: Locking,
    out: &Path,
) -> Result<Plan, Failure> {
    let consent = trust(&args.file, &args.set, &args.allow, None);
    load_with(args, Settings::typed(&args.set), format, lock, consent, out).await
}

async fn load_with(
    args: &WorkflowArgs,
    settings: Settings,
    format: Format,
    lock: Locking,
    consent: Arc<dyn Consent>,
    out: &Path,
) -> Result<Plan, Failure> {
    let cache = &args.store.cache;
    let (plan, diagnostics) = plan_file(&args.file, settings, cache, lock, consent, out).await?;
    show_diagnostics(&diagnostics, format);
    plan.ok_or_else(|| Exit::Invalid.into())
}

pub(super) async fn plan_file(
    file: &Path,
    Settings { set, folder }: Settings,
    cache: &str,
    lock: Locking,
    consent: Arc<dyn Consent>,
    out: &Path,
) -> Result<(Option<Plan>, Diagnostics), Failure> {
    let StorePlaces { downloads, guarded } = StorePlaces::of(cache)?;
    let settings = PlanSettings {
        set,
        set_folder: folder,
        working_dir: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
        downloads,
        out: out.to_path_buf(),
        guarded,
        lock,
        consent,
    };
    Ok(plan(file, REGISTRY, &settings).await)
}

pub(super) async fn open_store(location: &str) -> Result<Store, Failure> {
    refuse_linked(location)?;
    Ok(Store::open(location).await?)
}

/// A workflow with its store and the state of every step.
pub(super) struct Surveyed {
    pub(super) plan: Arc<Plan>,
    pub(super) store: Store,
    pub(super) states: Vec<StepState>,
    /// An additional source of results.
    pub(super) remote: Option<Arc<Remote>>,
    /// The store's location as typed.
    cache: String,
    /// Keeps results from being removed.
    _reading: LockGuard,
}

impl Surveyed {
    pub(super) async fn load(args: &WorkflowArgs, format: Format) -> Result<Self, Failure> {
        let plan = load_for(args, format, Locking::Pinned, Path::new(".")).await?;
        let store = open_store(&args.store.cache).await?;
        Self::of(plan, store, args, None).await
    }

    /// Like [`Surveyed::load`], with outputs below the folder `out`, and with the results of the
    /// remote unless using it needs consent first.
    pub(super) async fn load_with_remote(
        args: &WorkflowArgs,
        format: Format,
        out: &Path,
        remote: &RemoteArgs,
    ) -> Result<Self, Failure> {
        let mut plan = load_for(args, format, Locking::Pinned, out).await?;
        remote.settle(&mut plan);
        let consent = trust(&args.file, &args.set, &args.allow, Some(out));
        let remote = match RemoteArgs::refusal(&plan, &*consent) {
            Some(_) => None,
            None => remote.open(&plan).await?,
        };
        let store = open_store(&args.store.cache).await?;
        Self::of(plan, store, args, remote).await
    }

    /// Like [`Surveyed::load_with_remote`], but does not ask the remote for its results.
    pub(super) async fn load_beside_remote(
        args: &WorkflowArgs,
        format: Format,
        out: &Path,
        remote: &RemoteArgs,
    ) -> Result<Self, Failure> {
        let mut plan = load_for(args, format, Locking::Pinned, out).await?;
        remote.settle(&mut plan);
        let consent = trust(&args.file, &args.set, &args.allow, None);
        let signers = plan.allowed_signers.as_ref().map(PlannedSigners::access);
        let remote = match signers.and_then(|access| consent.refusal(&access)) {
            Some(_) => None,
            None => remote.open(&plan).await?,
        };
        let store = open_store(&args.store.cache).await?;
        let surveyed = Self::of(plan, store, args, None).await?;
        Ok(Self { remote, ..surveyed })
    }

    /// The workflow with the given settings, or else those of its last run.
    pub(super) async fn look(args: &LookArgs, format: Format) -> Result<Self, Failure> {
        let store = open_store(&args.workflow.store.cache).await?;
        let settings = args.settings(&store).await?;
        // Only settings typed now name files that may be read: a store may come from anywhere.
        let consent = trust(&args.workflow.file, &args.workflow.set, &args.workflow.allow, None);
        let (workflow, out) = (&args.workflow, Path::new("."));
        let plan = load_with(workflow, settings, format, Locking::Pinned, consent, out).await?;
        Self::of(plan, store, &args.workflow, None).await
    }

    /// The workflow with the results of the run that just ended.
    pub(super) async fn after_run(
        plan: Arc<Plan>,
        store: Store,
        results: &StepManifests,
        cache: &str,
    ) -> Result<Self, Failure> {
        let reading = store.reading_lock().await?;
        let state = |manifest: &Option<Arc<Manifest>>| StepState {
            forecast: match manifest {
                Some(_) => Forecast::Hit,
                None => Forecast::Broken("it did not run".to_string()),
            },
            manifest: manifest.clone(),
            preimage: None,
        };
        let states = results.iter().map(state).collect();
        let cache = cache.to_string();
        Ok(Self { plan, store, states, remote: None, cache, _reading: reading })
    }

    async fn of(
        plan: Plan,
        store: Store,
        args: &WorkflowArgs,
        remote: Option<Arc<Remote>>,
    ) -> Result<Self, Failure> {
        let reading = store.reading_lock().await?;
        let states = survey(&plan, &store, remote.as_deref()).await?;
        for warning in remote.iter().flat_map(|remote| remote.untold()) {
            note(&format!("warning: {}", escape(&warning)));
        }
        let cache = args.store.cache.clone();
        Ok(Self { plan: Arc::new(plan), store, states, remote, cache, _reading: reading })
    }

    /// The stored results, by position in the plan.
    pub(super) fn done(&self) -> Vec<Option<Arc<Manifest>>> {
        self.states.iter().map(|s| s.manifest.clone()).collect()
    }

    /// The missing requirements of the steps that would run.
    pub(super) fn lacking(&self) -> Diagnostics {
        let runs = |at: &usize| !self.states[*at].forecast.is_hit();
        preflight(&self.plan, (0..self.states.len()).filter(runs))
    }

    /// Resolves a table name (`valid`, `valid.rejects`, `gen[*]`) as `from:` does.
    pub(super) fn table(&self, name: &str) -> Result<Input, Failure> {
        let table = self.plan.table(name);
        table.map_err(|problem| fail(with_help(problem.message, problem.help), Exit::Invalid))
    }

    /// The same, if all of it is stored for the workflow in its current state.
    pub(super) fn computed_table(&self, name: &str) -> Result<Input, Failure> {
        let input = self.table(name)?;
        let missing = |step: &usize| self.states[*step].manifest.is_none();
        let missing: Vec<usize> = input.tables.iter().map(|t| t.step).filter(missing).collect();
        if missing.is_empty() { Ok(input) } else { Err(self.not_computed(&missing)) }
    }

    /// The rows of a table; `None` if not all of it is stored.
    pub(super) fn rows(&self, input: &Input) -> Option<u64> {
        let rows = input.tables.iter().map(|table| {
            let manifest = self.states[table.step].manifest.as_ref()?;
            manifest.port(table.port).map(|port| port.rows)
        });
        rows.sum()
    }

    /// The command that computes the missing results.
    pub(super) fn command(&self) -> String {
        hint::command("run", &self.plan.file, &self.plan.set, &self.cache)
    }

    /// The error that these steps have no stored result, and how to compute it.
    pub(super) fn not_computed(&self, missing: &[usize]) -> Failure {
        let steps: Vec<&PlannedStep> = missing.iter().map(|at| &self.plan.steps[*at]).collect();
        let mut names: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
        let state = match (missing, names.as_slice()) {
            ([at], [step]) => match &self.states[*at].forecast {
                Forecast::Runs { reason: Reason::BlobMissing, detail: Some(detail) } => {
                    format!("the result of `{step}` cannot be used, because {detail}")
                }
                _ => format!("`{step}` is not computed yet for the current workflow"),
            },
            (_, [first, ..]) => {
                let (more, step) = (names.len() - 1, first);
                format!("`{step}` and {more} more are not computed yet for the current workflow")
            }
            (_, []) => "nothing is computed yet".to_string(),
        };
        if names.len() > SELECTED {
            names = steps.iter().map(|step| step.family.as_str()).collect();
            names.dedup();
        }
        let select: String =
            names.iter().map(|name| format!(" --select {}", shell_word(name))).collect();
        fail(format!("{state}; run\n  {}{select}", self.command()), Exit::Failed)
    }
}

/// The most cells that a command names individually; otherwise it names their step.
const SELECTED: usize = 3;

pub(super) fn unknown_step(plan: &Plan, name: &str) -> Failure {
    let known = plan.table_names();
    // Ports and outputs of embedded workflows are not steps.
    let known = known.iter().map(String::as_str).filter(|name| !name.contains('.'));
    let message = format!("the workflow has no step `{name}`");
    fail_unknown(&message, name.split('[').next().unwrap_or(name), known, "the steps are")
}

/// `MESSAGE; HELP`
pub(super) fn with_help(message: String, help: Option<String>) -> String {
    match help {
        Some(help) => format!("{message}; {help}"),
        None => message,
    }
}

/// The error for an unknown name on the command line, with the closest name, or else with all known
/// names after `known_as` ("the steps are").
pub(super) fn fail_unknown<'a>(
    message: &str,
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
    known_as: &str,
) -> Failure {
    let known: Vec<&str> = known.into_iter().collect();
    let help = match did_you_mean(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("{known_as} {}", known.join(", ")),
    };
    fail(format!("{message}; {help}"), Exit::Invalid)
}
